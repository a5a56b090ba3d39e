/* What the compute threads do: rings whose ranks commit at different moments, transfers, and local work. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim.h"

uint64_t content_after(const struct sim *sim, uint64_t hash, int64_t step, const struct ring *ring)
{
    /* exact: the same bits whoever computes them; fast: they depend on the ring */
    uint64_t how = sim->scenario.exact ? 0 : (uint64_t)ring->generation.n * 100 + (uint64_t)ring->count;
    return sim_hash(hash, (uint64_t)step + 1, how);
}

static struct elastic_result *result_new(const struct trainer *t, enum elastic_outcome outcome)
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

static void finish(struct sim *sim, int node, enum elastic_outcome outcome, int peer, rm_time delay)
{
    struct trainer *t = &sim->node[node].trainer;
    struct elastic_result *r = result_new(t, outcome);
    r->peer = peer;
    text_copy(r->text, sizeof r->text, outcome == OUTCOME_PEER ? "a peer broke the connection" : "");
    t->finishing = true;
    t->command_seq++;
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

static bool member_lives(const struct sim *sim, const struct ring *ring, int rank)
{
    const struct trainer *t = &sim->node[ring->node[rank]].trainer;
    return t->alive && t->epoch == ring->epoch[rank];
}

static bool at_work(enum elastic_command c)
{
    return c == CMD_STEP || c == CMD_EVALUATE;
}

/* A member that is stopped or stuck answers nobody. */
static bool member_moves(const struct sim *sim, const struct ring *ring, int rank)
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
        bool there = t->shares >> r & 1;
        if (!there && share_of(sim, &sim->node[node], r) == SHARE_LATER)
            return t->form->form.member[r].worker;
    }
    return -1;
}

/* Shares that are not coming; some connections break for no reason. */
static uint64_t missing_shares(struct sim *sim, const struct node *n)
{
    const struct trainer *t = &n->trainer;
    uint64_t missing = 0;
    for (int r = 0; r < t->form->form.count; r++) {
        bool never = share_of(sim, n, r) == SHARE_NEVER || (!sim->scenario.calm && sim_chance(sim, 10));
        if (never && !(t->shares >> r & 1))
            missing |= (uint64_t)1 << r;
    }
    return missing;
}

int ring_waits_for(const struct sim *sim, int node)
{
    const struct trainer *t = &sim->node[node].trainer;
    bool waits = t->command == CMD_CONNECT || (at_work(t->command) && t->arrived);
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
    if (!member_lives(sim, &sim->ring[index], rank) || t->ring != index)
        return;
    bool waiting = t->command == CMD_CONNECT ? !t->finishing : at_work(t->command) && t->arrived;
    if (waiting && (!t->completing || sim_chance(sim, 50)))
        finish(sim, node, OUTCOME_PEER, peer, soon);
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
static bool is_walled(struct sim *sim, int index, bool small)
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
    if (t->ring < 0 || !at_work(t->command) || !t->arrived)
        return -1;
    const struct ring *ring = &sim->ring[t->ring];
    int hops = 0;
    for (int r = t->rank; hops < ring->count; hops++) {
        enum wall_kind why;
        int previous = (r + ring->count - 1) % ring->count;
        bool sends = sim->node[ring->node[previous]].trainer.arrived;
        if (!sends || !link_carries(sim, ring, previous, &why, t->command == CMD_EVALUATE))
            break;
        r = previous;
    }
    return 1000 * (ring->ops + 1) + (sim->plant == PLANT_LEAST_IS_MOST ? -hops : hops);
}

/* A trainer that dies between the reduction and its commit leaves a valid update in its memory: whoever opens
 * the memory next applies it. */
static void repair_later(struct sim *sim, int node)
{
    struct node *n = &sim->node[node];
    struct trainer *t = &n->trainer;
    if (t->command != CMD_STEP || !t->completing || !sim_chance(sim, 50))
        return;
    n->memory.parent = n->memory.hash;
    n->memory.hash = content_after(sim, n->memory.hash, n->memory.step, &sim->ring[t->ring]);
    n->memory.step++;
    n->memory.update_step = n->memory.step;
}

