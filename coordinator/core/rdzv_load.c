/* Checkpoints that do not load: which is proven to be damaged, and what is waited for. A sound one is never
 * passed over. */
#include "coordinator/core/rdzv_load.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "coordinator/core/rdzv_base.h"
#include "coordinator/core/rdzv_ending.h"
#include "coordinator/core/rdzv_lists.h"
#include "coordinator/core/rdzv_out.h"
#include "coordinator/core/rdzv_pieces.h"
#include "coordinator/core/rdzv_remedy.h"
#include "coordinator/core/rdzv_resume.h"
#include "coordinator/core/rdzv_save.h"
#include "coordinator/core/rdzv_states.h"
#include "coordinator/core/rdzv_stop.h"
#include "coordinator/core/rdzv_trouble.h"
#include "coordinator/core/rdzv_waiting.h"

static const rm_time reads_on = RM_S; /* beside the time that the first one took */

static bool is_refused_state(const struct rdzv *st, const struct msg_state *s)
{
    RM_ASSERT(s->held, "step %" PRId64 " is refused, and there is none", s->step);
    struct msg_checkpoint c = {.step = s->step};
    memcpy(c.lineage, s->lineage, RM_HASH_BYTES);
    return rdzv_is_refused(st, &c);
}

static void refuse_checkpoint(const struct turn *turn, struct rdzv_worker *w, const struct msg_fault *f)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->loading && f->step == st->resume.step,
              "step %" PRId64 " is refused, and %" PRId64 " is loaded", f->step, st->resume.step);
    struct msg_checkpoint *r = &st->refused[st->refused_count];
    if (st->refused_count < REFUSED_KEPT - 1)
        st->refused_count++;
    r->step = f->step;
    memcpy(r->lineage, st->resume.lineage, RM_HASH_BYTES);
    st->refused_looked = false;
    st->final_saved = st->final_saved && f->step < st->settings.steps;
    struct msg_state next = rdzv_newest_checkpoint(st);
    st->saved = next.held ? next.step : -1; /* older ones count again, in memory too */
    RM_ASSERT(st->refused_count > 0 && st->refused_count < REFUSED_KEPT, "%d checkpoints are refused",
              st->refused_count);
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        rdzv_trouble_over(&st->worker[i], FAULT_IN_LOAD);
    struct rdzv_tell *t = rdzv_tell(turn, TELL_CHECKPOINT_REFUSED);
    t->step = f->step;
    t->worker = rdzv_index(st, w);
    text_copy_ends(t->text, sizeof t->text, f->detail);
}

/* Keeps what this worker saw. True: another one saw the same. */
static bool is_seen_by_two(struct rdzv_suspect *s, int worker, const char *what)
{
    int kept = s->sightings < SIGHTINGS_KEPT ? s->sightings : SIGHTINGS_KEPT;
    for (int i = 0; i < kept; i++)
        if (!strcmp(s->sighting[i].what, what))
            return s->sighting[i].worker != worker;
    int at = s->sightings++ % SIGHTINGS_KEPT;
    RM_ASSERT(s->sightings > 0, "%d sightings", s->sightings);
    s->sighting[at].worker = worker;
    text_copy(s->sighting[at].what, sizeof s->sighting[at].what, what);
    return false;
}

/* Where every share is damaged each member finds its own first, and nobody sees what another one saw. */
static bool is_seen_by_all(const struct rdzv *st)
{
    RM_ASSERT(st->loading, "a ring of %d sees damage, and loads nothing", st->world);
    for (int r = 0; r < st->world; r++)
        if (!set_has(st->suspect.seen_by, st->member[r]))
            return false;
    return st->world > 1;
}

/* Two workers saw the same damage, for each of two machines may read something wrong of its own; or all of
 * the ring saw some; or there is nobody else who could look, and for a while nobody has come. */
static bool is_proven(const struct turn *turn, const struct rdzv_worker *w, const char *what)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->resume.held, "a checkpoint is damaged that nobody loads: %s", what);
    struct rdzv_suspect *s = &st->suspect;
    if (!s->sightings || !rdzv_is_of(&s->checkpoint, &st->resume)) {
        *s = (struct rdzv_suspect){.since = turn->now};
        s->checkpoint.step = st->resume.step;
        memcpy(s->checkpoint.lineage, st->resume.lineage, RM_HASH_BYTES);
    }
    set_add(&s->seen_by, rdzv_index(st, w));
    if (is_seen_by_two(s, rdzv_index(st, w), what) || is_seen_by_all(st))
        return true;
    bool more =
        st->settings.unsupervised ? st->settings.workers_target > 1 : rdzv_others_load(st, w, false) > 0;
    return !rdzv_others_load(st, w, true) && (!more || turn->now >= s->since + FAULT_PATIENCE);
}

/* Each share is read by another member the next time, so that damage is seen by a second one. */
int rdzv_load_turn(const struct rdzv *st)
{
    return st->suspect.turn;
}

void rdzv_load_begins(struct rdzv *st)
{
    st->suspect.decides_at = 0;
    st->suspect.told = (struct worker_set){0};
}

