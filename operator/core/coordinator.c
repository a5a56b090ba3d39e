/* Reads a coordinator's status page and last word, and believes of both what is within bounds. */
#include "operator/core/coordinator.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/notice/notice.h"
#include "common/wire/json.h"
#include "operator/core/read.h"
#include "operator/core/status_parts.h"

static void take_lost(const struct status_workers *from, struct coordinator_view *ret)
{
    RM_ASSERT(from->count >= 0 && ret->lost_count + from->count <= RM_WORKERS_MAX,
              "%d workers are lost, and %d", ret->lost_count, from->count);
    for (int i = 0; i < from->count; i++) {
        const struct status_worker *one = &from->worker[i];
        struct op_gone *gone = &ret->lost[ret->lost_count++];
        *gone = (struct op_gone){.worker = one->worker, .attempt = one->attempt, .at_ms = one->time};
        text_tame(one->cause, gone->cause, sizeof gone->cause);
    }
}

/* Longer than a day is no leave. */
static int64_t read_leave(double seconds)
{
    static const double most = 86400;
    return seconds > 0 ? (int64_t)(1000 * (seconds < most ? seconds : most)) : 0; /* NaN: not known */
}

static int take_present(const struct status_workers *from, struct op_present *ret)
{
    RM_ASSERT(from->count >= 0 && from->count <= RM_WORKERS_MAX, "%d workers are here", from->count);
    for (int i = 0; i < from->count; i++) {
        const struct status_worker *one = &from->worker[i];
        enum status_phase phase = status_phase_of_name(one->phase);
        bool going = phase == STATUS_PHASE_LEAVING || phase == STATUS_PHASE_AWAY;
        bool may = one->notice.known && !strcmp(one->notice.certainty, notice_certainty_name(NOTICE_MAY));
        bool will = one->notice.known && !may && one->notice.left_seconds > 0; /* NaN: no moment is known */
        ret[i] = (struct op_present){.worker = one->worker,
                                     .attempt = one->attempt,
                                     .in_ring = one->rank >= 0 && !going,
                                     .waits = one->rank < 0 && phase == STATUS_PHASE_WAITING,
                                     .may_go = may,
                                     .will_go = will,
                                     .leave_ms = one->told ? read_leave(one->leave_seconds) : 0};
    }
    return from->count;
}

static void take_last_word(const struct status_result *from, struct op_last_word *ret)
{
    ret->program_code = -1;
    if (!from->known || from->exit_code < 0)
        return;
    ret->known = true;
    ret->exit_code = from->exit_code;
    if (from->program)
        ret->program_code = from->program_code;
    ret->interrupted = from->interrupted;
    ret->bytes = from->bytes;
    ret->saved_ms = from->saved;
    text_tame(from->reason, ret->reason, sizeof ret->reason);
    take_result(from, &ret->result);
}

/* The fields that the notes of several events show. */
struct told {
    char cause[OP_REASON_MAX], reason[RM_WHY_MAX], uri[RM_WHY_MAX];
    char source[OP_REASON_MAX], certainty[OP_REASON_MAX];
    int64_t left; /* seconds; -1: not told */
    int worker, world, generation;
    int64_t step, ms, redone;
    bool no_steps; /* a user's program: it tells none */
};

