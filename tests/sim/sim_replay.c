/* The machines of a trace: who comes, who is told that it goes, who vanishes; and what was trained in that.
 *
 * A machine that is told is gone at its moment whether its worker is out or not. One that is not told stands
 * still from then on: its connections stay open, as those of a machine that was switched off. Which ones go
 * is the seed's chance. */
#include "tests/sim/sim.h"

static const rm_time seen_gone = 60 * RM_S; /* after which whoever makes pods has seen that a machine is */

void replay_draw(struct sim *sim)
{
    struct scenario *s = &sim->scenario;
    const struct replay *r = sim->replay;
    for (int i = 0; i < r->moments; i++)
        s->target = r->moment[i].machines > s->target ? r->moment[i].machines : s->target;
    s->min = r->least;
    s->steps = STEPS_MAX;
    s->exact = s->unsupervised = s->notices = true;
    s->delay = 500 * RM_US;
    s->max_loss = 1800 * RM_S;
}

/* What a job has by itself; a step is seen as a hang after 10 times what it takes. */
void replay_settings(struct sim *sim)
{
    const struct replay *r = sim->replay;
    struct rdzv_settings *s = &sim->settings;
    s->workers_max = RM_WORKERS_MAX;
    s->lanes = r->lanes;
    s->save_least = s->believed = 0;
    s->listens = false; /* its states come in the time that the replay says */
    s->join_window = 2 * RM_S;
    s->form_timeout = 10 * RM_S;
    s->start_timeout = 300 * RM_S;
    s->step_timeout = 30 * RM_S + 10 * r->lane * r->lanes;
    s->probe_first = s->probe_most = 0;
    s->max_restarts = 1000000;
    s->save_patience = s->end_timeout = 600 * RM_S;
    s->leave_unsaved = false;
}

static rm_time step_of(const struct replay *r, int machines)
{
    return r->lane * ((r->lanes + machines - 1) / machines);
}

/* A rank computes one lane after the other; all wait for the one with most of them. */
rm_time replay_lanes(const struct sim *sim, const struct trainer *t)
{
    return step_of(sim->replay, sim->ring[t->ring].count);
}

/* Nobody else is left to compute with. */
rm_time replay_step_of_one(const struct sim *sim)
{
    return step_of(sim->replay, 1);
}

static void come(struct sim *sim, int count)
{
    for (int i = 0; i < count && run_makes_another(sim, 0); i++)
        ;
}

void replay_begin(struct sim *sim)
{
    struct replay *r = sim->replay;
    r->ret = (struct replay_result){0};
    come(sim, r->moment[0].machines);
    for (int i = 1; i < r->moments; i++) {
        const struct replay_moment *m = &r->moment[i], *before = m - 1;
        double held = (double)(m->at - before->at);
        if (before->machines >= r->least && before->machines > 0)
            r->ret.allowed += held / (double)step_of(r, before->machines);
        r->ret.machine_hours += before->machines * held / (double)(3600 * RM_S);
        sim_at(sim, m->at, EV_MACHINES, i, true, 0);
        if (r->lead && m->machines < before->machines)
            sim_at(sim, m->at > r->lead ? m->at - r->lead : 0, EV_MACHINES, i, false, 0);
    }
}

/* Of machines that nobody has said anything of. */
static int pick(struct sim *sim)
{
    int list[RM_WORKERS_MAX], count = 0;
    for (int w = 0; w < RM_WORKERS_MAX; w++) {
        bool waits = sim->expected[w] >= 0 && sim->node_of[w] < 0;
        bool there = sim->node_of[w] >= 0 && sim->node[sim->node_of[w]].alive;
        if ((waits || there) && !sim->drilled[w])
            list[count++] = w;
    }
    return count ? list[sim_below(sim, (uint64_t)count)] : -1;
}

/* Its pod was made in this moment: it never starts. */
static void cancel(struct sim *sim, int w)
{
    sim->expected[w] = -1;
}

static void vanish(struct sim *sim, int w)
{
    if (sim->node_of[w] < 0) {
        cancel(sim, w);
        return;
    }
    sim->drilled[w] = sim->replaced[w] = true;
    pause_node(sim, sim->node_of[w], PAUSE_BOTH);
    sim_at(sim, sim->now + seen_gone, EV_DEADLINE, sim->node_of[w], 0, 0);
}

static void tell(struct sim *sim, int w, rm_time until)
{
    if (sim->node_of[w] < 0) {
        cancel(sim, w);
        return;
    }
    sim->replaced[w] = true;
    sim_at(sim, until, EV_DEADLINE, sim->node_of[w], 0, 0);
    if (notice_will_go(sim, w, until - sim->now))
        sim->replay->ret.told++;
}

/* So many go at that moment; who makes pods puts others on machines that come. */
void replay_moment(struct sim *sim, int moment, bool now)
{
    struct replay *r = sim->replay;
    int change = r->moment[moment].machines - r->moment[moment - 1].machines;
    sim_trace(sim, "-- moment %d: %+d machines%s", moment, change, now ? "" : " soon");
    if (now && change > 0)
        come(sim, change);
    for (int i = 0; i < -change && now == !r->lead; i++) {
        int w = pick(sim);
        if (w >= 0 && now)
            vanish(sim, w);
        else if (w >= 0)
            tell(sim, w, r->moment[moment].at);
    }
}

void replay_ends(struct sim *sim, int node, bool by_itself)
{
    const struct node *n = &sim->node[node];
    struct replay *r = sim->replay;
    if (!r)
        return;
    r->ret.out += by_itself;
    r->ret.along += !by_itself;
    r->ret.notice += n->doomed_at - n->noticed_at;
    r->ret.trained += n->stepped_at > n->noticed_at ? n->stepped_at - n->noticed_at : 0;
}

void replay_over(struct sim *sim)
{
    struct replay_result *ret = &sim->replay->ret;
    ret->steps = sim->told;
    ret->rings = sim->tallies.of[TALLY_RINGS];
    ret->loads = sim->tallies.of[TALLY_LOADED];
}
