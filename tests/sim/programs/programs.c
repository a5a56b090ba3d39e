/* sim-programs [--seeds A..B] [--frozen] [--trace] [--plant BUG --expect-found]
 *
 * The seeded simulator of jobs that run a user's program: the shipped cores of coordinator, agents and
 * launchers in virtual time, as in pods. Around them are models: a network that delays, keeps the order
 * within a connection and cuts machines off; machines that die and are replaced; processes that end well,
 * fail, ignore SIGTERM, and take a while to die. What must hold is seen from outside: when a generation
 * starts, no process of another one lives on any machine that could be told (who was not heard of for
 * lostAfter when all were told to start is excused), and none at all on this one; who says complete has all
 * processes of its last generation ended with 0; a job's first generation is number 0, and no other; and
 * whatever happens, once harm is over the job ends. One seed decides all chance. Exit 0: none failed (with
 * --expect-found: at least one did). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/prng.h"
#include "tests/sim/programs/programs.h"

static const rm_time heartbeat = 200 * RM_MS, lost_after = SIM_LOST_AFTER, form_timeout = 2 * RM_S;
static const rm_time stuck_most = 12 * RM_S; /* longer than anybody is given to answer a stop */
static const rm_time harm_until = 20 * RM_S, all_over = 300 * RM_S;
static const char *const plants[PLANTS] = {
    "", "gone-early", "count-anew", "left-behind", "notice-late", "withdrawal-unsaid", "runs-on", "unfenced"};

static struct rdzv_out *coordinator_out;
static struct agent_out *agent_out;
static struct launch_out *launch_out;

/* ---- chance, time, trace ---- */

static rm_time between(struct sim *sim, rm_time least, rm_time most)
{
    return least + (rm_time)prng_below(&sim->chance, (uint64_t)(most - least) + 1);
}

static bool one_in(struct sim *sim, uint64_t n)
{
    return prng_below(&sim->chance, n) == 0;
}

static bool harm_is_over(const struct sim *sim)
{
    return sim->now >= harm_until;
}

static void trace(const struct sim *sim, const char *who, int node, const struct message *m)
{
    char text[600];
    if (!sim->trace || m->type == MSG_HEARTBEAT)
        return;
    message_describe(m, text, sizeof text);
    printf("%9.4f %s %d %s\n", (double)sim->now / RM_S, who, node, text);
}

struct ev *add(struct sim *sim, rm_time at, enum kind kind, int a, int b)
{
    if (sim->queued == QUEUE_MAX) {
        fprintf(stderr, "the queue is full\n");
        abort();
    }
    struct ev *e = &sim->queue[sim->queued++];
    *e =
        (struct ev){.at = at > sim->now ? at : sim->now + 1, .seq = sim->seq++, .kind = kind, .a = a, .b = b};
    return e;
}

static struct message *copy(const struct message *m)
{
    struct message *made = malloc(sizeof *made);
    if (!made)
        abort();
    message_copy(made, m);
    return made;
}

/* In order within one direction of one connection. */
static rm_time in_order(struct sim *sim, rm_time *last, rm_time most)
{
    rm_time at = sim->now + between(sim, 20 * RM_US, most);
    return *last = at > *last ? at : *last + 1;
}

/* ---- launcher ---- */

static void end_after(struct sim *sim, int node, int which, rm_time after, int code)
{
    struct process *p = &sim->node[node].process[which];
    struct ev *e = add(sim, sim->now + after, PROCESS_ENDS, node, p->number);
    e->c = which * 256 + code;
}

/* Who calls in vain says so after a while; the others wait for it in the rendezvous. */
static void plan_parted(struct sim *sim, int node, int which)
{
    if (sim->node[node].worker == sim->wall.from)
        end_after(sim, node, which, between(sim, 20 * RM_MS, 3 * RM_S), FAILS);
}

