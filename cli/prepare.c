/* Looks for all that can be found wrong before a process is started, and chooses what the run goes on
 * from. */
#include "cli/prepare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "cli/folders.h"
#include "cli/programs.h"
#include "cli/run_picture.h"
#include "common/base/software.h"
#include "common/job/file.h"
#include "common/model/arrays.h"
#include "common/os/clock.h"
#include "common/os/config.h"
#include "common/os/cores.h"
#include "common/os/crypto.h"
#include "common/os/fault.h"
#include "common/os/log.h"
#include "common/storage/checkpoint/model_folder.h"
#include "common/storage/checkpoint/place.h"
#include "common/storage/checkpoint/remote_data.h"
#include "common/storage/checkpoint/tokenizer_file.h"
#include "common/storage/data/cache.h"
#include "common/storage/data/identify.h"

static int read_job(struct job_spec *spec, const struct run_options *options, struct error *err)
{
    struct str notes = str_init(16384);
    int status = job_file_read(spec, options->file, options->sets, options->sets_count, &notes, err);
    if (status == 0)
        fputs(str_text(&notes), stderr);
    str_clear(&notes);
    return status;
}

static int check_environment(struct error *err)
{
    const char *forced = config_get(CONFIG_TRAINER_ISA);
    if (forced && !job_isa_is_known(forced))
        return err_set(err, ERR_USAGE, "RINGMASTER_TRAINER_ISA is \"%.40s\"; write " JOB_ISA_WORDS, forced);
    return log_check(err);
}

/* Parameters and both moments lie in one file of the memory, and the limit holds for those, too. */
static int check_file_limit(int64_t parameters, struct error *err)
{
    struct rlimit limit;
    long long need = MODEL_ARRAYS * (long long)sizeof(float) * parameters;
    if (getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur >= (rlim_t)need)
        return 0;
    return err_set(
        err, ERR_MACHINE,
        "files may have %llu bytes at most here, but the state of the training has %lld: raise the "
        "limit (ulimit -f)",
        (unsigned long long)limit.rlim_cur, need);
}

static int check_folders(const struct job_spec *spec, struct error *err)
{
    if (*spec->model.init && folder_within(spec->model.init, spec->checkpoint.uri))
        return err_set(err, ERR_USAGE,
                       "spec.trainer.model.init (%.200s) lies within spec.checkpoint.uri: this run's own "
                       "checkpoints would replace it; choose another folder for them",
                       spec->model.init);
    if (folder_within(spec->checkpoint.uri, spec->data.uri))
        return err_set(
            err, ERR_USAGE,
            "spec.checkpoint.uri (%.200s) lies within spec.trainer.data.uri: its files would become data; "
            "choose another folder",
            spec->checkpoint.uri);
    return 0;
}

static int check_init(const struct job_spec *spec, struct error *err)
{
    struct model_shape there;
    const struct model_shape *here = &spec->model.shape;
    struct object_store *store;
    if (!*spec->model.init)
        return 0;
    if (place_open_init(&store, spec, err) < 0)
        return err_wrap(err, "spec.trainer.model.init");
    int status = model_folder_shape(store, &there, err);
    object_free(store);
    if (status < 0)
        return err_wrap(err, "spec.trainer.model.init");
    const struct {
        const char *name;
        int here, there;
    } sizes[] = {{"layers", here->layers, there.layers},
                 {"heads", here->heads, there.heads},
                 {"width", here->width, there.width},
                 {"context", here->context, there.context},
                 {"vocabulary", here->vocabulary, there.vocabulary}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].here != sizes[i].there)
            return err_set(err, ERR_DATA,
                           "spec.trainer.model.%s is %d, but the model in %.200s has %d; write %d",
                           sizes[i].name, sizes[i].here, spec->model.init, sizes[i].there, sizes[i].there);
    return 0;
}

