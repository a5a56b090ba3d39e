/* What the compute threads do: rings, transfers, and local work. What rings reduce is in sim_exchange.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim.h"

struct elastic_result *compute_result(const struct trainer *t, enum elastic_outcome outcome)
{
    struct elastic_result *r = calloc(1, sizeof *r);
    if (!r)
        abort();
    r->command = t->command;
    r->outcome = outcome;
    r->peer = -1;
    r->took = RM_MS;
    r->tokens = 1024;
    return r;
}

void compute_finish(struct sim *sim, int node, enum elastic_outcome outcome, int peer, rm_time delay)
{
    struct trainer *t = &sim->node[node].trainer;
    struct elastic_result *r = compute_result(t, outcome);
    r->peer = peer;
    r->took = sim->replay ? delay : r->took;
    text_copy(r->text, sizeof r->text, outcome == OUTCOME_PEER ? "a peer broke the connection" : "");
    t->finishing = true;
    t->command_seq++;
    if ((t->command == CMD_LANES || t->command == CMD_EXCHANGE) &&
        (outcome == OUTCOME_PEER || outcome == OUTCOME_ABORTED))
        sim->tallies.of[t->words ? TALLY_CUT_LATE : TALLY_CUT_EARLY]++;
    sim_at(sim, sim->now + delay, EV_DONE, node, t->epoch, t->command_seq)->result = r;
}

/* ---- rings ---- */

static int ring_of(struct sim *sim, const struct message *form)
{
    for (int i = 0; i < sim->rings; i++) {
        if (!generation_compare(sim->ring[i].generation, form->generation))
            return i;
    }
    if (sim->rings == RINGS_MAX) {
        sim_fail(sim, "more rings were formed than there is room for");
        return 0;
    }
    struct ring *ring = &sim->ring[sim->rings];
    *ring = (struct ring){.generation = form->generation, .count = form->form.count};
    for (int i = 0; i < ring->count; i++) {
        const struct msg_member *m = &form->form.member[i];
        ring->worker[i] = m->worker;
        if (sscanf(m->address, "%d:%d", &ring->node[i], &ring->epoch[i]) != 2)
            sim_fail(sim, "a member without an address: '%s'", m->address);
    }
    return sim->rings++;
}

bool ring_member_lives(const struct sim *sim, const struct ring *ring, int rank)
{
    const struct trainer *t = &sim->node[ring->node[rank]].trainer;
    return t->alive && t->epoch == ring->epoch[rank];
}

bool ring_at_work(enum elastic_command c)
{
    return c == CMD_LANES || c == CMD_EXCHANGE || c == CMD_COMMIT || c == CMD_EVALUATE || c == CMD_COMPARE;
}

/* A member that is stopped or stuck answers nobody. */
bool ring_member_moves(const struct sim *sim, const struct ring *ring, int rank)
{
    const struct trainer *t = &sim->node[ring->node[rank]].trainer;
    return !t->stopped && !t->stuck;
}

/* ---- shares of a checkpoint ---- */

enum share { SHARE_HERE, SHARE_LATER, SHARE_NEVER };

static enum share share_of(const struct sim *sim, const struct node *n, int rank)
{
    const struct message *form = n->trainer.form;
    int node = 0, epoch = 0;
    sscanf(form->form.member[rank].address, "%d:%d", &node, &epoch);
    const struct trainer *t = &sim->node[node].trainer;
    int newer = generation_compare(t->gives, form->generation);
    enum wall_kind why;
    int other = form->form.member[rank].worker;
    bool reached = pairs_reach(sim, n->worker, other) && pairs_carry(sim, other, n->worker, &why, false);
    if (!t->alive || t->epoch != epoch || newer > 0 || !reached)
        return SHARE_NEVER;
    return newer == 0 && !t->stopped ? SHARE_HERE : SHARE_LATER;
}

/* The first member whose share is still to come; -1: none. */
static int share_waits_for(const struct sim *sim, int node)
{
    const struct trainer *t = &sim->node[node].trainer;
    for (int r = 0; r < t->form->form.count; r++) {
        bool there = set_has(t->shares, r);
        if (!there && share_of(sim, &sim->node[node], r) == SHARE_LATER)
            return t->form->form.member[r].worker;
    }
    return -1;
}

