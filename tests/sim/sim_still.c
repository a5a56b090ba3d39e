/* No job stands still: where min workers have been well for a while, and have reached each other, a step was
 * made meanwhile; what one alone can't do is no reason for the others, once the time that is given to it is
 * over. What excuses a pause begins that while anew: a store that takes nothing, a coordinator that is not
 * there, trouble of all. */
#include <inttypes.h>

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

/* More failures than the job allows, within the time that it says, are its end. */
void still_told(struct sim *sim, const struct rdzv_tell *t)
{
    int most = sim->settings.max_restarts, newest = sim->still.failed;
    if (t->kind != TELL_WORKER_FAILED)
        return;
    if (sim->still.failed_in != sim->term) { /* how many there were goes with a coordinator */
        sim->still.failed_in = sim->term;
        sim->still.too_often = false;
        newest = sim->still.failed = 0;
    }
    sim->still.failed_at[newest % SHOTS_MAX] = sim->now;
    sim->still.failed++;
    rm_time first = newest >= most ? sim->still.failed_at[(newest - most) % SHOTS_MAX] : RM_NEVER;
    bool too_often = most < SHOTS_MAX && first != RM_NEVER && sim->now - first <= sim->settings.within;
    sim->still.too_often = sim->still.too_often || too_often;
}

bool still_ends(const struct sim *sim)
{
    return sim->still.too_often && sim->still.failed_in == sim->term;
}

/* An end that is decided waits for one save at most, however many are well, and no step follows it: that it
 * comes, and in time, another judge holds. */
static bool only_saves(const struct sim *sim)
{
    return still_ends(sim) && sim->rdzv && rdzv_state(sim->rdzv) == RDZV_SAVING;
}

static bool is_excused(const struct sim *sim)
{
    const struct scenario *s = &sim->scenario;
    bool drawn = trouble_excuses(sim) || trouble_holds_alone(sim) || only_saves(sim) || s->damage ||
                 s->storage_fails || s->fills || s->nan_step || s->nan_alone || sim->crowd;
    bool store = sim->store_full || sim->now < sim->store_back;
    bool coordinator = !sim->rdzv || sim->coord_stopped || sim->coord_disturbed > sim->still.since;
    return drawn || store || coordinator || sim->ended || sim->interrupted || sim->told >= s->steps;
}

void still_save(struct sim *sim, const struct msg_save *save)
{
    if (save->step != sim->awaited.step || save->final != sim->awaited.final) {
        sim->awaited.step = save->step;
        sim->awaited.final = save->final;
        sim->awaited.writers = (struct worker_set){0};
        sim->awaited.since = sim->now;
    }
    for (int i = 0; i < save->count; i++)
        set_add(&sim->awaited.writers, save->worker[i]);
}

/* It was asked for a part, has held the state all the while, and nothing keeps it from writing all of it. */
static bool has_writer(const struct sim *sim)
{
    for (int w = 0; w < RM_WORKERS_MAX; w++) {
        const struct node *n = sim->node_of[w] >= 0 ? &sim->node[sim->node_of[w]] : NULL;
        bool holds = n && n->alive && n->memory.whole && n->memory.step == sim->awaited.step;
        bool there = holds && n->trainer.alive && n->trainer.opened && n->trainer.since <= sim->awaited.since;
        bool well = there && !pause_is_disturbed(sim, sim->node_of[w], sim->now - sim->awaited.since);
        well = well && !n->doomed_at && !sim->drilled[w] && !n->termed && sim->expected[w] >= 0;
        if (well && set_has(sim->awaited.writers, w) &&
            !trouble_is_own(sim, sim->node_of[w], sim->awaited.since))
            return true;
    }
    return false;
}

/* Of each worker that is asked before one that can: 30 s, its newest pause of 15 s, and what it is cut anew
 * for. */
static rm_time save_takes(const struct sim *sim)
{
    const struct scenario *s = &sim->scenario;
    return 2 * (45 * RM_S + s->away_within + s->write_within) + 10 * RM_S;
}

/* What all stand still for is published, where one who can write it was asked. */
static void look_at_save(struct sim *sim)
{
    const struct scenario *s = &sim->scenario;
    bool drawn = s->damage || s->storage_fails || s->fills || s->trouble == TROUBLE_VANISH ||
                 s->trouble == TROUBLE_STUCK_ONE;
    bool store = sim->store_full || sim->now < sim->store_back;
    bool coordinator = !sim->rdzv || sim->coord_stopped || sim->coord_disturbed > sim->awaited.since;
    bool saves = !coordinator && !sim->ended && rdzv_state(sim->rdzv) == RDZV_SAVING;
    if (!saves || store || drawn || sim->term != sim->awaited.term) {
        sim->awaited.term = sim->term;
        sim->awaited.since = sim->now;
        return;
    }
    if (sim->now - sim->awaited.since >= save_takes(sim) && has_writer(sim))
        sim_fail(sim,
                 "the checkpoint of step %" PRId64
                 " was not saved for %d s, and one who holds it is well: %s",
                 sim->awaited.step, (int)(save_takes(sim) / RM_S), rdzv_why(sim->rdzv));
}

void still_look(struct sim *sim)
{
    look_at_save(sim);
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
