/* Processes that stand still: SIGSTOP and SIGCONT of agents, trainers and the coordinator, and compute
 * threads that get stuck. What comes for them is put aside, their timers too; when they go on they find it at
 * once. */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim.h"

static const int ticks_first_percent = 50; /* a loop looks at its timers first, or at its sockets */

static void put_aside(struct inbox *inbox, struct ev *e)
{
    if (inbox->count == inbox->room) {
        inbox->room = inbox->room ? 2 * inbox->room : 16;
        inbox->list = realloc(inbox->list, (size_t)inbox->room * sizeof *inbox->list);
        if (!inbox->list)
            abort();
    }
    inbox->list[inbox->count++] = *e;
    e->message = NULL;
    e->result = NULL;
    e->stored = NULL;
    e->command = NULL;
}

void pause_forget(struct inbox *inbox)
{
    for (int i = 0; i < inbox->count; i++)
        ev_clear(&inbox->list[i]);
    free(inbox->list);
    *inbox = (struct inbox){0};
}

static struct inbox *inbox_of_agent(struct sim *sim, int node)
{
    struct node *n = &sim->node[node];
    return n->alive && n->stopped ? &n->inbox : NULL;
}

static struct inbox *inbox_of_trainer(struct sim *sim, const struct ev *e)
{
    struct trainer *t = &sim->node[e->a].trainer;
    bool computed =
        e->kind == EV_COMPUTED || e->kind == EV_HEADER || e->kind == EV_WORDS || e->kind == EV_DONE;
    bool held = t->alive && t->epoch == e->b && (t->stopped || (t->stuck && computed));
    return held ? &t->inbox : NULL;
}

/* Where an event waits; NULL: the process that it is for runs. */
static struct inbox *inbox_of(struct sim *sim, const struct ev *e)
{
    switch (e->kind) {
    case EV_TO_COORD:
    case EV_COORD_CLOSED:
    case EV_COORD_TICK:
    case EV_EXPECT:
    case EV_ACT:
        return sim->coord_stopped ? &sim->coord_inbox : NULL;
    case EV_TO_AGENT:
    case EV_AGENT_CLOSED:
        return inbox_of_agent(sim, sim->conn[e->a].node);
    case EV_CONNECTED:
    case EV_CONNECT_FAILED:
    case EV_LINK_TO_AGENT:
    case EV_TRAINER_GONE:
    case EV_STORED:
    case EV_AGENT_TICK:
    case EV_TERM:
    case EV_NOTICE:
        return inbox_of_agent(sim, e->a);
    case EV_LIE:
        return e->a < 0 ? NULL : inbox_of_agent(sim, e->a);
    case EV_LINK_TO_TRAINER:
    case EV_OPENED:
    case EV_COMPUTED:
    case EV_HEADER:
    case EV_WORDS:
    case EV_DONE:
    case EV_PEER_GONE:
    case EV_PULSE:
        return inbox_of_trainer(sim, e);
    default:
        return NULL;
    }
}

bool pause_holds(struct sim *sim, struct ev *e)
{
    struct inbox *inbox = inbox_of(sim, e);
    if (!inbox)
        return false;
    put_aside(inbox, e);
    return true;
}

static bool is_tick(const struct ev *e)
{
    return e->kind == EV_AGENT_TICK || e->kind == EV_COORD_TICK || e->kind == EV_PULSE;
}

static void deliver(struct sim *sim, struct inbox *from)
{
    struct inbox inbox = *from;
    bool ticks_first = sim_chance(sim, ticks_first_percent);
    *from = (struct inbox){0};
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < inbox.count; i++) {
            bool early = ticks_first && is_tick(&inbox.list[i]);
            if (early == (pass == 0) && !sim->violation[0])
                sim_handle(sim, &inbox.list[i]);
        }
    }
    pause_forget(&inbox);
}

/* ---- how much it explains ---- */

void pause_disturb(struct sim *sim, int node, rm_time until)
{
    struct node *n = &sim->node[node];
    n->disturbed = until > n->disturbed ? until : n->disturbed;
    if (until != RM_NEVER && until > sim->quiet_since)
        sim->quiet_since = until;
}

