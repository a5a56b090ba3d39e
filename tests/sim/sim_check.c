/* The invariants, judged by the truth. R1.. are the names in docs/protocol.md. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "coordinator/status/rdzv_text.h"
#include "tests/sim/sim.h"

struct msg_state content_state(const struct content *c)
{
    struct msg_state s = {0};
    if (!c->whole)
        return s;
    s.held = true;
    s.step = c->step;
    sim_lineage(c->hash, s.lineage);
    return s;
}

struct content content_new(int64_t step, uint64_t hash)
{
    return (struct content){.whole = true, .step = step, .hash = hash, .update_step = -1};
}

/* Of the step that led to it. */
double content_loss(const struct content *c)
{
    return (double)(c->hash % 100000) / 1e5;
}

/* The run-time judges of who hangs look only at what is told; here the truth is known. Word of it travels. */
void check_blame(struct sim *sim, int node)
{
    rm_time travels = sim->settings.step_timeout + 3 * sim->settings.heartbeat;
    sim->tallies.of[TALLY_BLAMED]++;
    bool waits = trouble_is_stuck(sim, node); /* for its agent, whose call does not return: nobody vouches */
    if (!waits && !pause_is_disturbed(sim, node, travels))
        sim_fail(sim, "worker %d is blamed for a hang, but was never stopped or stuck",
                 sim->node[node].worker);
}

/* What it said lay unread where it was the coordinator that stood still. */
static void check_silent(struct sim *sim, const struct rdzv_tell *t)
{
    int node = sim->node_of[t->worker];
    rm_time travels = sim->settings.lost_after + 3 * sim->settings.heartbeat;
    if (strncmp(t->text, "silent for ", 11) != 0 || node < 0 || !sim->node[node].alive)
        return;
    sim->tallies.of[TALLY_SILENT]++;
    if (!pause_is_disturbed(sim, node, travels))
        sim_fail(sim, "worker %d is lost as silent, but was never stopped or cut off", t->worker);
}

/* Each sample trained once. Steps come one after the other: what the newest holds is kept. */
uint64_t check_exact_hash(int64_t step)
{
    static _Thread_local int64_t known = -1;
    static _Thread_local uint64_t kept;
    if (known < 0 || known > step) {
        known = 0;
        kept = sim_hash(7, 7, 7);
    }
    for (; known < step; known++)
        kept = sim_hash(kept, (uint64_t)known + 1, 0);
    return kept;
}

/* Whether anybody of the newest ring is still there to go on from its state. */
static bool has_survivor(const struct sim *sim, const struct msg_form *f)
{
    const struct ring *ring = NULL;
    for (int i = 0; i < sim->rings; i++) {
        if (!ring || generation_compare(sim->ring[i].generation, ring->generation) > 0)
            ring = &sim->ring[i];
    }
    for (int r = 0; ring && r < ring->count; r++) {
        const struct node *n = &sim->node[ring->node[r]];
        for (int i = 0; i < f->count; i++) {
            bool same =
                f->member[i].worker == ring->worker[r] && sim->node_of[ring->worker[r]] == ring->node[r];
            if (same && n->alive && n->trainer.alive && n->trainer.epoch == ring->epoch[r])
                return true;
        }
    }
    return false;
}

/* Of who is one step behind, and is given everything. */
static void count_whole(struct sim *sim, const struct msg_form *f)
{
    for (int i = 0; i < f->sources_count; i++) {
        int node = sim->node_of[f->source[i].worker];
        if (node >= 0 && sim->node[node].memory.update_step == f->resume.step)
            return;
    }
    for (int r = 0; r < f->count; r++) {
        int node = sim->node_of[f->member[r].worker];
        const struct content *c = node >= 0 ? &sim->node[node].memory : NULL;
        bool one_behind = c && c->whole && c->step == f->resume.step - 1;
        sim->tallies.of[TALLY_WHOLE] += one_behind && f->member[r].role == ROLE_RECEIVE;
    }
}

static bool takes_part(const struct msg_form *f, int worker)
{
    bool any = false;
    for (int r = 0; r < f->count; r++)
        any = any || f->member[r].worker == worker;
    for (int i = 0; i < f->sources_count; i++)
        any = any || f->source[i].worker == worker;
    return any;
}

