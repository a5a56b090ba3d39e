/* Checks a spec as a whole, once its fields are right one by one: what contradicts itself, what needs
 * something else, what is chosen where nothing is said. Pure. */
#include <ctype.h>
#include <string.h>

#include "common/base/near.h"
#include "common/job/field.h"
#include "common/job/python.h"

enum { NAME_MAX_TEXT = 40, BYTES = 256 };

static bool is_tokens(const struct job_spec *spec)
{
    return spec->data.format == JOB_DATA_TOKENS16 || spec->data.format == JOB_DATA_TOKENS32;
}

void job_spec_fill(struct job_spec *spec)
{
    struct model_shape preset = {0}, *shape = &spec->model.shape;
    if (*spec->model.preset)
        preset_shape(spec->model.preset, &preset);
    int *own[] = {&shape->layers, &shape->heads, &shape->width, &shape->context, &shape->vocabulary};
    const int named[] = {preset.layers, preset.heads, preset.width, preset.context, preset.vocabulary};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (!*own[i])
            *own[i] = named[i];
    if (!shape->vocabulary && !is_tokens(spec))
        shape->vocabulary = BYTES;
    if (!spec->workers.max)
        spec->workers.max = spec->workers.target;
}

/* One broken rule: the path at fault and the sentence. */
#define RULE(broken, at, ...)                                                                                \
    do {                                                                                                     \
        if (broken) {                                                                                        \
            *ret_path = (at);                                                                                \
            return err_set(err, ERR_USAGE, __VA_ARGS__);                                                     \
        }                                                                                                    \
    } while (0)

static bool name_fits(const char *name)
{
    size_t length = strlen(name);
    if (length < 1 || length > NAME_MAX_TEXT || !islower((unsigned char)name[0]) || name[length - 1] == '-')
        return false;
    return strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == length;
}

int job_spec_choose(struct job_spec *spec, bool trainer, bool launch, const char **ret_path,
                    struct error *err)
{
    RULE(trainer && launch, "launch",
         "is there beside spec.trainer; a job runs the built-in trainer or your program, so remove one");
    spec->launched = launch;
    return 0;
}

rm_time job_join_window(const struct job_spec *spec, bool pods)
{
    rm_time programs = 30 * RM_S,
            trainers = 10 * RM_S; /* a program loses more than a step by starting anew */
    if (spec->elasticity.join_window)
        return spec->elasticity.join_window;
    if (!pods)
        return 500 * RM_MS;
    return job_restarts(spec) ? programs : trainers;
}

rm_time job_first_window(const struct job_spec *spec)
{
    return job_restarts(spec) && spec->launch.preload.count ? 30 * RM_S : 0;
}

static int check_workers(const struct job_spec *spec, const char **ret_path, struct error *err)
{
    int min = spec->workers.min, max = spec->workers.max, target = spec->workers.target;
    RULE(min > target, "workers.min", "is %d, more than workers.target (%d); lower it or raise the target",
         min, target);
    RULE(max < target, "workers.max", "is %d, less than workers.target (%d); raise it or lower the target",
         max, target);
    RULE(max > spec->batch.lanes && !job_restarts(spec), "workers.max",
         "is %d, but there %s only %d lane%s to share out; set %s.batch.lanes to %d or more", max,
         spec->batch.lanes == 1 ? "is" : "are", spec->batch.lanes, spec->batch.lanes == 1 ? "" : "s",
         spec->launched ? "launch" : "trainer", max);
    return 0;
}

/* The names as one sentence has them, "gpt2-124m, gpt2-355m". */
static struct near preset_near(const char *preset)
{
    struct near near = near_to(preset);
    for (const char *name = preset_names(); *name; name += strspn(name, ", ")) {
        size_t length = strcspn(name, ",");
        near_try(&near, name, length);
        name += length;
    }
    return near;
}

static int check_model(const struct job_spec *spec, const char **ret_path, struct error *err)
{
    const struct model_shape *m = &spec->model.shape;
    struct model_shape known;
    const char *preset = spec->model.preset;
    RULE(*preset && !preset_shape(preset, &known), "trainer.model.preset", "is \"%s\"; there are %s%s",
         preset, preset_names(), preset_near(preset).question);
    RULE(!m->layers, "trainer.model.layers", "is missing; set it, or trainer.model.preset");
    RULE(!m->heads, "trainer.model.heads", "is missing; set it, or trainer.model.preset");
    RULE(!m->width, "trainer.model.width", "is missing; set it, or trainer.model.preset");
    RULE(!m->context, "trainer.model.context", "is missing; set it, or trainer.model.preset");
    RULE(m->width % m->heads, "trainer.model.heads",
         "is %d, which does not divide trainer.model.width (%d); choose a divisor of it", m->heads, m->width);
    RULE(!m->vocabulary, "trainer.model.vocabulary",
         "is missing; set it to the number of tokens that the tokenizer of the shards has");
    RULE(m->vocabulary < BYTES && !is_tokens(spec), "trainer.model.vocabulary",
         "is %d, but text has %d kinds of bytes; set %d or more, or leave it out", m->vocabulary, BYTES,
         BYTES);
    return 0;
}

