/* What is being saved: who holds it, the pieces that came in, and who is to publish them. */
#include "coordinator/core/rdzv_pieces.h"

#include <math.h>
#include <string.h>

#include "common/base/assert.h"
#include "coordinator/core/rdzv_base.h"
#include "coordinator/core/rdzv_bridge.h"
#include "coordinator/core/rdzv_fault.h"
#include "coordinator/core/rdzv_out.h"
#include "coordinator/core/rdzv_resume.h"
#include "coordinator/core/rdzv_states.h"
#include "coordinator/core/rdzv_who.h"

/* ---- collections ---- */

/* Who does not know the sum of its state does not say that it differs. */
static bool same_bits(uint64_t a, uint64_t b)
{
    return a == b || !a || !b;
}

static bool belongs(const struct rdzv_collection *c, const struct msg_checkpointed *m)
{
    return c->used && c->publish.step == m->step && c->publish.final == m->final && c->parts == m->parts &&
           !memcmp(c->publish.lineage, m->lineage, RM_HASH_BYTES) && same_bits(c->image, m->image);
}

/* Pieces of one step and one history, and yet of states that differ. */
bool rdzv_pieces_differ(const struct rdzv *st, const struct msg_checkpointed *m)
{
    for (int i = 0; i < COLLECTIONS; i++) {
        const struct rdzv_collection *c = &st->collection[i];
        if (c->used && c->publish.step == m->step && c->publish.final == m->final &&
            !memcmp(c->publish.lineage, m->lineage, RM_HASH_BYTES) && !same_bits(c->image, m->image))
            return true;
    }
    return false;
}

/* What is being saved now, as it is cut now. */
static bool is_of_this_save(const struct rdzv *st, const struct rdzv_collection *c)
{
    return st->state == RDZV_SAVING && c->publish.step == st->save.step &&
           c->publish.final == st->save.final && c->parts == st->save.count;
}

/* A free one, else the oldest that is not being published: newer checkpoints are worth more. A step that all
 * stand still for is cut anew each time that one of its writers fails, and pieces of all these cuts come in:
 * the newest cut is never the one that makes room. */
static struct rdzv_collection *make_room(struct rdzv *st)
{
    struct rdzv_collection *oldest = NULL, *cut_before = NULL;
    for (int i = 0; i < COLLECTIONS; i++) {
        struct rdzv_collection *c = &st->collection[i];
        if (!c->used)
            return c;
        bool may_go = c->publisher < 0 && !is_of_this_save(st, c);
        if (may_go && !c->publish.final && (!oldest || c->publish.step < oldest->publish.step))
            oldest = c;
        if (may_go && !cut_before)
            cut_before = c;
    }
    RM_ASSERT(!oldest || oldest->publisher < 0, "what worker %d publishes makes room",
              oldest ? oldest->publisher : -1);
    if (oldest)
        return oldest;
    return cut_before ? cut_before : &st->collection[0];
}

struct rdzv_collection *rdzv_collection_of(struct rdzv *st, const struct msg_checkpointed *m)
{
    RM_ASSERT(m->part >= 0 && m->part < m->parts && m->parts <= RM_WORKERS_MAX, "part %d of %d of step %lld",
              m->part, m->parts, (long long)m->step);
    for (int i = 0; i < COLLECTIONS; i++) {
        struct rdzv_collection *c = &st->collection[i];
        if (!belongs(c, m))
            continue;
        c->image = c->image ? c->image : m->image;
        return c;
    }
    struct rdzv_collection *c = make_room(st);
    memset(c, 0, sizeof *c);
    c->used = true;
    c->publisher = -1;
    c->parts = m->parts;
    c->publish.step = m->step;
    c->publish.final = m->final;
    c->publish.exact = m->exact && st->exact;
    c->publish.tensors = m->tensors;
    c->image = m->image;
    memcpy(c->publish.lineage, m->lineage, RM_HASH_BYTES);
    memcpy(c->publish.k, m->k, sizeof m->k);
    RM_ASSERT(belongs(c, m) && c->have == 0, "step %lld begins with %d of %d parts", (long long)m->step,
              c->have, c->parts);
    return c;
}

void rdzv_forget_pieces(struct rdzv *st, int64_t step)
{
    for (int i = 0; i < COLLECTIONS; i++) {
        struct rdzv_collection *c = &st->collection[i];
        c->used = c->used && c->publish.step != step;
    }
}

static bool is_whole(const struct rdzv_collection *c)
{
    RM_ASSERT(!c->used || c->have <= c->parts, "%d of %d parts are in", c->have, c->parts);
    return c->used && c->have >= c->parts;
}