void ring_left(struct sim *sim, int node)
{
    struct trainer *t = &sim->node[node].trainer;
    repair_later(sim, node);
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
        bool here = ring->connected[r] && member_lives(sim, ring, r) && member_moves(sim, ring, r);
        if (!here || t->ring != index || t->command != CMD_CONNECT || t->finishing)
            return;
    }
    for (int r = 0; r < ring->count; r++)
        finish(sim, ring->node[r], OUTCOME_OK, -1, sim_time(sim, 50 * RM_US, RM_MS));
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
    t->ring = index;
    t->stop_flag = false;
    for (int r = 0; r < ring->count; r++) {
        if (ring->node[r] == node) {
            t->rank = r;
            ring->connected[r] = true;
        }
        if (!member_lives(sim, ring, r))
            dead = ring->worker[r];
    }
    int next = ring->worker[(t->rank + 1) % ring->count];
    bool reached = pairs_reach(sim, sim->node[node].worker, next);
    if (dead < 0 && !ring->broken && !reached)
        finish(sim, node, OUTCOME_PEER, next, sim_time(sim, 50 * RM_US, sim_chance(sim, 50) ? RM_MS : RM_S));
    else if (dead >= 0 || ring->broken)
        finish(sim, node, OUTCOME_PEER, dead, sim_time(sim, 50 * RM_US, RM_MS));
    else
        try_connect(sim, index);
}

/* ---- reductions ---- */

static struct elastic_result *outcome_of(struct sim *sim, const struct ring *ring, const struct node *n)
{
    bool step = n->trainer.command == CMD_STEP;
    struct elastic_result *res = result_new(&n->trainer, OUTCOME_OK);
    uint64_t hash = content_after(sim, n->memory.hash, n->memory.step, ring);
    res->loss = (double)((step ? hash : n->memory.hash) % 100000) / 1e5;
    if (step && n->memory.step + 1 == sim->scenario.nan_step) {
        res->outcome = OUTCOME_NOT_FINITE;
        text_copy(res->text, sizeof res->text, "not finite");
    }
    return res;
}

static void complete(struct sim *sim, struct ring *ring)
{
    bool stop = false;
    check_reduction(sim, ring);
    ring->ops++;
    for (int r = 0; r < ring->count; r++)
        stop = stop || sim->node[ring->node[r]].trainer.stop_flag;
    int blind = sim->plant == PLANT_STOP_UNSEEN && stop ? (int)sim_below(sim, (uint64_t)ring->count) : -1;
    sim->planted += blind >= 0;
    for (int r = 0; r < ring->count; r++) {
        struct trainer *t = &sim->node[ring->node[r]].trainer;
        struct elastic_result *res = outcome_of(sim, ring, &sim->node[ring->node[r]]);
        res->stop = stop && r != blind;
        t->completing = res->outcome == OUTCOME_OK; /* what is not finite is never applied */
        t->finishing = !t->completing;
        t->command_seq++;
        rm_time took = sim_time(sim, 10 * RM_US, sim->scenario.step_time / 4 + 20 * RM_US);
        sim_at(sim, sim->now + took, EV_DONE, ring->node[r], t->epoch, t->command_seq)->result = res;
    }
}

/* Once all are there and none of them stands still. */
static void try_complete(struct sim *sim, int index)
{
    struct ring *ring = &sim->ring[index];
    int command = CMD_NONE;
    for (int r = 0; r < ring->count; r++) {
        const struct trainer *t = &sim->node[ring->node[r]].trainer;
        bool here = member_lives(sim, ring, r) && t->arrived && t->ring == index;
        if (!here || !member_moves(sim, ring, r) || t->completing || t->finishing)
            return;
        if (command != CMD_NONE && t->command != (enum elastic_command)command)
            sim_fail(sim, "ranks of one ring do different things: %d and %d", command, t->command);
        command = t->command;
    }
    if (ring->broken || is_walled(sim, index, command == CMD_EVALUATE))
        return;
    sim->step_ops += command == CMD_STEP;
    complete(sim, ring);
}

void ring_flows(struct sim *sim)
{
    for (int i = 0; i < sim->rings; i++)
        if (!sim->ring[i].broken)
            try_complete(sim, i);
}