static void read_told(const struct js *from, struct told *t)
{
    *t = (struct told){.worker = -1, .left = -1};
    read_text(from, event_key(EVENT_KEY_SOURCE), t->source, sizeof t->source);
    read_text(from, event_key(EVENT_KEY_CERTAINTY), t->certainty, sizeof t->certainty);
    read_int(from, event_key(EVENT_KEY_LEFT_SECONDS), 0, INT64_MAX, &t->left);
    read_text(from, event_key(EVENT_KEY_CAUSE), t->cause, sizeof t->cause);
    read_text(from, event_key(EVENT_KEY_REASON), t->reason, sizeof t->reason);
    read_text(from, event_key(EVENT_KEY_URI), t->uri, sizeof t->uri);
    read_small(from, event_key(EVENT_KEY_WORKER), -1, INT32_MAX, &t->worker);
    read_small(from, event_key(EVENT_KEY_WORLD), 0, INT32_MAX, &t->world);
    read_small(from, event_key(EVENT_KEY_GENERATION), 0, INT32_MAX, &t->generation);
    read_int(from, event_key(EVENT_KEY_STEP), 0, INT64_MAX, &t->step);
    read_int(from, recovery_key(RECOVERY_TOTAL), 0, INT64_MAX, &t->ms);
    read_int(from, event_key(EVENT_KEY_STEPS_REDONE), 0, INT64_MAX, &t->redone);
}

/* Of an event in which a user's program has no part in steps; false: it is another one. */
static bool note_program(enum event_kind kind, const struct told *t, char *out, size_t size)
{
    switch (kind) {
    case EVENT_RING_FORMED:
        snprintf(out, size, "generation %d with %d workers", t->generation, t->world);
        return true;
    case EVENT_WORKER_LOST:
    case EVENT_WORKER_LEFT:
    case EVENT_WORKER_JOINED:
    case EVENT_WORKER_LEFT_OUT:
        snprintf(out, size, "worker %d: %s", t->worker, t->cause);
        return true;
    case EVENT_RECOVERED:
        snprintf(out, size, "%s: running again after %lld ms", t->cause, (long long)t->ms);
        return true;
    default:
        return false;
    }
}

static bool is_sure(const struct told *t)
{
    return !strcmp(t->certainty, notice_certainty_name(NOTICE_WILL));
}

/* The node's own name is not the coordinator's to know: the worker's pod tells it. */
static void note_notice(const struct told *t, char *out, size_t size)
{
    bool will = is_sure(t);
    char within[40] = "";
    if (t->left >= 0)
        snprintf(within, sizeof within, " in %lld s", (long long)t->left);
    snprintf(out, size, "worker %d: its machine %s go%s (%s), says %s", t->worker, will ? "will" : "may",
             within, t->cause, t->source);
}

/* One sentence of an event; empty for those that people don't need. */
static void note_event(enum event_kind kind, const struct told *t, char *out, size_t size)
{
    long long step = (long long)t->step;
    if (t->no_steps && note_program(kind, t, out, size))
        return;
    switch (kind) {
    case EVENT_RING_FORMED:
        snprintf(out, size, "generation %d with %d workers, from step %lld", t->generation, t->world, step);
        break;
    case EVENT_WORKER_LOST:
    case EVENT_WORKER_LEFT:
    case EVENT_WORKER_JOINED:
    case EVENT_WORKER_QUARANTINED:
    case EVENT_WORKER_LEFT_OUT:
    case EVENT_WORKER_DIFFERS:
    case EVENT_PROOF_FAILED:
    case EVENT_WORKER_SLOW:
        snprintf(out, size, "worker %d at step %lld: %s", t->worker, step, t->cause);
        break;
    case EVENT_NOTICE_RECEIVED:
        note_notice(t, out, size);
        break;
    case EVENT_NOTICE_WITHDRAWN:
        snprintf(out, size, "worker %d: %s has withdrawn its notice (%s)", t->worker, t->source, t->cause);
        break;
    case EVENT_PROGRAM_FAILED:
        snprintf(out, size, "worker %d: %s", t->worker, t->reason);
        break;
    case EVENT_CHECKPOINT_SAVED:
        snprintf(out, size, "step %lld in %s", step, t->uri);
        break;
    case EVENT_RECOVERED:
        snprintf(out, size, "%s: recovered in %lld ms, %lld steps redone", t->cause, (long long)t->ms,
                 (long long)t->redone);
        break;
    case EVENT_CHECKPOINT_WAITING:
        snprintf(out, size, "the store does not take step %lld: %s", step, t->reason);
        break;
    case EVENT_WAITING:
    case EVENT_CHECKPOINT_INTERVAL:
        snprintf(out, size, "%s", t->reason);
        break;
    default:
        break;
    }
}