rm_time rdzv_load_decides_at(const struct rdzv *st)
{
    return st->suspect.decides_at ? st->suspect.decides_at : RM_NEVER;
}

/* True: others of this ring are about to know as much of their own shares, which take as long to read. */
static bool others_read_on(const struct turn *turn, const struct rdzv_worker *w)
{
    struct rdzv *st = turn->st;
    struct rdzv_suspect *s = &st->suspect;
    RM_ASSERT(st->state == RDZV_FORMING && w->rank >= 0, "worker %d reads on as rank %d, in state %s",
              rdzv_index(st, w), w->rank, rdzv_state_name(st->state));
    set_add(&s->told, rdzv_index(st, w));
    for (int r = 0; r < st->world; r++) {
        if (set_has(s->told, st->member[r]))
            continue;
        if (!s->decides_at)
            s->decides_at = turn->now + (turn->now - st->state_since) + reads_on;
        return true;
    }
    return false;
}

static void load_fault(const struct turn *turn, struct rdzv_worker *w, const struct msg_fault *f)
{
    struct rdzv *st = turn->st;
    bool object = f->class == CLASS_OBJECT;
    RM_ASSERT(st->loading, "step %" PRId64 " is damaged, and nobody loads it", f->step);
    bool proven = object && is_proven(turn, w, f->detail);
    w->loads = 0;
    struct fault_decision d = rdzv_trouble(turn, w, FAULT_IN_LOAD, f, proven);
    st->forming_failures = 0; /* it has bounds of its own */
    st->suspect.turn += object;
    if (d.remedy == FAULT_REFUSES)
        refuse_checkpoint(turn, w, f);
    else if (d.remedy == FAULT_WAITS)
        rdzv_lists_anew(st); /* one that was deleted meanwhile is not waited for */
    rdzv_act_on_trouble(turn, w, &d);
    bool open = object && d.remedy != FAULT_REFUSES && w->rank >= 0;
    if (st->state == RDZV_FORMING && !(open && others_read_on(turn, w)))
        rdzv_quiesce(turn, STOP_NOW);
}

/* What was trained is not begun anew unasked: a person may mend the checkpoints, or say --overwrite. */
bool rdzv_all_are_damaged(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->refused_count >= 0 && st->refused_count < REFUSED_KEPT, "%d checkpoints are refused",
              st->refused_count);
    char names[200] = "";
    size_t n = 0;
    if (!st->refused_count)
        return false;
    for (int i = 0; i < st->refused_count && n < sizeof names - 24; i++)
        n += (size_t)snprintf(names + n, sizeof names - n, "%sstep-%08" PRId64, i ? ", " : "",
                              st->refused[i].step);
    rdzv_give_up(st, EXIT_DATA,
                 "every checkpoint is damaged (%s): put a copy in its place, or start anew with --overwrite",
                 names);
    rdzv_end(turn);
    return true;
}

rm_time rdzv_awaits_manifest_until(const struct rdzv *st)
{
    if (!st->refused_count || !rdzv_begins_anew(st) || rdzv_step_to_publish(st) < 0)
        return 0;
    return st->settings.unsupervised ? RM_NEVER : st->state_since + st->settings.start_timeout;
}

/* Who publishes may have done so, and its answer have been lost with the store: that a manifest came to
 * nothing, or not in time, is nothing to end a run by. */
static bool looks_once_more(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    if (!st->refused_count || st->refused_looked || !rdzv_begins_anew(st))
        return false;
    st->refused_looked = true;
    rdzv_lists_anew(st);
    rdzv_ask_lists(turn);
    return true;
}

bool rdzv_awaits_manifest(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    char reason[MSG_DETAIL_MAX];
    if (turn->now >= rdzv_awaits_manifest_until(st))
        return looks_once_more(turn);
    snprintf(reason, sizeof reason,
             "every checkpoint so far is damaged, and that of step %" PRId64 " waits for its manifest",
             rdzv_step_to_publish(st));
    rdzv_tell_waiting_for(turn, reason);
    return true;
}

void rdzv_storage_fault(const struct turn *turn, struct rdzv_worker *w, const struct msg_fault *f)
{
    struct rdzv *st = turn->st;
    bool loads = st->state == RDZV_FORMING || st->state == RDZV_QUIESCING || st->state == RDZV_GATHERING;
    if (f->step < 0) {
        rdzv_list_fault(turn, w, f);
    } else if (loads && st->loading && f->step == st->resume.step && f->reading) {
        /* maybe for a ring that was given up meanwhile */
        if (!is_refused_state(st, &st->resume))
            load_fault(turn, w, f);
        else if (st->state == RDZV_FORMING)
            rdzv_quiesce(turn, STOP_NOW);
    } else if (f->reading) {
        /* for a ring that has gone on without it, or was given up */
        struct fault_decision d = rdzv_trouble(turn, w, FAULT_IN_LOAD, f, false);
        rdzv_act_on_trouble(turn, w, &d);
    } else {
        rdzv_write_fault(turn, w, f);
    }
}
