/* Walls: workers that are well, and whose trainers can't reach each other; in one direction or in both, from
 * the start or from some moment on, for a while or for ever. Some let calls and their handshakes pass, and
 * cut or hold back what follows. Control connections go on: those are to somebody else. What has to come of
 * it is judged by the walls as they stand. */
#include <stdio.h>
#include <string.h>

#include "coordinator/core/clique.h"
#include "tests/sim/sim.h"

static const rm_time discovered_in = 120 * RM_S; /* two formings for each pair, with their pauses */
static const rm_time settles_in = 5 * RM_S;      /* who came, or could be reached, so lately does not count */

void pairs_draw(struct sim *sim)
{
    struct scenario *s = &sim->scenario;
    uint64_t seed = sim->seed;
    if (s->calm || s->target < 2 || sim_hash(seed, 5, 0) % 100 >= 15)
        return;
    rm_time span = s->step_time * s->steps;
    s->walls = 1 + (int)(sim_hash(seed, 5, 1) % WALLS_MAX);
    for (int i = 0; i < s->walls; i++) {
        struct wall *w = &s->wall[i];
        uint64_t chance = sim_hash(seed, 6, (uint64_t)i);
        w->from = (int)(chance % (uint64_t)s->target);
        w->to = (w->from + 1 + (int)(chance / 64 % (uint64_t)(s->target - 1))) % s->target;
        w->both = chance >> 20 & 1;
        w->at = chance >> 21 & 1 ? 0 : (rm_time)((chance >> 24) % (uint64_t)span);
        bool for_ever = chance >> 22 & 1;
        uint64_t kind = sim_hash(seed, 8, (uint64_t)i);
        w->kind = kind % 4 == 0 ? WALL_CUTS : kind % 4 == 1 ? WALL_STALLS : WALL_CLOSED;
        w->small = kind >> 8 & 1;
        w->until = for_ever ? RM_NEVER : w->at + (rm_time)(sim_hash(seed, 7, (uint64_t)i) % (20 * RM_S));
    }
}

void pairs_begin(struct sim *sim)
{
    const struct scenario *s = &sim->scenario;
    for (int i = 0; i < s->walls; i++) {
        const struct wall *w = &s->wall[i];
        rm_time last = w->until == RM_NEVER ? w->at : w->until;
        sim_at(sim, w->at, EV_WALL, i, 0, 0);
        if (w->until != RM_NEVER)
            sim_at(sim, w->until, EV_WALL, i, 1, 0);
        sim->quiet_since = last > sim->quiet_since ? last : sim->quiet_since;
    }
    sim->quiet_since += s->walls ? discovered_in : 0;
}

/* What stood between the two lets nothing more through, and what was under way is cut. */
void pairs_wall_rises(struct sim *sim, int wall)
{
    static const char *const does[] = {"can't reach", "is cut off when it sends to", "sends in vain to"};
    const struct wall *w = &sim->scenario.wall[wall];
    sim_trace(sim, "-- a wall: worker %d %s worker %d%s", w->from, does[w->kind], w->to,
              w->both ? ", and the other way round" : "");
    if (w->kind != WALL_CLOSED)
        return; /* it shows in the next reduction */
    ring_cut(sim, w->from, w->to);
    if (w->both)
        ring_cut(sim, w->to, w->from);
}

void pairs_wall_falls(struct sim *sim, int wall)
{
    const struct wall *w = &sim->scenario.wall[wall];
    sim_trace(sim, "-- the wall between workers %d and %d falls", w->from, w->to);
    ring_flows(sim);
}

/* At any moment since `since`. */
static bool stands(const struct sim *sim, const struct wall *w, int from, int to, rm_time since)
{
    bool here = (w->from == from && w->to == to) || (w->both && w->from == to && w->to == from);
    return here && w->at <= sim->now && w->until > since;
}

static bool stood(const struct sim *sim, int from, int to, rm_time since)
{
    for (int i = 0; i < sim->scenario.walls; i++)
        if (stands(sim, &sim->scenario.wall[i], from, to, since))
            return true;
    return false;
}

bool pairs_stood(const struct sim *sim, int a, int b, rm_time since)
{
    return stood(sim, a, b, since) || stood(sim, b, a, since);
}

