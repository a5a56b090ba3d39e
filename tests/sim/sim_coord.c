/* The coordinator's shell, its connections, and the model of run: who is started, killed and started again.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim.h"

/* ---- network ---- */

static rm_time net_delay(struct sim *sim)
{
    rm_time d = sim_time(sim, sim->scenario.delay / 10 + 1, sim->scenario.delay);
    return sim_chance(sim, 2) ? d * 20 : d;
}

static void send_to_agent(struct sim *sim, int id, const struct message *m)
{
    struct conn *c = &sim->conn[id];
    if (!c->coord_open)
        return;
    rm_time at = sim->now + net_delay(sim);
    at = at < c->to_agent_last ? c->to_agent_last : at;
    c->to_agent_last = at;
    if (at <= c->cut_agent)
        sim_at(sim, at, EV_TO_AGENT, id, 0, 0)->message = sim_message(m);
}

/* Both ends see it end; what is due after the cut never arrives. */
void conn_cut(struct sim *sim, int id)
{
    struct conn *c = &sim->conn[id];
    if (c->cut_coord == RM_NEVER) {
        c->cut_coord = sim->now + sim_time(sim, 0, sim->scenario.delay);
        sim_at(sim, c->cut_coord + net_delay(sim), EV_COORD_CLOSED, id, 0, 0);
    }
    if (c->cut_agent == RM_NEVER) {
        c->cut_agent = sim->now + sim_time(sim, 0, sim->scenario.delay);
        sim_at(sim, c->cut_agent + net_delay(sim), EV_AGENT_CLOSED, id, 0, 0);
    }
}

/* After what was sent before. */
static void close_by_coord(struct sim *sim, int id)
{
    struct conn *c = &sim->conn[id];
    if (!c->coord_open)
        return;
    c->coord_open = false;
    if (c->cut_agent == RM_NEVER) {
        c->cut_agent = c->to_agent_last > sim->now ? c->to_agent_last : sim->now;
        sim_at(sim, c->cut_agent + net_delay(sim), EV_AGENT_CLOSED, id, 0, 0);
    }
    sim_at(sim, sim->now + RM_US, EV_COORD_CLOSED, id, 0, 0);
}

/* ---- the coordinator ---- */

static void arm(struct sim *sim)
{
    rm_time at = rdzv_deadline(sim->rdzv);
    if (at == RM_NEVER || sim->ended) {
        sim->coord_tick_at = RM_NEVER;
        return;
    }
    at = at <= sim->now ? sim->now + RM_US : at;
    if (at == sim->coord_tick_at)
        return;
    sim->coord_tick_at = at;
    sim_at(sim, at, EV_COORD_TICK, 0, 0, 0);
}

static void end(struct sim *sim, const struct rdzv_action *a)
{
    sim->ended = true;
    sim->ended_at = sim->now;
    sim->exit_code = a->end.exit_code;
    text_copy(sim->end_why, sizeof sim->end_why, a->end.why);
    sim_trace(sim, "coordinator ends with %d: %s", a->end.exit_code, a->end.why);
    for (int i = 0; i < sim->conns; i++)
        close_by_coord(sim, i);
}

static void do_send(struct sim *sim, const struct rdzv_action *a)
{
    const struct message *m = &a->send.message;
    if (a->send.count)
        sim_trace_message(sim, "C", sim->conn[a->send.conn[0]].node, m);
    if (m->type == MSG_FORM)
        check_form(sim, m);
    if (m->type == MSG_STOP)
        sim->round = m->stop.round;
    if (m->type == MSG_PUBLISH)
        check_publish(sim, &m->publish);
    for (int i = 0; i < a->send.count; i++)
        send_to_agent(sim, a->send.conn[i], m);
}

void coord_event(struct sim *sim, const struct rdzv_event *event)
{
    if (sim->ended || !sim->rdzv)
        return;
    enum rdzv_state before = rdzv_state(sim->rdzv);
    rdzv_step(sim->rdzv, event, sim->now, sim->rout);
    if (rdzv_state(sim->rdzv) != before)
        sim_trace(sim, "C %s -> %s: %s", rdzv_state_name(before), rdzv_state_name(rdzv_state(sim->rdzv)),
                  rdzv_why(sim->rdzv));
    if (sim->rout->count >= RDZV_ACTIONS_MAX - 2)
        sim_fail(sim, "the coordinator's action list is full");
    for (int i = 0; i < sim->rout->count; i++) {
        const struct rdzv_action *a = &sim->rout->action[i];
        if (sim->doomed && sim->doomed_after-- == 0) {
            coord_die(sim);
            return;
        }
        if (a->kind == RDZV_SEND)
            do_send(sim, a);
        else if (a->kind == RDZV_CLOSE)
            close_by_coord(sim, a->close);
        else if (a->kind == RDZV_TELL)
            check_tell(sim, &a->tell);
        else
            end(sim, a);
    }
    arm(sim);
}