/* Before it is killed it has to be let go. */
static bool has_time_to_answer(const struct sim *sim, const struct node *n)
{
    return !n->leaves_by || sim->now + 2 * RM_S < n->leaves_by;
}

/* R7: whoever is there and has said that it holds more is waited for until it has answered, also if it leaves
 * and has the time for that. */
static void check_passed_over(struct sim *sim, const struct msg_form *f)
{
    const struct scenario *s = &sim->scenario;
    int64_t from = f->resume.held ? f->resume.step : 0;
    for (int i = 0; i < sim->conns && !s->trouble && !s->mixed && !s->notices; i++) {
        const struct conn *c = &sim->conn[i];
        const struct node *n = &sim->node[c->node];
        bool there = c->handed && c->coord_open && !c->coord_told && n->alive;
        bool holds = n->memory.whole && n->memory.step == c->brings && c->brings > from + 1;
        bool patient = sim->now < c->brings_said + sim->settings.start_timeout && has_time_to_answer(sim, n);
        if (there && holds && patient && !takes_part(f, n->worker))
            sim_fail(sim,
                     "R7: worker %d has said that it holds step %" PRId64
                     ", and the ring without it resumes from %" PRId64,
                     n->worker, c->brings, from);
    }
}

/* Its bits may be wrong, as far as anybody can tell who holds a state of that step. */
static bool nobody_vouches(const struct sim *sim, const struct content *c)
{
    return c->doubted || c->flaw || c->step == sim->flawed_at;
}

/* R1: one member list per generation; R7: nobody who holds more is rolled back by a ring it was part of. */
void check_form(struct sim *sim, const struct message *m)
{
    const struct msg_form *f = &m->form;
    sim->forms++;
    trouble_check_form(sim, f);
    pairs_check_form(sim, f);
    count_whole(sim, f);
    listen_check_form(sim, f);
    check_passed_over(sim, f);
    sim->tallies.of[TALLY_LOADED] += f->count && f->member[0].role == ROLE_LOAD;
    for (int i = 0; i < sim->rings; i++) {
        const struct ring *ring = &sim->ring[i];
        if (generation_compare(ring->generation, m->generation) != 0)
            continue;
        bool same = ring->count == f->count;
        for (int r = 0; same && r < f->count; r++)
            same = ring->worker[r] == f->member[r].worker;
        if (!same)
            sim_fail(sim, "R1: generation %" PRId64 " has two member lists", m->generation.n);
    }
    sim->loaded_since = sim->loaded_since || !has_survivor(sim, f);
    for (int r = 0; r < f->count; r++)
        sim->loaded_since =
            sim->loaded_since || f->member[r].role == ROLE_LOAD || f->member[r].role == ROLE_INIT;
    if (!f->resume.held && sim->told > 0 && sim->published_count == 0)
        return; /* all was lost before the first checkpoint */
    for (int r = 0; r < f->count; r++) {
        int node = sim->node_of[f->member[r].worker];
        const struct node *n = node >= 0 ? &sim->node[node] : NULL;
        if (!n || !n->alive || !n->trainer.opened || !n->memory.whole || n->memory.step <= f->resume.step ||
            nobody_vouches(sim, &n->memory))
            continue;
        sim_fail(sim, "R7: worker %d holds step %" PRId64 ", the ring resumes from %" PRId64, n->worker,
                 n->memory.step, f->resume.step);
    }
}

/* R2, R6, R11: one step, one history, and in exact mode the one that an undisturbed run has. */
static bool is_newest(const struct sim *sim, const struct ring *ring)
{
    for (int i = 0; i < sim->rings; i++)
        if (generation_compare(sim->ring[i].generation, ring->generation) > 0)
            return false;
    return true;
}

/* The bits of an exact run are those of one kind of machine, from the first step on. (A ring that stood still
 * while the job began anew without it may go on for a step; nothing comes of it.) */