/* Most work until harm is over; some are done sooner, and some fail. */
static void plan_end(struct sim *sim, int node, int which)
{
    if (wall_parts(sim, node)) {
        plan_parted(sim, node, which);
        return;
    }
    bool fails = !harm_is_over(sim) && one_in(sim, 12), soon = harm_is_over(sim) || one_in(sim, 12);
    fails = fails && !sim->notices.calm;
    soon = soon && (harm_is_over(sim) || !sim->notices.calm);
    rm_time takes = between(sim, 20 * RM_MS, 3 * RM_S);
    if (fails)
        end_after(sim, node, which, takes, one_in(sim, 2) ? FAILS : SPARED);
    else
        end_after(sim, node, which, soon ? takes : harm_until - sim->now + takes, 0);
}

static void start_processes(struct sim *sim, int node)
{
    struct node *n = &sim->node[node];
    struct launch_ring ring = *launch_ring_of(n->launch);
    if (sim->plant == PLANT_COUNT_ANEW && ring.generation.n == 1)
        ring.begun = 0;
    check_start(sim, node, &ring);
    for (int i = 0; i < PROCESSES; i++) {
        n->process[i] = (struct process){.alive = true,
                                         .stuck = sim->stuck && one_in(sim, 4),
                                         .launcher = n->launcher,
                                         .generation = ring.generation,
                                         .number = ++sim->started};
        plan_end(sim, node, i);
    }
    frozen_starts(sim, node);
}

static void term_processes(struct sim *sim, int node)
{
    struct node *n = &sim->node[node];
    for (int i = 0; i < PROCESSES; i++)
        if (n->process[i].alive && !n->process[i].stuck && !one_in(sim, 3))
            end_after(sim, node, i, between(sim, RM_MS, sim->grace), one_in(sim, 2) ? 0 : 143);
}

/* When the last of them is dead: all die within 30 ms, but for those that are stuck. */
static rm_time all_die_at(struct sim *sim, int node)
{
    rm_time last = sim->now;
    for (int i = 0; i < PROCESSES; i++) {
        struct process *p = &sim->node[node].process[i];
        if (!p->alive)
            continue;
        if (!p->dies_at) {
            p->dies_at = sim->now + between(sim, RM_MS, p->stuck ? stuck_most : 30 * RM_MS);
            end_after(sim, node, i, p->dies_at - sim->now, 137);
        }
        last = rm_later(last, p->dies_at);
    }
    return last;
}

/* All die, and what they left behind; then that is told. */
static void kill_processes(struct sim *sim, int node)
{
    struct node *n = &sim->node[node];
    bool early = sim->plant == PLANT_GONE_EARLY && one_in(sim, 20);
    for (int i = 0; early && i < PROCESSES; i++)
        n->process[i].stuck = true;
    rm_time last = all_die_at(sim, node);
    add(sim, (early ? sim->now : last) + RM_MS, PROCESSES_GONE, node, n->launcher)->c = early;
}

static void link_to_agent(struct sim *sim, int node, const struct message *m)
{
    struct node *n = &sim->node[node];
    add(sim, in_order(sim, &n->link_up_at, 200 * RM_US), LINK_TO_AGENT, node, n->launcher)->message = copy(m);
}

static void launcher_acts(struct sim *sim, int node, const struct launch_action *a, bool *port)
{
    struct node *n = &sim->node[node];
    switch (a->kind) {
    case LAUNCH_SEND:
        note_failure(sim, node, a->message);
        link_to_agent(sim, node, a->message);
        break;
    case LAUNCH_CHOOSE_PORT:
        *port = true;
        break;
    case LAUNCH_START:
        start_processes(sim, node);
        break;
    case LAUNCH_TERM:
        term_processes(sim, node);
        break;
    case LAUNCH_KILL:
        kill_processes(sim, node);
        break;
    case LAUNCH_DUMP:
    case LAUNCH_FREEZE:
        break; /* no program of these is frozen */
    case LAUNCH_EXIT:
        add(sim, sim->now + RM_MS, LAUNCHER_EXIT, node, n->launcher);
        break;
    }
}

