/* What each rank adds to the sum of a step: lanes that a user's program computes one after the other beside
 * its trainer (launch.mode: Elastic), some of them slowly, or the trainer itself. A pass that did not fit
 * asks for all of them again; with the program, its trainer or its ring their sum is gone, whatever lane it
 * was in.
 *
 * What must hold: the words of a sum have each lane of the step once, each of this ring's share and of this
 * pass. */
#include "tests/sim/sim.h"

enum { LANES = RM_WORKERS_MAX, SLOW_IN_100 = 3 };

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

/* Its pass is done: the sum is of these lanes. */
void lanes_done(struct sim *sim, struct node *n)
{
    struct trainer *t = &n->trainer;
    if (t->ring < 0)
        return;
    const struct ring *ring = &sim->ring[t->ring];
    bool of_another =
        t->sum.step == n->memory.step + 1 && generation_compare(t->sum.ring, ring->generation) != 0;
    if (sim->plant == PLANT_STALE_LANES && of_another) {
        sim->planted++;
        t->sum.ring = ring->generation;
        t->sum.pass = t->pass;
        return;
    }
    t->sum.ring = ring->generation;
    t->sum.step = n->memory.step + 1;
    t->sum.pass = t->pass;
    t->sum.first = LANES * t->rank / ring->count;
    t->sum.end = LANES * (t->rank + 1) / ring->count;
}

/* All are in one step, and their words are about to be added up. */
void lanes_check(struct sim *sim, const struct ring *ring)
{
    int next = 0;
    for (int r = 0; r < ring->count; r++) {
        const struct node *n = &sim->node[ring->node[r]];
        const struct lane_sum *sum = &n->trainer.sum;
        bool own = sum->step == n->memory.step + 1 && sum->pass == n->trainer.pass &&
                   generation_compare(sum->ring, ring->generation) == 0;
        if (!own || sum->first != next)
            sim_fail(
                sim,
                "worker %d adds lanes %d to %d of step %lld, pass %d, where lane %d of step %lld, pass %d, "
                "is next",
                n->worker, sum->first, sum->end - 1, (long long)sum->step, sum->pass, next,
                (long long)n->memory.step + 1, n->trainer.pass);
        next = sum->end;
    }
    if (next != LANES)
        sim_fail(sim, "a step has %d lanes of %d", next, LANES);
}