/* Shares that are not coming; some connections break for no reason. */
static struct worker_set missing_shares(struct sim *sim, const struct node *n)
{
    const struct trainer *t = &n->trainer;
    struct worker_set missing = {0};
    for (int r = 0; r < t->form->form.count; r++) {
        bool never = share_of(sim, n, r) == SHARE_NEVER || (!sim->scenario.calm && sim_chance(sim, 10));
        if (never && !set_has(t->shares, r))
            set_add(&missing, r);
    }
    return missing;
}

int ring_waits_for(const struct sim *sim, int node)
{
    const struct trainer *t = &sim->node[node].trainer;
    bool waits = t->command == CMD_CONNECT || (ring_at_work(t->command) && t->arrived);
    if (t->command == CMD_LOAD)
        return share_waits_for(sim, node);
    if (t->ring < 0 || !waits || t->completing || t->finishing)
        return -1;
    const struct ring *ring = &sim->ring[t->ring];
    return ring->count > 1 ? ring->worker[(t->rank + ring->count - 1) % ring->count] : -1;
}

static void break_for(struct sim *sim, int index, int rank, int peer, rm_time soon)
{
    int node = sim->ring[index].node[rank];
    struct trainer *t = &sim->node[node].trainer;
    if (!ring_member_lives(sim, &sim->ring[index], rank) || t->ring != index)
        return;
    bool waiting = t->command == CMD_CONNECT ? !t->finishing : ring_at_work(t->command) && t->arrived;
    if (waiting && (!t->completing || sim_chance(sim, 50)))
        compute_finish(sim, node, OUTCOME_PEER, peer, soon);
    else
        sim_at(sim, sim->now + soon, EV_PEER_GONE, node, t->epoch, index * 100 + peer + 1);
}

/* All others notice in their own time; whose reduction is about to complete may be lucky. */
static void ring_break(struct sim *sim, int index, int by_rank)
{
    struct ring *ring = &sim->ring[index];
    if (ring->broken)
        return;
    ring->broken = true;
    for (int r = 0; r < ring->count; r++) {
        int distance = (r - by_rank + ring->count) % ring->count;
        bool neighbour = distance == 1 || distance == ring->count - 1;
        if (r != by_rank)
            break_for(sim, index, r, neighbour ? ring->worker[by_rank] : -1,
                      sim_time(sim, 10 * RM_US, RM_MS));
    }
}

void ring_gives_up(struct sim *sim, int index, int rank)
{
    break_for(sim, index, rank, -1, 10 * RM_US);
    ring_break(sim, index, rank);
}

void ring_cut(struct sim *sim, int from, int to)
{
    for (int i = 0; i < sim->rings; i++) {
        struct ring *ring = &sim->ring[i];
        for (int r = 0; r < ring->count && !ring->broken; r++) {
            int next = (r + 1) % ring->count;
            if (ring->worker[r] != from || ring->worker[next] != to || r == next)
                continue;
            ring->broken = true;
            for (int other = 0; other < ring->count; other++)
                break_for(sim, i, other,
                          other == r      ? to
                          : other == next ? from
                                          : -1,
                          sim_time(sim, 10 * RM_US, RM_MS));
        }
    }
}

/* ---- walls that let handshakes pass ---- */

static bool link_carries(const struct sim *sim, const struct ring *ring, int rank, enum wall_kind *ret_why,
                         bool small)
{
    int next = (rank + 1) % ring->count;
    return pairs_carry(sim, ring->worker[rank], ring->worker[next], ret_why, small);
}

/* The connection from `rank` to the next one ends. One end may see it a moment before the other, or not at
 * all, as it is told to stop by then; who closes its ring breaks it for its other neighbour. */
static void ring_is_cut(struct sim *sim, int index, int rank)
{
    struct ring *ring = &sim->ring[index];
    int next = (rank + 1) % ring->count;
    int only = sim_chance(sim, 70) ? -1 : sim_chance(sim, 50) ? rank : next;
    ring->broken = true;
    sim->tallies.of[TALLY_CUT]++;
    for (int r = 0; r < ring->count; r++) {
        rm_time soon = sim_time(sim, 10 * RM_US, RM_MS);
        int distance = (r - next + ring->count) % ring->count; /* behind the cut, along the ring */
        bool nearer = 2 * distance < ring->count;
        int beside = ring->worker[(r + (nearer ? -1 : 1) + ring->count) % ring->count];
        bool end = r == rank || r == next, sees = end && (only < 0 || only == r);
        int peer = r == rank ? ring->worker[next] : r == next ? ring->worker[rank] : beside;
        if (sees)
            break_for(sim, index, r, peer, soon);
        else
            break_for(sim, index, r, !end && sim_chance(sim, 50) ? peer : -1, RM_MS + soon);
    }
}

