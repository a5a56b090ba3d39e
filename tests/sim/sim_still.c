/* No job stands still: where min workers have been well for a while, and have reached each other, a step was
 * made meanwhile; what one alone can't do is no reason for the others, once the time that is given to it is
 * over. What excuses a pause begins that while anew: a store that takes nothing, a coordinator that is not
 * there, trouble of all. */
#include "tests/sim/sim.h"

/* Longer than each patience that may come first: of a fault's table with its pauses, and of startTimeout. */
static const rm_time bound_least = 40 * RM_S, behind_start = 10 * RM_S;
static const rm_time looks_every = RM_S;

/* One that does not stop is waited for three times formTimeout, and a ring that it is missing in once; and
 * then the next one. */
enum { TWO_HANG_FORMINGS = 2 * (3 + 1), RINGS_SHOW = 2, CIRCLE_BEATS = 2 * 4 };

static rm_time well_for(const struct sim *sim)
{
    rm_time starts = sim->settings.start_timeout + behind_start;
    rm_time answers = TWO_HANG_FORMINGS * sim->settings.form_timeout;
    rm_time longest = starts > answers ? starts : answers;
    if (sim->replay) /* a trace has a long startTimeout, and steps that are as long as it says */
        return bound_least + replay_step_of_one(sim);
    return longest > bound_least ? longest : bound_least;
}

/* Of a pair between which nothing arrives two rings show it, each of which is waited for: for the step, and
 * until all are seen to wait and to go on waiting. */
static rm_time walls_take(const struct sim *sim)
{
    rm_time each = 2 * sim->settings.step_timeout + CIRCLE_BEATS * sim->settings.heartbeat, all = 0;
    for (int i = 0; i < sim->scenario.walls; i++)
        all += sim->scenario.wall[i].kind == WALL_STALLS ? RINGS_SHOW * each : 0;
    return all;
}

/* A step that was drawn to be slow may be the first one that is made. */
static rm_time bound_of(const struct sim *sim)
{
    return well_for(sim) + trouble_takes(sim) + walls_take(sim) + sim->still.slow;
}

static bool is_excused(const struct sim *sim)
{
    const struct scenario *s = &sim->scenario;
    bool drawn = trouble_excuses(sim) || s->damage || s->storage_fails || s->fills || s->nan_step ||
                 s->nan_alone || sim->crowd;
    bool store = sim->store_full || sim->now < sim->store_back;
    bool coordinator = !sim->rdzv || sim->coord_stopped || sim->coord_disturbed > sim->still.since;
    return drawn || store || coordinator || sim->ended || sim->interrupted || sim->told >= s->steps;
}

void still_look(struct sim *sim)
{
    if (sim->step_ops != sim->still.step_ops || sim->term != sim->still.term || is_excused(sim)) {
        sim->still.step_ops = sim->step_ops;
        sim->still.term = sim->term;
        sim->still.since = sim->now;
        return;
    }
    if (sim->now - sim->still.since < bound_of(sim) || sim->now < sim->still.looks_at)
        return;
    sim->still.looks_at = sim->now + looks_every;
    int well = pairs_well_since(sim, sim->now - well_for(sim));
    sim->tallies.of[TALLY_STILL]++;
    if (well >= sim->scenario.min)
        sim_fail(sim, "%d workers have been well for %d s, %d are needed, and no step was made: %s", well,
                 (int)(well_for(sim) / RM_S), sim->scenario.min, rdzv_why(sim->rdzv));
}
