#include "operator/core/coordinator.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/wire/json.h"
#include "operator/core/read.h"
#include "operator/core/status_parts.h"

static enum op_coordinator_state state_of(const char *text)
{
    static const char *const names[] = {"",       "Gathering",  "Forming",  "Training", "Quiescing",
                                        "Saving", "Recovering", "Finished", "Failed"};
    for (int i = OP_COORDINATOR_GATHERING; i <= OP_COORDINATOR_FAILED; i++)
        if (!strcmp(text, names[i]))
            return i;
    return OP_COORDINATOR_UNKNOWN;
}

/* worker and attempt of one entry; false where the index is none. */
static bool read_member(const struct js *from, struct op_member *ret)
{
    *ret = (struct op_member){.worker = -1};
    read_small(from, "worker", -1, RM_WORKERS_MAX, &ret->worker);
    read_small(from, "attempt", 0, INT32_MAX, &ret->attempt);
    return ret->worker >= 0 && ret->worker < RM_WORKERS_MAX;
}

static int read_members(const struct js *list, struct op_member *out)
{
    int count = 0;
    for (size_t i = 0; i < js_size(list) && count < RM_WORKERS_MAX; i++)
        count += read_member(js_at(list, i), &out[count]);
    return count;
}

/* Keeps the newest where there are more than fit. */
static int read_gone(const struct js *list, struct op_gone *out)
{
    int count = 0;
    size_t size = js_size(list), first = size > RM_WORKERS_MAX ? size - RM_WORKERS_MAX : 0;
    for (size_t i = first; i < size; i++) {
        struct op_member member;
        const struct js *from = js_at(list, i);
        if (!read_member(from, &member))
            continue;
        struct op_gone *gone = &out[count++];
        *gone = (struct op_gone){.worker = member.worker, .attempt = member.attempt};
        read_int(from, "time", 0, INT64_MAX, &gone->at_ms);
        read_text(from, "cause", gone->cause, sizeof gone->cause);
    }
    return count;
}

static void read_ring(const struct js *ring, struct coordinator_view *ret)
{
    read_small(ring, "generation", 0, INT32_MAX, &ret->ring_generation);
    read_int(ring, "formedTime", 0, INT64_MAX, &ret->formed_ms);
    ret->ring_size = read_members(js_get(ring, "members"), ret->member);
}

static const struct js *object_of(const struct js *root, const char *key)
{
    const struct js *found = js_get(root, key);
    return found && js_kind(found) == JS_OBJECT ? found : NULL;
}

static void read_ratio(const struct js *from, struct op_goodput *ret)
{
    double ratio;
    if (js_as_real(js_get(from, "ratio"), &ratio))
        snprintf(ret->ratio, sizeof ret->ratio, "%.3f", ratio >= 0 && ratio <= 1 ? ratio : 0);
}

static void read_parts(const struct js *root, struct coordinator_view *ret)
{
    const struct js *part;
    if ((part = object_of(root, "progress")))
        read_progress(part, &ret->progress);
    if ((part = object_of(root, "checkpoint"))) {
        read_checkpoint(part, &ret->checkpoint);
        read_int(part, "savedTime", 0, INT64_MAX, &ret->checkpoint.saved_ms);
    }
    if ((part = object_of(root, "lastRecovery")))
        read_recovery(part, &ret->last_recovery);
    if ((part = object_of(root, "goodput"))) {
        read_goodput(part, &ret->goodput);
        read_ratio(part, &ret->goodput);
    }
}

static void read_verdict(const struct js *from, struct op_verdict *ret)
{
    if (!from || js_kind(from) != JS_OBJECT || !js_get(from, "exitCode"))
        return;
    ret->known = true;
    read_small(from, "exitCode", 0, 255, &ret->exit_code);
    read_flag(from, "interrupted", &ret->interrupted);
    read_text(from, "reason", ret->reason, sizeof ret->reason);
    read_result(from, &ret->result);
    read_int(from, "bytes", 0, INT64_MAX, &ret->bytes);
    read_int(from, "savedTime", 0, INT64_MAX, &ret->saved_ms);
}

/* The fields that the notes of several events show. */
struct told {
    char cause[OP_REASON_MAX], reason[RM_WHY_MAX], uri[RM_WHY_MAX];
    int worker, world, generation;
    int64_t step, ms, redone;
};

static void read_told(const struct js *from, struct told *t)
{
    *t = (struct told){.worker = -1};
    read_text(from, "cause", t->cause, sizeof t->cause);
    read_text(from, "reason", t->reason, sizeof t->reason);
    read_text(from, "uri", t->uri, sizeof t->uri);
    read_small(from, "worker", -1, INT32_MAX, &t->worker);
    read_small(from, "world", 0, INT32_MAX, &t->world);
    read_small(from, "generation", 0, INT32_MAX, &t->generation);
    read_int(from, "step", 0, INT64_MAX, &t->step);
    read_int(from, recovery_key(RECOVERY_TOTAL), 0, INT64_MAX, &t->ms);
    read_int(from, "stepsRedone", 0, INT64_MAX, &t->redone);
}