/* True: what is sent in this reduction does not come through. */
bool ring_is_walled(struct sim *sim, int index, bool small)
{
    struct ring *ring = &sim->ring[index];
    bool walled = false;
    for (int r = 0; r < ring->count && ring->count > 1; r++) {
        enum wall_kind why;
        if (link_carries(sim, ring, r, &why, small))
            continue;
        walled = true;
        if (why != WALL_CUTS)
            continue;
        ring_is_cut(sim, index, r);
        return true;
    }
    sim->tallies.of[TALLY_STALLED] += walled;
    return walled;
}

/* How many others' blocks have come: those of the ranks before it up to one that sends nothing yet, or that
 * sends in vain. */
int64_t ring_place(const struct sim *sim, int node)
{
    const struct trainer *t = &sim->node[node].trainer;
    if (t->ring < 0 || !ring_at_work(t->command) || !t->arrived)
        return -1;
    const struct ring *ring = &sim->ring[t->ring];
    int hops = 0;
    for (int r = t->rank; hops < ring->count; hops++) {
        enum wall_kind why;
        int previous = (r + ring->count - 1) % ring->count;
        const struct trainer *p = &sim->node[ring->node[previous]].trainer;
        bool sends = p->op > t->op || (p->op == t->op && p->arrived);
        if (!sends || !link_carries(sim, ring, previous, &why, !t->words))
            break;
        r = previous;
    }
    return 1000 * (t->op + 1) + (sim->plant == PLANT_LEAST_IS_MOST ? -hops : hops);
}

void ring_left(struct sim *sim, int node)
{
    struct trainer *t = &sim->node[node].trainer;
    exchange_died(sim, node);
    for (int i = sim->rings - 1; i >= 0 && i > sim->rings - 8; i--) {
        for (int r = 0; r < sim->ring[i].count; r++) {
            if (sim->ring[i].node[r] == node && sim->ring[i].epoch[r] == t->epoch)
                ring_break(sim, i, r);
        }
    }
    t->ring = -1;
}

/* When the last one has come. */
static void try_connect(struct sim *sim, int index)
{
    struct ring *ring = &sim->ring[index];
    for (int r = 0; r < ring->count; r++) {
        const struct trainer *t = &sim->node[ring->node[r]].trainer;
        bool here = ring->connected[r] && ring_member_lives(sim, ring, r) && ring_member_moves(sim, ring, r);
        if (!here || t->ring != index || t->command != CMD_CONNECT || t->finishing)
            return;
    }
    for (int r = 0; r < ring->count; r++)
        compute_finish(sim, ring->node[r], OUTCOME_OK, -1, sim_time(sim, 50 * RM_US, RM_MS));
}

static void start_connect(struct sim *sim, int node)
{
    struct trainer *t = &sim->node[node].trainer;
    t->connect_missed = t->stuck;
    if (t->stuck)
        return;
    if (t->ring >= 0)
        ring_break(sim, t->ring, t->rank);
    int index = ring_of(sim, t->form);
    struct ring *ring = &sim->ring[index];
    int dead = -1;
    saves_connect(t, sim->now);
    t->ring = index;
    t->op = 0;
    t->stop_flag = t->save_flag = t->second = false;
    t->second_at = sim_chance(sim, 70) ? sim->now + sim_time(sim, 0, 20 * sim->scenario.step_time) : RM_NEVER;
    for (int r = 0; r < ring->count; r++) {
        if (ring->node[r] == node) {
            t->rank = r;
            ring->connected[r] = true;
            lanes_connect(sim, t, ring);
        }
        if (!ring_member_lives(sim, ring, r))
            dead = ring->worker[r];
    }
    int next = ring->worker[(t->rank + 1) % ring->count];
    bool reached = pairs_reach(sim, sim->node[node].worker, next);
    if (dead < 0 && !ring->broken && !reached)
        compute_finish(sim, node, OUTCOME_PEER, next,
                       sim_time(sim, 50 * RM_US, sim_chance(sim, 50) ? RM_MS : RM_S));
    else if (dead >= 0 || ring->broken)
        compute_finish(sim, node, OUTCOME_PEER, dead, sim_time(sim, 50 * RM_US, RM_MS));
    else
        try_connect(sim, index);
}

