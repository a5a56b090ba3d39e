/* The model of run: who is started, killed and started again; and what a seed does to everybody. */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim.h"

static const rm_time run_patience = 5 * RM_S; /* then run replaces it */

/* Under an index; -1: there was none. */
static int newest_attempt(const struct sim *sim, int w)
{
    int attempt = -1;
    for (int i = 0; i < sim->nodes; i++) {
        if (sim->node[i].worker == w && sim->node[i].attempt > attempt)
            attempt = sim->node[i].attempt;
    }
    return attempt;
}

void run_send_expect(struct sim *sim)
{
    if (sim->scenario.unsupervised)
        return;
    struct rdzv_event *e = calloc(1, sizeof *e);
    if (!e)
        abort();
    e->kind = RDZV_EXPECT;
    for (int w = 0; w < RM_WORKERS_MAX; w++) {
        if (sim->expected[w] < 0)
            continue;
        e->expect.worker[e->expect.count].worker = w;
        e->expect.worker[e->expect.count++].attempt = sim->expected[w];
    }
    sim_at(sim, sim->now, EV_EXPECT, 0, 0, 0)->command = e;
}

static void run_act(struct sim *sim, enum cause cause, int worker)
{
    if (sim->scenario.unsupervised)
        return;
    struct rdzv_event *e = calloc(1, sizeof *e);
    if (!e)
        abort();
    e->kind = RDZV_ACT;
    e->act.cause = cause;
    e->act.worker = worker;
    e->act.at = sim->now;
    sim_at(sim, sim->now, EV_ACT, 0, 0, 0)->command = e;
}

/* Who runs pods knows of quarantine only what the coordinator shows, and a successor shows none. */
void run_forgets_quarantine(struct sim *sim)
{
    for (int w = 0; w < RM_WORKERS_MAX && sim->scenario.unsupervised; w++) {
        if (!sim->quarantined[w])
            continue;
        sim->quarantined[w] = false;
        if (sim->node_of[w] >= 0)
            continue;
        sim->expected[w] = newest_attempt(sim, w) + 1;
        sim_at(sim, sim->now + RM_MS, EV_SPAWN, w, sim->expected[w], 0);
    }
}

/* Who runs pods ends a job whose quarantines leave too few. */
bool run_has_too_few_places(const struct sim *sim)
{
    int places = sim->scenario.target;
    for (int w = 0; w < RM_WORKERS_MAX; w++)
        places -= sim->quarantined[w];
    return sim->scenario.unsupervised && places < sim->scenario.min && sim->rdzv &&
           rdzv_state(sim->rdzv) == RDZV_GATHERING;
}

/* Run replaces neither a drilled one nor one that was released; who runs pods does. */
static bool is_replaced(const struct sim *sim, const struct node *n)
{
    int w = n->worker;
    if (sim->quarantined[w] || sim->ended || sim->replaced[w])
        return false;
    return sim->scenario.unsupervised || (!sim->drilled[w] && n->exit_code != 0 && !sim->interrupted);
}

static rm_time until_replaced(struct sim *sim)
{
    bool slow = sim->scenario.unsupervised && sim_chance(sim, 30);
    if (sim->scenario.unsupervised && sim->scenario.trouble == TROUBLE_MACHINE_ALL)
        return sim_time(sim, RM_S, 5 * RM_S); /* who ends soon is not started again at once */
    return sim_time(sim, RM_MS, slow ? 3 * RM_S : 60 * RM_MS);
}

void run_reaps(struct sim *sim, int node)
{
    struct node *n = &sim->node[node];
    int w = n->worker;
    if (sim->node_of[w] != node)
        return;
    bool replace = is_replaced(sim, n);
    sim->drilled[w] = sim->stands[w] = sim->replaced[w] = false;
    if (!replace) {
        sim->expected[w] = -1;
        sim->node_of[w] = -1;
        run_send_expect(sim);
        return;
    }
    sim->expected[w] = n->attempt + 1;
    sim->node_of[w] = -1;
    run_send_expect(sim);
    sim_at(sim, sim->now + until_replaced(sim), EV_SPAWN, w, n->attempt + 1, 0);
}

/* One that a drill stopped is given up with the coordinator's word, and keeps its index until it ends. */
void run_worker_lost(struct sim *sim, int worker)
{
    if (!sim->stands[worker] || sim->expected[worker] < 0)
        return;
    sim->expected[worker] = -1;
    sim->tallies.of[TALLY_GIVEN_UP]++;
    run_send_expect(sim);
}

