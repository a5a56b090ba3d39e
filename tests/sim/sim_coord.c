/* The coordinator's shell and its connections. */
#include <stdlib.h>
#include <string.h>

#include "coordinator/core/rdzv_state.h"
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
    else
        sim->tallies.of[TALLY_MESSAGES_LOST]++;
}

/* Nothing arrives for a while, in one direction or in both; then all does. */
void conn_silence(struct sim *sim, int id, rm_time how_long)
{
    struct conn *c = &sim->conn[id];
    rm_time until = sim->now + how_long;
    int which = (int)sim_below(sim, 3);
    if (which != 1 && c->to_coord_last < until)
        c->to_coord_last = until;
    if (which != 2 && c->to_agent_last < until)
        c->to_agent_last = until;
    pause_disturb(sim, c->node, until);
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
    pairs_ended(sim);
    sim_trace(sim, "coordinator ends with %d: %s", a->end.exit_code, a->end.why);
    for (int i = 0; i < sim->conns; i++)
        close_by_coord(sim, i);
    run_ended(sim);
}

static void do_send(struct sim *sim, const struct rdzv_action *a)
{
    const struct message *m = a->send.message;
    if (a->send.count)
        sim_trace_message(sim, "C", sim->conn[a->send.conn[0]].node, m);
    if (m->type == MSG_FORM)
        check_form(sim, m);
    if (m->type == MSG_FORM)
        saves_check_form(sim, &m->form);
    if (m->type == MSG_SAVE_EVERY)
        saves_check_sent(sim, m->save_every.every);
    if (m->type == MSG_STOP)
        sim->round = m->stop.round;
    if (m->type == MSG_STOP && rdzv_state(sim->rdzv) == RDZV_QUIESCING && a->send.count)
        sim->stopped_at = m->stop.at;
    if (m->type == MSG_SAVE)
        still_save(sim, &m->save);
    sim->tallies.of[TALLY_SAVED_AHEAD] += m->type == MSG_SAVE && !m->save.count;
    if (m->type == MSG_PUBLISH)
        check_publish(sim, &m->publish);
    if (m->type == MSG_FAULT && m->fault.kind == FAULT_HANG && a->send.count)
        check_blame(sim, sim->conn[a->send.conn[0]].node);
    sim->tallies.of[TALLY_REFUSED] += m->type == MSG_ABANDON;
    for (int i = 0; i < a->send.count && m->type == MSG_RELEASE && !m->release.over; i++) {
        liar_check_release(sim, sim->conn[a->send.conn[i]].node);
        sim->conn[a->send.conn[i]].brings = -1; /* others held as much as it then */
    }
    for (int i = 0; i < a->send.count; i++)
        send_to_agent(sim, a->send.conn[i], m);
}

/* Nothing that a core decides hangs on it: its own look at the end of the turn has to find it. */
static void plant_impossible(struct sim *sim)
{
    struct rdzv *st = sim->rdzv;
    if (sim->plant != PLANT_IMPOSSIBLE || rdzv_state(st) != RDZV_TRAINING)
        return;
    sim->planted++;
    st->worker[st->member[0]].stopped_round = st->round + 1;
}

void coord_event(struct sim *sim, const struct rdzv_event *event)
{
    if (sim->ended || !sim->rdzv)
        return;
    enum rdzv_state before = rdzv_state(sim->rdzv);
    plant_impossible(sim);
    rdzv_step(sim->rdzv, event, sim->now, sim->rout);
    if (rdzv_state(sim->rdzv) != before)
        sim_trace(sim, "C %s -> %s: %s", rdzv_state_name(before), rdzv_state_name(rdzv_state(sim->rdzv)),
                  rdzv_why(sim->rdzv));
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
            check_tell(sim, a->tell);
        else
            end(sim, a);
    }
    arm(sim);
}

/* What it sent arrives; what was on its way to it does not. Had it spoken its last word, run ends. */
void coord_die(struct sim *sim)
{
    sim_trace(sim, "the coordinator dies in %s", rdzv_state_name(rdzv_state(sim->rdzv)));
    sim->coord_disturbed =
        sim->coord_stopped ? sim->now : sim->coord_disturbed; /* it heard nothing till now */
    sim->doomed = sim->coord_stopped = false;
    pause_forget(&sim->coord_inbox);
    for (int i = 0; i < sim->conns; i++) {
        close_by_coord(sim, i);
        sim->conn[i].coord_told = true;
    }
    if (sim->last_word >= 0) {
        sim->ended = true;
        sim->ended_at = sim->now;
        sim->exit_code = sim->last_word;
        run_ended(sim);
        return;
    }
    sim->settings.predecessor.lost_at = sim->now;
    rdzv_free(sim->rdzv);
    sim->rdzv = NULL;
    sim->losses++;
    sim_at(sim, sim->now + sim_time(sim, RM_MS, 60 * RM_MS), EV_COORD_START, 0, 0, 0);
}