static int open_data(struct prepared *p, struct corpus **ret, struct error *err)
{
    const struct job_spec *s = &p->spec;
    struct corpus *corpus;
    int64_t batch = (int64_t)s->batch.lanes * s->batch.lane_sequences;
    int64_t sequences = s->evaluation.every_steps ? s->evaluation.sequences : 0;
    struct corpus_source source = p->remote ? remote_data_source(p->remote) : (struct corpus_source){0};
    struct corpus_options options = {.uri = s->data.uri,
                                     .source = p->remote ? &source : NULL,
                                     .format = (enum corpus_format)s->data.format,
                                     .context = s->model.shape.context,
                                     .vocabulary = s->model.shape.vocabulary,
                                     .hold_out = s->evaluation.hold_out};
    if (corpus_open(&corpus, &options, err) < 0)
        return -1;
    if (corpus_check(corpus, batch, sequences, err) < 0) {
        corpus_free(corpus);
        return -1;
    }
    p->data_files = corpus_files(corpus);
    p->data_bytes = corpus_bytes(corpus);
    p->data_tokens = corpus_tokens(corpus);
    p->data_samples = corpus_training(corpus);
    p->spec.data.format = (enum job_data_format)corpus_format(corpus); /* what Auto means here */
    if (p->spec.data.format == JOB_DATA_TEXT && *p->spec.data.tokenizer) {
        corpus_free(corpus);
        return err_set(err, ERR_USAGE,
                       "spec.trainer.data.tokenizer is %.200s, but the data are text, which has bytes for "
                       "tokens and needs none; leave it out",
                       p->spec.data.tokenizer);
    }
    *ret = corpus;
    return 0;
}

/* *ret: the data, hashed in this way, are what the checkpoint found was trained on. */
static int compare_data(const struct prepared *p, const struct corpus *corpus, enum identity_kind kind,
                        bool *ret, struct error *err)
{
    char cache[RM_URI_MAX];
    struct corpus_identity now;
    struct identify_options options = {.kind = kind,
                                       .times = p->spec.data.trust != JOB_DATA_CONTENT,
                                       .threads = cores_usable(),
                                       .cache = p->looks ? NULL : cache,
                                       .cache_bytes = p->spec.data.cache_bytes};
    cache_folder(p->spec.data.cache, cache);
    if (corpus_identify(corpus, &options, &now, err) < 0)
        return -1;
    *ret = !memcmp(now.sha256, p->resume.manifest.data.sha256, sizeof now.sha256);
    return 0;
}

/* Other files need not be read to be other data. */
static bool may_be_data(const struct manifest *m, const struct corpus *corpus)
{
    return m->data.files < 0 ||
           (m->data.files == corpus_files(corpus) && m->data.bytes == corpus_bytes(corpus));
}

/* A checkpoint does not say how the hash of its data was made, but both ways can be tried; a job keeps that
 * of what it goes on from. */
static int check_data(struct prepared *p, const struct corpus *corpus, struct error *err)
{
    const struct manifest *m = &p->resume.manifest;
    enum job_data_hash first = p->spec.data.hash;
    enum job_data_hash other = first == JOB_DATA_TREE ? JOB_DATA_CHAIN : JOB_DATA_TREE;
    bool same = p->data_checked;
    for (int try = 0; try < 2 && !same && may_be_data(m, corpus); try++) {
        enum job_data_hash hash = try ? other : first;
        if (compare_data(p, corpus, (enum identity_kind)hash, &same, err) < 0)
            return -1;
        if (same)
            p->spec.data.hash = hash;
    }
    if (same)
        return 0;
    char sizes[128] = "";
    if (m->data.files >= 0)
        snprintf(sizes, sizeof sizes, " (%lld files with %lld bytes then, %lld with %lld now)",
                 (long long)m->data.files, (long long)m->data.bytes, (long long)corpus_files(corpus),
                 (long long)corpus_bytes(corpus));
    return err_set(
        err, ERR_DATA,
        "the data in %.160s is not what %.100s was trained on%s; bring it back, or start anew with "
        "--overwrite",
        p->spec.data.uri, p->resume.entry.name, sizes);
}

#define NOT_EXACT "spec.trainer.allowMixedHardware: true (the result is then not exact)"

static int check_fingerprint(const struct prepared *p, struct error *err)
{
    char now[RM_FINGERPRINT_MAX];
    const char *then = p->resume.manifest.fingerprint;
    if (p->spec.reduction != JOB_EXACT || p->spec.allow_mixed_hardware)
        return 0;
    if (p->spec.device == JOB_DEVICE_GPU) /* a trainer that has one knows: the coordinator compares */
        return 0;
    if (trainer_fingerprint(&p->spec, now, sizeof now, err) < 0)
        return -1;
    if (!strcmp(now, then))
        return 0;
    char made_by[RM_FINGERPRINT_MAX], own[RM_FINGERPRINT_MAX];
    if (software_differs(then, now, made_by, own))
        return err_set(err, ERR_DATA,
                       "%s was made by another build (%.60s; this one: %.60s), whose bits differ: go on with "
                       "the programs that made it, or with these and " NOT_EXACT ", or --overwrite",
                       p->resume.entry.name, made_by, own);
    return err_set(err, ERR_DATA,
                   "%s was made by other arithmetic (%.120s; here: %.120s), whose bits differ: go on where "
                   "it was made, or here with " NOT_EXACT ", or --overwrite",
                   p->resume.entry.name, then, now);
}