static void check_kind(struct sim *sim, const struct ring *ring, int64_t step)
{
    if (!sim->scenario.odd_may_come || !is_newest(sim, ring))
        return;
    if (step == 0)
        sim->odd = sim->node[ring->node[0]].odd;
    for (int r = 0; r < ring->count && sim->scenario.exact; r++)
        if (sim->node[ring->node[r]].odd != sim->odd)
            sim_fail(sim, "R6: worker %d computes other bits than those of the steps before",
                     ring->worker[r]);
}

void check_reduction(struct sim *sim, const struct ring *ring)
{
    const struct content *first = &sim->node[ring->node[0]].memory;
    check_kind(sim, ring, first->step);
    for (int r = 0; r < ring->count; r++) {
        const struct node *n = &sim->node[ring->node[r]];
        if (n->trainer.ring < 0 ||
            generation_compare(sim->ring[n->trainer.ring].generation, ring->generation))
            sim_fail(sim, "R2: worker %d reduces outside of its ring", n->worker);
        if (!n->memory.whole || n->memory.step != first->step || n->memory.hash != first->hash)
            sim_fail(sim, "R11: workers %d and %d train on different states", ring->worker[0], n->worker);
    }
    if (sim->scenario.exact && first->hash != check_exact_hash(first->step))
        sim_fail(sim, "R6: step %" PRId64 " was reached with samples missing or trained twice", first->step);
}

/* R9: who missed an update can have it, as long as a ring that made it stands. */
void check_update_stands(struct sim *sim, const struct ring *ring)
{
    const struct content *ahead = NULL;
    int behind = -1;
    for (int r = 0; r < ring->count; r++) {
        const struct node *n = &sim->node[ring->node[r]];
        if (n->alive && n->memory.whole && (!ahead || n->memory.step > ahead->step))
            ahead = &n->memory;
    }
    if (!ahead || !is_newest(sim, ring))
        return;
    for (int r = 0; r < ring->count; r++) {
        const struct node *n = &sim->node[ring->node[r]];
        if (n->alive && n->memory.update_step == ahead->step && !n->memory.torn)
            return;
        if (n->alive && n->memory.whole && n->memory.step == ahead->step - 1)
            behind = n->worker;
    }
    if (behind >= 0)
        sim_fail(sim, "R9: worker %d stands at step %" PRId64 ", and nobody keeps the update to the next",
                 behind, ahead->step - 1);
}

/* R15: the lanes of a state whose bits are not those of its history are other lanes. Where all have the same
 * ones, nobody alive knows of others. */
void check_flawless(struct sim *sim, const struct ring *ring)
{
    const struct node *first = &sim->node[ring->node[0]];
    for (int r = 1; r < ring->count; r++) {
        const struct node *n = &sim->node[ring->node[r]];
        if (n->memory.doubted || first->memory.doubted)
            sim_fail(sim, "R15: a state goes on of which nobody could say that its bits are right");
        if (n->memory.flaw != first->memory.flaw)
            sim_fail(sim, "R15: a step is made of lanes that workers %d and %d computed from other bits",
                     first->worker, n->worker);
    }
}

/* R15: nobody takes a wrong sum for a result. */
void check_proven(struct sim *sim, int node, const char *what)
{
    const struct node *n = &sim->node[node];
    if (n->trainer.wrong)
        sim_fail(sim, "R15: worker %d takes a wrong sum of the %s for step %" PRId64, n->worker, what,
                 n->memory.step + 1);
}

/* R15: who says so was given one, and is not blamed for it. */
static void check_proof_failed(struct sim *sim, const struct rdzv_tell *t)
{
    int64_t times = 0;
    for (int i = 0; i < sim->nodes; i++)
        times += sim->node[i].worker == t->worker ? sim->node[i].given_wrong : 0;
    sim->loaded_since = sim->loaded_since || sim->undecided; /* or a state from long before was received */
    sim->undecided = false;
    if (!times)
        sim_fail(sim, "R15: worker %d is said to have been given a wrong sum, and was not", t->worker);
}

void check_kept(struct sim *sim, int node, const struct message *m)
{
    const struct node *n = &sim->node[node];
    if (m->type == MSG_STOPPED && m->stopped.update_step >= 0 && n->memory.torn)
        sim_fail(sim, "R9: worker %d says that it keeps the update to step %" PRId64 ", which is torn",
                 n->worker, m->stopped.update_step);
}

