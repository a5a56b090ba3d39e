/* The core's words in JSON and OpenMetrics, for the shell. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "agent/rdzv/rdzv_state.h"
#include "common/wire/json.h"

static const char *const cause_names[CAUSES] = {
    [CAUSE_NONE] = "None",
    [CAUSE_WORKER_LOST] = "WorkerLost",
    [CAUSE_WORKER_LEFT] = "WorkerLeft",
    [CAUSE_WORKER_JOINED] = "WorkerJoined",
    [CAUSE_TRAINER_EXIT] = "TrainerExit",
    [CAUSE_HANG] = "Hang",
    [CAUSE_RING_ERROR] = "RingError",
    [CAUSE_COORDINATOR_LOST] = "CoordinatorLost",
};

const char *rdzv_cause_name(enum rdzv_cause cause)
{
    return cause_names[cause];
}

/* ---- events ---- */

void rdzv_set_uri(struct js *o, const char *base, int64_t step, bool final)
{
    struct str uri = str_init(RM_URI_MAX + 32);
    str_adds(&uri, base);
    if (final)
        str_adds(&uri, "/final");
    else
        str_addf(&uri, "/step-%08" PRId64, step);
    js_set_string(o, "uri", str_text(&uri));
    str_clear(&uri);
}

static void set_formed(struct js *o, const struct rdzv_tell *t)
{
    struct js *members = js_array();
    for (int i = 0; i < t->members; i++) {
        struct js *m = js_object();
        js_set_int(m, "worker", t->member[i].worker);
        js_set_int(m, "agentPid", t->member[i].agent_pid);
        js_set_int(m, "trainerPid", t->member[i].trainer_pid);
        js_push(members, m);
    }
    js_set_int(o, "term", t->generation.term);
    js_set_int(o, "generation", t->generation.n);
    js_set_int(o, "world", t->world);
    js_set_int(o, "step", t->step);
    if (t->members)
        js_set(o, "members", members);
    else
        js_free(members);
}

void rdzv_set_recovered(struct js *o, const struct rdzv_recovery *r)
{
    js_set_string(o, "cause", rdzv_cause_name(r->cause));
    js_set_real(o, "detectMs", rm_ms(r->detect));
    js_set_real(o, "agreeMs", rm_ms(r->agree));
    js_set_real(o, "ringMs", rm_ms(r->ring));
    js_set_real(o, "stateMs", rm_ms(r->state));
    js_set_real(o, "firstStepMs", rm_ms(r->first_step));
    js_set_real(o, "totalMs", rm_ms(r->total));
    js_set_int(o, "stepsRedone", r->steps_redone);
}

static void set_complete(struct js *o, const struct rdzv_tell *t, const char *uri)
{
    char hex[RM_HASH_HEX];
    hex_encode(t->digest, RM_HASH_BYTES, hex);
    js_set_int(o, "step", t->step);
    js_set_real(o, "loss", t->loss);
    js_set_string(o, "weightsSha256", hex);
    js_set_bool(o, "exact", t->exact);
    js_set_real(o, "goodput", t->goodput);
    rdzv_set_uri(o, uri, t->step, true);
}

static void set_worker(struct js *o, const struct rdzv_tell *t)
{
    js_set_int(o, "worker", t->worker);
    switch (t->kind) {
    case TELL_WORKER_LOST:
    case TELL_WORKER_LEFT:
    case TELL_WORKER_JOINED:
    case TELL_WORKER_QUARANTINED:
    case TELL_WORKER_LEFT_OUT:
        js_set_int(o, "step", t->step);
        js_set_string(o, "cause", t->text);
        break;
    case TELL_WORKER_FAILED:
    case TELL_WORKER_REFUSED:
        js_set_int(o, "attempt", t->attempt);
        js_set_string(o, "detail", t->text);
        break;
    case TELL_JOIN_SKIPPED:
        js_set_string(o, "reason", t->text);
        break;
    case TELL_CHECKPOINT_REFUSED:
        js_set_int(o, "step", t->step);
        js_set_string(o, "reason", t->text);
        break;
    default:
        break;
    }
}

static void set_step(struct js *o, const struct rdzv_tell *t)
{
    js_set_int(o, "step", t->step);
    js_set_real(o, "loss", t->loss);
    if (t->kind == TELL_EVALUATED)
        return;
    js_set_real(o, "tokensPerSecond", t->tokens_per_second);
    js_set_int(o, "world", t->world);
}

static void set_saved(struct js *o, const struct rdzv_tell *t, const char *uri)
{
    js_set_int(o, "step", t->step);
    rdzv_set_uri(o, uri, t->step, t->final);
    js_set_int(o, "bytes", t->bytes);
    js_set_real(o, "ms", rm_ms(t->took));
    if (t->waited > 0)
        js_set_real(o, "waitedSeconds", (double)t->waited / RM_S);
}

static void set_waiting(struct js *o, const struct rdzv_tell *t, const char *uri)
{
    js_set_int(o, "step", t->step);
    rdzv_set_uri(o, uri, t->step, t->final);
    js_set_string(o, "reason", t->text);
    js_set_real(o, "ageSeconds", (double)t->took / RM_S);
}

