/* The reductions of rings. A step has two, and each rank three moments of its own: it sees the header, in
 * which all have said that they are in this step, what they want, and whether the pass fits; it has the
 * words; and it has made the update of them.
 *
 * The words are written over the update that led to the state held, which is kept for whoever missed it. So
 * that one is given up only once the header is seen: then nobody misses it any more. From there to the last
 * word a rank keeps no update; from the last word on (the update is sealed) it has this one, and its step is
 * made whatever happens, if need be by its successor. */
#include <stdlib.h>

#include "tests/sim/sim.h"

uint64_t content_after(const struct sim *sim, uint64_t hash, int64_t step, const struct ring *ring)
{
    /* exact: the same bits whoever computes them; fast: they depend on the ring */
    uint64_t how = sim->scenario.exact ? 0 : (uint64_t)ring->generation.n * 100 + (uint64_t)ring->count;
    return sim_hash(hash, (uint64_t)step + 1, how);
}

static struct ring *ring_of_trainer(struct sim *sim, int node)
{
    return &sim->ring[sim->node[node].trainer.ring];
}

/* ---- the kept update ---- */

/* Words go where it lies. Alone a rank takes its own as they are, and writes nowhere. */
static void give_up_update(struct sim *sim, int node)
{
    struct content *memory = &sim->node[node].memory;
    const struct ring *ring = ring_of_trainer(sim, node);
    if (ring->count == 1)
        return;
    memory->torn = true;
    sim->planted += sim->plant == PLANT_VALID_STAYS && memory->update_step >= 0;
    if (sim->plant != PLANT_VALID_STAYS)
        memory->update_step = -1;
    check_update_stands(sim, ring);
}

static void seal(struct sim *sim, struct node *n)
{
    n->trainer.sealed = true;
    n->memory.update_step = n->memory.step + 1;
    n->memory.torn = false;
    check_update_stands(sim, &sim->ring[n->trainer.ring]);
}

enum { FLAWS_MOST = 4 }; /* more of them, each of which may send all back, and a job does not get on */

/* One at a time in all memories, and in nobody's who has nobody to compare with: who is alone then, or gives
 * its state to all, has no other to tell. */
void exchange_flaw(struct sim *sim, struct node *n, int others)
{
    bool ours = sim->scenario.flaws && !sim->scenario.beside; /* programs have no sum of bits */
    bool may = ours && others > 1 && sim->tallies.of[TALLY_FLAWED] < FLAWS_MOST &&
               sim_chance(sim, sim->scenario.flaws);
    for (int i = 0; i < sim->nodes; i++)
        may = may && !(sim->node[i].alive && sim->node[i].memory.whole && sim->node[i].memory.flaw);
    if (!may)
        return;
    n->memory.flaw = 1 + (sim_below(sim, 1u << 30));
    n->memory.spoilt = n->memory.sure = n->memory.doubted = false;
    sim->flawed_at = n->memory.step;
    sim->tallies.of[TALLY_FLAWED]++;
    sim->quiet_since = sim->now > sim->quiet_since ? sim->now : sim->quiet_since;
    sim_trace(sim, "a bit flips in the state of worker %d", n->worker);
}

void exchange_commit(struct sim *sim, struct node *n)
{
    const struct ring *ring = &sim->ring[n->trainer.ring];
    n->memory.parent = n->memory.hash;
    n->memory.hash = content_after(sim, n->memory.hash, n->memory.step, ring);
    n->memory.step++;
    n->memory.loss_known = true;
    losses_add(&n->memory.losses, n->memory.step, content_loss(&n->memory));
    n->stepped_at = sim->now;
    n->trainer.sealed = false;
    n->memory.sure = false;
    exchange_flaw(sim, n, ring->count);
    n->memory.spoilt = n->memory.flaw && (n->memory.spoilt || sim_chance(sim, 50));
    check_update_stands(sim, ring);
}

/* Whoever opens the memory next finishes a sealed update. */
void exchange_died(struct sim *sim, int node)
{
    struct node *n = &sim->node[node];
    struct trainer *t = &n->trainer;
    if (t->words && !t->sealed && sim->plant == PLANT_EARLY_SEAL) {
        sim->planted++;
        seal(sim, n);
        n->memory.hash ^= 1;
    }
    if (t->sealed) {
        sim->tallies.of[TALLY_REPAIRED]++;
        exchange_commit(sim, n);
    }
    t->arrived = t->completing = t->words = t->sealed = t->wrong = false;
}