/* As its writer said that it wrote it: what else lay under that name the publisher finds, and it is written
 * anew. NULL: it is not there. */
static const struct slice *slice_of(const struct sim *sim, const struct msg_publish *p,
                                    const struct msg_piece *piece)
{
    const struct slice *found = NULL;
    int parts = (int)piece->offset / PARTS_BASE, part = (int)piece->offset % PARTS_BASE;
    int64_t first = sim->slices > SLICES_MAX ? sim->slices - SLICES_MAX : 0;
    for (int64_t i = first; i < sim->slices; i++) {
        const struct slice *s = &sim->slice[i % SLICES_MAX];
        if (s->used && s->step == p->step && s->final == p->final && s->part == part && s->parts == parts &&
            s->hash == sim_lineage_hash(p->lineage) && s->flaw == store_named_bits(piece->sha256))
            found = s;
    }
    return found;
}

/* R4: what is published is whole and of one state. */
uint64_t check_publish(struct sim *sim, const struct msg_publish *p)
{
    bool in[RM_WORKERS_MAX] = {0};
    int parts = p->count ? (int)p->piece[0].offset / PARTS_BASE : 0;
    uint64_t flaw = p->count ? store_named_bits(p->piece[0].sha256) : 0;
    for (int i = 0; i < p->count; i++) {
        int part = (int)p->piece[i].offset % PARTS_BASE;
        if (p->piece[i].offset / PARTS_BASE != parts || in[part] || !slice_of(sim, p, &p->piece[i]))
            sim_fail(sim, "R4: the checkpoint of step %" PRId64 " has a part that does not belong", p->step);
        else if (store_named_bits(p->piece[i].sha256) != flaw)
            sim_fail(sim, "R4: the checkpoint of step %" PRId64 " is of states with other bits", p->step);
        in[part] = true;
    }
    if (parts == 0 || p->count != parts)
        sim_fail(sim, "R4: the checkpoint of step %" PRId64 " has %d of %d parts", p->step, p->count, parts);
    return flaw;
}

/* R3: a word of a lower term never gets past the agent. */
void check_link_term(struct sim *sim, int node, const struct message *m)
{
    int64_t heard = sim->node[node].heard;
    bool of_coordinator =
        m->type == MSG_STOP || m->type == MSG_FORM || m->type == MSG_GO || m->type == MSG_SAVE;
    if (of_coordinator && m->term < heard)
        sim_fail(sim, "R3: worker %d obeys a lower term", sim->node[node].worker);
}

/* What run remembers, and hands to a successor. */
static void run_hears(struct sim *sim, const struct rdzv_tell *t)
{
    if (t->kind == TELL_RING_FORMED && t->step > sim->ring_told)
        sim->ring_told = t->step;
    if (t->kind == TELL_CHECKPOINT_SAVED || t->kind == TELL_CHECKPOINT_LOADED)
        sim->saved_told = t->step;
    if (t->kind == TELL_EVALUATED || t->kind == TELL_CHECKPOINT_LOADED)
        sim->evaluated_told = t->step;
    /* where a coordinator died before it told that, the ring of the next one shows it */
    bool first_ring = t->kind == TELL_RING_FORMED && sim->told == 0 && t->step == sim->scenario.resumes;
    if (t->kind == TELL_CHECKPOINT_LOADED || first_ring)
        sim->told = sim->resumed = t->step;
    if (t->kind == TELL_WORKER_QUARANTINED)
        run_worker_quarantined(sim, t->worker);
    if (t->kind == TELL_WORKER_LOST) {
        check_silent(sim, t);
        run_worker_lost(sim, t->worker);
    }
    if (t->kind == TELL_COMPLETE)
        sim->last_word = 0;
    if (t->kind == TELL_FAILED || t->kind == TELL_INTERRUPTED)
        sim->last_word = t->exit_code;
}

