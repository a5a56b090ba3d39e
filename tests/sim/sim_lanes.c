/* What each rank adds to the sum of a step: lanes that a user's program computes one after the other beside
 * its trainer (launch.mode: Elastic), some of them slowly, or the trainer itself. A pass that did not fit
 * asks for all of them again. A trainer that computes keeps what it has when its ring is no more, and the
 * next ring goes on with it; a program's is gone, and in some seeds every trainer's.
 *
 * What must hold: the words of a sum have each lane of the step once, each of this ring's deal, of this pass
 * and of the state that all hold (R16). And no lane that somebody in the ring still has is computed again
 * (R17), unless two have it.
 *
 * In some seeds workers are of different speeds, for a while each; then lanes are shared out by what headers
 * say of that, as each rank makes it out for itself (trainer/core/pace.h). */
#include <string.h>

#include "tests/sim/sim.h"

enum { LANES = RM_WORKERS_MAX, SLOW_IN_100 = 3, KEEPS_IN_100 = 80, UNLIKE_IN_100 = 50, STEPS_ALIKE = 20 };

/* How long a pass takes, of which some lanes are slow. Not where a notice has to be kept to the moment: a
 * leave has the time of two steps such as were made before. */
rm_time lanes_take(struct sim *sim, int node, rm_time drawn)
{
    const struct node *n = &sim->node[node];
    if (!sim->scenario.beside || sim->scenario.calm || sim->replay || n->trainer.ring < 0)
        return drawn;
    int own = LANES / sim->ring[n->trainer.ring].count;
    for (int lane = 0; lane < own; lane++) {
        uint64_t chance =
            sim_hash(sim->seed, 20, ((uint64_t)n->memory.step << 16) + (uint64_t)(node * LANES + lane));
        if (chance % (100 * (uint64_t)own) >= SLOW_IN_100)
            continue;
        drawn += sim->scenario.step_time * (rm_time)(1 + chance / 7 % 3);
        sim->tallies.of[TALLY_SLOW_LANES]++;
    }
    return drawn;
}

/* A trace of machines has speeds of its own. Beside notices chance is another one, and only sums that are
 * exact are of lanes that move: of others a coordinator takes the steps that were made for those to come. */
static bool are_unlike(const struct sim *sim)
{
    bool noticed = sim->scenario.notices;
    if (sim->replay || (noticed && !sim->scenario.exact))
        return false;
    return sim_hash(sim->seed, noticed ? 33 : 25, 0) % 100 < UNLIKE_IN_100;
}

/* Where a notice has to be kept to the moment nobody becomes slow whom others know as quick. */
static uint64_t drawn_slowness(const struct sim *sim, const struct node *n)
{
    uint64_t when = (uint64_t)(n->memory.step / STEPS_ALIKE) * 2 * RM_WORKERS_MAX + (uint64_t)n->worker;
    if (sim->scenario.notices)
        return sim_hash(sim->seed, 34, (uint64_t)(n - sim->node));
    return sim_hash(sim->seed, 26, when);
}

/* How long a worker's lanes take at a step, in percent of what was drawn. */
static int slowness(const struct sim *sim, const struct node *n)
{
    uint64_t chance = drawn_slowness(sim, n);
    return !are_unlike(sim) || chance % 3 ? 100 : 100 + (int)(chance / 3 % 300);
}

/* A plain deal of what a pass of the usual share would take; returns what these lanes do. */
static rm_time by_speed(const struct sim *sim, struct node *n, const struct lane_set *own, rm_time takes)
{
    struct trainer *t = &n->trainer;
    int usual = sim->settings.lanes / sim->ring[t->ring].count, percent = slowness(sim, n);
    rm_time each = takes / (usual > 0 ? usual : 1) * percent / 100;
    t->lane_us = (uint32_t)(each / RM_US + 1);
    return percent == 100 && shares_are_even(&t->pace.shares) ? takes : each * lane_set_count(own);
}

void lanes_connect(struct sim *sim, struct trainer *t, const struct ring *ring)
{
    pace_begin(&t->pace, sim->settings.lanes, ring->count, true);
}

void lanes_hear(struct sim *sim, struct trainer *t, const uint32_t *us)
{
    uint32_t heard[RM_WORKERS_MAX];
    memcpy(heard, us, sizeof heard);
    if (sim->plant == PLANT_DEAL_APART && t->rank == 1) {
        sim->planted++;
        heard[0] *= 3;
    }
    sim->tallies.of[TALLY_SHARES_MOVED] += pace_hear(&t->pace, heard) && t->rank == 0;
}

