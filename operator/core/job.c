/* Projects a TrainingJob of the API into the members that plans look at. */
#include "operator/core/job.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/job/field.h"
#include "common/job/file.h"
#include "common/wire/json.h"
#include "operator/core/pod.h"
#include "operator/core/pod_frozen.h"
#include "operator/core/read.h"

#define SCRATCH_CACHE "file:///var/cache/ringmaster/data" /* on a volume that each worker gets */

static int read_metadata(const struct js *object, struct job_view *job, struct error *err)
{
    const struct js *metadata = js_get(object, "metadata");
    if (js_need_string(metadata, "name", job->name, sizeof job->name, err) < 0 ||
        js_need_string(metadata, "namespace", job->namespace_name, sizeof job->namespace_name, err) < 0 ||
        js_need_string(metadata, "uid", job->uid, sizeof job->uid, err) < 0)
        return err_wrap(err, "metadata");
    read_text(metadata, "resourceVersion", job->resource_version, sizeof job->resource_version);
    read_int(metadata, "generation", 0, INT64_MAX, &job->generation);
    read_instant(metadata, "creationTimestamp", &job->created_ms);
    job->deleting = js_get(metadata, "deletionTimestamp") != NULL;
    return 0;
}

static void read_duration(const struct js *spec, const char *path, int64_t *ret_ms)
{
    rm_time time;
    const char *text = js_as_string(read_at(spec, path));
    if (text && duration_parse(text, &time))
        *ret_ms = time / RM_MS;
}

static void read_rules(const struct js *list, struct job_view *job)
{
    for (size_t i = 0; i < js_size(list) && i < OP_RULES_MAX; i++) {
        char action[OP_REASON_MAX] = "";
        RM_ASSERT(job->rules_count < OP_RULES_MAX, "%d rules of exit codes, and one more", job->rules_count);
        struct op_rule *rule = &job->rule[job->rules_count++];
        const struct js *from = js_at(list, i), *codes = js_get(from, "onExitCodes");
        read_text(from, "action", action, sizeof action);
        rule->action = strcmp(action, "FailJob") == 0 ? OP_RULE_FAIL_JOB : OP_RULE_RESTART;
        for (size_t k = 0; k < js_size(codes) && rule->codes_count < OP_RULE_CODES_MAX; k++) {
            int64_t code;
            if (js_as_int(js_at(codes, k), &code) && code > 0 && code < 256)
                rule->code[rule->codes_count++] = (uint8_t)code;
        }
    }
}

static void read_policy(const struct js *spec, struct job_view *job)
{
    char word[OP_REASON_MAX] = "";
    read_text(spec, "scheduling.disruptionBudget", word, sizeof word);
    job->disruption_budget = strcmp(word, "None") != 0;
    job->surge = 1;
    read_small(spec, "scheduling.surge", 0, OP_SURGE_MAX, &job->surge);
    *word = 0;
    read_text(spec, "cleanPodPolicy", word, sizeof word);
    if (!strcmp(word, "All"))
        job->clean = OP_CLEAN_ALL;
    else
        job->clean = strcmp(word, "None") == 0 ? OP_CLEAN_NONE : OP_CLEAN_RUNNING;
    job->ttl_s = -1;
    read_int(spec, "activeDeadlineSeconds", 0, INT32_MAX, &job->active_deadline_s);
    read_int(spec, "ttlSecondsAfterFinished", 0, INT32_MAX, &job->ttl_s);
}

static int lanes_of(const struct js *spec)
{
    int lanes = 64;
    read_small(spec, "trainer.batch.lanes", 1, RM_LANES_MAX, &lanes);
    read_small(spec, "launch.batch.lanes", 1, RM_LANES_MAX, &lanes);
    RM_ASSERT(lanes >= 1 && lanes <= RM_LANES_MAX, "%d lanes", lanes);
    return lanes;
}

/* Without a workers.max a job may grow to a worker for each lane; programs in mode Restart have no lanes. */
static int most_workers(const struct js *spec)
{
    int most = RM_WORKERS_MAX;
    read_small(spec, "trainer.batch.lanes", 1, RM_WORKERS_MAX, &most);
    read_small(spec, "launch.batch.lanes", 1, RM_WORKERS_MAX, &most);
    RM_ASSERT(most >= 1 && most <= RM_WORKERS_MAX, "%d workers at most", most);
    return most;
}

static bool is_elastic(const struct js *launch)
{
    const char *mode = js_as_string(js_get(launch, "mode"));
    return mode && strcmp(mode, "Elastic") == 0;
}

static bool is_frozen(const struct js *spec)
{
    const char *process = js_as_string(read_at(spec, "checkpoint.process"));
    return process && strcmp(process, "CRIU") == 0;
}

/* A number of the file is a double here: exact to a millionth up to a billion. */
static int64_t read_micros(const struct js *spec, const char *path, int64_t most)
{
    RM_ASSERT(most > 0, "%s is %lld at most", path, (long long)most);
    double real;
    if (!js_as_real(read_at(spec, path), &real) || !(real >= 0 && real <= (double)most / PRICE_UNIT))
        return -1;
    return (int64_t)(real * PRICE_UNIT + 0.5);
}