/* Who said so to the one before, and was heard, may not be there to say it again. */
static void forget_doubts(struct sim *sim)
{
    for (int i = 0; i < sim->nodes; i++)
        sim->node[i].memory.doubted = false;
}

void coord_start(struct sim *sim)
{
    struct rdzv_predecessor *h = &sim->settings.predecessor;
    int64_t shown = sim->told > 0 ? sim->told : -1;
    h->given = true;
    h->told = shown > sim->ring_told ? shown : sim->ring_told;
    h->evaluated = sim->evaluated_told;
    h->saved = sim->saved_told;
    sim->settings.term = ++sim->term;
    sim->rdzv = rdzv_open(&sim->settings, sim->now);
    sim->coord_tick_at = -1;
    sim_trace(sim, "a coordinator of term %d starts", (int)sim->term);
    forget_doubts(sim);
    arm(sim);
    run_send_expect(sim);
    run_forgets_quarantine(sim);
    if (sim->interrupted) {
        struct rdzv_event e = {.kind = RDZV_INTERRUPT};
        coord_event(sim, &e);
    }
}

/* Said again in the name of every other worker. */
static void plant_one_for_all(struct sim *sim, const struct message *m)
{
    for (int i = 0; i < sim->conns; i++) {
        struct rdzv_event e = {.kind = RDZV_MESSAGE, .conn = i, .message = m};
        if (sim->conn[i].handed && sim->conn[i].coord_open && !sim->conn[i].coord_told)
            coord_event(sim, &e);
    }
}

/* Of who can't be reached. */
static void plant_in_fault(struct sim *sim, struct msg_fault *f)
{
    if (f->kind != FAULT_RING || f->peer < 0)
        return;
    if (sim->plant == PLANT_BLAME_NOBODY)
        f->peer = -1;
    else if (sim->plant == PLANT_BLAME_ANOTHER)
        f->peer = (f->peer + 1) % sim->scenario.target;
    else
        return;
    sim->planted++;
}

static void plant_in_message(struct sim *sim, struct message *m)
{
    if (sim->plant == PLANT_ONE_FOR_ALL && m->type == MSG_FAULT && m->fault.kind == FAULT_MACHINE)
        plant_one_for_all(sim, m);
    if (sim->plant == PLANT_LOWER_STEP && m->type == MSG_STOPPED && m->stopped.state.held &&
        m->stopped.state.step > 2) {
        m->stopped.state.step--;
        m->stopped.update_step = -1;
        sim->planted++;
    }
    if (m->type == MSG_FAULT)
        plant_in_fault(sim, &m->fault);
    if (sim->plant == PLANT_NO_TIME && m->type == MSG_LEAVING && m->leaving.trains_on) {
        m->leaving.trains_on = false;
        sim->planted++;
    }
    if (sim->plant == PLANT_MACHINE_UNSAID && m->type == MSG_NOTICED && m->noticed.machine[0]) {
        m->noticed.machine[0] = 0;
        sim->planted++;
    }
    if (sim->plant == PLANT_ANOTHER_FACE && m->type == MSG_STOPPED && m->stopped.trainer_pid)
        m->stopped.trainer_pid += 1000000 * ++sim->planted;
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

static void plant_replay(struct sim *sim, struct node *n, const struct rdzv_event *e, struct message *copy,
                         const struct message *m)
{
    if (m->type == MSG_STOPPED) {
        free(n->last_stopped);
        n->last_stopped = sim_message(m);
    }
    if (m->type != MSG_HELLO || !n->last_stopped)
        return;
    message_copy(copy, n->last_stopped);
    copy->stopped.round = sim->round;
    sim->planted++;
    coord_event(sim, e);
}

static void note_what_it_brings(struct sim *sim, struct conn *c, const struct message *m)
{
    if (m->type == MSG_HELLO) {
        c->brings = m->hello.state.held ? m->hello.state.step : -1;
        c->brings_said = sim->now;
        c->introduced = m->hello.trainer_pid != 0;
    } else if (m->type == MSG_STOPPED && m->stopped.round == sim->round) {
        c->brings = -1;
    } else if (m->type == MSG_LEAVING) {
        sim->node[c->node].leaves_by = m->leaving.deadline > 0 ? sim->now + m->leaving.deadline : 0;
    }
}

void coord_message(struct sim *sim, int id, const struct message *m)
{
    struct conn *c = &sim->conn[id];
    if (!c->coord_open || c->coord_told) {
        sim->tallies.of[TALLY_MESSAGES_LOST]++;
        return;
    }
    sim_trace_message(sim, "  C hears", c->node, m);
    c->handed = true;
    note_what_it_brings(sim, c, m);
    if (sim->plant == PLANT_WAITS_UNSAID && m->type == MSG_SAVE_WAITS) {
        sim->planted++;
        return;
    }
    if (sim->plant == PLANT_STUCK_UNSAID && m->type == MSG_FAULT && m->fault.lasted) {
        sim->planted++;
        return;
    }
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
    if (sim->plant == PLANT_REPLAY_STOPPED)
        plant_replay(sim, &sim->node[c->node], &e, copy, m);
    free(copy);
}