/* ---- what all are told ---- */

static bool drawn(const struct sim *sim, uint64_t what, int64_t step, int percent)
{
    return (int)(sim_hash(sim->seed, what, (uint64_t)step) % 100) < percent;
}

enum { SECOND_FAILURES_MOST = 2 };

/* Now and then one is not, for a step. */
static bool is_ready(const struct sim *sim, const struct trainer *t, int64_t step)
{
    bool rests = drawn(sim, 30 + 100 * (uint64_t)t->rank, step, 10);
    return t->second_at <= sim->now && t->second_failures < SECOND_FAILURES_MOST && !rests;
}

/* Of those who vote, how many hold a state of the same bits. Who received its state counts with who gave it,
 * unless all have. */
static int votes_for(const struct sim *sim, const struct ring *ring, uint64_t flaw)
{
    int votes = 0, fresh = 0;
    for (int r = 0; r < ring->count; r++)
        fresh += sim->node[ring->node[r]].memory.fresh;
    for (int r = 0; r < ring->count; r++) {
        const struct content *c = &sim->node[ring->node[r]].memory;
        bool counts = !c->fresh || fresh == ring->count;
        votes += counts && c->flaw == flaw;
    }
    return votes;
}

/* The only one that did not receive its state is one that has not looked whether it changed since. */
static bool none_decides(const struct sim *sim, const struct ring *ring)
{
    int settled = 0, sure = 0;
    for (int r = 0; r < ring->count; r++) {
        const struct content *c = &sim->node[ring->node[r]].memory;
        settled += !c->fresh;
        sure += !c->fresh && c->sure;
    }
    return settled == 1 && !sure;
}

/* Those who are not of the group with most votes; all, where another one has as many. */
static struct worker_set odd_states(const struct sim *sim, const struct ring *ring)
{
    struct worker_set odd = {0}, all = {0};
    const struct content *best = &sim->node[ring->node[0]].memory;
    bool tie = none_decides(sim, ring);
    for (int r = 0; r < ring->count; r++) {
        const struct content *c = &sim->node[ring->node[r]].memory;
        best = votes_for(sim, ring, c->flaw) > votes_for(sim, ring, best->flaw) ? c : best;
        set_add(&all, r);
    }
    for (int r = 0; r < ring->count; r++) {
        const struct content *c = &sim->node[ring->node[r]].memory;
        bool other = c->flaw != best->flaw;
        tie = tie || (other && votes_for(sim, ring, c->flaw) == votes_for(sim, ring, best->flaw));
        if (other)
            set_add(&odd, r);
    }
    return tie && !set_is_empty(odd) ? all : odd;
}

/* Where nobody can tell all look at their own, and say in the same ring what they found. True: nobody found
 * anything, so that they all are sure. */
static bool all_look(struct sim *sim, const struct ring *ring)
{
    bool sure = true;
    for (int r = 0; r < ring->count; r++)
        sure = sure && (sim->node[ring->node[r]].memory.sure || !sim->node[ring->node[r]].memory.spoilt);
    for (int r = 0; r < ring->count && sure; r++)
        sim->node[ring->node[r]].memory.sure = true;
    return sure;
}

/* Who was in doubt has the bits of somebody who was not, and who has them from elsewhere: that tells. */
static void headers_agree(struct sim *sim, const struct ring *ring)
{
    bool doubted = true;
    for (int r = 0; r < ring->count; r++)
        doubted = doubted && sim->node[ring->node[r]].memory.doubted;
    for (int r = 0; r < ring->count; r++) {
        struct content *c = &sim->node[ring->node[r]].memory;
        sim->flaw_agreed = sim->flaw_agreed || c->flaw;
        c->fresh = false;
        c->doubted = doubted;
    }
}

/* Whoever is odd is told of. Who is sound is not called odd by a majority, unless all whom a header has
 * compared once had the same wrong bits. */
