/* Notices of machines' ends in the simulator of programs, as clouds tell them to pods: that a machine may go;
 * that it will, or that all will, with the moment; that it does not go after all. At its moment a machine
 * takes along whoever is still on it. Who makes pods makes another one at the notice, or when the worker has
 * ended, and asks for who is on a machine that may go.
 *
 * Where nothing else happens (calm) it is known what must come of it: who is told in time is gone in time,
 * and not long before; what is withdrawn costs no generation; a leave and who comes in its place cost one
 * together; no ring is smaller for a machine that may go; and of those who will go none is in a ring that has
 * its place taken. What is said of generations at all (programs_check.c) holds in all seeds. */
#include "common/base/prng.h"
#include "tests/sim/programs/programs.h"

static const rm_time last_notice = 17 * RM_S, eased_each = RM_S;
static const rm_time enough = 2 * RM_S;  /* for a leave, beside gracePeriod */
static const rm_time settled = 2 * RM_S; /* from the start of a job until its first ring stands */
static const rm_time worth = 10 * RM_S;  /* a notice's time in which a worker is to go on */

static rm_time between(struct sim *sim, rm_time least, rm_time most)
{
    return least + (rm_time)prng_below(&sim->notices.chance, (uint64_t)(most - least) + 1);
}

static bool in_hundred(struct sim *sim, uint64_t n)
{
    return prng_below(&sim->notices.chance, 100) < n;
}

void notice_draw(struct sim *sim, uint64_t seed)
{
    struct notices_drawn *d = &sim->notices;
    d->chance = seed ^ 0x6e6f74696365732cu;
    splitmix64(&d->chance);
    d->any = in_hundred(sim, 40);
    d->calm = d->any && in_hundred(sim, 50);
    if (!d->any)
        return;
    sim->stuck = sim->stuck && !d->calm;
    add(sim, sim->now + between(sim, d->calm ? settled : 0, last_notice), NOTICE, 0, 0);
}

/* What the coordinator keeps for a leave at most: at first 6 s and gracePeriod, then twice the longest, which
 * is little more than gracePeriod, and as much more. */
static rm_time kept_for_a_leave(const struct sim *sim)
{
    return 6 * RM_S + 3 * sim->grace;
}

/* ---- what is told ---- */

static void tell(struct sim *sim, int node, enum msg_notice_word word, rm_time until)
{
    bool will = word == NOTICED_WILL;
    struct notice notice = {.source = will ? NOTICE_AWS_SPOT : NOTICE_AWS_REBALANCE,
                            .cause = NOTICE_CAUSE_RECLAIM,
                            .certainty = will ? NOTICE_WILL : NOTICE_MAY,
                            .until = will ? until : RM_NEVER};
    struct agent_event noticed = {.kind = AGENT_NOTICED, .notice = word == NOTICED_GONE ? NULL : &notice};
    agent_event(sim, node, &noticed);
    if (!will || !sim->node[node].alive)
        return;
    struct agent_event leave = {.kind = AGENT_NOTICE, .deadline = until > sim->now ? until - sim->now : 1};
    text_copy(leave.text, sizeof leave.text, "aws-spot");
    agent_event(sim, node, &leave);
}

static void is_heard(struct sim *sim, int node, enum msg_notice_word word)
{
    struct node *n = &sim->node[node];
    if (!n->alive || (word == NOTICED_GONE && sim->plant == PLANT_WITHDRAWAL_UNSAID))
        return;
    if (word == NOTICED_GONE)
        n->doomed_at = 0;
    tell(sim, node, word, n->doomed_at + (sim->plant == PLANT_NOTICE_LATE ? 30 * RM_S : 0));
}

/* Another one, under an index that nobody has; false: there is none. */
static bool make_one(struct sim *sim, rm_time within)
{
    for (int w = 0; w <= WORKERS; w++) {
        if (sim->taken[w] || sim->barred[w])
            continue;
        sim->taken[w] = true;
        add(sim, sim->now + within, NODE_STARTS, w, sim->attempt[w] + 1);
        return true;
    }
    return false;
}

static bool make_another(struct sim *sim, int node, rm_time within)
{
    bool made = make_one(sim, within);
    sim->node[node].replaced = sim->node[node].replaced || made;
    return made;
}

