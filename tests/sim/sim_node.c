/* Agents and trainers as processes: the shells around the shipped cores. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim.h"

const char *const sim_fingerprint[2] = {"simulated", "another"};

static rm_time link_delay(struct sim *sim)
{
    return sim_time(sim, 2 * RM_US, 60 * RM_US);
}

/* ---- trainer ---- */

static void up_message(struct sim *sim, int node, struct message *m)
{
    struct node *n = &sim->node[node];
    message_init(m, MSG_UP);
    m->up.pid = 1000 * (node + 1) + n->trainer.epoch;
    m->up.state = content_state(&n->memory);
    m->up.parameters = 1;
    snprintf(m->up.address, sizeof m->up.address, "%d:%d", node, n->trainer.epoch);
    text_copy(m->up.fingerprint, sizeof m->up.fingerprint, sim_fingerprint[n->odd]);
    text_copy(m->up.data_sha256, sizeof m->up.data_sha256, "d474");
}

void link_to_agent(struct sim *sim, int node, const struct message *m)
{
    struct trainer *t = &sim->node[node].trainer;
    rm_time at = sim->now + link_delay(sim);
    at = at < t->up_last ? t->up_last : at;
    t->up_last = at;
    check_kept(sim, node, m);
    sim_at(sim, at, EV_LINK_TO_AGENT, node, t->epoch, 0)->message = sim_message(m);
}

/* Its last word. */
static bool fails_for_its_machine(struct sim *sim, int node)
{
    struct message m;
    if (!trouble_machine_fails(sim, node))
        return false;
    trouble_say(sim, &m);
    link_to_agent(sim, node, &m);
    trainer_die(sim, node, 4);
    return true;
}

void trainer_opened(struct sim *sim, int node)
{
    struct node *n = &sim->node[node];
    struct message m;
    if (fails_for_its_machine(sim, node))
        return;
    up_message(sim, node, &m);
    n->trainer.opened = true;
    n->trainer.since = sim->now;
    struct elastic_event e = {.kind = ELASTIC_OPENED, .message = &m, .update_step = n->memory.update_step};
    e.loss_known = n->memory.whole && n->memory.loss_known;
    e.loss = content_loss(&n->memory);
    trainer_event(sim, node, &e);
    trainer_pulse(sim, node);
}

/* The first thing a trainer hears; opening and repairing its memory takes a while. */
void trainer_setup(struct sim *sim, int node, const struct message *m)
{
    struct trainer *t = &sim->node[node].trainer;
    struct elastic_settings settings = {.worker = sim->node[node].worker,
                                        .steps = sim->scenario.steps,
                                        .evaluation_every = sim->scenario.evaluation_every,
                                        .checkpoint_every = sim->scenario.checkpoint_every,
                                        .snapshot_busy =
                                            m->setup.snapshot_busy && sim->plant != PLANT_MEMORY_FREE,
                                        .load_busy = m->setup.load_busy && sim->plant != PLANT_MEMORY_FREE};
    elastic_free(t->elastic);
    t->elastic = elastic_open(&settings);
    rm_time at = sim->now + (sim->replay ? sim->replay->start : sim_time(sim, RM_MS, 50 * RM_MS));
    t->down_last = at;
    sim_at(sim, at, EV_OPENED, node, t->epoch, 0);
}

void link_to_trainer(struct sim *sim, int node, const struct message *m)
{
    struct trainer *t = &sim->node[node].trainer;
    if (!t->alive)
        return;
    rm_time at = sim->now + link_delay(sim);
    at = at < t->down_last ? t->down_last : at;
    t->down_last = at;
    sim_at(sim, at, EV_LINK_TO_TRAINER, node, t->epoch, 0)->message = sim_message(m);
}

static bool receives(const struct trainer *t)
{
    return t->command == CMD_RECEIVE || t->command == CMD_CATCH_UP;
}

/* What the link's thread says every heartbeat. While the compute thread waits or computes it counts. */
void trainer_pulse(struct sim *sim, int node)
{
    struct trainer *t = &sim->node[node].trainer;
    struct message m;
    if (!t->alive)
        return;
    if (fails_for_its_machine(sim, node))
        return;
    message_init(&m, MSG_HEARTBEAT);
    bool planted = sim->plant == PLANT_STILL_WAITING && ring_waits_for(sim, node) >= 0;
    bool moves = t->command != CMD_NONE && !t->stuck && !(receives(t) && source_stands(sim, t));
    sim->planted += planted;
    t->counter += moves && !planted;
    t->bytes += moves && receives(t);
    m.heartbeat.step = elastic_held_step(t->elastic);
    m.heartbeat.counter = t->counter;
    int64_t place = ring_place(sim, node);
    sim->planted += sim->plant == PLANT_LEAST_IS_MOST && place >= 0;
    m.heartbeat.bytes = place >= 0 ? place : t->bytes;
    m.heartbeat.phase = elastic_phase(t->elastic);
    m.heartbeat.waiting_for = ring_waits_for(sim, node);
    link_to_agent(sim, node, &m);
    sim_at(sim, sim->now + sim->settings.heartbeat, EV_PULSE, node, t->epoch, 0);
}