static void find_odd(struct sim *sim, const struct ring *ring, struct header *h)
{
    h->odd = odd_states(sim, ring);
    if (set_is_empty(h->odd)) {
        headers_agree(sim, ring);
        return;
    }
    if (sim->plant == PLANT_STATES_UNPROVEN) {
        sim->planted++;
        h->odd = (struct worker_set){0};
        return;
    }
    h->verdict = PASS_ODD;
    h->look = set_count(h->odd) == ring->count && !all_look(sim, ring);
    if (h->look)
        return;
    h->odd = odd_states(sim, ring);
    bool none = set_count(h->odd) == ring->count;
    sim->tallies.of[TALLY_OUTVOTED] += none ? 0 : set_count(h->odd);
    sim->tallies.of[TALLY_NO_MAJORITY] += none;
    sim->undecided = sim->undecided || none;
    for (int r = set_first(h->odd); r >= 0; r = set_next(h->odd, r)) {
        struct node *n = &sim->node[ring->node[r]];
        n->given_wrong++;
        n->memory.doubted = none;
        if (!none && !n->memory.flaw && !n->memory.fresh && !sim->flaw_agreed)
            sim_fail(sim, "R15: the sound state of worker %d is given up", n->worker);
    }
}

/* Stop and save are said by one and done by all; another transport is taken where all are ready for it. */
static void decide(struct sim *sim, struct ring *ring)
{
    const struct node *first = &sim->node[ring->node[0]];
    int64_t step = first->memory.step + 1;
    struct header h = {.second = sim->plant != PLANT_READY_FOR_ALL, .blind = -1};
    for (int r = 0; r < ring->count; r++) {
        struct trainer *t = &sim->node[ring->node[r]].trainer;
        h.us[r] = t->lane_us;
        t->second_said = is_ready(sim, t, step);
        h.stop = h.stop || t->stop_flag;
        h.save = h.save || t->save_flag ||
                 (r == 0 && (drawn(sim, 10, step, sim->scenario.saves) || saves_due(sim, t)));
        h.second =
            sim->plant == PLANT_READY_FOR_ALL ? h.second || t->second_said : h.second && t->second_said;
    }
    if (step == sim->scenario.nan_step)
        h.verdict = PASS_NOT_FINITE;
    else if (first->trainer.pass == 0 && drawn(sim, 9, step, sim->scenario.rescales))
        h.verdict = PASS_RESCALED;
    find_odd(sim, ring, &h);
    if (sim->plant == PLANT_STOP_UNSEEN && h.stop)
        h.blind = (int)sim_below(sim, (uint64_t)ring->count);
    sim->planted += h.blind >= 0;
    for (int r = 0; r < ring->count && h.save && h.verdict == PASS_FITS; r++)
        sim->node[ring->node[r]].trainer.save_flag = false;
    ring->header = h;
    if (h.verdict == PASS_FITS)
        saves_step(sim, ring, step, h.save);
}

/* ---- sums that come out wrong ---- */

/* What somebody adds once more was spoilt in the ring before, where it did not come to see it. */
static bool are_spoilt(struct sim *sim, const struct ring *ring)
{
    bool any = false;
    for (int r = 0; r < ring->count; r++)
        any = any || sim->node[ring->node[r]].trainer.keep.spoilt;
    for (int r = 0; r < ring->count && any; r++) {
        struct node *n = &sim->node[ring->node[r]];
        n->trainer.wrong = true;
        n->given_wrong++;
    }
    if (any)
        sim->quiet_since = sim->now > sim->quiet_since ? sim->now : sim->quiet_since;
    return any;
}

/* A bit flips on its way to one rank, to all but one, or before it was added, and so to all. Each rank looks
 * for itself whether its result is what the checksums say. */
static void draw_wrong(struct sim *sim, const struct ring *ring, bool words)
{
    if (words && are_spoilt(sim, ring))
        return;
    if (!sim->scenario.flips || !sim_chance(sim, sim->scenario.flips))
        return;
    int kind = (int)sim_below(sim, 3), one = (int)sim_below(sim, (uint64_t)ring->count);
    if (kind == 2 && words)
        sim->node[ring->node[one]].trainer.keep.spoilt = true;
    for (int r = 0; r < ring->count; r++) {
        struct node *n = &sim->node[ring->node[r]];
        n->trainer.wrong = kind == 0 ? r == one : kind == 1 ? r != one : true;
        n->given_wrong += n->trainer.wrong;
    }
    sim->quiet_since = sim->now > sim->quiet_since ? sim->now : sim->quiet_since;
    sim_trace(sim, "a wrong sum of the %s for %s", words ? "words" : "header",
              kind == 0   ? "one rank"
              : kind == 1 ? "all but one rank"
                          : "all ranks");
}