bool job_uri_is_bucket(const char *uri)
{
    return !strncmp(uri, "s3://", 5);
}

bool job_data_is_remote(const struct job_spec *spec)
{
    return job_uri_is_bucket(spec->data.uri);
}

static bool is_endpoint(const char *text)
{
    return !*text || !strncmp(text, "http://", 7) || !strncmp(text, "https://", 8);
}

static int check_data(const struct job_spec *spec, const char **ret_path, struct error *err)
{
    uint8_t hash[RM_HASH_BYTES];
    RULE(!is_endpoint(spec->data.endpoint), "trainer.data.endpoint", "is %.200s; write http(s)://host[:port]",
         spec->data.endpoint);
    RULE(*spec->data.cache && strncmp(spec->data.cache, "file://", 7) != 0, "trainer.data.cache",
         "is %.200s; write a folder of this machine", spec->data.cache);
    RULE(*spec->data.tokenizer && spec->data.format == JOB_DATA_TEXT, "trainer.data.tokenizer",
         "is %.200s, but text has bytes for tokens, which need none; leave it out", spec->data.tokenizer);
    RULE(*spec->data.listing && !hex_decode(spec->data.listing, hash, sizeof hash), "trainer.data.listing",
         "is %.80s; it is a SHA-256 of %d hex digits", spec->data.listing, 2 * RM_HASH_BYTES);
    return 0;
}

static const char *const isas[] = {
    "Auto", "SSE41", "AVX", "AVX2", "AVX512_CORE", "AVX512_CORE_BF16", "AVX512_CORE_AMX"};

bool job_isa_is_known(const char *isa)
{
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++)
        if (!strcmp(isa, isas[i]))
            return true;
    return false;
}

static struct near isa_near(const char *isa)
{
    struct near near = near_to(isa);
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++)
        near_try(&near, isas[i], strlen(isas[i]));
    return near;
}

static int check_training(const struct job_spec *spec, const char **ret_path, struct error *err)
{
    const struct job_optimizer *o = &spec->optimizer;
    RULE(!job_isa_is_known(spec->isa), "trainer.isa", "is \"%s\"; write " JOB_ISA_WORDS "%s", spec->isa,
         isa_near(spec->isa).question);
    RULE(spec->device == JOB_DEVICE_GPU && spec->precision != JOB_BF16, "trainer.device",
         "is gpu, which computes in bf16 so far; set trainer.precision to bf16");
    RULE(o->warmup_steps > spec->steps, "trainer.optimizer.warmupSteps",
         "is %lld, more than trainer.steps (%lld); shorten the warm-up", (long long)o->warmup_steps,
         (long long)spec->steps);
    RULE(o->min_learning_rate > o->learning_rate, "trainer.optimizer.minLearningRate",
         "is %g, more than learningRate (%g); lower it", o->min_learning_rate, o->learning_rate);
    RULE(spec->evaluation.every_steps && spec->evaluation.hold_out <= 0, "trainer.evaluation.holdOut",
         "is 0, so there is nothing to evaluate on; set it to 0.02, say, or everySteps to 0");
    return 0;
}

/* A name as in `import a.b`. */
static bool is_module(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    bool begins = true;
    for (; *name; name++) {
        bool digit = *name >= '0' && *name <= '9', dot = *name == '.';
        if (begins ? !strchr(letters, *name) : !(dot || digit || strchr(letters, *name)))
            return false;
        begins = dot;
    }
    return !begins;
}

/* "train" is "/work/train.py", or what -m names. */
static bool is_script(const struct job_list *command, const struct python_command *python, const char *module)
{
    const char *script = python_script(command, python), *slash = strrchr(script, '/');
    const char *name = slash ? slash + 1 : script;
    size_t length = strcspn(name, ".");
    if (python->what != PYTHON_FILE)
        return python->what == PYTHON_MODULE && !strcmp(script, module);
    return strcspn(module, ".") == length && !strncmp(name, module, length);
}

static int check_preload(const struct job_spec *spec, const char **ret_path, struct error *err)
{
    const struct job_list *preload = &spec->launch.preload, *command = &spec->launch.command;
    struct python_command python;
    RULE(python_starts_ranks(command), "launch.preload",
         "means nothing to a launcher that starts the processes itself; write the program, and "
         "numProcPerNode");
    RULE(!python_command_read(command, &python), "launch.preload",
         "needs a command that begins with a Python and a script, not %.80s; leave it out",
         job_list_next(command, NULL));
    for (const char *name = NULL; (name = job_list_next(preload, name));) {
        RULE(!is_module(name), "launch.preload", "has \"%.80s\"; write names of modules, as [torch, numpy]",
             name);
        RULE(is_script(command, &python, name), "launch.preload",
             "has %.80s, which is the program itself; write the modules that it imports", name);
    }
    return 0;
}