static void check_step(struct sim *sim, const struct rdzv_tell *t)
{
    /* a coordinator may have died between forming the first ring and telling of it */
    bool resumed_untold = sim->told == 0 && t->step == sim->scenario.resumes + 1;
    if (t->step != sim->told + 1 && !resumed_untold)
        sim_fail(sim, "step %" PRId64 " is told after step %" PRId64, t->step, sim->told);
    if (isnan(t->loss))
        sim_fail(sim, "step %" PRId64 " is told without its loss", t->step);
    else if (sim->scenario.exact &&
             t->loss != content_loss(&(struct content){.hash = check_exact_hash(t->step)}))
        sim_fail(sim, "step %" PRId64 " is told with another one's loss", t->step);
    if (sim->scenario.nan_step && t->step >= sim->scenario.nan_step)
        sim_fail(sim, "step %" PRId64 " is told, but is not finite", t->step);
    sim->told = t->step;
    sim->tallies.of[TALLY_STEPS]++;
}

static void check_evaluated(struct sim *sim, const struct rdzv_tell *t)
{
    if (t->step > STEPS_MAX || sim->evaluated[t->step])
        sim_fail(sim, "the evaluation of step %" PRId64 " is told twice", t->step);
    else
        sim->evaluated[t->step] = true;
}

static void check_recovered(struct sim *sim, const struct rdzv_tell *t)
{
    int64_t redone = t->recovery.steps_redone;
    if (sim->replay)
        sim->replay->ret.back += redone;
    sim_trace(sim, "recovered: %s in %.1f ms, redone %" PRId64, cause_name(t->recovery.cause),
              rm_ms(t->recovery.total), redone);
    sim->tallies.of[TALLY_RECOVERIES]++;
    sim->tallies.of[TALLY_REDONE] += redone;
    if (t->recovery.cause == CAUSE_COORDINATOR_LOST)
        return;
    if (redone > 0 && sim->scenario.calm && !sim->skipped_since)
        sim_fail(sim, "R7: an announced change redid %" PRId64 " steps", redone);
    bool one_ring = sim->forms <= sim->forms_at_recovery + 1;
    if (redone > 1 && one_ring && !sim->loaded_since)
        sim_fail(sim, "R7: one sudden loss redid %" PRId64 " steps", redone);
    sim->forms_at_recovery = sim->forms;
    sim->loaded_since = sim->skipped_since = false;
}

static void check_complete(struct sim *sim, const struct rdzv_tell *t)
{
    const struct scenario *s = &sim->scenario;
    bool final = false;
    sim->completes++;
    if (sim->told != s->steps)
        sim_fail(sim, "complete at step %" PRId64 " of %" PRId64, sim->told, s->steps);
    for (int64_t e = s->evaluation_every; s->evaluation_every && e <= s->steps; e += s->evaluation_every) {
        if (e > sim->resumed && !sim->evaluated[e])
            sim_fail(sim, "the evaluation of step %" PRId64 " was never told", e);
    }
    for (int i = 0; i < sim->published_count; i++) {
        const struct published *p = &sim->published[i];
        if (p->final && published_stands(p) && p->flaw && !sim->flaw_agreed)
            sim_fail(sim, "R15: the run ends with bits that others who were there had not");
    }
    for (int i = 0; i < sim->published_count; i++)
        final = final || (sim->published[i].final && published_stands(&sim->published[i]) &&
                          sim->published[i].hash == sim_lineage_hash(t->digest));
    if (!final)
        sim_fail(sim, "complete without the final checkpoint");
    if (s->exact && sim_lineage_hash(t->digest) != check_exact_hash(s->steps))
        sim_fail(sim, "R6: the final weights are not those of an undisturbed run");
}