static void launcher_event(struct sim *sim, int node, const struct launch_event *event)
{
    struct node *n = &sim->node[node];
    bool port = false;
    launch_step(n->launch, event, sim->now, launch_out);
    for (int i = 0; i < launch_out->count; i++)
        launcher_acts(sim, node, &launch_out->action[i], &port);
    if (port) {
        struct launch_event chosen = {.kind = LAUNCH_PORT};
        snprintf(chosen.text, sizeof chosen.text, "10.0.0.%d:%d", node, ++sim->port);
        launcher_event(sim, node, &chosen);
    }
    rm_time at = launch_deadline(n->launch);
    if (at != n->launcher_ticks_at)
        add(sim, n->launcher_ticks_at = at, LAUNCHER_TICK, node, n->launcher);
}

static void launcher_hears(struct sim *sim, int node, const struct message *m)
{
    struct node *n = &sim->node[node];
    if (m->type == MSG_SETUP) {
        struct launch_settings settings = {.worker = n->worker,
                                           .processes = PROCESSES,
                                           .pid = 1000 * (node + 1) + n->launcher,
                                           .grace = sim->grace,
                                           .heartbeat = heartbeat,
                                           .lineage = {7}};
        n->launch = launch_open(&settings, sim->now);
        launcher_event(sim, node, &(struct launch_event){.kind = LAUNCH_GONE});
        return;
    }
    if (m->type == MSG_HOLD)
        frozen_held(sim, node, m->hold.holds);
    launcher_event(sim, node,
                   m->type == MSG_HOLD ? &(struct launch_event){.kind = LAUNCH_HELD, .held = m->hold.holds}
                                       : &(struct launch_event){.kind = LAUNCH_LINK, .message = m});
}

static void launcher_dies(struct sim *sim, int node)
{
    struct node *n = &sim->node[node];
    launch_free(n->launch);
    n->launch = NULL;
    n->launcher_alive = n->frozen = false;
}

static void process_ends(struct sim *sim, int node, int number, int which, int code)
{
    struct node *n = &sim->node[node];
    struct process *p = &n->process[which];
    if (!p->alive || p->number != number)
        return;
    p->alive = false;
    if (code == 0)
        sim->done[p->generation.term % TERMS_MAX][p->generation.n % 256]++;
    if (!n->launch || n->launcher != p->launcher || n->frozen)
        return;
    struct launch_event e = {.kind = LAUNCH_ENDED, .local = which, .code = code};
    snprintf(e.text, sizeof e.text, "exit code %d", code);
    launcher_event(sim, node, &e);
}

/* early: the planted bug, where they are told to be gone and live on. */
static void processes_gone(struct sim *sim, int node, bool early)
{
    struct node *n = &sim->node[node];
    for (int i = 0; early && n->launch && i < PROCESSES; i++) {
        if (!n->process[i].alive)
            continue;
        launcher_event(sim, node, &(struct launch_event){.kind = LAUNCH_ENDED, .local = i, .code = 137});
    }
    if (n->launch)
        launcher_event(sim, node, &(struct launch_event){.kind = LAUNCH_GONE});
}

/* ---- agent ---- */

static void close_connection(struct sim *sim, int node)
{
    struct node *n = &sim->node[node];
    if (n->conn < 0)
        return;
    add(sim, in_order(sim, &n->to_coordinator_at, 2 * RM_MS), CLOSED_AT_COORDINATOR, node, n->conn);
    n->conn = -1;
    frozen_forgets(sim, node);
}

/* With all that is on it, at once. */
void node_dies(struct sim *sim, int node, bool silently)
{
    struct node *n = &sim->node[node];
    if (!n->alive)
        return;
    n->alive = false;
    launcher_dies(sim, node);
    for (int i = 0; i < PROCESSES; i++)
        n->process[i].alive = false;
    if (!silently)
        close_connection(sim, node);
    agent_free(n->agent);
    n->agent = NULL;
    sim->taken[n->worker] = !n->replaced;
    if (!sim->over && !n->replaced && !sim->frozen.on)
        add(sim, sim->now + between(sim, 100 * RM_MS, 3 * RM_S), NODE_STARTS, n->worker, n->attempt + 1);
    notice_makes_owed(sim);
}