void trainer_event(struct sim *sim, int node, const struct elastic_event *event)
{
    struct trainer *t = &sim->node[node].trainer;
    if (!t->alive || !t->elastic)
        return;
    elastic_step(t->elastic, event, sim->eout);
    for (int i = 0; i < sim->eout->count && t->alive; i++) {
        const struct elastic_action *a = &sim->eout->action[i];
        switch (a->kind) {
        case ELASTIC_RUN:
            compute_start(sim, node, a);
            break;
        case ELASTIC_ABORT:
        case ELASTIC_PAUSE:
            compute_abort(sim, node);
            break;
        case ELASTIC_RAISE_STOP:
            t->stop_flag = true;
            break;
        case ELASTIC_SAVE_EVERY:
            t->save_every = sim->plant == PLANT_SAVE_UNSAID ? 0 : a->every;
            sim->planted += sim->plant == PLANT_SAVE_UNSAID;
            break;
        case ELASTIC_RAISE_SAVE:
            t->save_flag = true;
            break;
        case ELASTIC_SEND:
            link_to_agent(sim, node, a->message);
            break;
        case ELASTIC_PROBE:
            pairs_probe(sim, node, &a->message->probe);
            break;
        case ELASTIC_EXIT:
            trainer_die(sim, node, a->exit_code);
            break;
        }
    }
}

/* What was written to the link before the end is still read; the exit is noticed after it. */
void trainer_die(struct sim *sim, int node, int code)
{
    struct trainer *t = &sim->node[node].trainer;
    if (!t->alive)
        return;
    sim_trace(sim, "worker %d's trainer ends with %d", sim->node[node].worker, code);
    ring_left(sim, node);
    t->alive = t->stopped = t->stuck = false;
    pause_forget(&t->inbox);
    t->command = CMD_NONE;
    t->command_seq++;
    rm_time at = sim->now + sim_time(sim, 10 * RM_US, RM_MS);
    at = at < t->up_last ? t->up_last : at;
    sim_at(sim, at, EV_TRAINER_GONE, node, t->epoch, code);
}

/* It is in the state's own record. */
static void only_newest_loss(struct content *c)
{
    c->losses.count = 0;
    if (c->whole && c->loss_known)
        losses_add(&c->losses, c->step, content_loss(c));
}

static void trainer_spawn(struct sim *sim, int node)
{
    struct trainer *t = &sim->node[node].trainer;
    if (t->alive)
        sim_fail(sim, "worker %d starts a second trainer beside a living one", sim->node[node].worker);
    t->epoch++;
    t->alive = true;
    t->opened = false;
    elastic_free(t->elastic);
    t->elastic = NULL;
    t->command = CMD_NONE;
    t->ring = -1;
    t->sum = (struct lane_sum){0};
    t->keep = (struct lane_keep){0};
    t->gives = (struct msg_generation){0};
    sim->node[node].listens = false;
    only_newest_loss(&sim->node[node].memory);
    t->aborted = t->stop_flag = t->save_flag = t->finishing = false;
    t->abort_missed = t->connect_missed = false;
    t->slow = t->save_every = 0;
    t->saved_at = -3600 * RM_S;
    t->down_last = t->up_last = sim->now;
}

/* ---- agent ---- */

static void agent_connect(struct sim *sim, int node)
{
    if (sim->ended || !sim->rdzv || sim->conns == CONNS_MAX) {
        sim_at(sim, sim->now + RM_MS, EV_CONNECT_FAILED, node, 0, 0);
        return;
    }
    int id = sim->conns++;
    sim->conn[id] = (struct conn){
        .node = node, .coord_open = true, .agent_open = true, .cut_coord = RM_NEVER, .cut_agent = RM_NEVER};
    sim_at(sim, sim->now + sim_time(sim, 100 * RM_US, 3 * RM_MS), EV_CONNECTED, node, id, 0);
}

static void agent_send(struct sim *sim, int node, const struct message *m)
{
    int id = sim->node[node].conn;
    if (id < 0)
        return;
    struct conn *c = &sim->conn[id];
    rm_time at = sim->now + sim_time(sim, sim->scenario.delay / 10 + 1, sim->scenario.delay);
    if (sim_chance(sim, 2))
        at += 20 * sim->scenario.delay;
    at = at < c->to_coord_last ? c->to_coord_last : at;
    c->to_coord_last = at;
    if (at <= c->cut_coord)
        sim_at(sim, at, EV_TO_COORD, id, 0, 0)->message = sim_message(m);
    else
        sim->tallies.of[TALLY_MESSAGES_LOST]++;
}