/* One process a worker, which stays: a trainer beside it sums for it. */
static int check_elastic(const struct job_spec *spec, const char **ret_path, struct error *err)
{
    RULE(spec->launch.processes > 1, "launch.numProcPerNode",
         "is %d, but in mode Elastic a worker is one process; give each process a pod, or use Restart",
         spec->launch.processes);
    RULE(python_starts_ranks(&spec->launch.command), "launch.command",
         "is a launcher of ranks, but in mode Elastic a worker is one process; write the program itself, or "
         "use Restart");
    RULE(spec->launch.preload.count, "launch.preload",
         "means nothing in mode Elastic, whose processes stay; leave it out");
    return 0;
}

static int check_launch(const struct job_spec *spec, const char **ret_path, struct error *err)
{
    const struct job_list *command = &spec->launch.command;
    if (job_is_elastic(spec))
        return check_elastic(spec, ret_path, err);
    const char *own = python_starts_ranks(command) ? python_own_meeting(command) : NULL;
    RULE(own, "launch.command",
         "has %.80s, but how many torchruns there are and where they meet changes with the workers, and is "
         "told to "
         "each; leave it out",
         own);
    return spec->launch.preload.count ? check_preload(spec, ret_path, err) : 0;
}

/* A path that begins at the root and goes straight down. */
static bool is_straight(const char *path)
{
    for (const char *at = path; (at = strstr(at, "/.."));)
        if (at[3] == '/' || !at[3])
            return false;
        else
            at++;
    return *path == '/' && path[1];
}

static int check_process_paths(const struct job_spec *spec, const char **ret_path, struct error *err)
{
    const struct job_list *paths = &spec->checkpoint.process_paths;
    RULE(paths->count && !job_freezes(spec), "checkpoint.processPaths",
         "does nothing without checkpoint.process: CRIU; leave it out");
    for (const char *path = NULL; (path = job_list_next(paths, path));)
        RULE(!is_straight(path), "checkpoint.processPaths",
             "has \"%.80s\"; write files and folders of the pod from its root, as [/tmp/work]", path);
    return 0;
}

/* Snapshots are for one pod of a program that keeps nothing itself. */
static int check_process(const struct job_spec *spec, const char **ret_path, struct error *err)
{
    if (check_process_paths(spec, ret_path, err) < 0)
        return -1;
    if (!job_freezes(spec))
        return 0;
    RULE(!job_restarts(spec), "checkpoint.process",
         "is CRIU, for programs that save nothing; %s saves its state itself: leave it out, or use "
         "launch.mode: Restart",
         spec->launched ? "a job of mode Elastic" : "the built-in trainer");
    RULE(spec->workers.max > 1, "checkpoint.process",
         "is CRIU, but workers.max is %d: connections between pods lead to machines that will be gone; set "
         "workers.max to 1, or have the program save by itself",
         spec->workers.max);
    RULE(spec->launch.preload.count, "launch.preload",
         "does nothing beside checkpoint.process: CRIU, whose program lives again with its modules; leave it "
         "out");
    RULE(spec->checkpoint.every_steps, "checkpoint.everySteps",
         "is %lld beside checkpoint.process: CRIU, but who freezes a program knows no steps; write a time "
         "for every",
         (long long)spec->checkpoint.every_steps);
    return 0;
}

static int check_rest(const struct job_spec *spec, const char **ret_path, struct error *err)
{
    RULE(!is_endpoint(spec->checkpoint.endpoint), "checkpoint.endpoint",
         "is %.200s; write http(s)://host[:port]", spec->checkpoint.endpoint);
    RULE(spec->checkpoint.every == JOB_AUTO && spec->checkpoint.every_steps, "checkpoint.everySteps",
         "is %lld beside checkpoint.every: Auto, which chooses the time by what a save costs; leave it out, "
         "or write a time for every",
         (long long)spec->checkpoint.every_steps);
    if (check_process(spec, ret_path, err) < 0)
        return -1;
    RULE(spec->elasticity.lost_after < 2 * spec->elasticity.heartbeat, "elasticity.lostAfter",
         "must be twice elasticity.heartbeat or more, or one late heartbeat loses a worker");
    return 0;
}

int job_spec_check(const struct job_spec *spec, const char **ret_path, struct error *err)
{
    if (!name_fits(spec->name)) {
        *ret_path = "metadata.name";
        return err_set(
            err, ERR_USAGE,
            "is \"%s\"; use lower-case letters, digits and '-', a letter first, %d characters at most",
            spec->name, NAME_MAX_TEXT);
    }
    bool fits = spec->launched
                    ? check_launch(spec, ret_path, err) == 0
                    : check_model(spec, ret_path, err) == 0 && check_training(spec, ret_path, err) == 0 &&
                          check_data(spec, ret_path, err) == 0;
    if (!fits || check_rest(spec, ret_path, err) < 0)
        return -1;
    return check_workers(spec, ret_path, err);
}