/* Who computes in this seed can go on with a pass. */
static bool keeps(const struct sim *sim)
{
    return !sim->scenario.beside && sim_hash(sim->seed, 24, 0) % 100 < KEEPS_IN_100;
}

void lanes_forget(struct node *n)
{
    n->trainer.keep.done = (struct lane_set){0};
    n->trainer.keep.spoilt = false;
}

struct lane_set lanes_kept(const struct sim *sim, const struct node *n)
{
    const struct lane_keep *k = &n->trainer.keep;
    const struct content *c = &n->memory;
    bool stands = c->whole && c->step == k->behind && c->hash == k->hash && !k->alone && !k->again;
    return stands && keeps(sim) ? k->done : (struct lane_set){0};
}

/* By the deal of its ring, where there is one for this step. */
static struct lane_set own_lanes(const struct sim *sim, const struct node *n)
{
    const struct trainer *t = &n->trainer;
    const struct msg_form *f = &t->form->form;
    int lanes = sim->settings.lanes;
    struct lane_run usual = shares_run(&t->pace.shares, t->rank);
    bool dealt = f->lanes_count == lanes && f->resume.held && f->resume.step == n->memory.step;
    struct lane_set own = {0};
    for (int lane = 0; lane < lanes; lane++) {
        bool its = lane >= usual.first && lane < usual.first + usual.count;
        if (dealt ? f->lane_rank[lane] == t->rank : its)
            lane_set_add(&own, lane);
    }
    return own;
}

/* A deal that one rank sees otherwise than the rest. */
static void plant_in_deal(struct sim *sim, const struct node *n, struct lane_set *own)
{
    const struct msg_form *f = &n->trainer.form->form;
    bool dealt = f->lanes_count && f->resume.step == n->memory.step && n->trainer.rank == 0;
    if (!dealt || lane_set_is_empty(own))
        return;
    for (int lane = 0; sim->plant == PLANT_LANE_TWICE && lane < f->lanes_count; lane++) {
        if (lane_set_has(own, lane))
            continue;
        lane_set_add(own, lane);
        sim->planted++;
        return;
    }
    if (sim->plant != PLANT_LANE_NOBODYS)
        return;
    struct lane_set less = {0};
    int last = -1;
    for (int lane = lane_set_next(own, -1); lane >= 0; lane = lane_set_next(own, lane)) {
        if (last >= 0)
            lane_set_add(&less, last);
        last = lane;
    }
    *own = less;
    sim->planted++;
}

static const struct node *member(const struct sim *sim, const struct ring *ring, int rank)
{
    const struct node *n = &sim->node[ring->node[rank]];
    return ring_member_lives(sim, ring, rank) && n->memory.whole ? n : NULL;
}

/* What somebody in its ring still has; *ret_twice: two have some lane. Who stood still while the others went
 * on without it wakes in a ring that they have left, and can't know what they have computed since. */
static struct lane_set still_there(const struct sim *sim, const struct node *n, bool *ret_twice)
{
    const struct ring *ring = &sim->ring[n->trainer.ring];
    struct lane_set all = {0};
    *ret_twice = false;
    for (int r = 0; r < ring->count; r++) {
        const struct node *m = member(sim, ring, r);
        if (!m || m->memory.step != n->memory.step || m->memory.hash != n->memory.hash ||
            generation_compare(m->trainer.keep.ring, ring->generation) > 0)
            continue;
        struct lane_set kept = lanes_kept(sim, m);
        *ret_twice = *ret_twice || lane_set_meets(&kept, &all);
        lane_set_add_all(&all, &kept);
    }
    return all;
}

static void check_not_again(struct sim *sim, const struct node *n, const struct lane_set *there,
                            const struct lane_set *own)
{
    const struct lane_set *done = &n->trainer.keep.done;
    for (int lane = lane_set_next(own, -1); lane >= 0; lane = lane_set_next(own, lane))
        if (!lane_set_has(done, lane) && lane_set_has(there, lane))
            sim_fail(sim, "R17: worker %d computes lane %d of step %lld, which is there", n->worker, lane,
                     (long long)n->memory.step + 1);
}