/* May this job go on from the checkpoint found? */
static int check_resume(struct prepared *p, const struct corpus *corpus, struct error *err)
{
    const char *compared = p->resume.manifest.compared;
    if (!p->spec.checkpoint.resume)
        return err_set(
            err, ERR_USAGE,
            "spec.checkpoint.resume is Never, but %.200s holds %s; choose another folder, or --overwrite",
            p->spec.checkpoint.uri, p->resume.entry.name);
    if (job_spec_compare(&p->spec, compared, strlen(compared), err) < 0) {
        struct error why = *err;
        return err_set(err, why.code,
                       "%.260s; change it back, or choose another spec.checkpoint.uri, or --overwrite",
                       why.text);
    }
    if (job_is_elastic(&p->spec))
        return 0; /* its data and arithmetic the program alone knows; workers tell each other of them */
    if (check_data(p, corpus, err) < 0)
        return -1;
    return p->complete ? 0 : check_fingerprint(p, err);
}

/* Of a job that is complete they come to nothing, and are read as they would be with --overwrite. */
static int check_drills(struct drill_list *drills, const struct prepared *p, struct error *err)
{
    struct drill_terms terms = {.workers_min = p->spec.workers.min,
                                .workers_max = p->spec.workers.max,
                                .workers_target = p->spec.workers.target,
                                .steps = job_restarts(&p->spec) ? 0 : p->spec.steps,
                                .proven = !job_restarts(&p->spec) && p->spec.reduction == JOB_EXACT,
                                .resume_step = p->resume.found && !p->complete ? p->resume.entry.step : 0};
    return drill_list_check(drills, &terms, err);
}

static void say_waiting(void *ctx, const char *text)
{
    (void)ctx;
    fprintf(stderr, "ringmaster: %s\n", text);
}

static int own_checkpoints(struct prepared *p, bool look, struct error *err)
{
    char run[OWNER_RUN_MAX];
    struct object_options place = {.uri = p->spec.checkpoint.uri,
                                   .endpoint = p->spec.checkpoint.endpoint,
                                   .region = p->spec.checkpoint.region};
    owner_run(p->key, sizeof p->key, run);
    struct owner_options owner = {.place = &place, .run = run, .title = p->spec.name, .waiting = say_waiting};
    if (place_open_checkpoints(&p->store, &p->spec, NULL, err) < 0)
        return err_wrap(err, "spec.checkpoint");
    if (look)
        return owner_look(p->spec.checkpoint.uri, err);
    if (owner_open(&p->owner, &owner, err) < 0)
        return -1;
    if (!owner_is_fenced(p->owner)) {
        char text[RM_URI_MAX];
        owner_unfenced_sentence(p->owner, text, sizeof text);
        say_waiting(NULL, text);
    }
    return 0;
}

/* The listing that the job was told to take, or else that of the checkpoint found. *ret_found false: there is
 * none, as the job begins or had its data elsewhere until now. */
static int take_kept_listing(struct prepared *p, bool *ret_found, struct error *err)
{
    uint8_t sha256[RM_HASH_BYTES];
    struct error why = {0};
    bool told = hex_decode(p->spec.data.listing, sha256, sizeof sha256);
    *ret_found = false;
    if (!told && !p->resume.found)
        return 0;
    if (!told)
        memcpy(sha256, p->resume.manifest.data.sha256, sizeof sha256);
    *ret_found = remote_data_take_kept(p->remote, p->store, sha256, &why) == 0;
    if (*ret_found)
        hex_encode(sha256, sizeof sha256, p->spec.data.listing);
    if (*ret_found || (!told && why.code == ERR_NOT_FOUND))
        return 0;
    if (why.code == ERR_NOT_FOUND)
        return err_set(err, ERR_DATA,
                       "spec.trainer.data.listing: no such listing is kept in %.200s; leave the field out",
                       p->spec.checkpoint.uri);
    *err = why;
    return -1;
}

/* Which files of a store the job's data are, for all its life. */
static int settle_remote(struct prepared *p, struct corpus **ret, bool look, struct error *err)
{
    uint8_t sha256[RM_HASH_BYTES];
    bool found;
    if (!p->remote)
        return 0;
    if (take_kept_listing(p, &found, err) < 0 || open_data(p, ret, err) < 0)
        return -1;
    hex_decode(p->spec.data.listing, sha256, sizeof sha256);
    p->data_checked = found && !memcmp(sha256, p->resume.manifest.data.sha256, sizeof sha256);
    if (found)
        return 0;
    if (p->resume.found && check_data(p, *ret, err) < 0)
        return -1;
    p->data_checked = true;
    if (look)
        return 0;
    if (remote_data_keep(p->remote, p->store, *ret, sha256, err) < 0)
        return -1;
    hex_encode(sha256, sizeof sha256, p->spec.data.listing);
    return 0;
}