/* True: it has seen that its result is wrong, and gives the step up. */
static bool finds_wrong(struct sim *sim, int node, enum plant blind)
{
    struct trainer *t = &sim->node[node].trainer;
    if (!t->wrong)
        return false;
    if (sim->plant == blind) {
        sim->planted++;
        return false;
    }
    t->wrong = false;
    if (t->keep.spoilt)
        lanes_forget(&sim->node[node]);
    sim->tallies.of[TALLY_UNPROVEN]++;
    compute_finish(sim, node, OUTCOME_PROOF, -1, 10 * RM_US);
    return true;
}

/* ---- a reduction ---- */

/* Each hears of its result in its own time. */
static void pass_on(struct sim *sim, const struct ring *ring, enum ev_kind kind, rm_time longest)
{
    for (int r = 0; r < ring->count; r++) {
        struct trainer *t = &sim->node[ring->node[r]].trainer;
        t->completing = true;
        t->command_seq++;
        sim_at(sim, sim->now + sim_time(sim, 10 * RM_US, longest), kind, ring->node[r], t->epoch,
               t->command_seq);
    }
}

static void pass_on_losses(struct sim *sim, const struct ring *ring)
{
    for (int r = 0; r < ring->count; r++) {
        struct node *n = &sim->node[ring->node[r]];
        struct elastic_result *result = compute_result(&n->trainer, OUTCOME_OK);
        result->loss = content_loss(&n->memory);
        n->trainer.completing = true;
        n->trainer.command_seq++;
        rm_time took = sim_time(sim, 10 * RM_US, sim->scenario.step_time / 4 + 20 * RM_US);
        sim_at(sim, sim->now + took, EV_DONE, ring->node[r], n->trainer.epoch, n->trainer.command_seq)
            ->result = result;
    }
}

/* One rank's has an error, and it ends its ring; or nobody's has, and nobody comes out before all are told
 * to. */
static bool second_breaks(struct sim *sim, int index)
{
    struct ring *ring = &sim->ring[index];
    struct trainer *t = &sim->node[ring->node[0]].trainer;
    if (!t->words || !t->second || ring->count < 2 || !sim->scenario.second_breaks ||
        !sim_chance(sim, sim->scenario.second_breaks))
        return false;
    sim->quiet_since = sim->now > sim->quiet_since ? sim->now : sim->quiet_since;
    sim->tallies.of[TALLY_SECOND_BROKE]++;
    ring->hung = sim_chance(sim, 30);
    int one = (int)sim_below(sim, (uint64_t)ring->count);
    sim_trace(sim, "a sum by another transport %s %d", ring->hung ? "hangs, in a ring of" : "fails at rank",
              ring->hung ? ring->count : one);
    for (int r = 0; r < ring->count; r++)
        sim->node[ring->node[r]].trainer.second_failures += ring->hung || r == one;
    if (!ring->hung)
        ring_gives_up(sim, index, one);
    return true;
}

static void complete(struct sim *sim, struct ring *ring)
{
    const struct trainer *t = &sim->node[ring->node[0]].trainer;
    rm_time small = 200 * RM_US, large = sim->scenario.step_time / 4 + 20 * RM_US;
    check_reduction(sim, ring);
    if (t->command == CMD_EVALUATE) {
        pass_on_losses(sim, ring);
        return;
    }
    draw_wrong(sim, ring, t->words);
    if (t->command == CMD_COMPARE) {
        ring->header = (struct header){.blind = -1};
        find_odd(sim, ring, &ring->header);
        pass_on(sim, ring, EV_HEADER, small);
    } else if (t->words) {
        lanes_check(sim, ring);
        sim->step_ops++;
        pass_on(sim, ring, EV_WORDS, large);
    } else {
        decide(sim, ring);
        pass_on(sim, ring, EV_HEADER, small);
    }
}

static void check_same(struct sim *sim, const struct ring *ring, const struct trainer *a,
                       const struct trainer *b)
{
    if (a->command != b->command || a->words != b->words || a->pass != b->pass || a->op != b->op)
        sim_fail(sim,
                 "ranks of one ring do different things: %d, pass %d, words %d and %d, pass %d, words %d",
                 a->command, a->pass, a->words, b->command, b->pass, b->words);
    if (a->second != b->second)
        sim_fail(sim, "workers %d and %d use different transports", ring->worker[a->rank],
                 ring->worker[b->rank]);
    if (b->second && b->words && !b->second_said)
        sim_fail(sim, "worker %d uses a transport that it is not ready for", ring->worker[b->rank]);
}