void notice_quarantined(struct sim *sim, int worker)
{
    sim->barred[worker] = sim->notices.any;
}

void notice_makes_owed(struct sim *sim)
{
    while (sim->notices.owed && make_one(sim, RM_S))
        sim->notices.owed--;
}

bool notice_bars(struct sim *sim, int worker)
{
    if (!sim->barred[worker])
        return false;
    sim->taken[worker] = false;
    sim->notices.owed++;
    notice_makes_owed(sim);
    return true;
}

void notice_forgets(struct sim *sim)
{
    int there = 0;
    sim->notices.owed = 0; /* whoever is not there is made anew */
    for (int w = 0; w <= WORKERS; w++) {
        sim->barred[w] = false;
        there += sim->taken[w];
    }
    for (; sim->notices.any && sim->term > 1 && there < WORKERS; there++)
        make_one(sim, RM_S);
}

/* A worker that comes and one that goes are one change where the newcomer is there before the leave is due.
 */
static void count_changes(struct sim *sim, int changes)
{
    struct notices_drawn *d = &sim->notices;
    d->costly += changes != 0;
    bool one_alone = d->costly == 1 && changes > 0;
    d->changes = one_alone ? changes : changes || d->changes ? -1 : 0;
}

static void will_go(struct sim *sim, int node, rm_time lead)
{
    struct node *n = &sim->node[node];
    if (!n->alive || n->doomed_at)
        return;
    n->noticed_at = sim->now;
    n->doomed_at = sim->now + lead;
    n->nodes_then = sim->nodes;
    sim->notices.wills++;
    add(sim, n->doomed_at, MACHINE_GOES, node, 0);
    add(sim, sim->now + between(sim, 0, 5 * RM_MS), NOTICE_HEARD, node, NOTICED_WILL);
    rm_time within = between(sim, RM_MS, lead + lead / 2);
    bool replaced = in_hundred(sim, 70) && make_another(sim, node, within);
    n->nodes_then += replaced;
    bool in_time = replaced && within + settled + kept_for_a_leave(sim) < lead;
    count_changes(sim, in_time ? 1 : -1);
}

/* Before its leave is due, where nothing else happens. */
static void will_not_go(struct sim *sim, int node, rm_time lead)
{
    struct node *n = &sim->node[node];
    if (!n->alive || n->doomed_at)
        return;
    rm_time within = between(sim, 10 * RM_MS, lead);
    if (sim->notices.calm) {
        lead += kept_for_a_leave(sim) + 2 * RM_S;
        within = between(sim, 10 * RM_MS, RM_S);
    }
    n->noticed_at = sim->now;
    n->doomed_at = sim->now + lead;
    n->nodes_then = -1;
    add(sim, sim->now + between(sim, 0, 5 * RM_MS), NOTICE_HEARD, node, NOTICED_WILL);
    add(sim, sim->now + within, NOTICE_HEARD, node, NOTICED_GONE);
    count_changes(sim, 0);
}

static void may_go(struct sim *sim, int node)
{
    if (!sim->node[node].alive || sim->node[node].doomed_at) /* a `will` beats it */
        return;
    add(sim, sim->now, NOTICE_HEARD, node, NOTICED_MAY);
    bool replaced = in_hundred(sim, 70) && make_another(sim, node, between(sim, RM_MS, 3 * RM_S));
    if (replaced)
        add(sim, sim->now, EASE, node, 0);
    count_changes(sim, replaced ? 1 : 0);
}

/* Who has no time at all is lost as suddenly as any other. */
static rm_time draw_lead(struct sim *sim)
{
    static const rm_time most[] = {2 * RM_S, 15 * RM_S, 40 * RM_S};
    rm_time lead = between(sim, 10 * RM_MS, most[prng_below(&sim->notices.chance, 3)]);
    return sim->notices.calm ? lead + sim->grace + enough : lead;
}

static void next_notice(struct sim *sim)
{
    int node = (int)prng_below(&sim->notices.chance, (uint64_t)sim->nodes);
    uint64_t what = prng_below(&sim->notices.chance, 8);
    rm_time lead = draw_lead(sim);
    sim->notices.count++;
    if (what == 0)
        for (int k = 0; k < sim->nodes; k++)
            will_go(sim, k, lead + between(sim, 0, 200 * RM_MS));
    else if (what < 4)
        will_go(sim, node, lead);
    else if (what < 6)
        will_not_go(sim, node, lead);
    else
        may_go(sim, node);
    rm_time next = sim->now + between(sim, 0, in_hundred(sim, 40) ? RM_S : last_notice);
    if (next < last_notice && sim->notices.count < 4)
        add(sim, next, NOTICE, 0, 0);
}

