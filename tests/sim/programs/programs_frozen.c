/* Programs of which snapshots are made, in the simulator of programs (--frozen): one worker, whose machine
 * may die, be cut off from everybody or from the API server alone, while a coordinator may be away for longer
 * than both waits. Modelled are the tree of processes, which its launcher stops when it is told to; the
 * store, in which a number is published once; and whoever makes pods, who follows one of which nobody saw the
 * end twice lostAfter after it can have had its last answer. The coordinator, the agents and the launchers
 * are the shipped ones: who is answered, and who holds its program for want of answers, they decide.
 *
 * What must hold: no two trees run at once; who was followed publishes nothing; what is gone on from is the
 * newest snapshot; and once harm is over the job ends. */
#include <inttypes.h>

#include "common/base/prng.h"
#include "tests/sim/programs/programs.h"

static const rm_time look_each = 100 * RM_MS, harm_ends = 20 * RM_S;

static rm_time between(struct sim *sim, rm_time least, rm_time most)
{
    return least + (rm_time)prng_below(&sim->frozen.chance, (uint64_t)(most - least) + 1);
}

static bool one_in(struct sim *sim, uint64_t n)
{
    return prng_below(&sim->frozen.chance, n) == 0;
}

void frozen_draw(struct sim *sim, uint64_t seed)
{
    struct rdzv_settings *s = &sim->settings;
    sim->frozen = (struct sim_frozen){.on = true, .chance = seed ^ 0x66726f7a656e2061u};
    splitmix64(&sim->frozen.chance);
    s->alone = true;
    s->workers_min = s->workers_max = s->workers_target = s->lanes = 1;
    add(sim, sim->now + between(sim, 50 * RM_MS, 4 * RM_S), FROZEN_HARM, 0, 0);
    add(sim, sim->now + look_each, FROZEN_LOOK, 0, 0);
}

/* ---- the tree of a machine ---- */

static bool lives(const struct node *n)
{
    bool any = false;
    for (int i = 0; i < PROCESSES; i++)
        any = any || n->process[i].alive;
    return any;
}

/* Who was killed, and is in a call that holds it, does no more; nor could anybody stop it there. */
static bool runs(const struct node *n)
{
    bool any = false;
    for (int i = 0; i < PROCESSES; i++)
        any = any || (n->process[i].alive && !n->process[i].dies_at);
    return any && !n->held;
}

static void check_alone(struct sim *sim)
{
    int found = -1;
    for (int k = 0; k < sim->nodes; k++) {
        if (!runs(&sim->node[k]))
            continue;
        if (found >= 0)
            violate(sim, "the program runs on node %d and on node %d", found, k);
        found = k;
    }
}

void frozen_starts(struct sim *sim, int node)
{
    struct node *n = &sim->node[node];
    if (!sim->frozen.on)
        return;
    n->number = sim->frozen.newest;
    n->follows = ++sim->frozen.starts;
    n->refused = n->held = false; /* it was told to go: an answer */
    check_alone(sim);
    add(sim, sim->now + between(sim, 100 * RM_MS, RM_S), FROZEN_DUMP, node, n->follows);
}

/* A process that stands still does not end by itself. */
bool frozen_waits(struct sim *sim, const struct ev *e)
{
    const struct node *n = &sim->node[e->a];
    const struct process *p = &n->process[e->c / 256];
    if (!sim->frozen.on || !p->alive || p->dies_at || !n->held)
        return false;
    add(sim, sim->now + 50 * RM_MS, PROCESS_ENDS, e->a, e->b)->c = e->c;
    return true;
}

/* ---- the store ---- */

static void dump(struct sim *sim, int node, int tree)
{
    struct node *n = &sim->node[node];
    if (!n->alive || n->follows != tree || !lives(n) || n->refused)
        return;
    if (runs(n))
        add(sim, sim->now + between(sim, 10 * RM_MS, 600 * RM_MS), FROZEN_PUBLISH, node, tree);
    add(sim, sim->now + between(sim, 200 * RM_MS, RM_S), FROZEN_DUMP, node, tree);
}

/* The manifest is created where there is none of that number. */
static void publish(struct sim *sim, const struct ev *e)
{
    struct node *n = &sim->node[e->a];
    if (!n->alive || n->follows != e->b || n->cut || n->held || n->refused)
        return;
    if (sim->frozen.newest != n->number) {
        n->refused = true;
        return;
    }
    for (int k = 0; k < sim->nodes; k++)
        if (sim->node[k].follows > n->follows && sim->node[k].number == n->number)
            violate(sim, "node %d publishes snapshot %d, and node %d went on from the one before", e->a,
                    n->number + 1, k);
    n->number = ++sim->frozen.newest;
}

/* ---- who is connected, and who stands still ---- */

void frozen_told(struct sim *sim, int node, const struct message *m)
{
    if (m->type == MSG_WELCOME)
        sim->node[node].listed = true;
}