static void read_events(const struct js *list, bool no_steps, struct coordinator_view *ret)
{
    size_t size = js_size(list), most = OP_COORDINATOR_EVENTS_MAX, first = size > most ? size - most : 0;
    for (size_t i = first; i < size; i++) {
        struct told told;
        char name[OP_CAUSE_MAX] = "";
        const struct js *from = js_at(list, i);
        RM_ASSERT(ret->events_count < OP_COORDINATOR_EVENTS_MAX, "%d events, and one more",
                  ret->events_count);
        struct op_coordinator_event *event = &ret->event[ret->events_count++];
        read_int(from, event_key(EVENT_KEY_SEQUENCE), 0, INT64_MAX, &event->sequence);
        read_int(from, event_key(EVENT_KEY_TIME), 0, INT64_MAX, &event->at_ms);
        read_text(from, event_key(EVENT_KEY_EVENT), name, sizeof name);
        event->kind = event_of_name(name);
        read_told(from, &told);
        told.no_steps = no_steps;
        event->worker = told.worker;
        event->will = is_sure(&told);
        note_event(event->kind, &told, event->note, sizeof event->note);
    }
}

static void take_lists(const struct status_page *page, struct coordinator_view *ret)
{
    ret->ring_size = take_members(&page->ring.members, ret->member);
    ret->workers_count = take_present(&page->workers, ret->worker);
    ret->quarantined_count = page->quarantined.count;
    for (int i = 0; i < page->quarantined.count; i++)
        ret->quarantined[i] = page->quarantined.worker[i].worker;
    take_lost(&page->lost, ret);
    read_events(page->events, page->program || !page->progress.known, ret);
    RM_ASSERT(ret->ring_size >= 0 && ret->ring_size <= RM_WORKERS_MAX &&
                  ret->quarantined_count <= RM_WORKERS_MAX,
              "a ring of %d, %d in quarantine", ret->ring_size, ret->quarantined_count);
}

static void take_page(const struct status_page *page, struct coordinator_view *ret)
{
    ret->revision = page->revision;
    ret->at_ms = page->time;
    ret->term = (int)page->term;
    ret->state = status_state_of_name(page->state);
    ret->mixed = page->mixed_hardware;
    ret->ring_generation = (int)page->ring.generation;
    ret->formed_ms = page->ring.formed;
    ret->preparing = page->preparing;
    ret->store.person = page->store.person;
    ret->unfenced = !page->fenced;
    text_tame(page->job, ret->job, sizeof ret->job);
    text_tame(page->message, ret->message, sizeof ret->message);
    text_tame(page->store.reason, ret->store.why, sizeof ret->store.why);
    text_tame(page->outage.reason, ret->outage, sizeof ret->outage);
    text_tame(page->transport.reason, ret->slower, sizeof ret->slower);
    take_progress(&page->progress, &ret->progress);
    take_checkpoint(&page->checkpoint, &ret->checkpoint);
    take_interval(&page->interval, &ret->interval);
    take_recovery(&page->last_recovery, &ret->last_recovery);
    take_goodput(&page->goodput, &ret->goodput);
    take_last_word(&page->result, &ret->last_word);
    ret->begun = page->ring.begun < OP_COUNT_MAX ? page->ring.begun : OP_COUNT_MAX;
    take_lists(page, ret);
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
        struct status_page page = {.fenced = true};
        status_read_page(&page, root);
        *ret = (struct coordinator_view){0};
        take_page(&page, ret);
    }
    js_free(root);
    return status;
}

void last_word_read(const char *text, struct op_last_word *ret)
{
    *ret = (struct op_last_word){0};
    struct js *root = text ? js_parse(text, strlen(text), "termination message", NULL) : NULL;
    struct status_result result;
    status_read_result(&result, root);
    take_last_word(&result, ret);
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
