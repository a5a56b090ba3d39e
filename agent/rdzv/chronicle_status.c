/* The status page and the result, as JSON. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agent/rdzv/chronicle.h"
#include "agent/rdzv/rdzv_state.h"
#include "common/wire/status.h"

enum { SENTENCE_MAX = 97 /* bytes of one of many, with its NUL */ };

/* One of up to 64 in a list: cut between characters, and without what JSON makes six bytes of. */
static void set_sentence(struct js *o, const char *key, const char *text)
{
    char cut[SENTENCE_MAX];
    size_t length = strnlen(text, sizeof cut - 1);
    while (length && text[length] && ((unsigned char)text[length] & 0xc0) == 0x80)
        length--;
    for (size_t i = 0; i < length; i++)
        cut[i] = (unsigned char)text[i] < ' ' ? ' ' : text[i];
    cut[length] = 0;
    js_set_string(o, key, cut);
}

static void set_state(struct js *o, enum rdzv_state state)
{
    char name[32];
    text_copy(name, sizeof name, rdzv_state_name(state));
    for (char *p = name + 1; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    js_set_string(o, "state", name);
}

static struct js *ring_value(const struct chronicle *c, const struct rdzv *st)
{
    struct js *o = js_object(), *members = js_array();
    bool stands = st->state == RDZV_TRAINING;
    js_set_int(o, "generation", st->ring.n);
    js_set_int(o, "term", st->settings.term);
    js_set_int(o, "size", stands ? st->world : 0);
    js_set_int(o, "formedTime", c->formed_wall_ms);
    for (int r = 0; stands && r < st->world; r++) {
        struct js *m = js_object();
        js_set_int(m, "worker", st->member[r]);
        js_set_int(m, "attempt", st->worker[st->member[r]].attempt);
        js_push(members, m);
    }
    js_set(o, "members", members);
    return o;
}

static const char *member_phase(const struct rdzv *st, const struct rdzv_worker *w)
{
    switch (st->state) {
    case RDZV_FORMING:
        return w->ready ? "ready" : "forming";
    case RDZV_TRAINING:
        return w->finished ? "finished" : "training";
    case RDZV_QUIESCING:
        return w->stopped_round == st->round ? "stopped" : "stopping";
    case RDZV_SAVING:
        return "saving";
    default:
        return "waiting";
    }
}

static const char *phase_of(const struct rdzv *st, const struct rdzv_worker *w)
{
    if (w->quarantine[0])
        return "quarantined";
    if (w->presence == ABSENT)
        return "expected";
    if (w->presence == AWAY)
        return "away";
    if (w->released)
        return "released";
    if (w->leaving)
        return "leaving";
    if (!w->trainer_pid)
        return "starting";
    if (w->left_out[0] && rdzv_pairs_bar(st, rdzv_index(st, w)))
        return "leftOut";
    return w->rank >= 0 ? member_phase(st, w) : "waiting";
}

static struct js *workers_value(const struct rdzv *st)
{
    struct js *list = js_array();
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        if (w->presence == ABSENT && w->expected < 0)
            continue;
        struct js *o = js_object();
        js_set_int(o, "worker", i);
        js_set_int(o, "attempt", w->attempt > w->expected ? w->attempt : w->expected);
        js_set_string(o, "phase", phase_of(st, w));
        js_set_int(o, "rank", w->rank);
        js_push(list, o);
    }
    return list;
}

/* Those that are not back, or followed by another attempt, since. */
static struct js *gone_value(const struct rdzv *st, const struct chronicle_going *list, bool with_cause)
{
    struct js *array = js_array();
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct chronicle_going *g = &list[i];
        const struct rdzv_worker *w = &st->worker[i];
        bool here = w->presence != ABSENT && !w->released && w->attempt >= g->attempt;
        if (!g->known || here || w->attempt > g->attempt)
            continue;
        struct js *o = js_object();
        js_set_int(o, "worker", i);
        js_set_int(o, "attempt", g->attempt);
        if (with_cause)
            set_sentence(o, "cause", g->cause);
        js_set_int(o, "time", g->wall_ms);
        js_push(array, o);
    }
    return array;
}