void frozen_forgets(struct sim *sim, int node)
{
    sim->node[node].listed = false;
}

void frozen_held(struct sim *sim, int node, bool holds)
{
    sim->node[node].held = holds;
    check_alone(sim);
}

void frozen_lost(struct sim *sim, int attempt)
{
    for (int k = 0; k < sim->nodes; k++)
        if (sim->node[k].attempt == attempt) {
            frozen_forgets(sim, k);
            sim->node[k].given_up = true;
        }
}

/* ---- whoever makes pods ---- */

void frozen_made(struct sim *sim, int node)
{
    sim->frozen.pod = node;
    sim->frozen.coming = false;
    sim->frozen.silent_at = 0;
    if (sim->frozen.on && sim->plant != PLANT_RUNS_ON)
        agent_fence(sim->node[node].agent, SIM_LOST_AFTER, sim->now);
}

static void follow(struct sim *sim, const struct node *n)
{
    sim->frozen.coming = true;
    sim->attempt[0] = n->attempt + 1; /* on record before there is a pod */
    add(sim, sim->now + between(sim, 20 * RM_MS, 500 * RM_MS), NODE_STARTS, n->worker, n->attempt + 1);
}

/* Its machine is there and can be reached: the kubelet ends it, and says so. */
static bool was_ended(struct sim *sim, int node)
{
    struct node *n = &sim->node[node];
    if (n->unseen)
        return false;
    if (n->alive && n->given_up && one_in(sim, 5))
        node_dies(sim, node, false);
    return !n->alive;
}

static void look(struct sim *sim)
{
    struct sim_frozen *f = &sim->frozen;
    struct node *n = &sim->node[f->pod];
    add(sim, sim->now + look_each, FROZEN_LOOK, 0, 0);
    if (f->coming)
        return;
    if (was_ended(sim, f->pod)) {
        follow(sim, n);
        return;
    }
    n->given_up = n->given_up || (n->unseen && sim->now >= n->unseen_at + n->patience);
    if (!n->given_up)
        return;
    if (n->listed && sim->rdzv && n->alive)
        f->silent_at = 0;
    else if (!f->silent_at)
        f->silent_at = sim->now;
    if (f->silent_at && sim->now >= f->silent_at + (sim->plant == PLANT_UNFENCED ? 0 : 2 * SIM_LOST_AFTER)) {
        sim->frozen.unseen_ends++;
        follow(sim, n);
    }
}

/* ---- harm ---- */

static void be_unseen(struct sim *sim, int node, bool for_ever)
{
    struct node *n = &sim->node[node];
    if (n->unseen)
        return;
    n->unseen = true;
    n->unseen_at = sim->now;
    n->patience = between(sim, 500 * RM_MS, 5 * RM_S); /* of Kubernetes with a machine that says nothing */
    if (!for_ever)
        add(sim, sim->now + between(sim, 500 * RM_MS, 12 * RM_S), FROZEN_SEEN, node, 0);
}

static void cut_off(struct sim *sim, int node)
{
    struct node *n = &sim->node[node];
    if (n->cut)
        return;
    n->cut = true;
    add(sim, sim->now + between(sim, 100 * RM_MS, 10 * RM_S), UNCUT, node, 0);
}

static void harm(struct sim *sim)
{
    int node = one_in(sim, 2) ? sim->frozen.pod : (int)prng_below(&sim->frozen.chance, (uint64_t)sim->nodes);
    struct node *n = &sim->node[node];
    if (sim->now < harm_ends)
        add(sim, sim->now + between(sim, 50 * RM_MS, 3 * RM_S), FROZEN_HARM, 0, 0);
    uint64_t what = prng_below(&sim->frozen.chance, 7);
    if (what == 0 && sim->rdzv && sim->term < TERMS_MAX - 1)
        coordinator_goes(sim, between(sim, 50 * RM_MS, 8 * RM_S));
    if (what == 0 || !n->alive)
        return;
    sim->harms++;
    if (what == 1)
        node_dies(sim, node, one_in(sim, 3));
    if (what == 2 || what == 5)
        be_unseen(sim, node, what == 5);
    if (what == 3 || what == 4)
        cut_off(sim, node);
    if (what == 4)
        be_unseen(sim, node, false);
    if (what == 5)
        node_dies(sim, node, true);
    if (what == 6)
        add(sim, sim->now, LAUNCHER_EXIT, node, n->launcher);
}

void frozen_happens(struct sim *sim, const struct ev *e)
{
    if (e->kind == FROZEN_LOOK)
        look(sim);
    else if (e->kind == FROZEN_HARM)
        harm(sim);
    else if (e->kind == FROZEN_SEEN)
        sim->node[e->a].unseen = false;
    else if (e->kind == FROZEN_DUMP)
        dump(sim, e->a, e->b);
    else if (e->kind == FROZEN_PUBLISH)
        publish(sim, e);
}
