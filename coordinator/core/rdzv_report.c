/* Takes what launchers say of a program's progress, and watches the time since it last moved; tells of its
 * snapshots. */
#include "coordinator/core/rdzv_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "common/base/assert.h"
#include "coordinator/core/rdzv_base.h"
#include "coordinator/core/rdzv_goodput.h"
#include "coordinator/core/rdzv_hang.h"
#include "coordinator/core/rdzv_out.h"
#include "coordinator/core/rdzv_program.h"
#include "coordinator/core/rdzv_ring.h"

enum { MOVES_OF_PATIENCE = 10, MOVES_TO_KNOW = 3 };

/* Where the job leaves it to us. A program evaluates and saves without a word, and who is stopped in the
 * middle of that loses more than who waits. */
static const rm_time least_patience = 300 * RM_S;

static rm_time patience(const struct rdzv *st)
{
    if (st->settings.step_timeout > 0)
        return st->settings.step_timeout;
    if (st->steps_timed < MOVES_TO_KNOW)
        return RM_NEVER; /* one report in an hour may be its way */
    return rm_later(least_patience, MOVES_OF_PATIENCE * st->median_step);
}

/* From one report to the next as far as they are seen here, however many steps lie between. */
static void count_move(struct rdzv *st, int64_t steps, rm_time took)
{
    if (took <= 0)
        return;
    RM_ASSERT(st->world > 0, "a ring of %d reports", st->world);
    rdzv_hang_step_took(st, took);
    if (steps > 0) /* it may go on from an older one without being started anew */
        rdzv_ring_paced(st, (double)took / (double)steps);
}

static void tell_report(const struct turn *turn, const struct rdzv_report *r)
{
    RM_ASSERT(r->known, "step %" PRId64 " is reported by nobody", r->step);
    struct rdzv_tell *t = rdzv_tell(turn, TELL_PROGRESS);
    t->step = r->step;
    t->steps = r->steps;
    t->loss = r->loss;
    t->world = turn->st->world;
}

static void check_hang(const struct turn *turn, struct rdzv_worker *w, rm_time still)
{
    struct rdzv *st = turn->st;
    const struct rdzv_report *r = &st->report;
    char why[RM_WHY_MAX], of[32] = "";
    RM_ASSERT(still >= 0 && turn->st->settings.program, "a program stands still for %lld ns",
              (long long)still);
    if (st->state != RDZV_TRAINING || still < patience(st))
        return;
    if (r->steps)
        snprintf(of, sizeof of, " of %" PRId64, r->steps);
    snprintf(why, sizeof why,
             "it hangs: it reported step %" PRId64 "%s %.1f s ago, and no other since (stepTimeout %s%.1f s)",
             r->step, of, (double)still / RM_S, st->settings.step_timeout > 0 ? "" : "Auto, now ",
             (double)patience(st) / RM_S);
    rdzv_program_hangs(turn, w, why);
}

void rdzv_reported(const struct turn *turn, struct rdzv_worker *w, const struct message *m)
{
    struct rdzv *st = turn->st;
    struct rdzv_report *r = &st->report;
    const struct msg_reported *said = &m->reported;
    bool of_ring = w->rank >= 0 && generation_compare(m->generation, st->ring) == 0;
    bool first = generation_compare(r->generation, st->ring) != 0;
    if (!st->settings.program || !of_ring || (!first && w->rank > r->rank))
        return;
    rm_time moved = turn->now - said->still;
    RM_ASSERT(moved <= turn->now && st->world > 0, "a program of %d moved %" PRId64 " ns from now", st->world,
              moved - turn->now);
    bool same = !first && w->rank == r->rank;
    bool news = first || said->step != r->step || said->steps != r->steps;
    if (same && said->step != r->step)
        count_move(st, said->step - r->step, moved - r->moved);
    *r = (struct rdzv_report){.generation = st->ring,
                              .known = true,
                              .rank = w->rank,
                              .step = said->step,
                              .steps = said->steps,
                              .loss = said->loss_known ? said->loss : NAN,
                              .moved = moved};
    if (news)
        tell_report(turn, r);
    check_hang(turn, w, said->still);
}

static void tell_frozen(const struct turn *turn, const struct msg_frozen *f)
{
    struct rdzv_tell *t = rdzv_tell(turn, TELL_CHECKPOINT_SAVED);
    t->program = true;
    t->step = f->number;
    t->bytes = f->bytes;
    t->took = f->took;
    t->frozen = f->frozen;
}

void rdzv_frozen(const struct turn *turn, const struct message *m)
{
    struct rdzv *st = turn->st;
    const struct msg_frozen *f = &m->frozen;
    if (!st->settings.program || st->state == RDZV_FINISHED || st->state == RDZV_FAILED)
        return;
    RM_ASSERT(f->frozen >= 0, "a program stood still for %lld ns", (long long)f->frozen);
    if (f->word != FROZEN_RESTORED)
        rdzv_count_frozen(turn, f->frozen, f->word == FROZEN_HELD);
    if (f->word == FROZEN_SAVED) {
        tell_frozen(turn, f);
    } else if (f->word == FROZEN_RESTORED) {
        rdzv_tell(turn, TELL_CHECKPOINT_LOADED)->step = f->number;
    } else if (*f->why) {
        struct rdzv_tell *t = rdzv_tell(turn, TELL_CHECKPOINT_SKIPPED);
        t->step = f->number;
        text_copy(t->text, sizeof t->text, rdzv_reason(f->why));
    }
}