static void read_spot(const struct js *spec, struct job_view *job)
{
    job->fallback.after = 5;
    job->fallback.within_ms = 30 * 60 * 1000;
    job->fallback.until_ms = 60 * 60 * 1000;
    read_flag(spec, "spot.prefer", &job->prefers_spot);
    read_small(spec, "spot.onDemandBase", 0, RM_WORKERS_MAX, &job->on_demand_base);
    read_small(spec, "spot.onDemandFallback.afterInterruptions", 0, 1000, &job->fallback.after);
    read_duration(spec, "spot.onDemandFallback.within", &job->fallback.within_ms);
    read_duration(spec, "spot.onDemandFallback.until", &job->fallback.until_ms);
}

static void read_prices(const struct js *spec, struct job_view *job)
{
    char currency[PRICE_CURRENCY_MAX + 1] = "";
    read_text(spec, "spot.price.currency", currency, sizeof currency);
    bool known = price_is_currency(currency);
    job->price[PRICE_ANY] = -1;
    job->price[PRICE_SPOT] = known ? read_micros(spec, "spot.price.spot", PRICE_MOST) : -1;
    job->price[PRICE_ON_DEMAND] = known ? read_micros(spec, "spot.price.onDemand", PRICE_MOST) : -1;
    text_copy(job->currency, sizeof job->currency, known ? currency : "");
}

/* A limit of nothing is none that anybody could keep to: the API server takes more than 0 alone. */
static void read_budget(const struct js *spec, struct job_view *job)
{
    double at = 0.8;
    int64_t limit = read_micros(spec, "cost.budget.limit", BUDGET_MOST);
    if (limit <= 0)
        return;
    js_as_real(read_at(spec, "cost.budget.warnAt"), &at);
    job->budget_micros = limit;
    job->warn_micros = at > 0 && at <= 1 ? (int64_t)((double)limit * at) : limit;
    RM_ASSERT(job->budget_micros > 0 && job->warn_micros >= 0, "a budget of %lld, a warning at %lld",
              (long long)job->budget_micros, (long long)job->warn_micros);
}

static void read_tokens(const struct js *spec, struct job_view *job)
{
    struct model_shape preset = {0};
    char name[OP_REASON_MAX] = "";
    int sequences = 1, context = 0;
    read_text(spec, "trainer.model.preset", name, sizeof name);
    if (preset_shape(name, &preset))
        context = preset.context;
    read_small(spec, "trainer.model.context", 1, 65536, &context);
    read_small(spec, "trainer.batch.laneSequences", 1, 4096, &sequences);
    job->step_tokens = job->launched ? 0 : (int64_t)job->lanes * sequences * context;
    RM_ASSERT(job->step_tokens >= 0, "a step of %lld tokens", (long long)job->step_tokens);
}

static void read_spec(const struct js *spec, struct job_view *job)
{
    char manager[RM_WHY_MAX] = OP_MANAGER;
    job->workers_min = 1;
    job->max_restarts = 5;
    job->start_timeout_ms = 5 * 60 * 1000;
    job->end_timeout_ms = 10 * 60 * 1000;
    job->lost_after_ms = 5 * 1000;
    job->restarts_within_ms = 60 * 60 * 1000;
    read_text(spec, "managedBy", manager, sizeof manager);
    job->managed = strcmp(manager, OP_MANAGER) == 0;
    read_flag(spec, "suspend", &job->suspend);
    const struct js *launch = js_get(spec, "launch");
    job->launched = launch && js_kind(launch) == JS_OBJECT;
    job->stepless = job->launched && !is_elastic(launch);
    job->freezes = job->stepless && is_frozen(spec);
    job->has_store = !job->stepless || read_at(spec, "checkpoint.uri");
    read_small(spec, "workers.target", 1, RM_WORKERS_MAX, &job->workers_target);
    job->lanes = job->stepless ? 0 : lanes_of(spec);
    job->workers_max = most_workers(spec);
    read_small(spec, "workers.min", 1, RM_WORKERS_MAX, &job->workers_min);
    read_small(spec, "workers.max", 1, RM_WORKERS_MAX, &job->workers_max);
    read_duration(spec, "elasticity.startTimeout", &job->start_timeout_ms);
    read_duration(spec, "elasticity.scaleUpCooldown", &job->scale_up_cooldown_ms);
    read_duration(spec, "elasticity.lostAfter", &job->lost_after_ms);
    read_duration(spec, "checkpoint.endTimeout", &job->end_timeout_ms);
    read_small(spec, "failurePolicy.maxRestarts", 0, 1000, &job->max_restarts);
    read_duration(spec, "failurePolicy.within", &job->restarts_within_ms);
    read_rules(read_at(spec, "failurePolicy.rules"), job);
    read_policy(spec, job);
    read_spot(spec, job);
    read_prices(spec, job);
    read_duration(spec, "cost.idleAfter", &job->idle_after_ms);
    read_budget(spec, job);
    read_tokens(spec, job);
    RM_ASSERT(job->workers_min >= 1 && job->workers_max >= 1 && job->workers_max <= RM_WORKERS_MAX,
              "%d to %d workers", job->workers_min, job->workers_max);
}