bool pause_is_disturbed(const struct sim *sim, int node, rm_time within)
{
    const struct node *n = &sim->node[node];
    return n->stopped || n->trainer.stopped || n->trainer.stuck ||
           (n->disturbed > 0 && sim->now - n->disturbed < within);
}

/* ---- stopping ---- */

void pause_node(struct sim *sim, int node, enum pause_part part)
{
    struct node *n = &sim->node[node];
    n->stops[0] += (part & PAUSE_AGENT) != 0;
    n->stops[1] += (part & PAUSE_TRAINER) != 0;
    n->stopped = n->stopped || (part & PAUSE_AGENT);
    n->trainer.stopped = n->trainer.stopped || (n->trainer.alive && (part & PAUSE_TRAINER));
    sim_trace(sim, "worker %d stands still: %s%s", n->worker, n->stopped ? "agent " : "",
              n->trainer.stopped ? "trainer" : "");
}

void pause_coordinator(struct sim *sim)
{
    sim->coord_stopped = true;
    sim->coord_stops++;
    sim_trace(sim, "the coordinator stands still in %s", rdzv_state_name(rdzv_state(sim->rdzv)));
}

void pause_stick(struct sim *sim, int node)
{
    sim->node[node].trainer.stuck = true;
    sim->node[node].stops[1]++;
    sim_trace(sim, "worker %d's compute thread is stuck", sim->node[node].worker);
}

/* ---- going on ---- */

static void resume_at(struct sim *sim, int node, enum pause_part part, rm_time at)
{
    int stop = node < 0 ? sim->coord_stops : sim->node[node].stops[part == PAUSE_TRAINER];
    sim_at(sim, at, EV_RESUME, node, stop, part);
    if (at > sim->quiet_since)
        sim->quiet_since = at;
}

/* Of two processes either may be the first. */
void pause_resume_later(struct sim *sim, int node, enum pause_part part, rm_time delay)
{
    rm_time at = sim->now + delay;
    bool agent_first = sim_chance(sim, 50);
    if (part == PAUSE_BOTH)
        resume_at(sim, node, agent_first ? PAUSE_AGENT : PAUSE_TRAINER, at);
    resume_at(sim, node, part != PAUSE_BOTH ? part : agent_first ? PAUSE_TRAINER : PAUSE_AGENT, at);
}

static void resume_coordinator(struct sim *sim)
{
    sim_trace(sim, "the coordinator goes on");
    sim->coord_stopped = false;
    sim->coord_disturbed = sim->now;
    deliver(sim, &sim->coord_inbox);
}

static bool ring_went_on(const struct sim *sim, int node)
{
    const struct trainer *t = &sim->node[node].trainer;
    return t->alive && t->ring >= 0 && sim->ring[t->ring].broken;
}

static void resume_trainer(struct sim *sim, int node)
{
    struct trainer *t = &sim->node[node].trainer;
    int epoch = t->epoch;
    if (!t->alive || (!t->stopped && !t->stuck))
        return;
    sim_trace(sim, "worker %d's trainer goes on", sim->node[node].worker);
    sim->tallies.of[TALLY_ZOMBIES] += ring_went_on(sim, node);
    t->stopped = t->stuck = false;
    deliver(sim, &t->inbox);
    if (t->alive && t->epoch == epoch)
        compute_goes_on(sim, node);
}

void pause_resume(struct sim *sim, int node, enum pause_part part, int stop)
{
    struct node *n = node < 0 ? NULL : &sim->node[node];
    if (!n && sim->coord_stopped && sim->coord_stops == stop)
        resume_coordinator(sim);
    if (!n || !n->alive || n->stops[part == PAUSE_TRAINER] != stop)
        return;
    pause_disturb(sim, node, sim->now);
    if (part == PAUSE_TRAINER) {
        resume_trainer(sim, node);
    } else if (n->stopped) {
        sim_trace(sim, "worker %d's agent goes on", n->worker);
        n->stopped = false;
        deliver(sim, &n->inbox);
    }
}