void run_worker_quarantined(struct sim *sim, int worker)
{
    sim->quarantined[worker] = true;
    sim->tallies.of[TALLY_QUARANTINED]++;
}

/* What stands still never hears that it may go. Agents of pods never take the coordinator for lost, so
 * whoever did not hear it is told by SIGTERM. */
void run_ended(struct sim *sim)
{
    for (int i = 0; sim->scenario.unsupervised && i < sim->nodes; i++) {
        if (sim->node[i].alive)
            sim_at(sim, sim->now + RM_S, EV_TERM, i, 2000, 0);
    }
    for (int w = 0; w < RM_WORKERS_MAX; w++) {
        if (sim->stands[w] && sim->node_of[w] >= 0)
            node_die(sim, sim->node_of[w], 137);
    }
}

/* Workers that run would call alive and that no drill takes away. */
static int staying(const struct sim *sim)
{
    int n = 0;
    for (int w = 0; w < RM_WORKERS_MAX; w++)
        n += sim->expected[w] >= 0 && !sim->drilled[w];
    return n;
}

/* A living worker; those that a drill takes away only where the harm may meet anybody. */
static int victim(struct sim *sim, bool anybody)
{
    int list[RM_WORKERS_MAX], n = 0;
    for (int w = 0; w < RM_WORKERS_MAX; w++) {
        bool there = sim->node_of[w] >= 0 && sim->node[sim->node_of[w]].alive;
        if (there && (anybody || !sim->drilled[w]))
            list[n++] = w;
    }
    return n ? list[sim_below(sim, (uint64_t)n)] : -1;
}

static int free_index(const struct sim *sim)
{
    int w = 0;
    while (w < RM_WORKERS_MAX && (sim->quarantined[w] || sim->expected[w] >= 0 || sim->node_of[w] >= 0))
        w++;
    return w;
}

static int expect_another(struct sim *sim, int w)
{
    int attempt = newest_attempt(sim, w) + 1;
    sim->expected[w] = attempt;
    sim->drilled[w] = sim->replaced[w] = false;
    return attempt;
}

static bool join_one(struct sim *sim)
{
    int w = free_index(sim), most = sim->crowd ? RM_WORKERS_MAX : 12;
    if (staying(sim) >= most || w >= sim->settings.workers_max)
        return false;
    int attempt = expect_another(sim, w);
    if (sim_chance(sim, 50))
        run_act(sim, CAUSE_WORKER_JOINED, w);
    run_send_expect(sim);
    sim_at(sim, sim->now + sim_time(sim, RM_MS, 60 * RM_MS), EV_SPAWN, w, attempt, 0);
    return true;
}

bool run_makes_another(struct sim *sim, rm_time delay)
{
    int w = free_index(sim);
    if (w >= sim->settings.workers_max)
        return false;
    sim_at(sim, sim->now + delay, EV_SPAWN, w, expect_another(sim, w), 0);
    return true;
}

static bool shoot_join(struct sim *sim)
{
    bool any = join_one(sim);
    while (sim->crowd && join_one(sim))
        any = true;
    return any;
}

static void shoot_process(struct sim *sim, enum shot_kind kind, int w)
{
    int node = sim->node_of[w];
    if (kind == SHOT_KILL) {
        run_act(sim, CAUSE_WORKER_LOST, w);
        node_die(sim, node, 137);
    } else if (kind == SHOT_CRASH) {
        node_die(sim, node, 139);
    } else if (kind == SHOT_TERM) {
        run_act(sim, CAUSE_WORKER_LEFT, w);
        sim_at(sim, sim->now, EV_TERM, node, 0, 0);
    } else if (kind == SHOT_STOP && sim->scenario.unsupervised) {
        node_die(sim, node, 137);
    } else if (kind == SHOT_STOP) {
        run_act(sim, CAUSE_WORKER_LOST, w);
        pause_node(sim, node, PAUSE_BOTH);
        if (sim_chance(sim, 60))
            pause_resume_later(sim, node, PAUSE_BOTH, sim_time(sim, RM_MS, 6 * RM_S));
    } else if (sim->node[node].trainer.alive) {
        if (kind == SHOT_TRAINER)
            run_act(sim, CAUSE_TRAINER_EXIT, w);
        else if (kind == SHOT_TRAINER_CRASH && beside_fails(sim, node))
            return;
        trainer_die(sim, node, -1);
    }
}

static bool shoot_worker(struct sim *sim, enum shot_kind kind, int w)
{
    bool goes = kind == SHOT_KILL || kind == SHOT_TERM || kind == SHOT_STOP;
    if (goes && staying(sim) <= sim->scenario.min && !sim->scenario.below_min)
        return false;
    sim->drilled[w] = sim->drilled[w] || goes;
    sim->stands[w] = sim->stands[w] || kind == SHOT_STOP;
    shoot_process(sim, kind, w);
    return true;
}