void check_tell(struct sim *sim, const struct rdzv_tell *t)
{
    if (t->kind != TELL_STEP) {
        struct str text = str_init(4096);
        rdzv_tell_print(t, 0, "file:///sim", &text);
        sim_trace(sim, "tells %s", str_text(&text));
        str_clear(&text);
    }
    run_hears(sim, t);
    pairs_told(sim, t);
    trouble_check_told(sim, t);
    still_told(sim, t);
    beside_check_told(sim, t);
    sim->tallies.of[TALLY_RINGS] += t->kind == TELL_RING_FORMED;
    sim->tallies.of[TALLY_WAITED] += t->kind == TELL_CHECKPOINT_WAITING;
    sim->stuck_told = sim->stuck_told || (t->kind == TELL_WAITING && strstr(t->text, "has not returned"));
    sim->refused_told = sim->refused_told || t->kind == TELL_WORKER_REFUSED;
    sim->tallies.of[TALLY_NOT_SAVED] += t->kind == TELL_CHECKPOINT_SKIPPED;
    sim->vanished_told =
        sim->vanished_told || (t->kind == TELL_WAITING && strstr(t->text, "a piece is missing"));
    sim->skipped_since = sim->skipped_since || t->kind == TELL_CHECKPOINT_SKIPPED;
    bool differ = t->kind == TELL_CHECKPOINT_SKIPPED && strstr(t->text, "states of this step differ");
    sim->loaded_since = sim->loaded_since || differ;
    if (t->kind == TELL_CHECKPOINT_SKIPPED && !differ)
        notice_check_skipped(sim);
    if (t->kind == TELL_CHECKPOINT_REFUSED)
        trouble_check_refused(sim, t);
    if (t->kind == TELL_STEP)
        check_step(sim, t);
    else if (t->kind == TELL_EVALUATED)
        check_evaluated(sim, t);
    else if (t->kind == TELL_RECOVERED)
        check_recovered(sim, t);
    else if (t->kind == TELL_COMPLETE)
        check_complete(sim, t);
    else if (t->kind == TELL_PROOF_FAILED)
        check_proof_failed(sim, t);
}

static bool is_right_end(const struct sim *sim)
{
    const struct scenario *s = &sim->scenario;
    switch (sim->exit_code) {
    case 0:
        return !s->nan_step;
    case 130:
        return s->interrupts;
    case 6: /* after an interrupt nobody is started again */
        return !s->unsupervised && (s->below_min || s->interrupts || s->strict || trouble_takes_one(sim));
    case 5:
        return s->nan_step || s->strict;
    case 4:
        return ((s->storage_fails || s->fills) && !s->unsupervised) || trouble_ends_it(sim) ||
               sim->unreachable;
    case 3:
        return trouble_all_damaged(sim);
    default:
        return false;
    }
}

static void count_end(struct sim *sim)
{
    static const struct {
        int exit_code;
        enum tally tally;
    } ends[] = {{0, TALLY_COMPLETE},
                {130, TALLY_INTERRUPTED},
                {6, TALLY_TOO_FEW},
                {5, TALLY_NOT_FINITE},
                {4, TALLY_STORAGE}};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        sim->tallies.of[ends[i].tally] += sim->exit_code == ends[i].exit_code;
}

/* R8: it comes to an end, and to the right one. */
void check_end(struct sim *sim)
{
    if (!sim->ended && trouble_may_wait(sim))
        return;
    if (!sim->ended && run_has_too_few_places(sim)) {
        sim->tallies.of[TALLY_NO_PLACES]++;
        return;
    }
    if (!sim->ended && pairs_wait_for_ever(sim)) {
        sim->tallies.of[TALLY_FOR_EVER]++;
        return;
    }
    if (!sim->ended) {
        sim_fail(sim, "R8: no end after %.1f s and %" PRId64 " events; the coordinator is %s: %s",
                 (double)sim->now / RM_S, sim->events,
                 sim->rdzv ? rdzv_state_name(rdzv_state(sim->rdzv)) : "dead",
                 sim->rdzv ? rdzv_why(sim->rdzv) : "");
        return;
    }
    if (!is_right_end(sim))
        sim_fail(sim, "R8: ended with %d: %s", sim->exit_code, sim->end_why);
    if ((sim->exit_code == 0) != (sim->completes == 1))
        sim_fail(sim, "exit code %d and %" PRId64 " times complete", sim->exit_code, sim->completes);
    for (int i = 0; i < sim->nodes; i++) {
        if (sim->node[i].alive)
            sim_fail(sim, "worker %d outlives the run", sim->node[i].worker);
    }
    beside_check_end(sim);
    count_end(sim);
}
