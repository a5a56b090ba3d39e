/* Adds up what a run's events say: steps and speed, recoveries with their parts, rings, checkpoints, the
 * end. local_run.c feeds it; screen.c makes sentences of it. */
#include "cli/core/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/str.h"

static const double smooth = 0.1; /* weight of the newest value */

void report_init(struct report *report, int64_t steps, int64_t first_step, rm_time now)
{
    RM_ASSERT(steps >= 0 && first_step >= 0, "a run from step %lld of %lld", (long long)first_step,
              (long long)steps);
    *report = (struct report){.steps = steps,
                              .first_step = first_step,
                              .step = first_step,
                              .loss = NAN,
                              .first_loss = NAN,
                              .norm = NAN,
                              .rate = NAN,
                              .evaluated = NAN,
                              .begun = now};
    picture_init(&report->picture, steps, first_step);
}

static rm_time smoothed(rm_time before, rm_time each)
{
    return before ? before + (rm_time)(smooth * (double)(each - before)) : each;
}

static void take_step(struct report *r, const struct event *e, rm_time now)
{
    RM_ASSERT(e->kind == EVENT_STEP, "a step of an event of kind %d", (int)e->kind);
    if (r->last_step_at && e->step > r->step) {
        rm_time each = (now - r->last_step_at) / (e->step - r->step);
        r->step_time = smoothed(r->step_time, each);
    }
    r->samples = r->samples || e->samples_per_second > 0;
    double pace = r->samples ? e->samples_per_second : e->tokens_per_second;
    r->pace = r->pace > 0 ? r->pace + smooth * (pace - r->pace) : pace;
    r->last_step_at = now;
    r->step = e->step;
    r->world = e->world;
    r->loss = e->loss;
    r->norm = e->norm;
    r->rate = e->rate;
    if (isnan(r->first_loss))
        r->first_loss = e->loss;
}

static void take_told(struct report_told *t, const struct event *e, rm_time now)
{
    RM_ASSERT(e->kind == EVENT_PROGRESS, "progress of an event of kind %d", (int)e->kind);
    if (t->known && e->step > t->step)
        t->step_time = smoothed(t->step_time, (now - t->at) / (e->step - t->step));
    if (!t->known || e->step != t->step)
        t->at = now;
    t->known = true;
    t->step = e->step;
    t->steps = e->steps;
    t->loss = e->loss;
}

/* Adds "worker 1 lost" to what the next recovery is named after. */
static void take_change(struct report *r, const struct event *e, const char *what)
{
    RM_ASSERT(*what, "worker %d, and nothing of it", e->worker);
    char label[REPORT_LABEL_MAX];
    snprintf(label, sizeof label, "%.30s%sworker %d %s", r->pending, *r->pending ? ", " : "", e->worker,
             what);
    text_copy(r->pending, sizeof r->pending, label);
    r->pending_step = r->step;
}

/* A cause in words, for a recovery that no worker's coming or going announced. */
static const char *cause_words(const char *cause, bool program)
{
    static const char *const of_program[CAUSES] = {
        [CAUSE_TRAINER_EXIT] = "the program failed",
        [CAUSE_HANG] = "the program hung",
        [CAUSE_RING_ERROR] = "an older program was left",
    };
    static const char *const words[CAUSES] = {
        [CAUSE_TRAINER_EXIT] = "a trainer ended",      [CAUSE_WORKER_LOST] = "a worker lost",
        [CAUSE_WORKER_LEFT] = "a worker left",         [CAUSE_RING_ERROR] = "a ring error",
        [CAUSE_WORKER_JOINED] = "a worker joined",     [CAUSE_HANG] = "a trainer hung",
        [CAUSE_COORDINATOR_LOST] = "coordinator lost",
    };
    enum cause known = cause_of_name(cause);
    if (program && known < CAUSES && of_program[known])
        return of_program[known];
    return known < CAUSES && words[known] ? words[known] : cause;
}

bool report_is_takeover(const struct event *event)
{
    return event->kind == EVENT_RECOVERED && !strcmp(event->text, cause_name(CAUSE_COORDINATOR_LOST));
}

/* A coordinator that is replaced takes no worker's name: the ring that forms without that worker is told
 * next. */
static void take_recovery(struct report *r, const struct event *e)
{
    bool named = *r->pending && !report_is_takeover(e);
    if (r->recoveries++ >= REPORT_RECOVERIES_MAX)
        return;
    struct report_recovery *to = &r->recovery[r->recoveries - 1];
    RM_ASSERT(r->recoveries >= 1 && r->recoveries <= REPORT_RECOVERIES_MAX, "recovery %d", r->recoveries);
    *to = (struct report_recovery){.step = named ? r->pending_step : r->step,
                                   .detect = e->recovered.detect,
                                   .agree = e->recovered.agree,
                                   .ring = e->recovered.ring,
                                   .state = e->recovered.state,
                                   .first_step = e->recovered.first_step,
                                   .total = e->recovered.total,
                                   .steps_redone = e->recovered.steps_redone};
    text_copy(to->label, sizeof to->label, named ? r->pending : cause_words(e->text, !r->steps));
    if (named)
        *r->pending = 0;
}

void report_take(struct report *r, const struct event *e, rm_time now)
{
    picture_take(&r->picture, e, r->step, now - r->begun);
    switch (e->kind) {
    case EVENT_STEP:
        take_step(r, e, now);
        break;
    case EVENT_PROGRESS:
        take_told(&r->told, e, now);
        break;
    case EVENT_RING_FORMED:
        r->world = e->members;
        break;
    case EVENT_WORKER_LOST:
        take_change(r, e, "lost");
        break;
    case EVENT_WORKER_LEFT:
        take_change(r, e, "left");
        break;
    case EVENT_WORKER_JOINED:
        if (e->worker >= 0 && e->worker < RM_WORKERS_MAX)
            r->drilled[e->worker] = NULL;
        take_change(r, e, "joined");
        break;
    case EVENT_RECOVERED:
        take_recovery(r, e);
        break;
    case EVENT_CHECKPOINT_WAITING:
        r->store_was_away += !r->store_is_away;
        r->store_is_away = true;
        break;
    case EVENT_CHECKPOINT_SAVED:
        r->store_away += e->waited;
        r->store_is_away = r->store_is_away && e->waited <= 0;
        break;
    case EVENT_EVALUATED:
        r->evaluated = e->loss;
        break;
    case EVENT_FAILED:
    case EVENT_INTERRUPTED:
    case EVENT_COMPLETE:
        r->ended = true;
        r->end = *e;
        break;
    default:
        break;
    }
}

void report_drill(struct report *report, int worker, const char *done)
{
    RM_ASSERT(worker >= 0 && worker < RM_WORKERS_MAX, "a drill on worker %d", worker);
    report->drilled[worker] = done;
}

rm_time report_left(const struct report *r)
{
    const struct report_told *t = &r->told;
    if (t->known)
        return t->step_time && t->steps > t->step ? t->step_time * (t->steps - t->step) : -1;
    return r->step_time ? r->step_time * (r->steps - r->step) : -1;
}