static struct js *quarantined_value(const struct rdzv *st)
{
    struct js *array = js_array();
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        if (!st->worker[i].quarantine[0])
            continue;
        struct js *o = js_object();
        js_set_int(o, "worker", i);
        set_sentence(o, "cause", st->worker[i].quarantine);
        js_push(array, o);
    }
    return array;
}

static struct js *progress_value(const struct rdzv *st)
{
    struct js *o = js_object();
    int64_t step = st->told > 0 ? st->told : 0;
    double seconds = st->step_time / RM_S;
    js_set_int(o, "step", step);
    js_set_int(o, "steps", st->settings.steps);
    js_set_real(o, "loss", st->told > 0 ? st->loss : NAN);
    js_set_real(o, "tokensPerSecond", seconds > 0 ? (double)st->tokens / seconds : 0);
    js_set_real(o, "etaSeconds", seconds > 0 ? (double)(st->settings.steps - step) * seconds : NAN);
    return o;
}

/* One that a predecessor published, or that was there before, is known by its step alone. */
static struct js *checkpoint_value(const struct chronicle *c, const struct rdzv *st,
                                   const struct chronicle_terms *terms)
{
    if (st->saved < 0)
        return js_new_null();
    bool told = c->checkpoint.count && c->checkpoint.step == st->saved;
    struct js *o = js_object();
    js_set_int(o, "step", st->saved);
    rdzv_set_uri(o, terms->checkpoint_uri, st->saved, told && c->checkpoint.final);
    if (told) {
        js_set_int(o, "savedTime", c->checkpoint.wall_ms);
        js_set_int(o, "bytes", c->checkpoint.bytes);
    }
    return o;
}

/* What the store does not take. */
static struct js *store_value(const struct chronicle_terms *terms)
{
    if (!terms->store_waits)
        return js_new_null();
    struct js *o = js_object();
    js_set_string(o, "reason", terms->store_waits->text);
    js_set_bool(o, "person", terms->store_waits->person);
    return o;
}

static struct js *outage_value(const struct rdzv *st, rm_time now)
{
    if (!st->outage.on)
        return js_new_null();
    struct js *o = js_object();
    js_set_int(o, "step", st->outage.step);
    js_set_real(o, "ageSeconds", (double)(now - st->outage.taken) / RM_S);
    js_set_string(o, "reason", st->outage.why);
    return o;
}

static struct js *recovery_value(const struct rdzv *st)
{
    if (!st->recoveries)
        return js_new_null();
    struct js *o = js_object();
    rdzv_set_recovered(o, &st->last_recovery);
    return o;
}

static struct js *goodput_value(const struct rdzv *st, rm_time now)
{
    struct rdzv_goodput g = rdzv_goodput(st, now);
    const rm_time spent[GOODPUT_CLASSES] = {[GOODPUT_PRODUCTIVE] = g.productive,
                                            [GOODPUT_CHECKPOINT] = g.checkpoint,
                                            [GOODPUT_RECOVERY] = g.recovery,
                                            [GOODPUT_WAITING] = g.waiting,
                                            [GOODPUT_REWORK] = g.rework};
    struct js *o = js_object();
    js_set_real(o, "ratio", rdzv_productive_share(g));
    for (int which = 0; which < GOODPUT_CLASSES; which++)
        js_set_real(o, goodput_key(which), (double)spent[which] / RM_S);
    return o;
}

static struct js *redone_value(const struct chronicle *c)
{
    struct js *o = js_object();
    js_set_int(o, "announced", c->redone_announced);
    js_set_int(o, "sudden", c->redone_sudden);
    return o;
}

static struct js *events_value(const struct chronicle *c, const struct chronicle_terms *terms, int most)
{
    struct js *array = js_array();
    int64_t first = c->events - most < 0 ? 0 : c->events - most;
    for (int64_t n = first + 1; n <= c->events; n++) {
        const struct chronicle_event *e = &c->event[n % CHRONICLE_EVENTS];
        struct js *o = js_object();
        js_set_int(o, "sequence", e->sequence);
        rdzv_set_tell(o, &e->tell, e->wall_ms, terms->checkpoint_uri);
        js_push(array, o);
    }
    return array;
}