int job_project(const struct js *object, struct job_view *ret, struct error *err)
{
    const struct js *spec;
    struct job_view job = {0};
    if (read_metadata(object, &job, err) < 0 || js_need(object, "spec", JS_OBJECT, &spec, err) < 0)
        return -1;
    struct str text = str_init(OP_SPEC_TEXT_MAX);
    js_print(spec, &text);
    if (text.truncated) {
        str_clear(&text);
        return err_set(err, ERR_PROTOCOL, "spec is longer than %d bytes", OP_SPEC_TEXT_MAX);
    }
    read_spec(spec, &job);
    status_read(js_get(object, "status"), &job.status);
    job.spec = text.data;
    *ret = job;
    return 0;
}

void job_clear(struct job_view *job)
{
    free(job->spec);
    *job = (struct job_view){0};
}

/* The worker image brings something to train on. */
static bool is_in_image(const char *uri)
{
    static const char folder[] = "file:///usr/share/ringmaster/";
    return !strncmp(uri, folder, sizeof folder - 1);
}

/* A file:// place is on the pod's own disk unless a volume is mounted there; read: it is enough that each pod
 * finds it there, else all must share it. */
static int check_place(const struct job_view *job, const char *field, const char *uri, bool read,
                       struct error *err)
{
    if (strncmp(uri, "file://", 7) != 0 || (read && is_in_image(uri)) ||
        pod_template_holds(job, uri + 7, read))
        return 0;
    return err_set(err, ERR_USAGE,
                   "spec.%s is %.200s, but spec.workers.template mounts no %svolume there; "
                   "mount one at that path or above it, or write s3://bucket/prefix",
                   field, uri, read ? "" : "shared ");
}

/* What the template says of its pods, held against a job whose processes are frozen. */
static int check_freezing(const struct job_view *job, const struct job_spec *spec, struct error *err)
{
    if (!job_freezes(spec))
        return 0;
    struct js *said = js_parse(job->spec, strlen(job->spec), "spec", err);
    if (!said)
        return -1;
    int status = pod_frozen_refuse(read_at(said, "workers.template.spec"), err);
    js_free(said);
    return status;
}

static int complete(const struct job_view *job, struct job_spec *spec, struct error *err)
{
    if (check_freezing(job, spec, err) < 0)
        return -1;
    if (check_place(job, "trainer.data.uri", spec->data.uri, true, err) < 0 ||
        check_place(job, "trainer.data.tokenizer", spec->data.tokenizer, true, err) < 0 ||
        check_place(job, "trainer.model.init", spec->model.init, true, err) < 0 ||
        check_place(job, "checkpoint.uri", spec->checkpoint.uri, false, err) < 0)
        return -1;
    if (job_data_is_remote(spec) && !*spec->data.cache)
        text_copy(spec->data.cache, sizeof spec->data.cache, SCRATCH_CACHE);
    /* Written out: the template may name an image from before there was an Auto. */
    spec->elasticity.join_window = job_join_window(spec, true);
    return 0;
}

int job_check_cache(const struct job_view *job, struct error *err)
{
    char data[RM_URI_MAX] = "", cache[RM_URI_MAX] = "", place[RM_URI_MAX];
    struct js *spec = js_parse(job->spec, strlen(job->spec), "spec", err);
    if (!spec)
        return -1;
    read_text(spec, "trainer.data.uri", data, sizeof data);
    read_text(spec, "trainer.data.cache", cache, sizeof cache);
    js_free(spec);
    if (strncmp(data, "s3://", 5) != 0 || strncmp(cache, "file://", 7) != 0)
        return 0;
    if (job_uri_resolve(cache, "", place, err) < 0)
        return err_wrap(err, "spec.trainer.data.cache");
    if (pod_keeps(job, place + 7))
        return 0;
    return err_set(err, ERR_USAGE,
                   "spec.trainer.data.cache is %.200s, but spec.workers.template mounts no volume there that "
                   "can be written to; mount one at that path or above it, or leave the field out",
                   cache);
}

int job_effective_spec(const struct job_view *job, struct str *out, struct error *err)
{
    struct job_spec spec;
    struct js *parsed = js_parse(job->spec, strlen(job->spec), "spec", err);
    if (!parsed)
        return -1;
    struct js *object = js_object(), *metadata = js_object();
    js_set_string(metadata, "name", job->name);
    js_set(object, "metadata", metadata);
    js_set(object, "spec", parsed);
    if (!read_at(parsed, "workers.max") && read_at(parsed, "workers"))
        js_set_int((struct js *)(uintptr_t)read_at(parsed, "workers"), "max", most_workers(parsed));
    int status = job_spec_from_object(&spec, object, err);
    js_free(object);
    if (status == 0)
        status = complete(job, &spec, err);
    if (status == 0)
        job_spec_write(&spec, out);
    return status;
}
