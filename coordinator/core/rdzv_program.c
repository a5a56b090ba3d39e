/* Failures of a user's processes: the first of a generation counts, once it is known whether a machine went
 * with it. */
#include "coordinator/core/rdzv_program.h"

#include <stdio.h>

#include "common/base/assert.h"
#include "coordinator/core/rdzv_base.h"
#include "coordinator/core/rdzv_failures.h"
#include "coordinator/core/rdzv_out.h"
#include "coordinator/core/rdzv_recovery.h"
#include "coordinator/core/rdzv_states.h"
#include "coordinator/core/rdzv_stop.h"
#include "coordinator/core/rdzv_who.h"

/* In RECOVERING a predecessor may have been told, and its counts are gone with it. Where all were told to go
 * before it is no failure, whatever the code. */
static bool is_failure(const struct rdzv *st, const struct rdzv_worker *w, const struct message *m,
                       rm_time at)
{
    if (st->state == RDZV_RECOVERING)
        return generation_compare(m->generation, w->ring) == 0;
    bool before = st->state == RDZV_QUIESCING && at < st->program.told_to_stop;
    return (st->state == RDZV_TRAINING || before) && w->rank >= 0 &&
           generation_compare(m->generation, st->ring) == 0;
}

/* Of several the first one speaks, whichever is heard first: the others may fail by it. */
static bool is_first(const struct rdzv *st, const struct rdzv_worker *w, rm_time at)
{
    const struct rdzv_program *p = &st->program;
    return !p->failed || (p->worker != rdzv_index(st, w) && at < p->at);
}

/* fault: NULL where it hangs. */
static void fail_program(const struct turn *turn, struct rdzv_worker *w, rm_time at, const char *why,
                         const struct msg_fault *fault)
{
    struct rdzv *st = turn->st;
    struct rdzv_program *p = &st->program;
    RM_ASSERT(at <= turn->now, "a program fails %lld ns from now", (long long)(at - turn->now));
    rdzv_say(st, "worker %d's program failed: %s", rdzv_index(st, w), why);
    struct rdzv_tell *t = rdzv_tell_worker(turn, TELL_PROGRAM_FAILED, rdzv_index(st, w), why);
    t->rank = fault ? fault->rank : -1;
    t->program_code = fault ? fault->exit_code : -1;
    t->output = fault && fault->output[0] ? arena_text(&turn->out->arena, fault->output) : NULL;
    p->lost = p->failed ? p->lost : st->lost;
    p->failed = true;
    p->hangs = !fault;
    p->ordered = false;
    p->at = at;
    p->worker = rdzv_index(st, w);
    text_copy_ends(p->why, sizeof p->why, why);
    if (st->state != RDZV_TRAINING)
        return;
    rdzv_recovery_begin(turn, fault ? CAUSE_TRAINER_EXIT : CAUSE_HANG, w);
    rdzv_quiesce(turn, STOP_NOW);
}

void rdzv_program_fault(const struct turn *turn, struct rdzv_worker *w, const struct message *m)
{
    struct rdzv *st = turn->st;
    struct rdzv_program *p = &st->program;
    rm_time at = turn->now - m->fault.lasted;
    if (!is_failure(st, w, m, at) || !is_first(st, w, at))
        return;
    p->exit_code = m->fault.exit_code;
    p->memory = m->fault.memory;
    fail_program(turn, w, at, m->fault.detail, &m->fault);
}

static enum rdzv_rule rule_of_code(const struct rdzv *st, int code, bool memory)
{
    enum rdzv_rule rule = (enum rdzv_rule)st->settings.rule[code % PROGRAM_CODES];
    RM_ASSERT(code >= 0, "a program's exit code is %d", code);
    return rule == RULE_SPARES && memory ? RULE_COUNTS : rule;
}

static void tell_beside(const struct turn *turn, const struct rdzv_worker *w, const struct msg_fault *f)
{
    struct rdzv *st = turn->st;
    rdzv_say(st, "worker %d's program failed: %s", rdzv_index(st, w), f->detail);
    struct rdzv_tell *t = rdzv_tell_worker(turn, TELL_PROGRAM_FAILED, rdzv_index(st, w), f->detail);
    t->rank = -1;
    t->program_code = f->exit_code;
    t->output = f->output[0] ? arena_text(&turn->out->arena, f->output) : NULL;
}

void rdzv_beside_ended(struct rdzv_worker *w, const struct msg_fault *f)
{
    w->beside.over = f->trainer > w->beside.over ? f->trainer : w->beside.over;
}

/* What was said on a connection that broke is said again. */
void rdzv_beside_failed(const struct turn *turn, struct rdzv_worker *w, const struct msg_fault *f)
{
    RM_ASSERT(turn->st->settings.brought, "worker %d has no program beside a trainer",
              rdzv_index(turn->st, w));
    struct rdzv_beside *b = &w->beside;
    char why[MSG_DETAIL_MAX];
    if (f->trainer && f->trainer <= b->over)
        return;
    if (!b->failed && (!f->trainer || f->trainer > b->told))
        tell_beside(turn, w, f);
    b->failed = true;
    b->exit_code = f->exit_code;
    b->memory = f->memory;
    b->told = f->trainer;
    if (!f->over)
        return;
    rdzv_beside_ended(w, f);
    bool fails_job = rule_of_code(turn->st, b->exit_code, b->memory) == RULE_FAILS_JOB;
    if (f->lasted >= turn->st->settings.within && !fails_job) {
        b->failed = false; /* it would not count any more if it had been heard */
        return;
    }
    text_print_ends(why, sizeof why, "the trainer was ended with its program: %s", f->detail);
    rdzv_beside_over(turn, w, why);
}