/* ---- going on ---- */

void compute_goes_on(struct sim *sim, int node)
{
    struct trainer *t = &sim->node[node].trainer;
    if (t->connect_missed && t->command == CMD_CONNECT && !t->finishing)
        start_connect(sim, node);
    t->connect_missed = false;
    if (t->abort_missed)
        compute_abort(sim, node);
    t->abort_missed = false;
    if (t->ring < 0 || sim->ring[t->ring].broken)
        return;
    if (t->command == CMD_CONNECT)
        try_connect(sim, t->ring);
    else if (ring_at_work(t->command) && t->arrived)
        exchange_try(sim, t->ring);
}

/* ---- commands ---- */

/* Getting the state may take longer than a ring has to form, as long as it is seen to get on. */
static rm_time local_time(struct sim *sim, enum elastic_command command)
{
    bool state =
        command == CMD_RECEIVE || command == CMD_CATCH_UP || command == CMD_INIT || command == CMD_LOAD;
    bool slow = state && sim->scenario.slow_transfers && sim_chance(sim, 30);
    if (state && sim->replay)
        return sim->replay->transfer;
    return sim_time(sim, 100 * RM_US, slow ? 4 * RM_S : 20 * RM_MS);
}

/* The step leaves its state where the agent reads snapshots. */
static void take_spare(struct sim *sim, struct node *n)
{
    if (n->store_users)
        sim_fail(sim, "worker %d steps into the snapshot memory while its agent uses it", n->worker);
    n->taken.whole = false;
}

/* Whoever changes the state gives nothing of it any more, and must not have an agent that writes there. */
static void touch_state(struct sim *sim, struct node *n, const struct elastic_action *a)
{
    bool first = a->command == CMD_LOAD && set_equals(a->shares, a->loaded->shares);
    bool changes = ring_at_work(a->command) || a->command == CMD_RECEIVE || a->command == CMD_CATCH_UP ||
                   a->command == CMD_INIT || a->command == CMD_LOAD || a->command == CMD_LISTEN;
    if (changes && n->loads && n->load_in_state)
        sim_fail(sim, "worker %d changes the state while its agent writes there", n->worker);
    if (changes && a->command != CMD_LOAD && a->command != CMD_EVALUATE && a->command != CMD_COMPARE)
        n->trainer.gives = (struct msg_generation){0};
    if (changes && (a->command == CMD_RECEIVE || a->command == CMD_CATCH_UP || a->command == CMD_INIT ||
                    a->command == CMD_LOAD || a->command == CMD_LISTEN))
        lanes_forget(n);
    if (first)
        n->trainer.gives = a->form->generation;
}

/* Longer than a job may stand still, and too short to keep it from its end. What is told of machines would
 * come too late. */
static rm_time says_late(struct sim *sim, const struct node *n)
{
    bool first = n->trainer.command == CMD_INIT && sim->now < RM_S && !sim->scenario.notices;
    bool planted = sim->plant == PLANT_LATE_READY && first;
    sim->planted += planted;
    return planted ? 50 * RM_S : 0;
}

static void start_in_ring(struct sim *sim, int node)
{
    struct node *n = &sim->node[node];
    const struct trainer *t = &n->trainer;
    if (t->command == CMD_LANES || t->command == CMD_EVALUATE) {
        rm_time drawn = sim_time(sim, sim->scenario.step_time / 2, sim->scenario.step_time);
        exchange_lanes(sim, node, t->again, sim->replay ? replay_lanes(sim, t) : drawn);
    } else if (t->command == CMD_EXCHANGE || t->command == CMD_COMPARE) {
        exchange_arrive(sim, node);
    } else {
        if (t->to_snapshot)
            take_spare(sim, n);
        exchange_update(sim, node);
    }
}