static void agent_arm(struct sim *sim, int node)
{
    struct node *n = &sim->node[node];
    rm_time at = agent_deadline(n->agent);
    if (at == RM_NEVER || !n->alive)
        return;
    at = at <= sim->now ? sim->now + RM_US : at;
    if (at == n->tick_at)
        return;
    n->tick_at = at;
    sim_at(sim, at, EV_AGENT_TICK, node, 0, 0);
}

static void agent_do(struct sim *sim, int node, const struct agent_action *a)
{
    struct message again;
    switch (a->kind) {
    case AGENT_CONNECT:
        agent_connect(sim, node);
        break;
    case AGENT_SEND_CONTROL:
        agent_send(sim, node, a->message);
        if (beside_says_twice(sim, node, a->message, &again))
            agent_send(sim, node, &again);
        break;
    case AGENT_SEND_LINK:
        check_link_term(sim, node, a->message);
        link_to_trainer(sim, node, a->message);
        break;
    case AGENT_SPAWN:
        trainer_spawn(sim, node);
        break;
    case AGENT_KILL:
        trainer_die(sim, node, -1);
        break;
    case AGENT_EXIT:
        sim_trace(sim, "worker %d's agent exits %d: %s", sim->node[node].worker, a->exit_code, a->text);
        notice_ends(sim, node, true);
        node_die(sim, node, a->exit_code);
        break;
    default:
        store_action(sim, node, a);
    }
}

void node_event(struct sim *sim, int node, struct agent_event *event)
{
    struct node *n = &sim->node[node];
    if (!n->alive)
        return;
    agent_step(n->agent, event, sim->now, sim->aout);
    for (int i = 0; i < sim->aout->count && n->alive; i++)
        agent_do(sim, node, &sim->aout->action[i]);
    if (n->alive)
        agent_arm(sim, node);
}

int node_spawn(struct sim *sim, int worker, int attempt, bool stranger)
{
    if (sim->nodes == NODES_MAX) {
        sim_fail(sim, "too many processes were started");
        return -1;
    }
    int node = sim->nodes++;
    struct node *n = &sim->node[node];
    *n = (struct node){
        .alive = true, .stranger = stranger, .worker = worker, .attempt = attempt, .conn = -1, .tick_at = -1};
    /* among pods it may be let in, and go on alone: a cluster with one such machine has more of them */
    struct scenario *s = &sim->scenario;
    s->odd_may_come = s->odd_may_come || s->mixed || (stranger && node % 2 && s->unsupervised);
    n->odd = (stranger && node % 2) || (s->odd_may_come && sim_hash(sim->seed, 2, (uint64_t)node) % 100 < 35);
    n->memory.update_step = -1;
    n->trainer.ring = -1;
    struct agent_settings settings = {.worker = worker,
                                      .attempt = attempt,
                                      .incarnation = (uint64_t)node + 1,
                                      .agent_pid = 1000 * (node + 1),
                                      .heartbeat = sim->settings.heartbeat,
                                      .lost_after =
                                          sim->scenario.unsupervised ? RM_NEVER : sim->settings.lost_after};
    text_copy(settings.job, sizeof settings.job, "sim");
    n->machine = liar_machine(sim, node);
    snprintf(settings.machine, sizeof settings.machine, "machine-%d", n->machine);
    n->agent = agent_open(&settings);
    if (!stranger)
        sim->node_of[worker] = node;
    sim_trace(sim, "%s %d attempt %d starts", stranger ? "a stranger as worker" : "worker", worker, attempt);
    struct agent_event e = {.kind = AGENT_START};
    node_event(sim, node, &e);
    return node;
}

void node_die(struct sim *sim, int node, int exit_code)
{
    struct node *n = &sim->node[node];
    if (!n->alive)
        return;
    sim_trace(sim, "worker %d's agent ends with %d", n->worker, exit_code);
    if (n->stopped || n->trainer.stopped || n->trainer.stuck)
        pause_disturb(sim, node, sim->now); /* word of the end travels */
    n->alive = n->stopped = false;
    n->exit_code = exit_code;
    n->ended_at = sim->now;
    pause_forget(&n->inbox);
    if (n->trainer.alive) {
        ring_left(sim, node);
        n->trainer.alive = n->trainer.stopped = n->trainer.stuck = false;
        n->trainer.command_seq++;
        pause_forget(&n->trainer.inbox);
    }
    if (n->conn >= 0)
        conn_cut(sim, n->conn);
    sim_at(sim, sim->now + sim_time(sim, 0, RM_MS), EV_REAPED, node, 0, 0);
}
