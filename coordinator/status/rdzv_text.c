/* The core's words in JSON and OpenMetrics, for the shell. */
#include "coordinator/status/rdzv_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/wire/json.h"
#include "common/wire/status.h"
#include "coordinator/core/rdzv_state.h"

/* ---- events ---- */

const char *rdzv_uri(char out[RDZV_URI_MAX], const char *base, int64_t step, bool final)
{
    if (final)
        snprintf(out, RDZV_URI_MAX, "%s/final", base);
    else
        snprintf(out, RDZV_URI_MAX, "%s/step-%08" PRId64, base, step);
    return out;
}

const char *rdzv_frozen_uri(char out[RDZV_URI_MAX], const char *base, int64_t number)
{
    snprintf(out, RDZV_URI_MAX, "%s/process-%08" PRId64, base, number);
    return out;
}

static void set_uri(struct js *o, const char *base, int64_t step, bool final)
{
    char uri[RDZV_URI_MAX];
    js_set_string(o, event_key(EVENT_KEY_URI), rdzv_uri(uri, base, step, final));
}

static void set_formed(struct js *o, const struct rdzv_tell *t)
{
    struct js *members = js_array();
    for (int i = 0; i < t->members; i++) {
        struct js *m = js_object();
        js_set_int(m, event_key(EVENT_KEY_WORKER), t->member[i].worker);
        js_set_int(m, event_key(EVENT_KEY_AGENT_PID), t->member[i].agent_pid);
        js_set_int(m, event_key(EVENT_KEY_TRAINER_PID), t->member[i].trainer_pid);
        js_push(members, m);
    }
    js_set_int(o, event_key(EVENT_KEY_TERM), t->generation.term);
    js_set_int(o, event_key(EVENT_KEY_GENERATION), t->generation.n);
    js_set_int(o, event_key(EVENT_KEY_WORLD), t->world);
    js_set_int(o, event_key(EVENT_KEY_STEP), t->step);
    if (t->members)
        js_set(o, event_key(EVENT_KEY_MEMBERS), members);
    else
        js_free(members);
}

struct status_recovery rdzv_recovery_of(const struct rdzv_recovery *r)
{
    return (struct status_recovery){
        .known = true,
        .cause = cause_name(r->cause),
        .ms = {[RECOVERY_DETECT] = rm_ms(r->detect),
               [RECOVERY_AGREE] = rm_ms(r->agree),
               [RECOVERY_RING] = rm_ms(r->ring),
               [RECOVERY_STATE] = rm_ms(r->state),
               [RECOVERY_FIRST_STEP] = rm_ms(r->first_step),
               [RECOVERY_TOTAL] = rm_ms(r->total)},
        .steps_redone = r->steps_redone,
    };
}

static void set_recovered(struct js *o, const struct rdzv_recovery *r)
{
    const struct status_recovery recovery = rdzv_recovery_of(r);
    status_set_recovery(o, &recovery);
}

static void set_complete(struct js *o, const struct rdzv_tell *t, const char *uri)
{
    char hex[RM_HASH_HEX];
    if (t->program) {
        js_set_int(o, event_key(EVENT_KEY_EXIT_CODE), 0);
        js_set_real(o, event_key(EVENT_KEY_GOODPUT), t->goodput);
        return;
    }
    hex_encode(t->digest, RM_HASH_BYTES, hex);
    js_set_int(o, event_key(EVENT_KEY_STEP), t->step);
    js_set_real(o, event_key(EVENT_KEY_LOSS), t->loss);
    js_set_string(o, event_key(EVENT_KEY_WEIGHTS_SHA256), hex);
    js_set_bool(o, event_key(EVENT_KEY_EXACT), t->exact);
    js_set_real(o, event_key(EVENT_KEY_GOODPUT), t->goodput);
    set_uri(o, uri, t->step, true);
}

static void set_notice(struct js *o, const struct rdzv_tell *t)
{
    const struct notice *n = &t->notice;
    js_set_int(o, event_key(EVENT_KEY_STEP), t->step);
    js_set_string(o, event_key(EVENT_KEY_SOURCE), notice_kind(n->source)->name);
    js_set_string(o, event_key(EVENT_KEY_CAUSE), notice_cause_name(n->cause));
    js_set_string(o, event_key(EVENT_KEY_CERTAINTY), notice_certainty_name(n->certainty));
    if (t->kind == TELL_NOTICE_RECEIVED && t->left >= 0)
        js_set_real(o, event_key(EVENT_KEY_LEFT_SECONDS), (double)t->left / RM_S);
}