static int64_t newest_of(const struct rdzv *st, bool (*counts)(const struct rdzv_collection *c))
{
    int64_t newest = -1;
    for (int i = 0; i < COLLECTIONS; i++) {
        const struct rdzv_collection *c = &st->collection[i];
        if (counts(c) && c->publish.step > newest)
            newest = c->publish.step;
    }
    return newest;
}

int64_t rdzv_step_to_publish(const struct rdzv *st)
{
    return newest_of(st, is_whole);
}

static bool is_used(const struct rdzv_collection *c)
{
    return c->used;
}

int64_t rdzv_step_under_way(const struct rdzv *st)
{
    return newest_of(st, is_used);
}

bool rdzv_part_is_in(const struct rdzv *st, int part)
{
    RM_ASSERT(part >= 0 && part < st->save.count, "part %d of %d that are saved", part, st->save.count);
    for (int i = 0; i < COLLECTIONS; i++) {
        const struct rdzv_collection *c = &st->collection[i];
        if (c->used && c->publish.step == st->save.step && c->publish.final == st->save.final &&
            c->parts == st->save.count && c->in[part])
            return true;
    }
    return false;
}

/* ---- what is saved, and by whom ---- */

static bool has_finished(const struct rdzv_worker *w)
{
    return w->presence == PRESENT && w->trainer_pid && w->finished;
}

/* Whoever went on alone to the same step may hold another state of it: the pieces must be of one. Those who
 * finished the last step together do, and tell their lineage only with the pieces. */
bool rdzv_holds(const struct rdzv *st, const struct rdzv_worker *w, const struct msg_state *state)
{
    if (!state->held)
        return has_finished(w);
    return rdzv_usable(st, w) && msg_state_equal(&w->state, state);
}

/* What to look for: nothing held means, from those who finished. */
struct msg_state rdzv_what_to_save(const struct rdzv *st, const struct msg_state *state, bool final)
{
    for (int i = 0; final && i < RM_WORKERS_MAX; i++) {
        if (has_finished(&st->worker[i]))
            return (struct msg_state){0};
    }
    return final ? rdzv_best_state(st) : *state;
}

bool rdzv_holds_what_is_saved(const struct rdzv *st, const struct rdzv_worker *w)
{
    RM_ASSERT(st->state == RDZV_SAVING, "who holds what is saved in state %s", rdzv_state_name(st->state));
    struct msg_state wanted = rdzv_what_to_save(st, &st->save_state, st->save.final);
    return rdzv_holds(st, w, &wanted);
}

bool rdzv_save_is_done(const struct rdzv *st)
{
    RM_ASSERT(st->save.count > 0, "step %lld is saved by nobody", (long long)st->save.step);
    if (st->save.final)
        return st->final_saved;
    /* A newer one, whose pieces were under way, will do as well; and so must another history of the step: its
     * place is taken. */
    return st->saved >= st->save.step;
}

bool rdzv_save_lacks(const struct rdzv *st, int part)
{
    RM_ASSERT(part >= 0 && part < st->save.count, "part %d of %d that are saved", part, st->save.count);
    return !st->save_again && !rdzv_save_is_done(st) && !rdzv_part_is_in(st, part);
}

void rdzv_save_resend(const struct turn *turn, struct rdzv_worker *w)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->state == RDZV_SAVING, "step %lld is asked for in state %s", (long long)st->save.step,
              rdzv_state_name(st->state));
    for (int i = 0; i < st->save.count; i++) {
        if (st->save.worker[i] == rdzv_index(st, w) && !rdzv_part_is_in(st, i))
            rdzv_send_one(turn, w, MSG_SAVE)->save = st->save;
    }
}

/* ---- publishing ---- */

/* Whose thread that writes is in a call which does not return publishes nothing; from whom the store took no
 * part of the save it may take no manifest; who found fault with what others had written may be the one at
 * fault; who leaves may be gone before it has; and one of the ring is named rather than another. */
static int fitness_to_publish(const struct rdzv *st, const struct rdzv_worker *w)
{
    RM_ASSERT(w->presence == PRESENT, "worker %d could publish, and is not here", rdzv_index(st, w));
    return (rdzv_is_stuck(st, w) ? 0 : 16) + (rdzv_fails_to_save(w) ? 0 : 8) + (w->doubts ? 0 : 4) +
           (rdzv_is_going(w) ? 0 : 2) + (w->rank >= 0);
}