static void disconnect(struct sim *sim, int node)
{
    struct node *n = &sim->node[node];
    frozen_forgets(sim, node);
    if (n->conn < 0)
        return;
    add(sim, in_order(sim, &n->to_agent_at, 2 * RM_MS), CLOSED_AT_AGENT, node, n->conn);
}

static void break_connection(struct sim *sim, int node)
{
    struct node *n = &sim->node[node];
    if (n->conn < 0)
        return;
    disconnect(sim, node);
    add(sim, in_order(sim, &n->to_coordinator_at, 2 * RM_MS), CLOSED_AT_COORDINATOR, node, n->conn);
}

static void connect_agent(struct sim *sim, int node)
{
    struct node *n = &sim->node[node];
    bool there = sim->rdzv && !n->cut;
    n->to_agent_at = n->to_coordinator_at = sim->now;
    n->conn = there ? ++sim->conns : -1;
    add(sim, in_order(sim, &n->to_agent_at, 2 * RM_MS), there ? CONNECTED : CLOSED_AT_AGENT, node, n->conn);
}

static void agent_acts(struct sim *sim, int node, const struct agent_action *a)
{
    struct node *n = &sim->node[node];
    switch (a->kind) {
    case AGENT_CONNECT:
        connect_agent(sim, node);
        break;
    case AGENT_HANG_UP:
        break_connection(sim, node);
        break;
    case AGENT_SEND_CONTROL:
        trace(sim, "agent", node, a->message);
        if (n->conn >= 0 && !n->cut)
            add(sim, in_order(sim, &n->to_coordinator_at, 2 * RM_MS), TO_COORDINATOR, node, n->conn)
                ->message = copy(a->message);
        break;
    case AGENT_SEND_LINK:
        add(sim, in_order(sim, &n->link_down_at, 200 * RM_US), LINK_TO_LAUNCHER, node, n->launcher)->message =
            copy(a->message);
        break;
    case AGENT_SPAWN:
        n->launcher++;
        n->launcher_alive = true;
        n->launcher_ticks_at = RM_NEVER;
        break;
    case AGENT_KILL:
        add(sim, sim->now, LAUNCHER_EXIT, node, n->launcher);
        break;
    case AGENT_EXIT:
        notice_ends(sim, node, true);
        node_dies(sim, node, false);
        break;
    default:
        violate(sim, "an agent of a job without a store asks one (action %d)", (int)a->kind);
    }
}

void agent_event(struct sim *sim, int node, const struct agent_event *event)
{
    struct node *n = &sim->node[node];
    agent_step(n->agent, event, sim->now, agent_out);
    for (int i = 0; i < agent_out->count && n->alive; i++)
        agent_acts(sim, node, &agent_out->action[i]);
    if (!n->alive)
        return;
    rm_time at = agent_deadline(n->agent);
    if (at != n->ticks_at && at != RM_NEVER)
        add(sim, n->ticks_at = at, AGENT_TICKS, node, 0);
}

/* Its agent takes in what it leaves behind, ends that, and goes on when nothing of it lives. */
static void launcher_exits(struct sim *sim, int node)
{
    launcher_dies(sim, node);
    rm_time last = all_die_at(sim, node);
    if (sim->plant == PLANT_LEFT_BEHIND)
        last = rm_earlier(last, sim->now + lost_after / 2);
    add(sim, last + 1, LEFT_GONE, node, sim->node[node].launcher);
}

static void left_gone(struct sim *sim, int node, int launcher)
{
    struct agent_event e = {.kind = AGENT_TRAINER_EXIT, .code = -1};
    const struct node *n = &sim->node[node];
    if (!n->alive || n->launcher != launcher)
        return;
    text_copy(e.text, sizeof e.text, "killed by signal 9");
    agent_event(sim, node, &e);
}