/* A word holds for a minute; it is said again as long as there is a coordinator to say it to. */
static void ease(struct sim *sim, int node)
{
    const struct node *n = &sim->node[node];
    if (!n->alive)
        return;
    add(sim, sim->now + eased_each, EASE, node, 0);
    if (!sim->rdzv)
        return;
    struct rdzv_event event = {.kind = RDZV_RELIEVE,
                               .relief = {.stay = sim->settings.workers_min, .count = 1}};
    event.relief.one[0].worker = n->worker;
    event.relief.one[0].attempt = n->attempt;
    coordinator_event(sim, &event);
}

void notice_happens(struct sim *sim, const struct ev *e)
{
    struct node *n = &sim->node[e->a];
    if (e->kind == NOTICE) {
        next_notice(sim);
    } else if (e->kind == NOTICE_HEARD) {
        is_heard(sim, e->a, (enum msg_notice_word)e->b);
    } else if (e->kind == EASE) {
        ease(sim, e->a);
    } else if (n->alive && n->doomed_at == e->at) {
        notice_ends(sim, e->a, false);
        node_dies(sim, e->a, prng_below(&sim->notices.chance, 3) == 0);
    }
}

/* ---- what must come of it ---- */

void notice_noted(struct sim *sim, int node, const struct message *m)
{
    struct node *n = &sim->node[node];
    if (m->type == MSG_LEAVING)
        n->goes = m->leaving.trains_on;
    if (m->type == MSG_NOTICED && m->noticed.word != NOTICED_WILL)
        n->goes = false;
}

void notice_form(struct sim *sim, const struct message *form)
{
    sim->formed = (struct sim_ring){.generation = form->generation, .world = form->form.count};
    for (int r = 0; r < form->form.count; r++)
        sim->formed.has[form->form.member[r].worker] = true;
    for (int k = 0; k < sim->nodes; k++) {
        const struct node *n = &sim->node[k];
        for (int r = 0; r < form->form.count && n->alive; r++)
            sim->formed.going += n->goes && form->form.member[r].worker == n->worker;
    }
}

/* Another ring was told to start: the one that was formed last. */
void notice_go(struct sim *sim)
{
    struct sim_ring before = sim->went, ring = sim->formed;
    sim->went = ring;
    bool next = ring.generation.n == before.generation.n + 1 && before.world;
    if (!sim->notices.calm || !next)
        return;
    int most = before.world > WORKERS ? before.world : WORKERS;
    if (ring.going && ring.world > most)
        violate(sim, "%d of a ring of %d will go, and others have their places", ring.going, ring.world);
    if (!sim->notices.wills && ring.world < before.world)
        violate(sim, "a ring of %d after one of %d, for a machine that may go", ring.world, before.world);
}

void notice_ends(struct sim *sim, int node, bool by_itself)
{
    const struct node *n = &sim->node[node];
    if (!sim->notices.calm || !n->doomed_at || sim->over)
        return;
    rm_time lead = n->doomed_at - n->noticed_at, used = sim->now - n->noticed_at;
    if (!by_itself)
        violate(sim, "worker %d is still there when its machine ends, which it was told %.1f s before",
                n->worker, (double)lead / RM_S);
    bool alone = sim->notices.count == 1 && n->nodes_then == sim->nodes && sim->notices.wills == 1;
    if (by_itself && alone && !n->replaced && lead >= worth + 2 * kept_for_a_leave(sim) && used < lead / 4)
        violate(sim, "worker %d leaves %.1f s before its machine does, and nobody has come in its place",
                n->worker, (double)(lead - used) / RM_S);
}

void notice_check_end(struct sim *sim)
{
    const struct notices_drawn *d = &sim->notices;
    if (!d->calm || d->changes < 0)
        return;
    if (sim->generations > 1 + d->changes)
        violate(sim, "%d notices, of which %d may cost something, and %d generations", d->count, d->costly,
                (int)sim->generations);
}