void compute_start(struct sim *sim, int node, const struct elastic_action *a)
{
    struct node *n = &sim->node[node];
    struct trainer *t = &n->trainer;
    if (t->command != CMD_NONE)
        sim_fail(sim, "worker %d is given command %d while %d runs", n->worker, a->command, t->command);
    t->command = a->command;
    t->form = a->form;
    t->loaded = a->loaded;
    t->shares = a->shares;
    t->part = a->part;
    t->parts = a->parts;
    t->final = a->final;
    t->again = a->again;
    t->to_snapshot = a->to_snapshot;
    t->command_seq++;
    t->results_count = 0;
    t->aborted = t->finishing = false;
    touch_state(sim, n, a);
    if (a->command == CMD_CONNECT) {
        start_connect(sim, node);
    } else if (a->command == CMD_LISTEN) {
        listen_start(sim, node);
    } else if (ring_at_work(a->command)) {
        if (!n->memory.whole)
            sim_fail(sim, "worker %d steps without a whole state", n->worker);
        start_in_ring(sim, node);
    } else {
        if (a->command == CMD_RECEIVE)
            n->memory = (struct content){.update_step = -1};
        compute_finish(sim, node, OUTCOME_OK, -1, local_time(sim, a->command) + says_late(sim, n));
    }
}

void compute_abort(struct sim *sim, int node)
{
    struct trainer *t = &sim->node[node].trainer;
    t->aborted = true;
    if (t->stuck) {
        t->abort_missed = true;
        return;
    }
    bool too_late = t->command == CMD_LANES || t->completing || (t->command == CMD_CONNECT && t->finishing);
    if (t->command == CMD_NONE || (too_late && sim_chance(sim, 50)))
        return;
    if ((ring_at_work(t->command) || t->command == CMD_CONNECT) && t->ring >= 0)
        ring_break(sim, t->ring, t->rank);
    if (t->sealed)
        return;
    t->completing = false;
    rm_time soon = sim_time(sim, 10 * RM_US, RM_MS), lane = lanes_pause(sim, node);
    compute_finish(sim, node, OUTCOME_ABORTED, -1, lane >= 0 ? lane : soon);
}

/* ---- effects ---- */

static int source_gone(const struct sim *sim, int worker, const struct msg_form *f, bool update)
{
    for (int i = 0; i < (update ? 1 : f->sources_count); i++) {
        int node, epoch;
        if (sscanf(f->source[i].address, "%d:%d", &node, &epoch) != 2)
            return f->source[i].worker;
        const struct node *n = &sim->node[node];
        struct msg_state held = content_state(&n->memory);
        bool fine = n->alive && n->trainer.alive && n->trainer.epoch == epoch &&
                    msg_state_equal(&held, &f->resume) &&
                    (!update || n->memory.update_step == f->resume.step);
        enum wall_kind why;
        bool comes = pairs_reach(sim, worker, f->source[i].worker) &&
                     pairs_carry(sim, f->source[i].worker, worker, &why, false);
        if (!fine || !comes)
            return f->source[i].worker;
    }
    return -1;
}

/* While a source stands still its bytes do not come; only an abort ends the waiting. */
bool source_stands(const struct sim *sim, const struct trainer *t)
{
    const struct msg_form *f = &t->form->form;
    for (int i = 0; i < f->sources_count; i++) {
        int node = 0, epoch = 0;
        sscanf(f->source[i].address, "%d:%d", &node, &epoch);
        const struct trainer *source = &sim->node[node].trainer;
        if (source->alive && source->epoch == epoch && source->stopped)
            return true;
    }
    return false;
}

/* What one of them gives is not what was agreed, and that shows before anything of it is used. */
static void hear_source(struct sim *sim, const struct msg_form *f, bool update, struct elastic_result *r)
{
    for (int i = 0; i < (update ? 1 : f->sources_count) && r->outcome == OUTCOME_OK; i++) {
        int node = 0;
        sscanf(f->source[i].address, "%d:", &node);
        if (trouble_is_wrong_source(sim, node))
            trouble_source_said(sim, r, f->source[i].worker);
    }
}

static const struct content *source_memory(const struct sim *sim, const struct msg_form *f, int source)
{
    int node = 0;
    sscanf(f->source[source].address, "%d:", &node);
    return &sim->node[node].memory;
}

/* A bit that flipped lies in one part of a state, and so comes from one source alone. */
static uint64_t flaw_of_part(uint64_t flaw, int part, int parts)
{
    return flaw % (uint64_t)parts == (uint64_t)part ? flaw : 0;
}