/* Once all are there and none of them stands still. */
void exchange_try(struct sim *sim, int index)
{
    struct ring *ring = &sim->ring[index];
    const struct trainer *first = &sim->node[ring->node[0]].trainer;
    for (int r = 0; r < ring->count; r++) {
        const struct trainer *t = &sim->node[ring->node[r]].trainer;
        bool here = ring_member_lives(sim, ring, r) && t->arrived && t->ring == index;
        if (!here || !ring_member_moves(sim, ring, r) || t->completing || t->finishing)
            return;
    }
    for (int r = 0; r < ring->count; r++)
        check_same(sim, ring, first, &sim->node[ring->node[r]].trainer);
    if (ring->broken || ring->hung || ring_is_walled(sim, index, !first->words) || second_breaks(sim, index))
        return;
    complete(sim, ring);
}

void ring_flows(struct sim *sim)
{
    for (int i = 0; i < sim->rings; i++)
        if (!sim->ring[i].broken)
            exchange_try(sim, i);
}

static void enter(struct sim *sim, int node)
{
    struct trainer *t = &sim->node[node].trainer;
    t->arrived = true;
    if (t->aborted) /* too late for the reduction before, not for this one */
        compute_abort(sim, node);
    else if (sim->ring[t->ring].broken)
        compute_finish(sim, node, OUTCOME_PEER, -1, sim_time(sim, 10 * RM_US, RM_MS));
    else
        exchange_try(sim, t->ring);
}

static void leave(struct trainer *t)
{
    t->arrived = t->completing = false;
    t->op++;
}

/* ---- a rank's way through a step ---- */

/* An evaluation goes on to the reduction by itself. */
void exchange_lanes(struct sim *sim, int node, bool again, rm_time takes)
{
    struct node *n = &sim->node[node];
    struct trainer *t = &n->trainer;
    const rm_time slow = t->slow; /* whatever the rank's speed */
    t->pass = again;
    t->slow = 0;
    if (t->command == CMD_EVALUATE) {
        sim_at(sim, sim->now + takes + slow, EV_COMPUTED, node, t->epoch, t->command_seq);
        return;
    }
    if (sim->plant == PLANT_EARLY_K && n->memory.update_step >= 0) {
        sim->planted++;
        n->memory.torn = true;
    }
    takes = lanes_begin(sim, node, again, lanes_take(sim, node, takes)) + slow;
    compute_finish(sim, node, OUTCOME_OK, -1, takes);
}

void exchange_arrive(struct sim *sim, int node)
{
    struct trainer *t = &sim->node[node].trainer;
    if (t->ring < 0) {
        sim_fail(sim, "worker %d steps without a ring", sim->node[node].worker);
        return;
    }
    t->pass = t->command == CMD_COMPARE ? 0 : t->pass;
    if (sim->plant == PLANT_EARLY_WORDS && t->command == CMD_EXCHANGE) {
        sim->planted++;
        give_up_update(sim, node);
    }
    enter(sim, node);
}

enum { MISREADS_MOST = 4 }; /* more of them in a row, with their pauses, take longer than a job may */

/* Its memory shows it another header than all others saw; now and then, as such a machine does. */
static bool reads_wrongly(struct sim *sim, int node)
{
    const struct node *n = &sim->node[node];
    const struct scenario *s = &sim->scenario;
    bool may = s->nan_alone && n->memory.step + 1 == s->nan_alone && n->worker == s->nan_worker &&
               ring_of_trainer(sim, node)->count > 1 && sim->tallies.of[TALLY_SAID_ALONE] < MISREADS_MOST &&
               sim_chance(sim, 50);
    sim->tallies.of[TALLY_SAID_ALONE] += may;
    return may;
}

/* Each who is odd gives its state up, says so, and gets that of most. Where there are no most, who finds that
 * its bits are not those of its own sums does, and where nobody does, or that did not help, all do. */