void compute_arrive(struct sim *sim, int node)
{
    struct trainer *t = &sim->node[node].trainer;
    if (t->ring < 0) {
        sim_fail(sim, "worker %d steps without a ring", sim->node[node].worker);
        return;
    }
    t->arrived = true;
    if (sim->ring[t->ring].broken)
        finish(sim, node, OUTCOME_PEER, -1, sim_time(sim, 10 * RM_US, RM_MS));
    else
        try_complete(sim, t->ring);
}

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
    else if (at_work(t->command) && t->arrived)
        try_complete(sim, t->ring);
}

/* ---- commands ---- */

/* Getting the state may take longer than a ring has to form, as long as it is seen to get on. */
static rm_time local_time(struct sim *sim, enum elastic_command command)
{
    bool state =
        command == CMD_RECEIVE || command == CMD_CATCH_UP || command == CMD_INIT || command == CMD_LOAD;
    bool slow = state && sim->scenario.slow_transfers && sim_chance(sim, 30);
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
    bool first = a->command == CMD_LOAD && a->shares == a->loaded->shares;
    bool changes = at_work(a->command) || a->command == CMD_RECEIVE || a->command == CMD_CATCH_UP ||
                   a->command == CMD_INIT || a->command == CMD_LOAD;
    if (changes && n->loads && n->load_in_state)
        sim_fail(sim, "worker %d changes the state while its agent writes there", n->worker);
    if (changes && a->command != CMD_LOAD && a->command != CMD_EVALUATE)
        n->trainer.gives = (struct msg_generation){0};
    if (first)
        n->trainer.gives = a->form->generation;
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
    t->command_seq++;
    t->aborted = t->arrived = t->completing = t->finishing = false;
    touch_state(sim, n, a);
    if (a->command == CMD_CONNECT) {
        start_connect(sim, node);
    } else if (at_work(a->command)) {
        if (!n->memory.whole)
            sim_fail(sim, "worker %d steps without a whole state", n->worker);
        if (a->to_snapshot)
            take_spare(sim, n);
        rm_time took = t->slow + sim_time(sim, sim->scenario.step_time / 2, sim->scenario.step_time);
        t->slow = 0;
        sim_at(sim, sim->now + took, EV_COMPUTED, node, t->epoch, t->command_seq);
    } else {
        if (a->command == CMD_RECEIVE)
            n->memory = (struct content){.update_step = -1};
        finish(sim, node, OUTCOME_OK, -1, local_time(sim, a->command));
    }
}