struct rdzv_worker *rdzv_choose_publisher(struct rdzv *st)
{
    struct rdzv_worker *best = NULL;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        if (w->presence != PRESENT || w->released || rdzv_held_back(st, w))
            continue;
        int better = best ? fitness_to_publish(st, w) - fitness_to_publish(st, best) : 1;
        bool longer = best && rdzv_is_going(w) && w->leave_until > best->leave_until;
        if (better > 0 || (better == 0 && longer))
            best = w;
    }
    RM_ASSERT(!best || (best->presence == PRESENT && !best->released),
              "worker %d is to publish, and is not here", rdzv_index(st, best));
    return best;
}

static bool is_alone(const struct rdzv *st, const struct rdzv_worker *w)
{
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        if (&st->worker[i] != w && st->worker[i].presence == PRESENT)
            return false;
    return true;
}

/* One machine that reads wrongly must not move a sound checkpoint: another one has found the same, in writing
 * or in loading, or there is none. */
static bool may_replace(const struct rdzv *st, const struct rdzv_collection *c, const struct rdzv_worker *w)
{
    RM_ASSERT(c->used, "worker %d replaces step %lld, which is not collected", rdzv_index(st, w),
              (long long)c->publish.step);
    struct msg_checkpoint stands = {.step = c->publish.step};
    struct worker_set others = set_minus(c->damage, set_of(rdzv_index(st, w)));
    memcpy(stands.lineage, c->publish.lineage, RM_HASH_BYTES);
    return !set_is_empty(others) || rdzv_is_refused(st, &stands) || is_alone(st, w);
}

static void send_publish(const struct turn *turn, struct rdzv_collection *c, struct rdzv_worker *w)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(is_whole(c) && c->publisher < 0, "step %lld is published with %d of %d parts, by worker %d too",
              (long long)c->publish.step, c->have, c->parts, c->publisher);
    struct msg_publish *p = &rdzv_send_one(turn, w, MSG_PUBLISH)->publish;
    *p = c->publish;
    p->count = 0;
    p->replaces = may_replace(st, c, w);
    /* who publishes may be new, and not know them */
    text_copy(p->data_sha256, sizeof p->data_sha256, st->data_sha256);
    p->data_files = st->data_files;
    p->data_bytes = st->data_bytes;
    p->loss = p->step == st->told ? st->loss : NAN;
    p->held_out = st->held_out;
    p->evaluated = st->evaluated;
    for (int part = 0; part < c->parts; part++) {
        for (int i = 0; i < c->pieces[part] && i < MSG_PIECES_PER_PART; i++)
            p->piece[p->count++] = c->piece[part][i];
    }
    c->publisher = rdzv_index(st, w);
    RM_ASSERT(p->count <= MSG_PIECES_MAX, "step %lld is of %d pieces", (long long)p->step, p->count);
    c->held_up = false;
    set_add(&c->told, c->publisher);
}

void rdzv_forget_publisher(struct rdzv *st, const struct rdzv_worker *w)
{
    for (int i = 0; i < COLLECTIONS; i++) {
        if (st->collection[i].publisher == rdzv_index(st, w))
            st->collection[i].publisher = -1;
    }
}

/* A final one is newer than a periodic one of its step. */
static bool is_older(const struct rdzv_collection *a, const struct rdzv_collection *b)
{
    RM_ASSERT(a->used && b->used, "steps %lld and %lld are compared, and not both collected",
              (long long)a->publish.step, (long long)b->publish.step);
    if (a->publish.step != b->publish.step)
        return a->publish.step < b->publish.step;
    return !a->publish.final && b->publish.final;
}

/* While the ring trains on, its next header is about to say whether the states have changed since these
 * pieces of them were told of; of those whose sums nobody knows it says nothing. */
static bool may_stand(const struct rdzv *st, const struct rdzv_collection *c)
{
    RM_ASSERT(c->used, "step %lld is published, and not collected", (long long)c->publish.step);
    bool compared = c->image && !st->settings.brought && !c->publish.final;
    return st->state != RDZV_TRAINING || !compared || st->told > c->publish.step;
}

static struct rdzv_collection *oldest_whole(struct rdzv *st)
{
    struct rdzv_collection *oldest = NULL;
    for (int i = 0; i < COLLECTIONS; i++) {
        struct rdzv_collection *c = &st->collection[i];
        if (is_whole(c) && may_stand(st, c) && (!oldest || is_older(c, oldest)))
            oldest = c;
    }
    RM_ASSERT(!oldest || oldest->have == oldest->parts, "%d of %d parts are whole", oldest ? oldest->have : 0,
              oldest ? oldest->parts : 0);
    return oldest;
}

static bool is_awaited(const struct rdzv *st, const struct rdzv_collection *c)
{
    RM_ASSERT(c->used, "step %lld is waited for, and not collected", (long long)c->publish.step);
    return st->state == RDZV_SAVING && c->publish.step == st->save.step && c->publish.final == st->save.final;
}