static void set_worker(struct js *o, const struct rdzv_tell *t)
{
    js_set_int(o, event_key(EVENT_KEY_WORKER), t->worker);
    switch (t->kind) {
    case TELL_WORKER_LOST:
    case TELL_WORKER_LEFT:
    case TELL_WORKER_JOINED:
    case TELL_WORKER_QUARANTINED:
    case TELL_WORKER_LEFT_OUT:
    case TELL_WORKER_DIFFERS:
    case TELL_PROOF_FAILED:
    case TELL_WORKER_SLOW:
        js_set_int(o, event_key(EVENT_KEY_STEP), t->step);
        js_set_string(o, event_key(EVENT_KEY_CAUSE), t->text);
        break;
    case TELL_NOTICE_RECEIVED:
    case TELL_NOTICE_WITHDRAWN:
        set_notice(o, t);
        break;
    case TELL_WORKER_FAILED:
    case TELL_WORKER_REFUSED:
        js_set_int(o, event_key(EVENT_KEY_ATTEMPT), t->attempt);
        js_set_string(o, event_key(EVENT_KEY_DETAIL), t->text);
        break;
    case TELL_PROGRAM_FAILED:
        if (t->rank >= 0)
            js_set_int(o, event_key(EVENT_KEY_RANK), t->rank);
        if (t->program_code >= 0)
            js_set_int(o, event_key(EVENT_KEY_PROGRAM_EXIT_CODE), t->program_code);
        js_set_string(o, event_key(EVENT_KEY_REASON), t->text);
        if (t->output)
            js_set_string(o, event_key(EVENT_KEY_OUTPUT), t->output);
        break;
    case TELL_JOIN_SKIPPED:
        js_set_string(o, event_key(EVENT_KEY_REASON), t->text);
        break;
    case TELL_CHECKPOINT_REFUSED:
        js_set_int(o, event_key(EVENT_KEY_STEP), t->step);
        js_set_string(o, event_key(EVENT_KEY_REASON), t->text);
        break;
    default:
        break;
    }
}

static void set_known(struct js *o, enum event_key key, double value)
{
    if (!isnan(value))
        js_set_real(o, event_key(key), value);
}

static void set_step(struct js *o, const struct rdzv_tell *t)
{
    js_set_int(o, event_key(EVENT_KEY_STEP), t->step);
    js_set_real(o, event_key(EVENT_KEY_LOSS), t->loss);
    if (t->kind == TELL_EVALUATED)
        return;
    js_set_real(o, event_key(t->samples ? EVENT_KEY_SAMPLES_PER_SECOND : EVENT_KEY_TOKENS_PER_SECOND),
                t->pace);
    js_set_int(o, event_key(EVENT_KEY_WORLD), t->world);
    set_known(o, EVENT_KEY_GRADIENT_NORM, t->numbers.norm);
    set_known(o, EVENT_KEY_CLIP_FACTOR, t->numbers.clip);
    set_known(o, EVENT_KEY_LEARNING_RATE, t->numbers.rate);
}

/* What the program does not say is not there, or null: a loss may be no number. */
static void set_progress(struct js *o, const struct rdzv_tell *t)
{
    js_set_int(o, event_key(EVENT_KEY_STEP), t->step);
    if (t->steps)
        js_set_int(o, event_key(EVENT_KEY_STEPS), t->steps);
    js_set_real(o, event_key(EVENT_KEY_LOSS), t->loss);
    js_set_int(o, event_key(EVENT_KEY_WORLD), t->world);
}

static void set_saved(struct js *o, const struct rdzv_tell *t, const char *uri)
{
    char frozen[RDZV_URI_MAX];
    js_set_int(o, event_key(EVENT_KEY_STEP), t->step);
    if (t->program)
        js_set_string(o, event_key(EVENT_KEY_URI), rdzv_frozen_uri(frozen, uri, t->step));
    else
        set_uri(o, uri, t->step, t->final);
    js_set_int(o, event_key(EVENT_KEY_BYTES), t->bytes);
    js_set_real(o, event_key(EVENT_KEY_MS), rm_ms(t->took));
    if (t->program)
        js_set_real(o, event_key(EVENT_KEY_FROZEN_MS), rm_ms(t->frozen));
    if (t->waited > 0)
        js_set_real(o, event_key(EVENT_KEY_WAITED_SECONDS), (double)t->waited / RM_S);
}