static void node_starts(struct sim *sim, int worker, int attempt)
{
    if (sim->over || sim->nodes == NODES_MAX || notice_bars(sim, worker))
        return;
    int node = sim->nodes++;
    sim->taken[worker] = true;
    sim->attempt[worker] = attempt;
    struct node *n = &sim->node[node];
    struct agent_settings settings = {.job = "p",
                                      .worker = worker,
                                      .attempt = attempt,
                                      .incarnation = splitmix64(&sim->chance),
                                      .agent_pid = 1 + node,
                                      .heartbeat = heartbeat,
                                      .lost_after = RM_NEVER,
                                      .launcher = true,
                                      .retry_first = 20 * RM_MS,
                                      .retry_most = 300 * RM_MS};
    *n = (struct node){.alive = true, .worker = worker, .attempt = attempt, .conn = -1, .ticks_at = RM_NEVER};
    n->agent = agent_open(&settings);
    frozen_made(sim, node);
    agent_event(sim, node, &(struct agent_event){.kind = AGENT_START});
}

/* ---- coordinator ---- */

static int node_of(const struct sim *sim, int conn)
{
    for (int k = 0; k < sim->nodes; k++)
        if (sim->node[k].alive && sim->node[k].conn == conn)
            return k;
    return -1;
}

static void coordinator_dies(struct sim *sim)
{
    rdzv_free(sim->rdzv);
    sim->rdzv = NULL;
    for (int k = 0; k < sim->nodes; k++) {
        if (sim->node[k].alive)
            disconnect(sim, k);
    }
}

void coordinator_goes(struct sim *sim, rm_time away)
{
    coordinator_dies(sim);
    add(sim, sim->now + away, COORDINATOR_STARTS, 0, 0);
}

static void coordinator_acts(struct sim *sim, const struct rdzv_action *a)
{
    check_action(sim, a);
    for (int i = 0; a->kind == RDZV_SEND && i < a->send.count; i++) {
        int node = node_of(sim, a->send.conn[i]);
        if (node < 0 || sim->node[node].cut)
            continue;
        trace(sim, "coordinator", node, a->send.message);
        frozen_told(sim, node, a->send.message);
        add(sim, in_order(sim, &sim->node[node].to_agent_at, 2 * RM_MS), TO_AGENT, node, a->send.conn[i])
            ->message = copy(a->send.message);
    }
    if (a->kind == RDZV_CLOSE && node_of(sim, a->close) >= 0)
        disconnect(sim, node_of(sim, a->close));
    if (a->kind == RDZV_END) {
        sim->over = true;
        sim->exit_code = a->end.exit_code;
        text_copy(sim->end_why, sizeof sim->end_why, a->end.why);
    }
}

void coordinator_event(struct sim *sim, const struct rdzv_event *event)
{
    rdzv_step(sim->rdzv, event, sim->now, coordinator_out);
    for (int i = 0; i < coordinator_out->count; i++)
        coordinator_acts(sim, &coordinator_out->action[i]);
    if (sim->over) {
        check_end(sim);
        return;
    }
    rm_time at = rdzv_deadline(sim->rdzv);
    if (at != sim->tick_at && at != RM_NEVER)
        add(sim, sim->tick_at = at, COORDINATOR_TICK, (int)sim->term, 0);
}

static void coordinator_starts(struct sim *sim)
{
    sim->settings.term = ++sim->term;
    sim->settings.predecessor = (struct rdzv_predecessor){
        .given = sim->term > 1, .told = -1, .evaluated = -1, .saved = -1, .begun = sim->term > 1};
    sim->settings.attempt_least = sim->frozen.on ? sim->attempt[0] : 0;
    sim->tick_at = RM_NEVER;
    memset(sim->failures, 0, sizeof sim->failures); /* what its predecessor was told nobody knows */
    notice_forgets(sim);
    sim->rdzv = rdzv_open(&sim->settings, sim->now);
    coordinator_event(sim, &(struct rdzv_event){.kind = RDZV_TICK});
}

