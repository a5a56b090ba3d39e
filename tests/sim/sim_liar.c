/* A machine whose voice is a liar's, or that goes and does not: each worker on it is told that it will, at
 * once or a moment later, and that it does not, again and again, and who follows one that left comes to it.
 *
 * There is one leave a machine and minute: who came there after another one was let go by such a word is let
 * go by none before a minute is over, as long as the coordinator is the same. */
#include "tests/sim/sim.h"

enum { LIES_MOST = 12 };

static const rm_time apart = 60 * RM_S, lies_for = 40 * RM_S;

/* Of its own, so that no other history changes by it. */
static uint64_t draw(const struct sim *sim, int a, int b, uint64_t bound)
{
    return sim_hash(sim->seed, 21, ((uint64_t)a << 32) + (uint64_t)b) % bound;
}

static void disturb(struct sim *sim, rm_time until)
{
    if (until > sim->quiet_since)
        sim->quiet_since = until;
}

void liar_draw(struct sim *sim)
{
    struct scenario *s = &sim->scenario;
    sim->liar.node = -1;
    if (!s->notices || draw(sim, 0, 0, 100) >= 20)
        return;
    rm_time at = (rm_time)draw(sim, 0, 1, (uint64_t)(s->step_time * s->steps / 2));
    sim->liar.on = true;
    sim->liar.until = at + lies_for;
    disturb(sim, at + 2 * lies_for);
    sim_at(sim, at, EV_LIE, -1, 0, 0);
}

bool liar_is_on(const struct sim *sim, int node)
{
    return sim->liar.on && sim->node[node].lied;
}

static void next_lie(struct sim *sim, int node, int count, rm_time most)
{
    rm_time pause = (rm_time)draw(sim, node + 1, 2 * count, (uint64_t)most);
    if (count < LIES_MOST && sim->now + pause < sim->liar.until)
        sim_at(sim, sim->now + pause, EV_LIE, node, count, 0);
}

static void haunt(struct sim *sim, int node)
{
    struct node *n = &sim->node[node];
    n->lied = true;
    sim->liar.node = node;
    next_lie(sim, node, 0, RM_S);
}

/* A worker that is well, and of whose machine nothing is told. */
static void begin(struct sim *sim)
{
    for (int i = 0; i < sim->nodes; i++) {
        const struct node *n = &sim->node[i];
        if (!n->alive || n->stranger || n->doomed_at || n->may_go || sim->drilled[n->worker])
            continue;
        haunt(sim, i);
        return;
    }
}

/* One place there is, and nobody sees why not to use it. */
int liar_machine(struct sim *sim, int node)
{
    int before = sim->liar.node;
    bool free = sim->liar.on && before >= 0 && !sim->node[before].alive && sim->now < sim->liar.until;
    if (!free || sim->node[node].stranger)
        return node;
    haunt(sim, node);
    return sim->node[before].machine;
}

static void lie(struct sim *sim, int node, int count)
{
    struct node *n = &sim->node[node];
    bool first = count == 0 && draw(sim, node + 1, 1, 3) == 0;
    if (!n->alive)
        return;
    next_lie(sim, node, count + 1, 4 * RM_S);
    if (count % 2 && draw(sim, node + 1, 2 * count + 1, 2)) {
        notice_tell(sim, node, NOTICED_GONE, RM_NEVER, false);
        return;
    }
    rm_time lead = 5 * RM_S + (rm_time)draw(sim, node + 1, 2 * count + 1, (uint64_t)(25 * RM_S));
    disturb(sim, sim->now + 2 * lead);
    n->lied_at = n->lied_at ? n->lied_at : sim->now;
    sim->tallies.of[TALLY_LIES]++;
    if (!sim->replaced[n->worker] && draw(sim, node + 1, 2 * count + 1, 3))
        sim->replaced[n->worker] = run_makes_another(sim, (rm_time)draw(sim, node + 1, 3, (uint64_t)RM_S));
    notice_tell(sim, node, NOTICED_WILL, sim->now + lead, first);
}

void liar_speaks(struct sim *sim, const struct ev *e)
{
    if (e->a < 0)
        begin(sim);
    else
        lie(sim, e->a, e->b);
}

void liar_check_release(struct sim *sim, int node)
{
    struct node *n = &sim->node[node];
    if (!n->lied_at || n->let_go || n->termed || sim->ended || sim->interrupted)
        return;
    n->let_go = true;
    rm_time left = sim->liar.left_term == sim->term ? sim->liar.left_at : 0;
    if (left && sim->now < left + apart)
        sim_fail(sim,
                 "worker %d is let go from a machine whose last worker was told %.1f s before that it goes",
                 n->worker, (double)(sim->now - left) / RM_S);
    sim->tallies.of[TALLY_LIED_TO] += left != 0;
    sim->liar.left_at = n->lied_at;
    sim->liar.left_term = sim->term;
}