/* Each has the same time left, much or little, and is killed then. */
static bool shoot_all(struct sim *sim)
{
    static const int longest_ms[] = {20, 200, 5000};
    int ms = 1 + (int)sim_below(sim, (uint64_t)longest_ms[sim_below(sim, 3)]);
    bool any = false;
    for (int w = 0; w < RM_WORKERS_MAX && sim->scenario.below_min; w++) {
        int node = sim->node_of[w];
        if (node < 0 || !sim->node[node].alive || sim->drilled[w])
            continue;
        run_act(sim, CAUSE_WORKER_LEFT, w);
        sim->drilled[w] = any = true;
        sim_at(sim, sim->now + sim_time(sim, 0, 5 * RM_MS), EV_TERM, node, ms, 0);
        sim_at(sim, sim->now + (ms + 5) * RM_MS, EV_DEADLINE, node, 0, 0);
    }
    return any;
}

static bool shoot_store(struct sim *sim)
{
    rm_time longest = sim_chance(sim, 50) ? 200 * RM_MS : 20 * RM_S;
    sim->store_back = sim->now + sim_time(sim, RM_MS, longest);
    if (sim->store_back > sim->quiet_since)
        sim->quiet_since = sim->store_back;
    return true;
}

/* For good: what ends the run is that the end does not wait for ever. */
static bool shoot_quota(struct sim *sim)
{
    sim->store_full = true;
    sim->store_takes = 50 * (int)sim_below(sim, 3);
    sim->quiet_since += 2 * sim->settings.save_patience; /* a coordinator may die as it gives up */
    return true;
}

/* Shorter than anybody notices, shorter than lostAfter, or longer. */
static rm_time pause_length(struct sim *sim)
{
    rm_time lost = sim->settings.lost_after, longest[] = {50 * RM_MS, lost, 5 * lost};
    return sim_time(sim, RM_MS, longest[sim_below(sim, 3)]);
}

static bool shoot_pause(struct sim *sim, enum shot_kind kind, int w)
{
    static const enum pause_part parts[SHOTS] = {[SHOT_HANG] = PAUSE_TRAINER,
                                                 [SHOT_STUCK] = PAUSE_TRAINER,
                                                 [SHOT_PAUSE] = PAUSE_BOTH,
                                                 [SHOT_PAUSE_AGENT] = PAUSE_AGENT,
                                                 [SHOT_PAUSE_TRAINER] = PAUSE_TRAINER};
    int node = sim->node_of[w];
    const struct trainer *t = &sim->node[node].trainer;
    bool for_good = kind == SHOT_HANG || kind == SHOT_STUCK;
    if ((for_good && !t->opened) || (kind != SHOT_PAUSE_AGENT && !t->alive))
        return false;
    if (kind == SHOT_HANG)
        run_act(sim, CAUSE_HANG, w);
    if (kind == SHOT_STUCK)
        pause_stick(sim, node);
    else
        pause_node(sim, node, parts[kind]);
    if (!for_good || sim_chance(sim, 30))
        pause_resume_later(sim, node, parts[kind], pause_length(sim));
    return true;
}

static void zombie_word(struct sim *sim, int node)
{
    struct message m;
    message_init(&m, sim_chance(sim, 50) ? MSG_STOP : MSG_FORM);
    m.term = sim->node[node].heard - 1;
    m.generation = (struct msg_generation){m.term, 1000000};
    if (m.type == MSG_FORM) {
        m.form.count = 1;
        m.form.member[0].worker = sim->node[node].worker;
        m.form.member[0].role = ROLE_INIT;
    } else {
        m.stop.round = 1000000;
    }
    struct agent_event e = {.kind = AGENT_CONTROL, .message = &m};
    node_event(sim, node, &e);
}

/* Under an index that is taken by a newer attempt, of which the coordinator knows: else it would be the
 * worker. Or under one that nobody is expected under; of pods any is welcome. */
static bool shoot_stranger(struct sim *sim, int w)
{
    bool old = w >= 0 && sim->expected[w] > 0 && sim_chance(sim, 50);
    bool free = sim->expected[RM_WORKERS_MAX - 1] < 0;
    bool unknown = old && (sim->node_of[w] < 0 || !sim->node[sim->node_of[w]].heard);
    if (sim->nodes > NODES_MAX / 2 || unknown || (!old && (sim->scenario.unsupervised || !free)))
        return false;
    node_spawn(sim, old ? w : RM_WORKERS_MAX - 1, old ? sim->expected[w] - 1 : 0, true);
    return true;
}