/* ---- harm ---- */

static void cut(struct sim *sim, int node)
{
    struct node *n = &sim->node[node];
    if (n->cut)
        return;
    n->cut = true;
    add(sim, sim->now + between(sim, 100 * RM_MS, 3 * RM_S), UNCUT, node, 0);
}

/* Both ends see its connection break, and it can be reached again before anybody may count it as lost. */
static void blip(struct sim *sim, int node)
{
    if (sim->node[node].cut)
        return;
    break_connection(sim, node);
    sim->node[node].cut = true;
    add(sim, sim->now + between(sim, RM_MS, lost_after / 2), UNCUT, node, 0);
}

static void harm(struct sim *sim)
{
    int node = (int)prng_below(&sim->chance, (uint64_t)sim->nodes);
    struct node *n = &sim->node[node];
    struct agent_event leave = {.kind = AGENT_TERM, .deadline = between(sim, 2 * RM_S, 10 * RM_S)};
    if (!harm_is_over(sim))
        add(sim, sim->now + between(sim, 50 * RM_MS, 4 * RM_S), HARM, 0, 0);
    uint64_t what = prng_below(&sim->chance, 7);
    if (what == 4 && sim->rdzv && sim->term < TERMS_MAX - 1)
        coordinator_goes(sim, between(sim, 50 * RM_MS, 2 * RM_S));
    if (!n->alive || what == 4)
        return;
    sim->harms++;
    if (what == 0)
        node_dies(sim, node, one_in(sim, 3));
    else if (what == 1 && n->launcher_alive)
        add(sim, sim->now, LAUNCHER_EXIT, node, n->launcher);
    else if (what == 2)
        agent_event(sim, node, &leave);
    else if (what == 3)
        cut(sim, node);
    else if (what == 5)
        n->frozen = n->frozen || (n->launcher_alive && one_in(sim, 3));
    else if (what == 6)
        blip(sim, node);
}

static void uncut(struct sim *sim, int node)
{
    struct node *n = &sim->node[node];
    n->cut = false;
    if (n->alive)
        break_connection(sim, node); /* what was lost meanwhile breaks the connection */
}

/* ---- the run ---- */

/* Who was not heard of for so long is lost, and counts again from its next hello on. */
static void note_heard(struct sim *sim, struct node *n, const struct ev *e)
{
    bool hello = e->message && e->message->type == MSG_HELLO;
    if (hello || sim->now < n->heard_at + lost_after)
        n->heard_at = sim->now;
}

static void to_coordinator(struct sim *sim, const struct ev *e)
{
    if (!sim->rdzv)
        return;
    note_heard(sim, &sim->node[e->a], e);
    if (e->message)
        notice_noted(sim, e->a, e->message);
    if (e->kind == CLOSED_AT_COORDINATOR)
        coordinator_event(sim, &(struct rdzv_event){.kind = RDZV_CLOSED, .conn = e->b});
    else
        coordinator_event(sim,
                          &(struct rdzv_event){.kind = RDZV_MESSAGE, .conn = e->b, .message = e->message});
}

static void to_agent(struct sim *sim, const struct ev *e)
{
    struct node *n = &sim->node[e->a];
    struct agent_event event = {.message = e->message};
    if (!n->alive || (e->b && e->b != n->conn))
        return;
    event.kind = e->kind == CONNECTED  ? AGENT_CONNECTED
                 : e->kind == TO_AGENT ? AGENT_CONTROL
                                       : AGENT_DISCONNECTED;
    if (event.kind == AGENT_DISCONNECTED)
        n->conn = -1;
    agent_event(sim, e->a, &event);
}