rm_time lanes_begin(struct sim *sim, int node, bool again, rm_time takes)
{
    struct node *n = &sim->node[node];
    struct lane_keep *k = &n->trainer.keep;
    if (n->trainer.ring < 0)
        return takes;
    bool twice;
    struct lane_set kept = lanes_kept(sim, n), there = still_there(sim, n, &twice);
    struct lane_set own = own_lanes(sim, n);
    plant_in_deal(sim, n, &own);
    bool goes_on = !again && !lane_set_is_empty(&kept) && lane_set_within(&kept, &own);
    sim->tallies.of[TALLY_PASSES_RESUMED] += goes_on;
    if (goes_on && sim->plant == PLANT_LANES_DROPPED) {
        sim->planted++;
        goes_on = false;
    }
    if (!goes_on) {
        bool alone = sim->ring[n->trainer.ring].count == 1;
        *k = (struct lane_keep){
            .behind = n->memory.step, .hash = n->memory.hash, .alone = alone, .again = again};
    }
    k->ring = sim->ring[n->trainer.ring].generation;
    if (!again && !twice)
        check_not_again(sim, n, &there, &own);
    bool shared = !shares_are_even(&n->trainer.pace.shares);
    sim->tallies.of[TALLY_PASSES_SHARED] += shared;
    takes = by_speed(sim, n, &own, takes);
    int todo = lane_set_count(&own) - lane_set_count(&k->done);
    if (sim->ring[n->trainer.ring].generation.n && goes_on)
        takes = n->trainer.lane_us * RM_US * todo + 10 * RM_US;
    k->own = own;
    k->begun = sim->now;
    k->until = sim->now + takes;
    return takes;
}

rm_time lanes_pause(struct sim *sim, int node)
{
    struct node *n = &sim->node[node];
    struct lane_keep *k = &n->trainer.keep;
    if (n->trainer.command != CMD_LANES || !keeps(sim) || n->trainer.ring < 0)
        return -1;
    int todo = lane_set_count(&k->own) - lane_set_count(&k->done), made = 0;
    rm_time whole = k->until - k->begun, each = todo ? whole / todo : 0;
    int most = each > 0 ? (int)((sim->now - k->begun) / each) + 1 : todo;
    most = most < todo ? most : todo;
    for (int lane = lane_set_next(&k->own, -1); lane >= 0 && made < most; lane = lane_set_next(&k->own, lane))
        if (!lane_set_has(&k->done, lane)) {
            lane_set_add(&k->done, lane);
            made++;
        }
    rm_time end = made ? k->begun + made * each : k->until;
    k->own = k->done;
    k->until = end > sim->now ? end : sim->now;
    return k->until - sim->now;
}

/* Its pass is done: the sum is of these lanes. */
void lanes_done(struct sim *sim, struct node *n)
{
    struct trainer *t = &n->trainer;
    if (t->ring < 0)
        return;
    const struct ring *ring = &sim->ring[t->ring];
    bool of_another =
        t->sum.step == n->memory.step + 1 && generation_compare(t->sum.ring, ring->generation) != 0;
    t->keep.done = t->keep.own;
    if (sim->plant == PLANT_STALE_LANES && of_another) {
        sim->planted++;
        t->sum.ring = ring->generation;
        t->sum.pass = t->pass;
        return;
    }
    t->sum = (struct lane_sum){ring->generation, n->memory.step + 1, t->pass, t->keep.own};
}

struct msg_pace lanes_pace(const struct trainer *t)
{
    return (struct msg_pace){.lanes = lane_set_count(&t->keep.done), .lane_us = t->lane_us};
}

/* All are in one step, and their words are about to be added up. */
void lanes_check(struct sim *sim, const struct ring *ring)
{
    struct lane_set all = {0};
    for (int r = 0; r < ring->count; r++) {
        const struct node *n = &sim->node[ring->node[r]];
        const struct lane_sum *sum = &n->trainer.sum;
        bool own = sum->step == n->memory.step + 1 && sum->pass == n->trainer.pass &&
                   generation_compare(sum->ring, ring->generation) == 0 &&
                   n->trainer.keep.hash == n->memory.hash;
        if (!own || lane_set_meets(&sum->lanes, &all))
            sim_fail(sim,
                     "R16: worker %d adds %d lanes of step %lld, pass %d, some of them once more or of "
                     "another sum",
                     n->worker, lane_set_count(&sum->lanes), (long long)sum->step, sum->pass);
        lane_set_add_all(&all, &sum->lanes);
    }
    if (lane_set_count(&all) != sim->settings.lanes)
        sim_fail(sim, "R16: a step has %d lanes of %d", lane_set_count(&all), sim->settings.lanes);
}
