/* A store that does not take a checkpoint. Its agents keep the newest state and try on; here it is known
 * since when, and how long the end of a run waits for it. */
#include "coordinator/core/rdzv_outage.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/base/assert.h"
#include "coordinator/core/rdzv_base.h"
#include "coordinator/core/rdzv_bridge.h"
#include "coordinator/core/rdzv_ending.h"
#include "coordinator/core/rdzv_out.h"
#include "coordinator/core/rdzv_pieces.h"
#include "coordinator/core/rdzv_remedy.h"
#include "coordinator/core/rdzv_states.h"
#include "coordinator/core/rdzv_trouble.h"
#include "coordinator/core/rdzv_who.h"

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

/* ---- a save that one alone holds up ---- */

/* Part of what is saved that is this worker's, as it is cut now; -1: none. */
static int part_of(const struct rdzv *st, const struct rdzv_worker *w)
{
    RM_ASSERT(st->state == RDZV_SAVING, "worker %d has a part in state %s", rdzv_index(st, w),
              rdzv_state_name(st->state));
    for (int i = 0; i < st->save.count; i++) {
        if (st->save.worker[i] == rdzv_index(st, w))
            return i;
    }
    return -1;
}

static bool is_waited_for(const struct rdzv *st, const struct rdzv_worker *w)
{
    struct msg_fault f = {.step = st->save.step};
    int part = part_of(st, w);
    return (part >= 0 && !rdzv_part_is_in(st, part)) || rdzv_is_published_by(st, w, &f);
}

/* Since when the store has taken a part of it from another one than `but` (NULL: from anybody), who can write
 * the others as well; RM_NEVER: it has taken none. */
static rm_time taken_since(const struct turn *turn, const struct rdzv_worker *but)
{
    const struct rdzv *st = turn->st;
    rm_time since = RM_NEVER;
    for (int i = 0; i < st->save.count; i++) {
        const struct rdzv_worker *w = &st->worker[st->save.worker[i]];
        bool stays = w != but && w->presence == PRESENT && !w->leaving && !w->released;
        if (rdzv_part_is_in(st, i) && stays && rdzv_holds_what_is_saved(st, w))
            since = rm_earlier(since, rm_later(w->taken_at, st->save_since));
    }
    RM_ASSERT(since == RM_NEVER || since <= turn->now, "a part is taken %lld ns from now",
              (long long)(since - turn->now));
    return since;
}

/* For that it need not hold what is saved; who could not write or publish it has had its try. */
static bool another_may_publish(const struct rdzv *st, const struct rdzv_worker *but)
{
    RM_ASSERT(st->state == RDZV_SAVING, "who may publish step %" PRId64 " is asked in state %s",
              st->save.step, rdzv_state_name(st->state));
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        bool here = w != but && w->presence == PRESENT && !w->released;
        if (here && !rdzv_held_back(st, w) && !rdzv_fails_to_save(w) && !rdzv_is_stuck(st, w))
            return true;
    }
    return false;
}

/* True: others write its part, too, or another one publishes it. */
static bool hand_on(const struct turn *turn, struct rdzv_worker *w, const char *why)
{
    struct rdzv *st = turn->st;
    struct msg_fault f = {.kind = FAULT_STORAGE, .class = CLASS_PASSING, .peer = -1, .step = st->save.step};
    RM_ASSERT(is_waited_for(st, w), "worker %d holds up no save", rdzv_index(st, w));
    text_copy_ends(f.detail, sizeof f.detail, why);
    bool publishes = rdzv_is_published_by(st, w, &f);
    if (publishes && !another_may_publish(st, w))
        return false;
    bool others_write = rdzv_trouble(turn, w, FAULT_IN_SAVE, &f, false).remedy == FAULT_ANOTHER;
    if (!publishes && !others_write)
        return false;
    rdzv_say(st, "worker %d alone can't save step %" PRId64 ": %s", rdzv_index(st, w), f.step, f.detail);
    if (publishes)
        rdzv_forget_publisher(st, w);
    else
        st->save_again = true;
    st->save_waits = false;
    w->waits_since = RM_NEVER;
    return true;
}

/* It is asked again for 30 s, and others' part has been in for as long. From whom the store took a part may
 * not be able to write any more, either: then that one says so. Who is to publish says the same of the
 * manifest, and tries on with it; that another one has a try as well costs nothing that was written. */