static void to_launcher(struct sim *sim, const struct ev *e)
{
    struct node *n = &sim->node[e->a];
    if (!n->alive || n->launcher != e->b || !n->launcher_alive || (n->frozen && e->kind != LAUNCHER_EXIT))
        return;
    if (e->kind == LINK_TO_AGENT)
        agent_event(sim, e->a, &(struct agent_event){.kind = AGENT_LINK, .message = e->message});
    else if (e->kind == LAUNCHER_EXIT)
        launcher_exits(sim, e->a);
    else if (e->kind == PROCESSES_GONE)
        processes_gone(sim, e->a, e->c);
    else if (e->kind == LINK_TO_LAUNCHER && (n->launch || e->message->type == MSG_SETUP))
        launcher_hears(sim, e->a, e->message);
    else if (e->kind == LAUNCHER_TICK && n->launch && e->at >= n->launcher_ticks_at) {
        n->launcher_ticks_at = RM_NEVER;
        launcher_event(sim, e->a, &(struct launch_event){.kind = LAUNCH_TICK});
    }
}

static void dispatch(struct sim *sim, const struct ev *e)
{
    struct node *n = &sim->node[e->a < NODES_MAX ? e->a : 0];
    switch (e->kind) {
    case TO_COORDINATOR:
    case CLOSED_AT_COORDINATOR:
        to_coordinator(sim, e);
        break;
    case TO_AGENT:
    case CONNECTED:
    case CLOSED_AT_AGENT:
        to_agent(sim, e);
        break;
    case PROCESS_ENDS:
        if (!frozen_waits(sim, e))
            process_ends(sim, e->a, e->b, e->c / 256, e->c % 256);
        break;
    case LEFT_GONE:
        left_gone(sim, e->a, e->b);
        break;
    case COORDINATOR_TICK:
        if (sim->rdzv && sim->term == e->a && e->at >= sim->tick_at) {
            sim->tick_at = RM_NEVER;
            coordinator_event(sim, &(struct rdzv_event){.kind = RDZV_TICK});
        }
        break;
    case AGENT_TICKS:
        if (n->alive && e->at >= n->ticks_at) {
            n->ticks_at = RM_NEVER;
            agent_event(sim, e->a, &(struct agent_event){.kind = AGENT_TICK});
        }
        break;
    case COORDINATOR_STARTS:
        coordinator_starts(sim);
        break;
    case NODE_STARTS:
        node_starts(sim, e->a, e->b);
        break;
    case HARM:
        harm(sim);
        break;
    case UNCUT:
        uncut(sim, e->a);
        break;
    case NOTICE:
    case NOTICE_HEARD:
    case MACHINE_GOES:
    case EASE:
        notice_happens(sim, e);
        break;
    default:
        if (e->kind >= FROZEN_LOOK && e->kind <= FROZEN_PUBLISH)
            frozen_happens(sim, e);
        else
            to_launcher(sim, e);
    }
}

static struct ev take_first(struct sim *sim)
{
    int first = 0;
    for (int i = 1; i < sim->queued; i++) {
        const struct ev *a = &sim->queue[i], *b = &sim->queue[first];
        if (a->at < b->at || (a->at == b->at && a->seq < b->seq))
            first = i;
    }
    struct ev e = sim->queue[first];
    sim->queue[first] = sim->queue[--sim->queued];
    return e;
}

static void settle_scenario(struct sim *sim)
{
    struct rdzv_settings *s = &sim->settings;
    *s = (struct rdzv_settings){.workers_min = 1 + (int)prng_below(&sim->chance, 2),
                                .workers_max = WORKERS + 1,
                                .workers_target = WORKERS,
                                .lanes = WORKERS + 1,
                                .steps = 1,
                                .join_window = 300 * RM_MS,
                                .heartbeat = heartbeat,
                                .lost_after = lost_after,
                                .form_timeout = form_timeout,
                                .start_timeout = 60 * RM_S,
                                .max_restarts = one_in(sim, 4) ? 0 : 50,
                                .within = 3600 * RM_S,
                                .end_timeout = RM_S,
                                .program = true,
                                .unsupervised = true};
    text_copy(s->job, sizeof s->job, "p");
    s->rule[SPARED] = RULE_SPARES;
    sim->stuck = one_in(sim, 3);
    sim->grace = one_in(sim, 3) ? between(sim, 3 * form_timeout, 8 * form_timeout) : 400 * RM_MS;
    s->stop_takes = sim->grace;
}