/* What it sent arrives; what was on its way to it does not. Had it spoken its last word, run ends. */
void coord_die(struct sim *sim)
{
    sim_trace(sim, "the coordinator dies in %s", rdzv_state_name(rdzv_state(sim->rdzv)));
    sim->doomed = false;
    for (int i = 0; i < sim->conns; i++) {
        close_by_coord(sim, i);
        sim->conn[i].coord_told = true;
    }
    if (sim->last_word >= 0) {
        sim->ended = true;
        sim->ended_at = sim->now;
        sim->exit_code = sim->last_word;
        return;
    }
    sim->settings.heritage.lost_at = sim->now;
    rdzv_free(sim->rdzv);
    sim->rdzv = NULL;
    sim->losses++;
    sim_at(sim, sim->now + sim_time(sim, RM_MS, 60 * RM_MS), EV_COORD_START, 0, 0, 0);
}

void coord_start(struct sim *sim)
{
    struct rdzv_heritage *h = &sim->settings.heritage;
    int64_t shown = sim->told > 0 ? sim->told : -1;
    h->given = true;
    h->told = shown > sim->ring_told ? shown : sim->ring_told;
    h->evaluated = sim->evaluated_told;
    h->saved = sim->saved_told;
    sim->settings.term = ++sim->term;
    sim->rdzv = rdzv_open(&sim->settings, sim->now);
    sim->coord_tick_at = -1;
    sim_trace(sim, "a coordinator of term %d starts", (int)sim->term);
    arm(sim);
    run_send_expect(sim, 0);
    if (sim->interrupted) {
        struct rdzv_event e = {.kind = RDZV_INTERRUPT};
        coord_event(sim, &e);
    }
}

static void plant_in_message(struct sim *sim, struct message *m)
{
    if (sim->plant == PLANT_LOWER_STEP && m->type == MSG_STOPPED && m->stopped.state.held &&
        m->stopped.state.step > 2) {
        m->stopped.state.step--;
        m->stopped.update_step = -1;
        sim->planted++;
    }
    if (sim->plant == PLANT_PUBLISH_EARLY && m->type == MSG_CHECKPOINTED && m->checkpointed.parts > 1) {
        struct message again;
        message_copy(&again, m);
        again.checkpointed.part = (m->checkpointed.part + 1) % m->checkpointed.parts;
        sim->planted++;
        struct rdzv_event e = {.kind = RDZV_MESSAGE, .conn = -1, .message = &again};
        for (int i = 0; i < sim->conns; i++) {
            if (sim->conn[i].handed && sim->conn[i].coord_open && !sim->conn[i].coord_told)
                e.conn = i;
        }
        coord_event(sim, &e);
    }
}

void coord_message(struct sim *sim, int id, const struct message *m)
{
    struct conn *c = &sim->conn[id];
    if (!c->coord_open || c->coord_told)
        return;
    sim_trace_message(sim, "  C hears", c->node, m);
    c->handed = true;
    struct message *copy = sim_message(m);
    plant_in_message(sim, copy);
    struct rdzv_event e = {.kind = RDZV_MESSAGE, .conn = id, .message = copy};
    if (sim->plant == PLANT_LOSE_PROGRESS && copy->type == MSG_PROGRESS && sim_chance(sim, 5)) {
        struct message ack;
        message_init(&ack, MSG_ACK);
        ack.term = sim->term;
        ack.ack.step = copy->progress.step;
        ack.ack.evaluated = -1;
        sim->planted++;
        send_to_agent(sim, id, &ack);
    } else {
        coord_event(sim, &e);
    }
    struct node *n = &sim->node[c->node];
    bool again = m->type == MSG_HELLO && n->last_stopped_set && sim->plant == PLANT_REPLAY_STOPPED;
    if (m->type == MSG_STOPPED) {
        message_copy(&n->last_stopped, m);
        n->last_stopped_set = true;
    }
    if (again) {
        message_copy(copy, &n->last_stopped);
        copy->stopped.round = sim->round;
        sim->planted++;
        coord_event(sim, &e);
    }
    free(copy);
}

/* ---- run ---- */

void run_send_expect(struct sim *sim, rm_time delay)
{
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
    rm_time at = sim->now + delay;
    at = at < sim->coord_cmd_last ? sim->coord_cmd_last : at;
    sim->coord_cmd_last = at;
    sim_at(sim, at, EV_EXPECT, 0, 0, 0)->command = e;
}

static void run_act(struct sim *sim, enum rdzv_cause cause, int worker)
{
    struct rdzv_event *e = calloc(1, sizeof *e);
    if (!e)
        abort();
    e->kind = RDZV_ACT;
    e->act.cause = cause;
    e->act.worker = worker;
    e->act.at = sim->now;
    rm_time at = sim->now;
    at = at < sim->coord_cmd_last ? sim->coord_cmd_last : at;
    sim->coord_cmd_last = at;
    sim_at(sim, at, EV_ACT, 0, 0, 0)->command = e;
}