static void states_differ(struct sim *sim, int node, struct worker_set odd)
{
    struct trainer *t = &sim->node[node].trainer;
    const struct ring *ring = ring_of_trainer(sim, node);
    struct content *memory = &sim->node[node].memory;
    bool look = ring->header.look, minority = look ? memory->spoilt : set_has(odd, t->rank);
    bool outvoted = minority && (look || set_count(odd) < ring->count);
    memory->sure = memory->sure || (look && !minority);
    sim->node[node].given_wrong += look && minority;
    sim->tallies.of[TALLY_SPOILT] += look && minority;
    lanes_forget(&sim->node[node]);
    struct elastic_result *r = compute_result(t, minority ? OUTCOME_PROOF : OUTCOME_LINEAGE);
    r->minority = minority;
    r->outvoted = outvoted;
    r->class = outvoted ? CLASS_MACHINE : CLASS_PAIR;
    text_copy(r->text, sizeof r->text, "states of other bits");
    t->finishing = true;
    t->command_seq++;
    sim_at(sim, sim->now + 10 * RM_US, EV_DONE, node, t->epoch, t->command_seq)->result = r;
}

/* A pass that does not fit moves no words, and costs nobody the kept update. */
void exchange_header(struct sim *sim, int node)
{
    struct trainer *t = &sim->node[node].trainer;
    const struct header *h = &ring_of_trainer(sim, node)->header;
    leave(t);
    if (finds_wrong(sim, node, PLANT_HEADER_UNPROVEN))
        return;
    check_proven(sim, node, "header");
    if (t->command == CMD_COMPARE) {
        if (h->verdict == PASS_ODD)
            states_differ(sim, node, h->odd);
        else
            compute_finish(sim, node, OUTCOME_OK, -1, 10 * RM_US);
        return;
    }
    t->second = h->second || (sim->plant == PLANT_STAYS_READY && t->second && t->rank == 0);
    sim->planted += t->second && !h->second;
    switch (reads_wrongly(sim, node) ? PASS_NOT_FINITE : h->verdict) {
    case PASS_ODD:
        states_differ(sim, node, h->odd);
        break;
    case PASS_FITS:
        check_flawless(sim, ring_of_trainer(sim, node));
        t->words = true;
        lanes_hear(sim, t, h->us);
        give_up_update(sim, node);
        enter(sim, node);
        break;
    case PASS_RESCALED:
        sim->tallies.of[TALLY_RESCALED]++;
        lanes_forget(&sim->node[node]);
        compute_finish(sim, node, OUTCOME_RESCALE, -1, 10 * RM_US);
        break;
    case PASS_NOT_FINITE:
        lanes_forget(&sim->node[node]);
        compute_finish(sim, node, OUTCOME_NOT_FINITE, -1, 10 * RM_US);
        break;
    }
}

/* That the words are not their sum is seen here, on this rank alone: it does not seal. */
void exchange_words(struct sim *sim, int node)
{
    struct trainer *t = &sim->node[node].trainer;
    const struct header *h = &ring_of_trainer(sim, node)->header;
    leave(t);
    if (finds_wrong(sim, node, PLANT_WORDS_UNPROVEN))
        return;
    check_proven(sim, node, "words");
    seal(sim, &sim->node[node]);
    struct elastic_result *result = compute_result(t, OUTCOME_OK);
    result->stop = h->stop && t->rank != h->blind;
    result->save = h->save;
    result->pace = lanes_pace(t);
    t->saved_at = h->save ? sim->now : t->saved_at;
    t->command_seq++;
    sim_at(sim, sim->now + 10 * RM_US, EV_DONE, node, t->epoch, t->command_seq)->result = result;
}

void exchange_update(struct sim *sim, int node)
{
    struct node *n = &sim->node[node];
    const struct trainer *t = &n->trainer;
    if (!t->sealed)
        sim_fail(sim, "worker %d makes an update of words that are not there", n->worker);
    struct elastic_result *result = compute_result(t, OUTCOME_OK);
    uint64_t hash = content_after(sim, n->memory.hash, n->memory.step, ring_of_trainer(sim, node));
    result->loss = content_loss(&(struct content){.hash = hash});
    rm_time took = sim_time(sim, 10 * RM_US, sim->scenario.step_time / 8 + 20 * RM_US);
    sim_at(sim, sim->now + took, EV_DONE, node, t->epoch, t->command_seq)->result = result;
}