static void done_receive(struct sim *sim, struct node *n, struct elastic_result *r)
{
    const struct msg_form *f = &n->trainer.form->form;
    if (r->outcome == OUTCOME_OK && (r->peer = source_gone(sim, n->worker, f, false)) >= 0)
        r->outcome = OUTCOME_PEER;
    hear_source(sim, f, false, r);
    if (r->outcome == OUTCOME_OK) {
        n->memory = content_new(f->resume.step, sim_lineage_hash(f->resume.lineage));
        for (int i = 0; i < f->sources_count; i++)
            n->memory.flaw += flaw_of_part(source_memory(sim, f, i)->flaw, i, f->sources_count);
        n->memory.fresh = true;
        exchange_flaw(sim, n, f->count);
    } else if (sim->plant == PLANT_TORN_RECEIVE) {
        n->memory = content_new(f->resume.step, sim_lineage_hash(f->resume.lineage) ^ 1);
        sim->planted++;
    }
}

static void done_catch_up(struct sim *sim, struct node *n, struct elastic_result *r)
{
    const struct msg_form *f = &n->trainer.form->form;
    if (r->outcome == OUTCOME_OK && (r->peer = source_gone(sim, n->worker, f, true)) >= 0)
        r->outcome = OUTCOME_PEER;
    hear_source(sim, f, true, r);
    if (r->outcome != OUTCOME_OK)
        return;
    const struct content *source = source_memory(sim, f, 0);
    struct content own = n->memory; /* the update is given, and the state stays its own */
    if (source->torn)
        sim_fail(sim, "R9: worker %d is given words that led to no step", n->worker);
    if (n->memory.hash != source->parent) {
        r->outcome = OUTCOME_LINEAGE;
        return;
    }
    if (sim->plant == PLANT_SKIP_CATCH_UP) {
        n->memory.step = source->step;
        sim->planted++;
    } else {
        n->memory = *source;
        n->memory.flaw = own.flaw;
        n->memory.spoilt = own.spoilt;
        n->memory.fresh = own.fresh;
        n->memory.doubted = own.doubted;
        n->memory.sure = false;
        n->memory.losses = own.losses;
        losses_add(&n->memory.losses, n->memory.step, content_loss(&n->memory));
    }
}

static void done_load(struct sim *sim, struct node *n, struct elastic_result *r)
{
    if (r->outcome != OUTCOME_OK)
        return;
    r->missing = missing_shares(sim, n);
    if (!set_is_empty(r->missing)) {
        r->outcome = OUTCOME_MISSING;
        sim->tallies.of[TALLY_MISSING]++;
        return;
    }
    struct msg_state there = content_state(&n->loaded);
    if (!msg_state_equal(&there, &n->trainer.loaded->state))
        sim_fail(sim, "worker %d loads what is not in the snapshot memory", n->worker);
    n->memory = n->loaded;
    n->memory.update_step = -1;
    n->memory.torn = n->memory.loss_known = false;
    n->memory.losses.count = 0;
}

static void done_snapshot(struct sim *sim, struct node *n, struct elastic_result *r)
{
    if (n->store_users)
        sim_fail(sim, "worker %d overwrites the snapshot memory while its agent uses it", n->worker);
    n->taken = n->memory;
    r->snapshot.state = content_state(&n->memory);
    r->snapshot.exact = true;
    r->snapshot.image = sim->plant == PLANT_PIECES_UNPROVEN ? 0 : 1 + n->memory.flaw;
    r->snapshot.first = n->trainer.part;
    r->snapshot.count = 1;
}

static bool kept_none(const struct sim *sim, const struct node *n)
{
    struct lane_set kept = lanes_kept(sim, n);
    return lane_set_is_empty(&kept);
}

static void done_pass(struct sim *sim, const struct elastic_result *r)
{
    bool good = r->outcome == OUTCOME_OK || r->outcome == OUTCOME_RESCALE || r->outcome == OUTCOME_NOT_FINITE;
    if (!good && sim->scenario.calm && !sim->scenario.nan_step)
        sim_fail(sim, "a pass was thrown away although nobody was lost");
}

