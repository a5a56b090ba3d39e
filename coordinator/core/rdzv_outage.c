/* A store that does not take a checkpoint. Its agents keep the newest state and try on; here it is known
 * since when, and how long the end of a run waits for it. */
#include "coordinator/core/rdzv_outage.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/base/assert.h"
#include "coordinator/core/rdzv_base.h"
#include "coordinator/core/rdzv_ending.h"
#include "coordinator/core/rdzv_out.h"
#include "coordinator/core/rdzv_pieces.h"
#include "coordinator/core/rdzv_remedy.h"
#include "coordinator/core/rdzv_states.h"

/* Once per outage: that it lasts is seen in the metric. */
static void tell_outage(const struct turn *turn, bool final)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->outage.on && st->outage.taken <= turn->now,
              "an outage of step %" PRId64 " since %lld, at %lld", st->outage.step,
              (long long)st->outage.taken, (long long)turn->now);
    struct rdzv_tell *t = rdzv_tell(turn, TELL_CHECKPOINT_WAITING);
    t->step = st->outage.step;
    t->final = final;
    t->took = turn->now - st->outage.taken;
    text_copy_ends(t->text, sizeof t->text, st->outage.why);
}

static bool is_under_way(const struct rdzv *st, int64_t step)
{
    return st->state == RDZV_SAVING && step == st->save.step;
}

static bool has_come_to_nothing(const struct rdzv *st, const struct msg_save_waits *m)
{
    return m->step <= st->saved && !is_under_way(st, m->step);
}

/* While training goes on it may be this one alone that can't reach the store. */
static void ask_whose_fault(const struct turn *turn, struct rdzv_worker *w, const struct msg_save_waits *m)
{
    RM_ASSERT(turn->st->state != RDZV_SAVING,
              "worker %d alone can't save step %" PRId64 ", for which all wait", rdzv_index(turn->st, w),
              m->step);
    struct msg_fault f = {.kind = FAULT_STORAGE, .class = CLASS_PASSING, .peer = -1, .step = m->step};
    text_copy_ends(f.detail, sizeof f.detail, m->why);
    rdzv_slice_fault(turn, w, &f);
}

void rdzv_save_waits(const struct turn *turn, struct rdzv_worker *w, const struct msg_save_waits *m)
{
    struct rdzv *st = turn->st;
    struct rdzv_outage *o = &st->outage;
    bool first = !o->on;
    if (has_come_to_nothing(st, m))
        return;
    rdzv_publishing_waits(st, w, m->step);
    if (is_under_way(st, m->step) && !st->settings.save_patience && !st->settings.unsupervised) {
        rdzv_save_failed(turn, m->step, m->why);
        return;
    }
    if (st->state != RDZV_SAVING)
        ask_whose_fault(turn, w, m);
    if (first || m->step > o->step || is_under_way(st, m->step)) {
        o->step = m->step;
        o->taken = turn->now - m->age;
    }
    text_copy_ends(o->why, sizeof o->why, m->why);
    if (!first)
        return;
    o->on = true;
    o->since = o->taken;
    RM_ASSERT(o->since <= turn->now, "an outage begins %lld ns from now", (long long)(o->since - turn->now));
    rdzv_say(st, "the checkpoint of step %" PRId64 " waits: %s", m->step, m->why);
    tell_outage(turn, is_under_way(st, m->step) && st->save.final);
}

rm_time rdzv_outage_over(const struct turn *turn, int64_t step)
{
    struct rdzv *st = turn->st;
    if (!st->outage.on || step < st->outage.step)
        return 0;
    RM_ASSERT(st->outage.since <= turn->now, "an outage begins %lld ns from now",
              (long long)(st->outage.since - turn->now));
    st->outage.on = false;
    return turn->now - st->outage.since;
}

rm_time rdzv_save_gives_up_at(const struct rdzv *st)
{
    bool waits = st->outage.on && is_under_way(st, st->outage.step) && !st->settings.unsupervised;
    return waits ? st->save_since + st->settings.save_patience : RM_NEVER;
}

bool rdzv_save_gives_up(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->state == RDZV_SAVING, "step %" PRId64 " is given up in state %s", st->save.step,
              rdzv_state_name(st->state));
    char why[MSG_DETAIL_MAX];
    if (turn->now < rdzv_save_gives_up_at(st))
        return false;
    text_print_ends(why, sizeof why, "given up after checkpoint.endTimeout; %s", st->outage.why);
    rdzv_save_failed(turn, st->save.step, why);
    return true;
}
