/* checkpoint.every: Auto: when rank 0's clock says that it is time, and what is lost where all go at once. */
#include <inttypes.h>

#include "tests/sim/sim.h"

/* For a reduction that is under way, and for words on their way. */
static const rm_time moment = 60 * RM_MS;
/* After which a ring whose members can be reached has heard of it: somebody may have had to connect anew. */
static rm_time heard_within(const struct sim *sim)
{
    return sim->settings.lost_after + 3 * RM_S;
}

void saves_draw(struct sim *sim)
{
    struct scenario *s = &sim->scenario;
    if (sim_hash(sim->seed, 11, 0) % 100 >= 15)
        return;
    s->max_loss = RM_MS * (20 + (rm_time)(sim_hash(sim->seed, 12, 0) % 400));
    s->checkpoint_every = 0;
    s->saves = 0;
}

void saves_connect(struct trainer *t, rm_time now)
{
    rm_time published = now - t->form->form.saved_ago;
    t->saved_at = published > t->saved_at ? published : t->saved_at;
}

bool saves_due(const struct sim *sim, const struct trainer *t)
{
    return t->save_every && sim->now - t->saved_at >= t->save_every;
}

/* Nobody was in the way of its being told. */
static bool could_hear(const struct sim *sim, const struct node *n, rm_time since)
{
    rm_time disturbed = n->disturbed > sim->coord_disturbed ? n->disturbed : sim->coord_disturbed;
    return sim->rdzv && disturbed < since;
}

static void check_told(struct sim *sim, struct ring *ring)
{
    const struct node *first = &sim->node[ring->node[0]];
    if (first->trainer.save_every || !ring->untold || !could_hear(sim, first, ring->untold))
        ring->untold = first->trainer.save_every ? 0 : sim->now;
    else if (sim->now - ring->untold > heard_within(sim))
        sim_fail(sim, "worker %d was not told for %.1f s how long to train between two checkpoints",
                 first->worker, (double)(sim->now - ring->untold) / RM_S);
}

/* All hear of this step's words now. What it took counts for what is lost where all are lost, from the moment
 * on in which rank 0 knows how long it may take. */
void saves_step(struct sim *sim, struct ring *ring, int64_t step, bool save)
{
    if (!sim->scenario.max_loss || step > STEPS_MAX)
        return;
    bool told = sim->node[ring->node[0]].trainer.save_every > 0;
    check_told(sim, ring);
    sim->work.cost[step] = ring->reduced && told ? sim->now - ring->reduced : 0;
    ring->reduced = sim->now;
    sim->work.newest = step;
    if (!save)
        return;
    sim->work.before = sim->work.snapshot;
    sim->work.snapshot = step;
    sim->tallies.of[TALLY_BY_CLOCK]++;
}

void saves_check_sent(struct sim *sim, rm_time every)
{
    if (!sim->scenario.max_loss)
        sim_fail(sim, "a job that says itself when to save is told to save every %.1f ms", rm_ms(every));
    else if (every < sim->settings.save_least || every > sim->scenario.max_loss)
        sim_fail(sim, "R13: a time of %.1f ms between two checkpoints, %.1f to %.1f were asked for",
                 rm_ms(every), rm_ms(sim->settings.save_least), rm_ms(sim->scenario.max_loss));
}

static void check_work(struct sim *sim, int64_t from, int64_t to)
{
    rm_time sum = 0, longest = 0;
    for (int64_t step = from + 1; step <= to; step++) {
        sum += sim->work.cost[step];
        longest = sim->work.cost[step] > longest ? sim->work.cost[step] : longest;
    }
    if (sum > sim->scenario.max_loss + 2 * longest + moment)
        sim_fail(sim,
                 "R13: steps %" PRId64 " to %" PRId64 " are lost, %.1f ms of work, and maxLoss is %.1f ms",
                 from + 1, to, rm_ms(sum), rm_ms(sim->scenario.max_loss));
}

/* A ring begins from a checkpoint: what was made since is lost. At most one save was under way, unless one
 * came to nothing; a coordinator's successor counts from its own beginning. */
void saves_check_form(struct sim *sim, const struct msg_form *f)
{
    struct work *w = &sim->work;
    int64_t from = f->resume.held ? f->resume.step : 0;
    bool plain = f->resume.held && from == sim->saved_told && w->before <= from && !sim->losses;
    bool loads = f->count && f->member[0].role == ROLE_LOAD;
    if (!sim->scenario.max_loss || !loads)
        return;
    sim->tallies.of[TALLY_ALL_LOST] += w->newest > from;
    if (plain && w->snapshot > from) {
        check_work(sim, from, w->snapshot);
        check_work(sim, w->snapshot, w->newest);
    } else if (plain) {
        check_work(sim, from, w->newest);
    }
    w->newest = w->snapshot = w->before = from;
}
