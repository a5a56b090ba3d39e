/* The end of a run: what is told of it, and everybody is released. */
#include "coordinator/core/rdzv_ending.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "coordinator/core/rdzv_base.h"
#include "coordinator/core/rdzv_goodput.h"
#include "coordinator/core/rdzv_leave.h"
#include "coordinator/core/rdzv_out.h"
#include "coordinator/core/rdzv_progress.h"
#include "coordinator/core/rdzv_recovery.h"
#include "coordinator/core/rdzv_states.h"

static void release_all(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->state == RDZV_FINISHED || st->state == RDZV_FAILED, "all are let go in state %s",
              rdzv_state_name(st->state));
    rdzv_send(turn, MSG_RELEASE)->release.over = true;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        if (w->presence == PRESENT)
            rdzv_send_to(turn, w);
    }
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        if (w->presence == PRESENT && !w->released)
            rdzv_tell_worker(turn, TELL_RELEASED, i, "");
        w->released = true;
    }
}

static void tell_skipped(const struct turn *turn)
{
    RM_ASSERT(turn->st->state == RDZV_FINISHED, "who came too late is told in state %s",
              rdzv_state_name(turn->st->state));
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &turn->st->worker[i];
        if (w->presence == PRESENT && w->rank < 0 && !w->leaving && !w->released)
            rdzv_tell_worker(turn, TELL_JOIN_SKIPPED, i,
                             w->left_out[0] ? w->left_out
                                            : "the last step came before it was worth making room for it");
        else if (w->presence == ABSENT && w->expected > w->attempt)
            rdzv_tell_worker(turn, TELL_JOIN_SKIPPED, i, "the last step came before it did");
    }
}

static void tell_complete(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->final_saved, "complete, and step %lld is not saved", (long long)st->told);
    struct rdzv_tell *t = rdzv_tell(turn, TELL_COMPLETE);
    t->step = st->settings.steps;
    t->loss = st->loss;
    t->exact = st->exact;
    t->program = st->settings.program;
    t->goodput = rdzv_productive_share(rdzv_goodput(st, turn->now));
    memcpy(t->digest, st->digest, RM_HASH_BYTES);
}

static void tell_failed(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->ending.set && st->ending.exit_code != EXIT_DONE, "failed with code %d",
              st->ending.exit_code);
    bool interrupted = st->ending.interrupted && st->ending.exit_code == EXIT_INTERRUPTED;
    struct rdzv_tell *t = rdzv_tell(turn, interrupted ? TELL_INTERRUPTED : TELL_FAILED);
    t->step = st->saved > 0 ? st->saved : 0;
    t->exit_code = st->ending.exit_code;
    t->program = st->program.ended && !st->program.hangs;
    t->program_code = st->program.exit_code;
    text_copy(t->text, sizeof t->text, st->ending.text);
}

/* What the end leaves behind, for the sentence. */
static void add_what_is_kept(struct rdzv *st)
{
    char *text = st->ending.text;
    size_t length = strlen(text);
    RM_ASSERT(length < sizeof st->ending.text, "a sentence of %zu bytes", length);
    if (st->settings.program)
        return;
    if (st->ending.not_finite)
        snprintf(text + length, sizeof st->ending.text - length,
                 "; it would come out the same again: lower trainer.optimizer.learningRate or look at the "
                 "data, and "
                 "start anew with --overwrite");
    else if (st->saved > 0)
        snprintf(text + length, sizeof st->ending.text - length,
                 "; the newest checkpoint is of step %" PRId64 ": run again to go on from it", st->saved);
    else
        snprintf(text + length, sizeof st->ending.text - length, "; there is no checkpoint yet");
}

void rdzv_end(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    bool complete = st->final_saved && !(st->ending.set && st->ending.exit_code != EXIT_INTERRUPTED);
    RM_ASSERT(complete || st->ending.set, "the run ends in state %s, and nobody knows why",
              rdzv_state_name(st->state));
    if (complete && !rdzv_all_told(turn))
        return;
    /* or more: a worker may tell of any step */
    RM_ASSERT(!complete || st->told >= st->settings.steps, "complete at step %lld of %lld",
              (long long)st->told, (long long)st->settings.steps);
    if (st->recovery.active && complete)
        rdzv_recovery_done(turn);
    rdzv_move(turn, complete ? RDZV_FINISHED : RDZV_FAILED);
    RM_ASSERT(st->state == (complete ? RDZV_FINISHED : RDZV_FAILED), "the run ends, and stays in state %s",
              rdzv_state_name(st->state));
    rdzv_tell_left(turn);
    if (complete) {
        tell_skipped(turn);
        tell_complete(turn);
        rdzv_say(st, "complete");
    } else {
        add_what_is_kept(st);
        tell_failed(turn);
        rdzv_say(st, "%s", st->ending.text);
    }
    release_all(turn);
    rdzv_tell_end(turn, complete ? EXIT_DONE : st->ending.exit_code, complete ? "" : st->ending.text);
}

void rdzv_save_failed(const struct turn *turn, int64_t step, const char *detail)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->state != RDZV_FINISHED && st->state != RDZV_FAILED, "step %" PRId64 " fails in state %s",
              step, rdzv_state_name(st->state));
    bool told = st->ending.set;
    char why[MSG_DETAIL_MAX];
    char before[151], cause[181];
    snprintf(why, sizeof why, "%s%sthe checkpoint of step %" PRId64 " can't be written: %s",
             text_copy_ends(before, sizeof before, told ? st->ending.text : ""), told ? "; " : "", step,
             text_copy_ends(cause, sizeof cause, detail));
    st->ending.set = false;
    rdzv_give_up(st, EXIT_MACHINE, "%s", why);
    rdzv_end(turn);
}