void compute_abort(struct sim *sim, int node)
{
    struct trainer *t = &sim->node[node].trainer;
    if (t->stuck) {
        t->abort_missed = true;
        return;
    }
    bool committing = t->completing || (t->command == CMD_CONNECT && t->finishing);
    if (t->command == CMD_NONE || (committing && sim_chance(sim, 50)))
        return;
    int index = t->ring;
    if (at_work(t->command) || t->command == CMD_CONNECT) {
        t->completing = false;
        if (index >= 0)
            ring_break(sim, index, t->rank);
    }
    finish(sim, node, OUTCOME_ABORTED, -1, sim_time(sim, 10 * RM_US, RM_MS));
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

static const struct content *source_content(const struct sim *sim, const struct msg_form *f)
{
    int node = 0;
    sscanf(f->source[0].address, "%d:", &node);
    return &sim->node[node].memory;
}

static void done_receive(struct sim *sim, struct node *n, struct elastic_result *r)
{
    const struct msg_form *f = &n->trainer.form->form;
    if (r->outcome == OUTCOME_OK && (r->peer = source_gone(sim, n->worker, f, false)) >= 0)
        r->outcome = OUTCOME_PEER;
    if (r->outcome == OUTCOME_OK) {
        n->memory = (struct content){true, f->resume.step, sim_lineage_hash(f->resume.lineage), 0, -1};
    } else if (sim->plant == PLANT_TORN_RECEIVE) {
        n->memory = (struct content){true, f->resume.step, sim_lineage_hash(f->resume.lineage) ^ 1, 0, -1};
        sim->planted++;
    }
}

static void done_catch_up(struct sim *sim, struct node *n, struct elastic_result *r)
{
    const struct msg_form *f = &n->trainer.form->form;
    if (r->outcome == OUTCOME_OK && (r->peer = source_gone(sim, n->worker, f, true)) >= 0)
        r->outcome = OUTCOME_PEER;
    if (r->outcome != OUTCOME_OK)
        return;
    const struct content *source = source_content(sim, f);
    if (n->memory.hash != source->parent) {
        r->outcome = OUTCOME_LINEAGE;
        return;
    }
    if (sim->plant == PLANT_SKIP_CATCH_UP) {
        n->memory.step = source->step;
        sim->planted++;
    } else {
        n->memory = *source;
    }
}

static void done_load(struct sim *sim, struct node *n, struct elastic_result *r)
{
    if (r->outcome != OUTCOME_OK)
        return;
    r->missing = missing_shares(sim, n);
    if (r->missing) {
        r->outcome = OUTCOME_MISSING;
        sim->tallies.of[TALLY_MISSING]++;
        return;
    }
    struct msg_state there = content_state(&n->loaded);
    if (!msg_state_equal(&there, &n->trainer.loaded->state))
        sim_fail(sim, "worker %d loads what is not in the snapshot memory", n->worker);
    n->memory = n->loaded;
    n->memory.update_step = -1;
}

static void done_snapshot(struct sim *sim, struct node *n, struct elastic_result *r)
{
    if (n->store_users)
        sim_fail(sim, "worker %d overwrites the snapshot memory while its agent uses it", n->worker);
    n->taken = n->memory;
    r->snapshot.state = content_state(&n->memory);
    r->snapshot.exact = true;
    r->snapshot.first = n->trainer.part;
    r->snapshot.count = 1;
}

static void done_step(struct sim *sim, struct node *n, struct elastic_result *r)
{
    if (r->outcome != OUTCOME_OK) {
        if (sim->scenario.calm && r->outcome != OUTCOME_NOT_FINITE && !sim->scenario.nan_step)
            sim_fail(sim, "a pass was thrown away although nobody was lost");
        return;
    }
    n->memory.parent = n->memory.hash;
    n->memory.hash = content_after(sim, n->memory.hash, n->memory.step, &sim->ring[n->trainer.ring]);
    n->memory.step++;
    n->memory.update_step = n->memory.step;
}

static void apply(struct sim *sim, struct node *n, struct elastic_result *r)
{
    switch (r->command) {
    case CMD_INIT:
        n->memory = (struct content){true, 0, sim_hash(7, 7, 7), 0, -1};
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
    case CMD_STEP:
        done_step(sim, n, r);
        break;
    case CMD_SNAPSHOT:
        done_snapshot(sim, n, r);
        break;
    case CMD_DIGEST:
        sim_lineage(n->memory.hash, r->digest);
        r->snapshot.exact = true;
        break;
    default:
        break;
    }
}

static void wait_for_source(struct sim *sim, int node, const struct elastic_result *result)
{
    const struct trainer *t = &sim->node[node].trainer;
    struct elastic_result *again = malloc(sizeof *again);
    if (!again)
        abort();
    *again = *result;
    sim_at(sim, sim->now + 20 * RM_MS, EV_DONE, node, t->epoch, t->command_seq)->result = again;
}

void compute_done(struct sim *sim, int node, struct elastic_result *result)
{
    struct node *n = &sim->node[node];
    struct trainer *t = &n->trainer;
    bool transfer = result->command == CMD_RECEIVE || result->command == CMD_CATCH_UP;
    bool waits =
        transfer ? source_stands(sim, t) : result->command == CMD_LOAD && share_waits_for(sim, node) >= 0;
    if (waits && result->outcome == OUTCOME_OK) {
        wait_for_source(sim, node, result);
        return;
    }
    apply(sim, n, result);
    result->state = content_state(&n->memory);
    if (sim->plant == PLANT_TORN_RECEIVE && result->command == CMD_RECEIVE && n->memory.whole)
        result->state = t->form->form.resume;
    if (sim->plant == PLANT_SKIP_CATCH_UP && result->command == CMD_CATCH_UP && result->outcome == OUTCOME_OK)
        result->state = t->form->form.resume;
    result->update_step = n->memory.update_step;
    t->command = CMD_NONE;
    t->arrived = t->completing = t->finishing = false;
    struct elastic_event e = {.kind = ELASTIC_DONE, .result = result};
    trainer_event(sim, node, &e);
}