static void ask_who_saves(const struct turn *turn, struct rdzv_worker *w, const struct msg_save_waits *m)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(is_under_way(st, m->step), "step %" PRId64 " waits, and %" PRId64 " is saved", m->step,
              st->save.step);
    if (st->save_again || !is_waited_for(st, w))
        return;
    w->waits_since = rm_earlier(w->waits_since, turn->now);
    struct msg_fault about = {.step = m->step};
    bool publishes = rdzv_is_published_by(st, w, &about);
    rm_time since = publishes ? w->waits_since : rm_later(taken_since(turn, w), w->waits_since);
    bool handed_on = since != RM_NEVER && turn->now - since >= FAULT_PATIENCE && hand_on(turn, w, m->why);
    st->save_held_up = !handed_on && turn->now - w->waits_since >= FAULT_PATIENCE;
}

/* Who has said nothing, as its call does not return, may be the only one that still waits: those who wrote
 * their parts, or may publish, have one try without it. */
static bool hand_on_all(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    bool any = st->save_again, taken = taken_since(turn, NULL) != RM_NEVER;
    struct rdzv_worker *publisher = rdzv_awaited_publisher(st);
    if (st->save_handed_on)
        return false;
    st->save_handed_on = true;
    for (int i = 0; i < st->save.count && taken; i++) {
        if (!rdzv_part_is_in(st, i))
            any = hand_on(turn, &st->worker[st->save.worker[i]], st->outage.why) || any;
    }
    if (publisher && taken)
        any = hand_on(turn, publisher, st->outage.why) || any;
    RM_ASSERT(st->state == RDZV_SAVING, "step %" PRId64 " is handed on in state %s", st->save.step,
              rdzv_state_name(st->state));
    st->save_waits = !any;
    return any;
}

/* ---- what its agents say ---- */

void rdzv_save_is_cut(struct rdzv *st)
{
    RM_ASSERT(st->save.count > 0, "step %" PRId64 " is saved by nobody", st->save.step);
    st->save_held_up = false;
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        st->worker[i].waits_since = RM_NEVER;
}

void rdzv_save_is_taken(const struct turn *turn, struct rdzv_worker *w)
{
    RM_ASSERT(w->taken_at <= turn->now, "worker %d wrote a part %lld ns from now", rdzv_index(turn->st, w),
              (long long)(w->taken_at - turn->now));
    w->taken_at = turn->now;
    w->waits_since = RM_NEVER;
}

void rdzv_save_waits(const struct turn *turn, struct rdzv_worker *w, const struct msg_save_waits *m)
{
    struct rdzv *st = turn->st;
    struct rdzv_outage *o = &st->outage;
    bool first = !o->on;
    if (has_come_to_nothing(st, m))
        return;
    rdzv_publishing_waits(turn, w, m->step);
    if (is_under_way(st, m->step) && !st->settings.save_patience && !st->settings.unsupervised) {
        rdzv_save_failed(turn, m->step, m->why);
        return;
    }
    if (st->state != RDZV_SAVING)
        ask_whose_fault(turn, w, m);
    else if (is_under_way(st, m->step)) {
        st->save_waits = st->save_waits || is_waited_for(st, w);
        ask_who_saves(turn, w, m);
    }
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
    bool waits = st->outage.on && is_under_way(st, st->outage.step) && st->save_waits;
    return waits && !st->settings.unsupervised ? st->save_since + st->settings.save_patience : RM_NEVER;
}

bool rdzv_save_waits_in_vain(const struct turn *turn)
{
    const struct rdzv *st = turn->st;
    bool over = turn->now >= rdzv_save_gives_up_at(st);
    RM_ASSERT(st->state == RDZV_SAVING, "step %" PRId64 " is saved in vain in state %s", st->save.step,
              rdzv_state_name(st->state));
    bool lacks = false;
    if (!st->save.final || st->ending.set)
        return false;
    for (int i = 0; i < st->save.count; i++) {
        const struct rdzv_worker *w = &st->worker[st->save.worker[i]];
        bool waits = w->waits_since != RM_NEVER && turn->now - w->waits_since >= FAULT_PATIENCE;
        bool in = rdzv_part_is_in(st, i);
        if (in && rdzv_has_gone(w))
            continue; /* it could write, and writes nothing any more */
        if (in || (!waits && !rdzv_fails_to_save(w) && !over))
            return false;
        lacks = true;
    }
    return lacks;
}

bool rdzv_save_gives_up(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->state == RDZV_SAVING, "step %" PRId64 " is given up in state %s", st->save.step,
              rdzv_state_name(st->state));
    char why[MSG_DETAIL_MAX];
    if (turn->now < rdzv_save_gives_up_at(st) || hand_on_all(turn))
        return false;
    text_print_ends(why, sizeof why, "given up after checkpoint.endTimeout; %s", st->outage.why);
    rdzv_save_failed(turn, st->save.step, why);
    return true;
}