bool pairs_reach(const struct sim *sim, int from, int to)
{
    for (int i = 0; i < sim->scenario.walls; i++) {
        const struct wall *w = &sim->scenario.wall[i];
        if (w->kind == WALL_CLOSED && stands(sim, w, from, to, sim->now))
            return false;
    }
    return true;
}

/* Of a closed wall nothing is seen here: what passed it before was cut when it rose. */
bool pairs_carry(const struct sim *sim, int from, int to, enum wall_kind *ret_why, bool small)
{
    bool carries = true;
    for (int i = 0; i < sim->scenario.walls; i++) {
        const struct wall *w = &sim->scenario.wall[i];
        bool passes = w->kind == WALL_CLOSED || (small && w->small);
        if (passes || !stands(sim, w, from, to, sim->now))
            continue;
        *ret_why = carries || w->kind == WALL_CUTS ? w->kind : *ret_why;
        carries = false;
    }
    return carries;
}

void pairs_probe(struct sim *sim, int node, const struct msg_probe *probe)
{
    struct message m;
    message_init(&m, MSG_PROBED);
    m.probed.id = probe->id;
    m.probed.peer = -1;
    for (int i = 0; i < probe->count && m.probed.peer < 0; i++) {
        const struct msg_member *to = &probe->member[i];
        int other = 0, epoch = 0;
        sscanf(to->address, "%d:%d", &other, &epoch);
        const struct trainer *t = &sim->node[other].trainer;
        bool answers = t->alive && t->epoch == epoch && !t->stopped;
        if (!answers || !pairs_reach(sim, sim->node[node].worker, to->worker))
            m.probed.peer = to->worker;
    }
    link_to_agent(sim, node, &m);
}

/* ---- judging ---- */

/* The most workers who have been there for a while and reach each other; at_rest: and were not disturbed. */
static int largest_clique(const struct sim *sim, rm_time since, bool at_rest)
{
    struct worker_set apart[RM_WORKERS_MAX] = {0}, among = {0};
    int blamed[RM_WORKERS_MAX] = {0};
    for (int w = 0; w < RM_WORKERS_MAX; w++) {
        const struct node *n = sim->node_of[w] >= 0 ? &sim->node[sim->node_of[w]] : NULL;
        const struct trainer *t = n ? &n->trainer : NULL;
        bool there = n && n->alive && t->alive && t->opened && t->since <= since;
        bool well = there && !n->stopped && !t->stopped && !t->stuck && sim->expected[w] >= 0;
        well = well && !(at_rest && (n->disturbed > since || n->doomed_at || sim->drilled[w]));
        well = well && !(at_rest && (trouble_is_wrong_source(sim, sim->node_of[w]) ||
                                     trouble_is_own(sim, sim->node_of[w], since)));
        if (well)
            set_add(&among, w);
        for (int v = 0; v < RM_WORKERS_MAX; v++)
            if (pairs_stood(sim, w, v, since))
                set_add(&apart[w], v);
    }
    struct clique_question q = {.among = among, .apart = apart, .blamed = blamed};
    return set_count(clique_find(&q));
}

/* Two that could not reach each other of late. */
static bool names_a_pair(const struct sim *sim, const char *text)
{
    int a, b;
    const char *pair = strstr(text, "workers ");
    if (!pair || sscanf(pair, "workers %d and %d", &a, &b) != 2)
        return false;
    rm_time since = sim->now - sim->settings.start_timeout;
    return pairs_stood(sim, a, b, since);
}

int pairs_well_since(const struct sim *sim, rm_time since)
{
    return largest_clique(sim, since, true);
}

static bool can_go_on(const struct sim *sim)
{
    return largest_clique(sim, sim->now - settles_in, false) >= sim->scenario.min;
}

void pairs_ended(struct sim *sim)
{
    if (sim->exit_code != 4 || !strstr(sim->end_why, "can't reach each other"))
        return;
    sim->tallies.of[TALLY_UNREACHABLE]++;
    if (can_go_on(sim))
        sim_fail(sim, "R8: it ended although enough workers reach each other: %s", sim->end_why);
    if (!names_a_pair(sim, sim->end_why))
        sim_fail(sim, "R8: those who can't reach each other are not named: %s", sim->end_why);
    sim->unreachable = true;
}