static void set_waiting(struct js *o, const struct rdzv_tell *t, const char *uri)
{
    js_set_int(o, event_key(EVENT_KEY_STEP), t->step);
    set_uri(o, uri, t->step, t->final);
    js_set_string(o, event_key(EVENT_KEY_REASON), t->text);
    js_set_real(o, event_key(EVENT_KEY_AGE_SECONDS), (double)t->took / RM_S);
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
    case TELL_PROGRESS:
        set_progress(o, t);
        break;
    case TELL_CHECKPOINT_SAVED:
        set_saved(o, t, uri);
        break;
    case TELL_CHECKPOINT_WAITING:
        set_waiting(o, t, uri);
        break;
    case TELL_CHECKPOINT_INTERVAL:
        js_set_real(o, event_key(EVENT_KEY_EVERY_SECONDS), (double)t->every / RM_S);
        js_set_string(o, event_key(EVENT_KEY_REASON), t->text);
        break;
    case TELL_CHECKPOINT_SKIPPED:
        js_set_int(o, event_key(EVENT_KEY_STEP), t->step);
        js_set_string(o, event_key(EVENT_KEY_REASON), t->text);
        break;
    case TELL_RECOVERED:
        set_recovered(o, &t->recovery);
        break;
    case TELL_WAITING:
        js_set_string(o, event_key(EVENT_KEY_REASON), t->text);
        break;
    case TELL_FAILED:
        js_set_string(o, event_key(EVENT_KEY_REASON), t->text);
        js_set_int(o, event_key(EVENT_KEY_EXIT_CODE), t->exit_code);
        if (t->program)
            js_set_int(o, event_key(EVENT_KEY_PROGRAM_EXIT_CODE), t->program_code);
        break;
    case TELL_INTERRUPTED:
    case TELL_CHECKPOINT_LOADED:
        js_set_int(o, event_key(EVENT_KEY_STEP), t->step);
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
    js_set_string(o, event_key(EVENT_KEY_EVENT), event_name((enum event_kind)tell->kind));
    js_set_int(o, event_key(EVENT_KEY_TIME), wall_ms);
    set_body(o, tell, checkpoint_uri);
}

void rdzv_tell_print(const struct rdzv_tell *tell, int64_t wall_ms, const char *checkpoint_uri,
                     struct str *out)
{
    struct js *o = js_object();
    rdzv_set_tell(o, tell, wall_ms, checkpoint_uri);
    event_assert(o);
    js_print(o, out);
    js_free(o);
}

/* ---- commands ---- */

int rdzv_command_read(struct rdzv_event *ret, const char *text, size_t length, struct error *err)
{
    static const enum rdzv_event_kind kinds[COMMAND_KINDS] = {
        [COMMAND_EXPECT] = RDZV_EXPECT, [COMMAND_ACT] = RDZV_ACT, [COMMAND_INTERRUPT] = RDZV_INTERRUPT};
    struct command command;
    if (command_read(&command, text, length, err) < 0)
        return -1;
    *ret = (struct rdzv_event){.kind = kinds[command.kind], .expect = command.expect, .act = command.act};
    return 0;
}

/* ---- for a successor ---- */

static struct js *saves_of(const struct rdzv_saves *known)
{
    const int64_t values[] = {known->losses, rm_later(known->reached, 0), known->observed,
                              rm_later(known->stall, 0), known->safe};
    struct js *list = js_array();
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        js_push_int(list, values[i]);
    return list;
}

void rdzv_alive_print(const struct rdzv *st, rm_time now, int64_t wall_ms, struct str *out)
{
    struct rdzv_goodput g = rdzv_goodput(st, now);
    const rm_time spent[] = {g.productive, g.checkpoint, g.recovery, g.waiting, g.rework};
    struct js *o = js_object(), *list = js_array();
    js_set_string(o, event_key(EVENT_KEY_EVENT), event_name(EVENT_ALIVE));
    js_set_int(o, event_key(EVENT_KEY_TIME), wall_ms);
    js_set_int(o, event_key(EVENT_KEY_AT), now);
    for (size_t i = 0; i < sizeof spent / sizeof *spent; i++)
        js_push_int(list, spent[i]);
    js_set(o, event_key(EVENT_KEY_SPENT), list);
    if (st->interval.every)
        js_set(o, event_key(EVENT_KEY_SAVES), saves_of(&st->interval.known));
    event_assert(o);
    js_print(o, out);
    js_free(o);
}