void rdzv_beside_over(const struct turn *turn, struct rdzv_worker *w, const char *why)
{
    struct rdzv *st = turn->st;
    struct rdzv_beside was = w->beside;
    bool ends = st->ending.set;
    enum rdzv_rule rule = was.failed ? rule_of_code(st, was.exit_code, was.memory) : RULE_COUNTS;
    w->beside.failed = false;
    if (rule == RULE_SPARES) {
        rdzv_say(st, "worker %d: %s; failurePolicy.rules spare that exit code", rdzv_index(st, w), why);
        return;
    }
    if (rule == RULE_FAILS_JOB)
        rdzv_give_up(st, EXIT_TRAINING, "worker %d: %s; failurePolicy.rules end the job at that exit code",
                     rdzv_index(st, w), why);
    rdzv_count_failure(turn, w, why);
    if (!was.failed || ends || !st->ending.set)
        return;
    st->program.ended = true;
    st->program.exit_code = was.exit_code;
}

/* Who waits in a collective for one that a drill has stopped stands still as well, and may be the one that
 * reports. */
static struct rdzv_worker *stopped_by_drill(struct rdzv *st)
{
    for (int r = 0; r < st->world; r++)
        if (st->worker[st->member[r]].act == CAUSE_HANG)
            return &st->worker[st->member[r]];
    return NULL;
}

void rdzv_program_hangs(const struct turn *turn, struct rdzv_worker *w, const char *why)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->settings.program && w->rank >= 0, "worker %d, of rank %d, has no program that hangs",
              rdzv_index(st, w), w->rank);
    struct rdzv_worker *drilled = stopped_by_drill(st);
    if (drilled)
        rdzv_recovery_begin(turn, CAUSE_HANG, drilled);
    st->program.memory = false;
    fail_program(turn, w, turn->now, why, NULL);
    st->program.ordered = drilled != NULL;
    if (drilled)
        drilled->act = CAUSE_NONE;
}

void rdzv_program_over(const struct turn *turn, struct rdzv_worker *w)
{
    RM_ASSERT(turn->st->settings.program && w->rank >= 0, "worker %d has no program that could be over",
              rdzv_index(turn->st, w));
    rdzv_recovery_begin(turn, CAUSE_TRAINER_EXIT, w);
    rdzv_quiesce(turn, STOP_NOW);
}

static enum rdzv_rule rule_of(const struct rdzv *st)
{
    const struct rdzv_program *p = &st->program;
    return p->hangs ? RULE_COUNTS : rule_of_code(st, p->exit_code, p->memory);
}

void rdzv_program_stopped(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    struct rdzv_program *p = &st->program;
    RM_ASSERT(p->lost <= st->lost, "%lld were lost, and %lld when the program failed", (long long)st->lost,
              (long long)p->lost);
    bool counts = p->failed && !p->ordered && st->lost == p->lost, ends = st->ending.set;
    p->failed = false;
    if (!counts)
        return;
    if (rule_of(st) == RULE_SPARES) {
        rdzv_say(st, "worker %d: %s; failurePolicy.rules spare that exit code", p->worker, p->why);
        return;
    }
    if (rule_of(st) == RULE_FAILS_JOB)
        rdzv_give_up(st, EXIT_TRAINING, "worker %d: %s; failurePolicy.rules end the job at that exit code",
                     p->worker, p->why);
    rdzv_count_program_failure(turn, &st->worker[p->worker], p->why);
    p->ended = st->ending.set && !ends;
}

bool rdzv_program_lives_on(const struct rdzv *st, const struct rdzv_worker *w)
{
    return st->settings.program && w->presence != ABSENT && w->rank < 0 && w->runs;
}

bool rdzv_program_may_live(const struct rdzv *st, const struct rdzv_worker *w)
{
    bool stopping = st->state == RDZV_QUIESCING && w->must_stop;
    bool in_ring = w->rank >= 0 && (st->state == RDZV_TRAINING || stopping);
    return st->settings.program && !w->released && (w->runs || in_ring);
}

void rdzv_program_accused(const struct rdzv *st, struct rdzv_worker *w)
{
    w->runs = rdzv_program_may_live(st, w);
}

void rdzv_program_replaced(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    if (st->settings.alone)
        st->alone_at = turn->now + st->settings.lost_after;
}

bool rdzv_program_lives_on_anywhere(const struct rdzv *st)
{
    if (st->alone_at > st->accounted)
        return true;
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        if (rdzv_program_lives_on(st, &st->worker[i]))
            return true;
    return false;
}

void rdzv_program_again(const struct turn *turn, struct rdzv_worker *w)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(w->presence == PRESENT, "worker %d comes back, and is not here", rdzv_index(st, w));
    bool newer = generation_compare(w->ring, st->ring) > 0;
    if (st->state == RDZV_RECOVERING || !rdzv_program_lives_on(st, w))
        return;
    if (st->state == RDZV_TRAINING && !newer) {
        rdzv_stop_one(turn, w);
        return;
    }
    rdzv_say(st, "worker %d comes back, and its program of another generation still runs", rdzv_index(st, w));
    rdzv_recovery_begin(turn, CAUSE_RING_ERROR, NULL);
    rdzv_quiesce_on(turn);
}

void rdzv_program_adopted(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->state == RDZV_TRAINING && st->world > 0, "a ring of %d goes on in state %s", st->world,
              rdzv_state_name(st->state));
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        if (st->worker[i].presence == PRESENT && rdzv_program_lives_on(st, &st->worker[i]))
            rdzv_stop_one(turn, &st->worker[i]);
}

void rdzv_program_finished(struct rdzv *st)
{
    RM_ASSERT(st->settings.program && st->world > 0, "a program of %d finishes", st->world);
    st->told = st->known_step = st->settings.steps;
    st->final_saved = true;
}