/* What SAVING waits for is worth most, then what is newer. */
static bool is_worth_more(const struct rdzv *st, const struct rdzv_collection *a,
                          const struct rdzv_collection *b)
{
    bool a_is = is_awaited(st, a), b_is = is_awaited(st, b);
    return a_is == b_is ? is_older(b, a) : a_is;
}

static struct rdzv_collection *best_instead_of(struct rdzv *st, struct rdzv_collection *held_up)
{
    struct rdzv_collection *best = held_up;
    RM_ASSERT(held_up->publisher >= 0, "step %lld is held up, and nobody publishes it",
              (long long)held_up->publish.step);
    for (int i = 0; i < COLLECTIONS; i++) {
        struct rdzv_collection *c = &st->collection[i];
        if (is_whole(c) && may_stand(st, c) && is_worth_more(st, c, best))
            best = c;
    }
    return best;
}

static struct rdzv_collection *being_published(struct rdzv *st)
{
    for (int i = 0; i < COLLECTIONS; i++) {
        if (is_whole(&st->collection[i]) && st->collection[i].publisher >= 0)
            return &st->collection[i];
    }
    return NULL;
}

/* It alone may be whose store takes nothing: it is asked again for 30 s. What all stand still for is not for
 * one to publish from whom the store took no part of it (for the rest see rdzv_outage.c). */
static bool publisher_had_its_time(const struct turn *turn, const struct rdzv_collection *c)
{
    const struct rdzv *st = turn->st;
    RM_ASSERT(c->held_up && c->publisher >= 0, "step %lld is held up by worker %d",
              (long long)c->publish.step, c->publisher);
    if (st->state == RDZV_SAVING)
        return rdzv_fails_to_save(&st->worker[c->publisher]);
    return turn->now - c->held_since >= FAULT_PATIENCE;
}

/* NULL: nobody is there who has not been asked, and has had no trouble with the store of late. */
static struct rdzv_worker *another_publisher(struct rdzv *st, const struct rdzv_collection *c)
{
    struct rdzv_worker *best = NULL;
    RM_ASSERT(c->publisher >= 0, "nobody publishes step %lld", (long long)c->publish.step);
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        bool able = w->presence == PRESENT && !w->released && !rdzv_held_back(st, w) && !w->writing.times;
        if (able && !set_has(c->told, i) &&
            (!best || fitness_to_publish(st, w) > fitness_to_publish(st, best)))
            best = w;
    }
    return best;
}

/* One at a time, the oldest that is whole first; but one that the store does not take makes way for the best
 * that there is, by the same publisher, who then lets go of it, or by another one. */
void rdzv_name_publishers(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    struct rdzv_collection *now = being_published(st);
    if (now && !now->held_up)
        return;
    struct rdzv_collection *next = now ? best_instead_of(st, now) : oldest_whole(st);
    struct rdzv_worker *another =
        now && publisher_had_its_time(turn, now) ? another_publisher(st, now) : NULL;
    struct rdzv_worker *w = another ? another : now ? &st->worker[now->publisher] : rdzv_choose_publisher(st);
    if (!next || (next == now && !another) || !w)
        return;
    if (now)
        now->publisher = -1;
    send_publish(turn, next, w);
}

struct rdzv_worker *rdzv_awaited_publisher(struct rdzv *st)
{
    struct rdzv_collection *c = being_published(st);
    RM_ASSERT(!c || c->have == c->parts, "%d of %d parts are published", c ? c->have : 0, c ? c->parts : 0);
    return c && is_awaited(st, c) ? &st->worker[c->publisher] : NULL;
}

/* Whether something else goes before it is decided where publishers are named. */
void rdzv_publishing_waits(const struct turn *turn, const struct rdzv_worker *w, int64_t step)
{
    struct rdzv_collection *c = being_published(turn->st);
    if (!c || c->publisher != rdzv_index(turn->st, w) || c->publish.step != step)
        return;
    c->held_since = c->held_up ? c->held_since : turn->now;
    c->held_up = true;
    RM_ASSERT(c->held_since <= turn->now, "step %lld is held up %lld ns from now", (long long)step,
              (long long)(c->held_since - turn->now));
}

bool rdzv_is_published_by(const struct rdzv *st, const struct rdzv_worker *w, const struct msg_fault *f)
{
    for (int i = 0; i < COLLECTIONS; i++) {
        const struct rdzv_collection *c = &st->collection[i];
        bool about = f->lasted || c->publish.step == f->step; /* any call keeps the thread that publishes */
        if (is_whole(c) && about && c->publisher == rdzv_index(st, w))
            return true;
    }
    return false;
}