static void apply(struct sim *sim, struct node *n, struct elastic_result *r)
{
    switch (r->command) {
    case CMD_INIT:
        n->memory = content_new(0, sim_hash(7, 7, 7));
        break;
    case CMD_LOAD:
        done_load(sim, n, r);
        break;
    case CMD_RECEIVE:
        done_receive(sim, n, r);
        break;
    case CMD_CATCH_UP:
        done_catch_up(sim, n, r);
        break;
    case CMD_LANES:
        if (r->outcome == OUTCOME_OK)
            lanes_done(sim, n);
        sim->tallies.of[TALLY_LANES_KEPT] += r->outcome != OUTCOME_OK && !kept_none(sim, n);
        done_pass(sim, r);
        break;
    case CMD_EXCHANGE:
        done_pass(sim, r);
        if (r->outcome != OUTCOME_OK && n->trainer.words && n->trainer.keep.spoilt)
            lanes_forget(n); /* also who is cut off among the words looks at its own */
        break;
    case CMD_COMMIT:
        exchange_commit(sim, n);
        break;
    case CMD_EVALUATE:
        if (r->outcome == OUTCOME_OK)
            losses_evaluate(&n->memory.losses, n->memory.step, r->loss);
        break;
    case CMD_DROP:
        n->memory = (struct content){.update_step = -1};
        break;
    case CMD_SNAPSHOT:
        done_snapshot(sim, n, r);
        break;
    case CMD_DIGEST:
        sim->flaw_agreed = sim->flaw_agreed || (n->trainer.form->form.count == 1 && n->memory.flaw);
        sim_lineage(n->memory.hash, r->digest);
        r->snapshot.exact = true;
        break;
    default:
        break;
    }
}

static void wait_for_source(struct sim *sim, int node, const struct elastic_result *result, rm_time pause)
{
    const struct trainer *t = &sim->node[node].trainer;
    struct elastic_result *again = malloc(sizeof *again);
    if (!again)
        abort();
    *again = *result;
    sim_at(sim, sim->now + pause, EV_DONE, node, t->epoch, t->command_seq)->result = again;
}

static void tell_done(struct sim *sim, int node)
{
    struct trainer *t = &sim->node[node].trainer;
    struct elastic_result result[3];
    int count = t->results_count, epoch = t->epoch;
    memcpy(result, t->results, sizeof result);
    t->command = CMD_NONE;
    for (int i = 0; i < count && t->alive && t->epoch == epoch; i++) {
        struct elastic_event e = {.kind = ELASTIC_DONE, .result = &result[i]};
        trainer_event(sim, node, &e);
    }
}

/* As trainer/engine/compute.c does. */
static void hand_on(struct sim *sim, int node, struct elastic_result *result)
{
    struct trainer *t = &sim->node[node].trainer;
    enum elastic_command next = elastic_follows(result);
    result->followed = next == CMD_COMMIT || (next != CMD_NONE && !t->aborted);
    t->results[t->results_count++] = *result;
    if (!result->followed) {
        tell_done(sim, node);
        return;
    }
    t->command = next;
    t->command_seq++;
    start_in_ring(sim, node);
}

void compute_done(struct sim *sim, int node, struct elastic_result *result)
{
    struct node *n = &sim->node[node];
    struct trainer *t = &n->trainer;
    bool transfer = result->command == CMD_RECEIVE || result->command == CMD_CATCH_UP;
    bool waits =
        transfer ? source_stands(sim, t) : result->command == CMD_LOAD && share_waits_for(sim, node) >= 0;
    if (waits && result->outcome == OUTCOME_OK) {
        wait_for_source(sim, node, result, 20 * RM_MS);
        return;
    }
    if (result->command == CMD_LISTEN && listen_goes_on(sim, node, result)) {
        wait_for_source(sim, node, result, sim_time(sim, RM_MS, 30 * RM_MS));
        return;
    }
    apply(sim, n, result);
    result->state = content_state(&n->memory);
    if (sim->plant == PLANT_TORN_RECEIVE && result->command == CMD_RECEIVE && n->memory.whole)
        result->state = t->form->form.resume;
    if (sim->plant == PLANT_SKIP_CATCH_UP && result->command == CMD_CATCH_UP && result->outcome == OUTCOME_OK)
        result->state = t->form->form.resume;
    if (sim->plant == PLANT_LISTENER_HOLDS && result->command == CMD_LISTEN && n->memory.whole)
        result->state = content_state(&t->hears);
    result->kept = lanes_kept(sim, n);
    if (result->command == CMD_LISTEN)
        result->heard = n->memory.losses;
    result->update_step = t->sealed ? -1 : n->memory.update_step;
    t->arrived = t->completing = t->finishing = t->words = t->wrong = false;
    hand_on(sim, node, result);
}