static struct js *result_value(const struct chronicle *c, const struct chronicle_terms *terms)
{
    const struct rdzv_tell *t = &c->end;
    if (!c->over)
        return js_new_null();
    struct js *o = js_object();
    bool complete = t->kind == TELL_COMPLETE;
    js_set_int(o, "exitCode", complete ? EXIT_DONE : t->exit_code);
    js_set_string(o, "reason", complete ? "" : t->text);
    js_set_bool(o, "interrupted", t->kind == TELL_INTERRUPTED);
    js_set_int(o, "step", t->step);
    if (!complete)
        return o;
    char hex[RM_HASH_HEX];
    hex_encode(t->digest, RM_HASH_BYTES, hex);
    js_set_real(o, "loss", t->loss);
    js_set_string(o, "weightsSha256", hex);
    js_set_bool(o, "exact", t->exact);
    js_set_real(o, "goodput", t->goodput);
    rdzv_set_uri(o, terms->checkpoint_uri, t->step, true);
    bool seen = c->checkpoint.count && c->checkpoint.final;
    if (seen || t->bytes)
        js_set_int(o, "bytes", seen ? c->checkpoint.bytes : t->bytes);
    if (seen)
        js_set_int(o, "savedTime", c->checkpoint.wall_ms);
    return o;
}

static void print_status(const struct chronicle *c, const struct rdzv *st,
                         const struct chronicle_terms *terms, rm_time now, int events, struct str *out)
{
    struct js *o = js_object();
    js_set_int(o, "revision", c->revision);
    js_set_string(o, "job", terms->job);
    js_set_string(o, "name", st->settings.job);
    js_set_int(o, "term", st->settings.term);
    js_set_bool(o, "preparing", terms->waits_for != NULL);
    set_state(o, st->state);
    js_set_string(o, "message", terms->waits_for ? terms->waits_for : st->why);
    js_set_bool(o, "mixedHardware", rdzv_is_mixed(st));
    js_set(o, "ring", ring_value(c, st));
    js_set(o, "workers", workers_value(st));
    js_set(o, "lost", gone_value(st, c->lost, true));
    js_set(o, "left", gone_value(st, c->left, false));
    js_set(o, "quarantined", quarantined_value(st));
    js_set(o, "progress", progress_value(st));
    js_set(o, "checkpoint", checkpoint_value(c, st, terms));
    js_set(o, "storeWaiting", store_value(terms));
    js_set_bool(o, "fenced", !terms->unfenced);
    js_set(o, "checkpointWaiting", outage_value(st, now));
    js_set_int(o, "failures", st->failures_total);
    js_set_int(o, "recoveries", st->recoveries);
    js_set(o, "lastRecovery", recovery_value(st));
    js_set(o, "goodput", goodput_value(st, now));
    js_set(o, "stepsRedone", redone_value(c));
    js_set(o, "result", result_value(c, terms));
    js_set(o, "events", events_value(c, terms, events));
    js_print(o, out);
    js_free(o);
}

void chronicle_print_status(const struct chronicle *c, const struct rdzv *st,
                            const struct chronicle_terms *terms, rm_time now, struct str *out)
{
    struct str text = str_init(8 * STATUS_BYTES_MAX);
    int events = CHRONICLE_EVENTS;
    print_status(c, st, terms, now, events, &text);
    while (events && text.length > STATUS_BYTES_MAX) {
        events /= 2;
        str_reset(&text);
        print_status(c, st, terms, now, events, &text);
    }
    str_add(out, str_text(&text), text.length);
    str_clear(&text);
}

void chronicle_print_result(const struct chronicle *c, const struct chronicle_terms *terms, struct str *out)
{
    struct js *o = result_value(c, terms);
    js_print(o, out);
    js_free(o);
}