static int find_resume(struct prepared *p, struct corpus **corpus, struct run_options *options,
                       struct error *err)
{
    p->resume = (struct checkpoint_resume){0};
    if (own_checkpoints(p, options->look, err) < 0)
        return -1;
    FAULT("folder-locked");
    if (!options->overwrite && checkpoint_newest(p->store, p->spec.steps, &p->resume, err) < 0)
        return -1;
    /* weights that exist do not hang on a text */
    if (!p->resume.found && tokenizer_file_check(&p->spec, NULL, err) < 0)
        return -1;
    if (options->overwrite) {
        if (check_drills(&options->drills, p, err) < 0 || settle_remote(p, corpus, false, err) < 0 ||
            checkpoint_delete_all(p->store, err) < 0 ||
            remote_data_keep_only(p->store, p->remote ? p->spec.data.listing : "", err) < 0)
            return -1;
        run_picture_remove(p->store);
        return 0;
    }
    if (settle_remote(p, corpus, options->look, err) < 0)
        return -1;
    p->complete = p->resume.found && p->resume.entry.final && p->resume.entry.step == p->spec.steps;
    if (p->resume.found && check_resume(p, *corpus, err) < 0)
        return -1;
    return check_drills(&options->drills, p, err);
}

static int64_t count_parameters(const struct model_shape *shape)
{
    struct model_layout *layout = malloc(sizeof *layout);
    if (!layout)
        abort();
    model_layout_init(layout, shape);
    int64_t parameters = layout->parameters;
    free(layout);
    return parameters;
}

/* What can be known before the checkpoints are looked at. */
static int find_data(struct prepared *p, struct corpus **ret, struct error *err)
{
    if (!job_data_is_remote(&p->spec))
        return open_data(p, ret, err);
    return remote_data_open(&p->remote, &p->spec, err);
}

/* What freezing a program takes (rights, an image, pids that are free) only a pod of its own has. */
static int refuse_freezing(const struct run_options *options, struct error *err)
{
    return err_set(
        err, ERR_USAGE,
        "%.60s: spec.checkpoint.process is CRIU, which works in a cluster only; write None for run, "
        "where a program that is lost starts anew",
        options->file);
}

/* A program brings its own model and data; what can be known is whether it is there. */
static int prepare_program(struct prepared *p, struct run_options *options, struct error *err)
{
    if (job_freezes(&p->spec))
        return refuse_freezing(options, err);
    const char *program = job_list_next(&p->spec.launch.command, NULL);
    enum program_found found = program_find(program);
    if (found == PROGRAM_NOT_EXECUTABLE)
        return err_set(
            err, ERR_USAGE,
            "spec.launch.command: %.200s is not executable; chmod +x it, or put what runs it in front, "
            "as [python3, train.py]",
            program);
    if (found == PROGRAM_MISSING)
        return err_set(
            err, ERR_USAGE,
            "spec.launch.command: there is no program %.200s to run, here or in PATH; its first word is "
            "the program alone, its arguments are words of their own",
            program);
    struct corpus *none = NULL; /* its data the program alone knows */
    if (job_is_elastic(&p->spec))
        return find_resume(p, &none, options, err);
    if (job_has_store(&p->spec) && own_checkpoints(p, options->look, err) < 0)
        return -1;
    return check_drills(&options->drills, p, err);
}

int prepare(struct prepared *p, struct run_options *options, struct error *err)
{
    struct corpus *corpus = NULL;
    p->complete = false;
    p->store = NULL;
    p->owner = NULL;
    p->remote = NULL;
    p->data_checked = false;
    p->looks = options->look;
    crypto_random(p->key, sizeof p->key);
    if (check_environment(err) < 0 || read_job(&p->spec, options, err) < 0)
        return -1;
    if (p->spec.launched)
        return prepare_program(p, options, err);
    if (check_folders(&p->spec, err) < 0 || check_init(&p->spec, err) < 0 || find_data(p, &corpus, err) < 0)
        return -1;
    p->parameters = count_parameters(&p->spec.model.shape);
    int status = check_file_limit(p->parameters, err);
    if (status == 0)
        status = find_resume(p, &corpus, options, err);
    corpus_free(corpus);
    return status;
}

void prepared_clear(struct prepared *p)
{
    owner_free(p->owner);
    object_free(p->store);
    remote_data_free(p->remote);
    explicit_bzero(p->key, sizeof p->key);
}