/* One sentence of an event; empty for those that people don't need. */
static void note(enum event_kind kind, const struct told *t, char *out, size_t size)
{
    long long step = (long long)t->step;
    switch (kind) {
    case EVENT_RING_FORMED:
        snprintf(out, size, "generation %d with %d workers, from step %lld", t->generation, t->world, step);
        break;
    case EVENT_WORKER_LOST:
    case EVENT_WORKER_LEFT:
    case EVENT_WORKER_JOINED:
    case EVENT_WORKER_QUARANTINED:
    case EVENT_WORKER_LEFT_OUT:
        snprintf(out, size, "worker %d at step %lld: %s", t->worker, step, t->cause);
        break;
    case EVENT_CHECKPOINT_SAVED:
        snprintf(out, size, "step %lld in %s", step, t->uri);
        break;
    case EVENT_RECOVERED:
        snprintf(out, size, "%s: training again after %lld ms, %lld steps redone", t->cause, (long long)t->ms,
                 (long long)t->redone);
        break;
    case EVENT_CHECKPOINT_WAITING:
        snprintf(out, size, "the store does not take step %lld: %s", step, t->reason);
        break;
    case EVENT_WAITING:
        snprintf(out, size, "%s", t->reason);
        break;
    default:
        break;
    }
}

static void read_events(const struct js *list, struct coordinator_view *ret)
{
    size_t size = js_size(list), most = OP_COORDINATOR_EVENTS_MAX, first = size > most ? size - most : 0;
    for (size_t i = first; i < size; i++) {
        struct told told;
        char name[OP_CAUSE_MAX] = "";
        const struct js *from = js_at(list, i);
        struct op_coordinator_event *event = &ret->event[ret->events_count++];
        read_int(from, "sequence", 0, INT64_MAX, &event->sequence);
        read_int(from, "time", 0, INT64_MAX, &event->at_ms);
        read_text(from, "event", name, sizeof name);
        event->kind = event_of_name(name);
        read_told(from, &told);
        note(event->kind, &told, event->note, sizeof event->note);
    }
}

static void read_answer(const struct js *root, struct coordinator_view *ret)
{
    char state[OP_REASON_MAX] = "";
    read_int(root, "revision", 0, INT64_MAX, &ret->revision);
    read_text(root, "job", ret->job, sizeof ret->job);
    read_small(root, "term", 0, INT32_MAX, &ret->term);
    read_flag(root, "mixedHardware", &ret->mixed);
    read_text(root, "state", state, sizeof state);
    ret->state = state_of(state);
    read_text(root, "message", ret->message, sizeof ret->message);
    read_ring(js_get(root, "ring"), ret);
    ret->workers_count = read_members(js_get(root, "workers"), ret->worker);
    ret->lost_count = read_gone(js_get(root, "lost"), ret->lost);
    const struct js *held = js_get(root, "quarantined");
    for (size_t i = 0; i < js_size(held) && ret->quarantined_count < RM_WORKERS_MAX; i++) {
        struct op_member member;
        if (read_member(js_at(held, i), &member))
            ret->quarantined[ret->quarantined_count++] = member.worker;
    }
    read_parts(root, ret);
    read_flag(root, "preparing", &ret->preparing);
    read_text(root, "storeWaiting.reason", ret->store.why, sizeof ret->store.why);
    read_flag(root, "storeWaiting.person", &ret->store.person);
    bool fenced = true;
    read_flag(root, "fenced", &fenced);
    ret->unfenced = !fenced;
    read_text(root, "checkpointWaiting.reason", ret->outage, sizeof ret->outage);
    read_events(js_get(root, "events"), ret);
    read_verdict(js_get(root, "result"), &ret->verdict);
}

int coordinator_read(const char *text, size_t length, struct coordinator_view *ret, struct error *err)
{
    if (length > OP_ANSWER_MAX)
        return err_set(err, ERR_PROTOCOL, "the coordinator's answer is longer than %d bytes", OP_ANSWER_MAX);
    struct js *root = js_parse(text, length, "the coordinator's answer", err);
    if (!root)
        return -1;
    int status = 0;
    if (js_kind(root) != JS_OBJECT)
        status = err_set(err, ERR_PROTOCOL, "the coordinator's answer is no JSON object");
    else {
        *ret = (struct coordinator_view){0};
        read_answer(root, ret);
    }
    js_free(root);
    return status;
}

void verdict_read(const char *text, struct op_verdict *ret)
{
    *ret = (struct op_verdict){0};
    struct js *root = text ? js_parse(text, strlen(text), "termination message", NULL) : NULL;
    read_verdict(root, ret);
    js_free(root);
}

void coordinator_forget_events(struct coordinator_view **view)
{
    struct coordinator_view *shorter = realloc(*view, offsetof(struct coordinator_view, event));
    if (shorter)
        *view = shorter;
    (*view)->events_count = 0;
}

enum {
    QUESTION_MS = 30 * 1000, /* the longest that one is waited for */
    PAUSE_MS = 45 * 1000,    /* between two failures, if whoever asks stood still meanwhile */
};

void silence_note(struct op_silence *silence, int64_t asked_ms, int64_t now_ms, const char *why)
{
    bool goes_on = silence->since_ms && now_ms - silence->last_ms < PAUSE_MS;
    int64_t earliest = now_ms - QUESTION_MS;
    if (!goes_on)
        silence->since_ms = asked_ms > earliest ? asked_ms : earliest;
    silence->last_ms = now_ms;
    text_tame(why, silence->why, sizeof silence->why);
}

int64_t silence_ms(const struct op_silence *silence)
{
    return silence && silence->since_ms ? silence->last_ms - silence->since_ms : 0;
}