static void set_body(struct js *o, const struct rdzv_tell *t, const char *uri)
{
    switch (t->kind) {
    case TELL_RING_FORMED:
        set_formed(o, t);
        break;
    case TELL_STEP:
    case TELL_EVALUATED:
        set_step(o, t);
        break;
    case TELL_CHECKPOINT_SAVED:
        set_saved(o, t, uri);
        break;
    case TELL_CHECKPOINT_WAITING:
        set_waiting(o, t, uri);
        break;
    case TELL_CHECKPOINT_SKIPPED:
        js_set_int(o, "step", t->step);
        js_set_string(o, "reason", t->text);
        break;
    case TELL_RECOVERED:
        rdzv_set_recovered(o, &t->recovery);
        break;
    case TELL_WAITING:
        js_set_string(o, "reason", t->text);
        break;
    case TELL_FAILED:
        js_set_string(o, "reason", t->text);
        js_set_int(o, "exitCode", t->exit_code);
        break;
    case TELL_INTERRUPTED:
    case TELL_CHECKPOINT_LOADED:
        js_set_int(o, "step", t->step);
        break;
    case TELL_COMPLETE:
        set_complete(o, t, uri);
        break;
    default:
        set_worker(o, t);
    }
}

void rdzv_set_tell(struct js *o, const struct rdzv_tell *tell, int64_t wall_ms, const char *checkpoint_uri)
{
    js_set_string(o, "event", event_name((enum event_kind)tell->kind));
    js_set_int(o, "time", wall_ms);
    set_body(o, tell, checkpoint_uri);
}

void rdzv_tell_print(const struct rdzv_tell *tell, int64_t wall_ms, const char *checkpoint_uri,
                     struct str *out)
{
    struct js *o = js_object();
    rdzv_set_tell(o, tell, wall_ms, checkpoint_uri);
    js_print(o, out);
    js_free(o);
}

/* ---- commands ---- */

static int read_expect(struct rdzv_expect *ret, const struct js *o, struct error *err)
{
    const struct js *list;
    if (js_need(o, "workers", JS_ARRAY, &list, err) < 0)
        return -1;
    if (js_size(list) > RM_WORKERS_MAX)
        return err_set(err, ERR_PROTOCOL, "expect names %zu workers, at most %d are allowed", js_size(list),
                       RM_WORKERS_MAX);
    for (size_t i = 0; i < js_size(list); i++) {
        int64_t worker, attempt;
        if (js_need_int(js_at(list, i), "worker", 0, RM_WORKERS_MAX - 1, &worker, err) < 0 ||
            js_need_int(js_at(list, i), "attempt", 0, INT32_MAX, &attempt, err) < 0)
            return err_wrap(err, "workers[%zu]", i);
        ret->worker[i].worker = (int)worker;
        ret->worker[i].attempt = (int)attempt;
        js_as_bool(js_get(js_at(list, i), "next"), &ret->worker[i].next);
    }
    ret->count = (int)js_size(list);
    return 0;
}

static int read_act(struct rdzv_event *ret, const struct js *o, struct error *err)
{
    char cause[32];
    int64_t worker, at;
    if (js_need_string(o, "cause", cause, sizeof cause, err) < 0 ||
        js_need_int(o, "worker", 0, RM_WORKERS_MAX - 1, &worker, err) < 0 ||
        js_need_int(o, "at", 0, INT64_MAX, &at, err) < 0)
        return -1;
    ret->act.worker = (int)worker;
    ret->act.at = at;
    for (int c = CAUSE_NONE + 1; c < CAUSES; c++) {
        if (strcmp(cause, cause_names[c]) != 0)
            continue;
        ret->act.cause = (enum rdzv_cause)c;
        return 0;
    }
    return err_set(err, ERR_PROTOCOL, "act: '%s' is no cause", cause);
}

static int read_command(struct rdzv_event *ret, const struct js *o, struct error *err)
{
    char command[32];
    if (js_need_string(o, "command", command, sizeof command, err) < 0)
        return -1;
    if (!strcmp(command, "expect")) {
        ret->kind = RDZV_EXPECT;
        return read_expect(&ret->expect, o, err);
    }
    if (!strcmp(command, "act")) {
        ret->kind = RDZV_ACT;
        return read_act(ret, o, err);
    }
    ret->kind = RDZV_INTERRUPT;
    if (!strcmp(command, "interrupt"))
        return 0;
    return err_set(err, ERR_PROTOCOL, "'%s' is no command", command);
}

int rdzv_command_read(struct rdzv_event *ret, const char *text, size_t length, struct error *err)
{
    struct js *o = js_parse(text, length, "command", err);
    if (!o)
        return -1;
    memset(ret, 0, sizeof *ret);
    int rc = js_kind(o) == JS_OBJECT ? read_command(ret, o, err)
                                     : err_set(err, ERR_PROTOCOL, "a command is a JSON object");
    js_free(o);
    return rc;
}

/* ---- for a successor ---- */

void rdzv_alive_print(const struct rdzv *st, rm_time now, int64_t wall_ms, struct str *out)
{
    struct rdzv_goodput g = rdzv_goodput(st, now);
    const rm_time spent[] = {g.productive, g.checkpoint, g.recovery, g.waiting, g.rework};
    struct js *o = js_object(), *list = js_array();
    js_set_string(o, "event", event_name(EVENT_ALIVE));
    js_set_int(o, "time", wall_ms);
    js_set_int(o, "at", now);
    for (size_t i = 0; i < sizeof spent / sizeof *spent; i++)
        js_push_int(list, spent[i]);
    js_set(o, "spent", list);
    js_print(o, out);
    js_free(o);
}
