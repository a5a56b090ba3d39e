#include "coordinator/status/history.h"

#include <string.h>

#include "common/base/assert.h"
#include "coordinator/core/rdzv_state.h"

/* A step is news for who waits, but not each of hundreds in a second. */
static const rm_time step_news = 5 * RM_S;

const double history_recovery_bounds[HISTORY_RECOVERY_BOUNDS] = {0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,
                                                                 2.5,  5,     10,   30,  60,   300};

static void keep_event(struct history *c, const struct rdzv_tell *tell, int64_t wall_ms)
{
    c->events++;
    struct history_event *e = &c->event[c->events % HISTORY_EVENTS];
    e->sequence = c->events;
    e->wall_ms = wall_ms;
    e->tell = *tell;
    e->tell.members = 0;
    e->tell.member = NULL;
    e->tell.output = NULL; /* for who follows the events: a page has no room for it */
}

static void keep_going(struct history_going *list, const struct rdzv_tell *tell, int64_t wall_ms)
{
    struct history_going *g = &list[tell->worker];
    *g = (struct history_going){.known = true, .attempt = tell->attempt, .wall_ms = wall_ms};
    text_copy_ends(g->cause, sizeof g->cause, tell->text);
}

static void keep_saved(struct history *c, const struct rdzv_tell *tell, int64_t wall_ms)
{
    c->checkpoint.count++;
    c->checkpoint.wall_ms = wall_ms;
    c->checkpoint.step = tell->step;
    c->checkpoint.final = tell->final;
    c->checkpoint.bytes = tell->bytes;
    c->checkpoint.bytes_all += tell->bytes;
    c->checkpoint.took_all += tell->took;
}

static void keep_recovery(struct history *c, const struct rdzv_recovery *r)
{
    bool announced = r->cause == CAUSE_WORKER_LEFT || r->cause == CAUSE_WORKER_JOINED;
    c->recoveries[r->cause]++;
    *(announced ? &c->redone_announced : &c->redone_sudden) += r->steps_redone;
    c->detect += r->detect;
    c->agree += r->agree;
    c->ring += r->ring;
    c->state_time += r->state;
    c->first_step += r->first_step;
    c->total += r->total;
    int i = 0;
    while (i < HISTORY_RECOVERY_BOUNDS && (double)r->total / RM_S > history_recovery_bounds[i])
        i++;
    c->took[i]++;
}

static void learn_event(struct history *c, const struct rdzv_tell *tell, int64_t wall_ms)
{
    switch (tell->kind) {
    case TELL_RING_FORMED:
        c->formed_wall_ms = wall_ms;
        return;
    case TELL_WORKER_LOST:
        keep_going(c->lost, tell, wall_ms);
        return;
    case TELL_WORKER_LEFT:
        keep_going(c->left, tell, wall_ms);
        return;
    case TELL_CHECKPOINT_SAVED:
        keep_saved(c, tell, wall_ms);
        return;
    case TELL_RECOVERED:
        keep_recovery(c, &tell->recovery);
        return;
    case TELL_COMPLETE:
    case TELL_FAILED:
    case TELL_INTERRUPTED:
        c->over = true;
        c->end = *tell;
        return;
    default:
        return;
    }
}

void history_news(struct history *c)
{
    c->revision++;
}

void history_note(struct history *c, const struct rdzv_tell *tell, int64_t wall_ms, rm_time now)
{
    learn_event(c, tell, wall_ms);
    if (tell->kind != TELL_STEP && tell->kind != TELL_PROGRESS) {
        keep_event(c, tell, wall_ms);
        history_news(c);
    } else if (now >= c->step_noted + step_news) {
        c->step_noted = now;
        history_news(c);
    }
}

bool history_lists(const struct rdzv *st, int worker)
{
    RM_ASSERT(worker >= 0 && worker < RM_WORKERS_MAX, "worker %d is on no page", worker);
    const struct rdzv_worker *w = &st->worker[worker];
    return w->presence != ABSENT || w->expected >= 0;
}

void history_look(struct history *c, const struct rdzv *st)
{
    int listed = 0;
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        listed += history_lists(st, i);
    bool same = c->listed == listed && c->state == rdzv_state(st) && !strcmp(c->why, rdzv_why(st));
    if (c->revision && same)
        return;
    c->listed = listed;
    c->state = rdzv_state(st);
    text_copy_ends(c->why, sizeof c->why, rdzv_why(st));
    history_news(c);
}