static void clean_up(struct sim *sim)
{
    rdzv_free(sim->rdzv);
    for (int k = 0; k < sim->nodes; k++) {
        launch_free(sim->node[k].launch);
        agent_free(sim->node[k].agent);
    }
    for (int i = 0; i < sim->queued; i++)
        free(sim->queue[i].message);
}

static bool run(struct sim *sim, uint64_t seed, enum plant plant, bool traced, bool frozen)
{
    *sim = (struct sim){.chance = seed, .plant = plant, .trace = traced, .now = RM_S};
    settle_scenario(sim);
    if (frozen) {
        frozen_draw(sim, seed);
    } else {
        notice_draw(sim, seed);
        wall_draw(sim, seed);
    }
    coordinator_starts(sim);
    for (int w = 0; w < (frozen ? 1 : WORKERS); w++)
        node_starts(sim, w, 1);
    rm_time first = one_in(sim, 4) ? between(sim, 0, 12 * RM_MS) : between(sim, 50 * RM_MS, 4 * RM_S);
    if (!sim->notices.calm && !frozen)
        add(sim, sim->now + first, HARM, 0, 0);
    while (!sim->over && !sim->violation[0]) {
        struct ev e = take_first(sim);
        sim->now = e.at;
        dispatch(sim, &e);
        free(e.message);
        if (sim->now > all_over)
            violate(sim, "the job does not end: %s", sim->rdzv ? rdzv_why(sim->rdzv) : "no coordinator");
    }
    clean_up(sim);
    return !sim->violation[0];
}

static int plant_of(const char *name)
{
    for (int i = 1; i < PLANTS; i++)
        if (!strcmp(plants[i], name))
            return i;
    return -1;
}

int main(int argc, char **argv)
{
    uint64_t first = 1, last = 300, failed = 0;
    int64_t generations = 0, harms = 0, parted = 0, unseen = 0;
    int plant = PLANT_NONE;
    bool traced = false, wanted = false, frozen = false;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--seeds") && i + 1 < argc &&
            sscanf(argv[++i], "%" SCNu64 "..%" SCNu64, &first, &last) == 1)
            last = first;
        else if (!strcmp(argv[i], "--plant") && i + 1 < argc)
            plant = plant_of(argv[++i]);
        traced = traced || !strcmp(argv[i], "--trace");
        frozen = frozen || !strcmp(argv[i], "--frozen");
        wanted = wanted || !strcmp(argv[i], "--expect-found");
    }
    static struct sim sim;
    coordinator_out = calloc(1, sizeof *coordinator_out);
    agent_out = calloc(1, sizeof *agent_out);
    launch_out = calloc(1, sizeof *launch_out);
    for (uint64_t seed = first; seed <= last && plant >= 0 && !(wanted && failed); seed++) {
        bool good = run(&sim, seed, (enum plant)plant, traced, frozen);
        if (!good && failed++ < 5)
            printf("seed %" PRIu64 ": %s (at %.4f s)\n", seed, sim.violation, (double)sim.now / RM_S);
        generations += sim.generations;
        harms += sim.harms;
        parted += sim.parted;
        unseen += sim.frozen.unseen_ends;
    }
    printf("%" PRIu64 " of %" PRIu64 " seeds failed; %" PRId64 " generations, %" PRId64
           " of them parted, %" PRId64 " harms, %" PRId64 " ends that nobody saw\n",
           failed, last - first + 1, generations, parted, harms, unseen);
    free(coordinator_out);
    free(agent_out);
    free(launch_out);
    return plant < 0 ? 2 : (failed > 0) != wanted;
}