/* At once, or between two of the actions that it does next. */
static bool shoot_coordinator(struct sim *sim)
{
    if (!sim->rdzv || sim->doomed)
        return false;
    sim->doomed = true;
    sim->doomed_after = (int)sim_below(sim, 6);
    if (sim->doomed_after == 0)
        coord_die(sim);
    return true;
}

static bool shoot_coordinator_pause(struct sim *sim)
{
    if (!sim->rdzv || sim->coord_stopped)
        return false;
    pause_coordinator(sim);
    if (sim_chance(sim, 75))
        pause_resume_later(sim, -1, PAUSE_AGENT, pause_length(sim));
    else
        sim_at(sim, sim->now + run_patience, EV_COORD_REPLACED, 0, sim->coord_stops, 0);
    return true;
}

static bool shoot_interrupt(struct sim *sim)
{
    struct rdzv_event *e = calloc(1, sizeof *e);
    if (!e)
        abort();
    e->kind = RDZV_INTERRUPT;
    sim->interrupted = true;
    sim_at(sim, sim->now, EV_ACT, 0, 0, 0)->command = e;
    return true;
}

static bool shoot_connection(struct sim *sim, enum shot_kind kind, int conn)
{
    if (conn < 0)
        return false;
    if (kind == SHOT_CUT)
        conn_cut(sim, conn);
    else
        conn_silence(sim, conn, pause_length(sim));
    return true;
}

/* False where there was nothing to do it to. */
static bool shoot_at(struct sim *sim, enum shot_kind kind, int w)
{
    struct node *n = w >= 0 ? &sim->node[sim->node_of[w]] : NULL;
    if (!n)
        return false;
    switch (kind) {
    case SHOT_CUT:
    case SHOT_SILENCE:
        return shoot_connection(sim, kind, n->conn);
    case SHOT_ZOMBIE:
        if (n->heard && !n->stopped)
            zombie_word(sim, sim->node_of[w]);
        return n->heard && !n->stopped;
    case SHOT_SLOW:
        n->trainer.slow = sim_time(sim, 0, 3 * sim->settings.step_timeout);
        sim->quiet_since += n->trainer.slow;
        sim->still.slow += n->trainer.slow;
        return true;
    case SHOT_HANG:
    case SHOT_STUCK:
    case SHOT_PAUSE:
    case SHOT_PAUSE_AGENT:
    case SHOT_PAUSE_TRAINER:
        return shoot_pause(sim, kind, w);
    default:
        return shoot_worker(sim, kind, w);
    }
}

static bool shoot(struct sim *sim, enum shot_kind kind, int w)
{
    switch (kind) {
    case SHOT_JOIN:
        return shoot_join(sim);
    case SHOT_INTERRUPT:
        return shoot_interrupt(sim);
    case SHOT_COORDINATOR:
        return shoot_coordinator(sim);
    case SHOT_PAUSE_COORDINATOR:
        return shoot_coordinator_pause(sim);
    case SHOT_STRANGER:
        return shoot_stranger(sim, w);
    case SHOT_ALL_LEAVE:
        return shoot_all(sim);
    case SHOT_STORE_AWAY:
        return shoot_store(sim);
    case SHOT_STORE_FULL:
        return shoot_quota(sim);
    case SHOT_MAY:
    case SHOT_WILL:
    case SHOT_WILL_ALL:
    case SHOT_TAKEN_BACK:
    case SHOT_MAY_BACK:
    case SHOT_MAY_WILL:
    case SHOT_MOVED:
    case SHOT_WILL_TWO:
    case SHOT_EARLY:
        return notice_shoot(sim, kind, w);
    default:
        return shoot_at(sim, kind, w);
    }
}

void run_shot(struct sim *sim, int i)
{
    enum shot_kind kind = sim->scenario.shot[i].kind;
    bool meets_anybody = kind == SHOT_CUT || kind == SHOT_SILENCE || kind == SHOT_PAUSE ||
                         kind == SHOT_PAUSE_AGENT || kind == SHOT_PAUSE_TRAINER || kind == SHOT_STUCK;
    int state = sim->rdzv ? (int)rdzv_state(sim->rdzv) : RDZV_STATES;
    int w = victim(sim, meets_anybody);
    if (sim->ended)
        return;
    sim_trace(sim, "-- shot %d: %s %d", i, shot_names[kind], w);
    sim->tallies.shot[kind][state] += shoot(sim, kind, w);
}