/* run reaps a child: a drilled one and one that was released are not replaced. */
void run_node_ended(struct sim *sim, int node)
{
    struct node *n = &sim->node[node];
    int w = n->worker;
    if (sim->node_of[w] != node)
        return;
    bool replace = !sim->drilled[w] && n->exit_code != 0 && !sim->ended;
    sim->drilled[w] = false;
    if (!replace) {
        sim->expected[w] = -1;
        sim->node_of[w] = -1;
        run_send_expect(sim, sim_time(sim, 0, RM_MS));
        return;
    }
    sim->expected[w] = n->attempt + 1;
    sim->node_of[w] = -1;
    run_send_expect(sim, sim_time(sim, 0, RM_MS));
    sim_at(sim, sim->now + sim_time(sim, RM_MS, 60 * RM_MS), EV_SPAWN, w, n->attempt + 1, 0);
}

/* Workers that run would call alive and that no drill takes away. */
static int staying(const struct sim *sim)
{
    int n = 0;
    for (int w = 0; w < RM_WORKERS_MAX; w++)
        n += sim->expected[w] >= 0 && !sim->drilled[w];
    return n;
}

static int victim(struct sim *sim)
{
    int list[RM_WORKERS_MAX], n = 0;
    for (int w = 0; w < RM_WORKERS_MAX; w++) {
        bool there = sim->node_of[w] >= 0 && sim->node[sim->node_of[w]].alive;
        if (there && !sim->drilled[w])
            list[n++] = w;
    }
    return n ? list[sim_below(sim, (uint64_t)n)] : -1;
}

static void shoot_join(struct sim *sim)
{
    int w = 0;
    while (w < RM_WORKERS_MAX && (sim->expected[w] >= 0 || sim->node_of[w] >= 0))
        w++;
    if (staying(sim) >= 12 || w >= 16)
        return;
    int attempt = 0;
    for (int i = 0; i < sim->nodes; i++) {
        if (sim->node[i].worker == w && sim->node[i].attempt >= attempt)
            attempt = sim->node[i].attempt + 1;
    }
    sim->expected[w] = attempt;
    sim->drilled[w] = false;
    if (sim_chance(sim, 50))
        run_act(sim, CAUSE_WORKER_JOINED, w);
    run_send_expect(sim, 0);
    sim_at(sim, sim->now + sim_time(sim, RM_MS, 60 * RM_MS), EV_SPAWN, w, attempt, 0);
}

static void shoot_worker(struct sim *sim, enum shot_kind kind, int w)
{
    int node = sim->node_of[w];
    bool goes = kind == SHOT_KILL || kind == SHOT_TERM;
    if (goes && staying(sim) <= sim->scenario.min && !sim->scenario.below_min)
        return;
    sim->drilled[w] = sim->drilled[w] || goes;
    if (kind == SHOT_KILL) {
        run_act(sim, CAUSE_WORKER_LOST, w);
        node_die(sim, node, 137);
    } else if (kind == SHOT_CRASH) {
        node_die(sim, node, 139);
    } else if (kind == SHOT_TERM) {
        run_act(sim, CAUSE_WORKER_LEFT, w);
        struct agent_event e = {.kind = AGENT_TERM};
        node_event(sim, node, &e);
    } else if (sim->node[node].trainer.alive) {
        if (kind == SHOT_TRAINER)
            run_act(sim, CAUSE_TRAINER_EXIT, w);
        trainer_die(sim, node, -1);
    }
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

/* At once, or between two of the actions that it does next. */
static void shoot_coordinator(struct sim *sim)
{
    if (!sim->rdzv || sim->doomed)
        return;
    sim->doomed = true;
    sim->doomed_after = (int)sim_below(sim, 6);
    if (sim->doomed_after == 0)
        coord_die(sim);
}

void run_shot(struct sim *sim, int i)
{
    static const char *const names[SHOTS] = {"kill", "crash", "trainer",   "trainer crash", "term",
                                             "join", "cut",   "interrupt", "zombie",        "coordinator"};
    enum shot_kind kind = sim->scenario.shot[i].kind;
    int w = victim(sim);
    if (sim->ended)
        return;
    sim_trace(sim, "-- shot: %s %d", names[kind], w);
    if (kind == SHOT_JOIN) {
        shoot_join(sim);
    } else if (kind == SHOT_INTERRUPT) {
        struct rdzv_event e = {.kind = RDZV_INTERRUPT};
        sim->interrupted = true;
        coord_event(sim, &e);
    } else if (kind == SHOT_COORDINATOR) {
        shoot_coordinator(sim);
    } else if (w < 0) {
        return;
    } else if (kind == SHOT_CUT) {
        if (sim->node[sim->node_of[w]].conn >= 0)
            conn_cut(sim, sim->node[sim->node_of[w]].conn);
    } else if (kind == SHOT_ZOMBIE) {
        if (sim->node[sim->node_of[w]].heard)
            zombie_word(sim, sim->node_of[w]);
    } else {
        shoot_worker(sim, kind, w);
    }
}