bool pairs_wait_for_ever(const struct sim *sim)
{
    bool may = sim->scenario.unsupervised && sim->scenario.walls && sim->rdzv && !can_go_on(sim);
    return may && names_a_pair(sim, sim->waits_for);
}

void pairs_told(struct sim *sim, const struct rdzv_tell *t)
{
    if (t->kind == TELL_WAITING)
        text_copy(sim->waits_for, sizeof sim->waits_for, t->text);
    if (t->kind != TELL_WORKER_LEFT_OUT)
        return;
    sim->tallies.of[TALLY_LEFT_OUT]++;
    sim->left_out[t->worker] = sim->term;
    sim->left_out_at[t->worker] = sim->now;
}

static int rank_of(const struct msg_form *f, int worker)
{
    int r = 0;
    while (r < f->count && f->member[r].worker != worker)
        r++;
    return r;
}

/* From one that it would get for a neighbour: nobody has tried the others. */
static bool cut_off_since_told(const struct sim *sim, int worker, const struct msg_form *f)
{
    for (int i = 0; i < sim->scenario.walls; i++) {
        const struct wall *w = &sim->scenario.wall[i];
        bool all_the_time =
            w->kind == WALL_CLOSED && w->at <= sim->left_out_at[worker] && w->until > sim->now;
        for (int r = 0; all_the_time && r < f->count; r++) {
            int other = f->member[r].worker, apart = rank_of(f, worker) - r;
            bool neighbours = apart == 1 || apart == -1 || apart == f->count - 1 || apart == 1 - f->count;
            if (!neighbours)
                continue;
            if ((w->from == worker && w->to == other) || (w->from == other && w->to == worker))
                return true;
        }
    }
    return false;
}

enum { SAME_MOST = 4 };

/* Whoever has come since may be what the ring lacked that came to nothing. */
static bool has_newcomer(struct sim *sim)
{
    bool any = false;
    for (int w = 0; w < RM_WORKERS_MAX; w++) {
        const struct node *n = sim->node_of[w] >= 0 ? &sim->node[sim->node_of[w]] : NULL;
        const struct conn *c = n && n->conn >= 0 ? &sim->conn[n->conn] : NULL;
        bool there = c && c->coord_open && c->introduced;
        uint64_t who = there ? sim_hash(1, (uint64_t)sim->node_of[w], (uint64_t)n->trainer.epoch) : 0;
        any = any || (who && who != sim->same.known[w]);
        sim->same.known[w] = who;
    }
    return any;
}

/* What comes to nothing again and again is not tried without a pause. */
static void check_pauses(struct sim *sim, const struct msg_form *f)
{
    uint64_t who = (uint64_t)sim->term;
    for (int r = 0; r < f->count; r++) {
        int node = 0, epoch = 0;
        sscanf(f->member[r].address, "%d:%d", &node, &epoch);
        who = sim_hash(who, (uint64_t)node, (uint64_t)epoch);
    }
    if (f->count && f->member[0].role == ROLE_LOAD) /* from another checkpoint, as this one is refused */
        who = sim_hash(who, (uint64_t)f->resume.step, 0);
    if (has_newcomer(sim) || who != sim->same.who || sim->step_ops != sim->same.step_ops) {
        sim->same.who = who;
        sim->same.step_ops = sim->step_ops;
        sim->same.times = 0;
        sim->same.since = sim->now;
    }
    if (++sim->same.times > SAME_MOST && sim->now - sim->same.since < RM_S)
        sim_fail(sim, "R12: one ring is formed %d times within a second, and makes no step", sim->same.times);
}

/* A ring that trained is stopped for one who was left out only if that one and the others were seen to reach
 * each other since. */
void pairs_check_form(struct sim *sim, const struct msg_form *f)
{
    bool planned = sim->stopped_at == STOP_BOUNDARY;
    check_pauses(sim, f);
    for (int r = 0; r < f->count; r++) {
        int w = f->member[r].worker;
        bool out = sim->left_out[w] && sim->left_out[w] == sim->term;
        if (out && planned && f->count > sim->scenario.min && cut_off_since_told(sim, w, f))
            sim_fail(sim, "worker %d is taken back although it and another one can't reach each other", w);
        sim->tallies.of[TALLY_TAKEN_BACK] += out;
        sim->left_out[w] = 0;
    }
}
