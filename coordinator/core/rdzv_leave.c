/* Who holds what is saved nowhere and goes: what leave.h has to know of it. */
#include "coordinator/core/leave.h"
#include "coordinator/core/rdzv_state.h"

static const double newest = 0.5; /* its weight beside what was measured before */

static void measure(double *rate, int64_t bytes, rm_time took)
{
    if (bytes <= 0 || took <= 0)
        return;
    double now = (double)bytes * RM_S / (double)took;
    *rate = *rate > 0 ? (1 - newest) * *rate + newest * now : now;
}

void rdzv_measure_slice(struct rdzv *st, const struct msg_checkpointed *c)
{
    int64_t bytes = 0;
    for (int i = 0; i < c->count; i++)
        bytes += c->piece[i].bytes;
    measure(&st->save_speed.writer, bytes, c->took);
}

void rdzv_measure_publishing(struct rdzv *st, const struct msg_published *p)
{
    st->save_speed.bytes = p->bytes;
    measure(&st->save_speed.publisher, p->bytes, p->took);
}

static void count_holder(const struct rdzv_worker *w, rm_time now, struct leave_facts *f)
{
    rm_time left = w->leave_until == RM_NEVER ? RM_NEVER : w->leave_until > now ? w->leave_until - now : 0;
    f->staying += !w->leaving;
    f->going += w->leaving;
    if (w->leaving && left < f->left)
        f->left = left;
}

/* True: it is not saved, those who hold it are let go, and the person knows why. */
bool rdzv_leaves_unsaved(struct rdzv *st, const struct msg_state *state, rm_time now, struct rdzv_out *out)
{
    struct leave_facts f = {.wanted = !st->settings.leave_unsaved,
                            .step = state->step,
                            .saved = st->saved,
                            .left = RM_NEVER,
                            .bytes = st->save_speed.bytes,
                            .writer = st->save_speed.writer,
                            .publisher = st->save_speed.publisher};
    if (st->given_up == state->step)
        return true;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        if (rdzv_usable(st, w) && msg_state_equal(&w->state, state))
            count_holder(w, now, &f);
    }
    enum leave_choice choice = leave_decide(&f);
    if (choice != LEAVE_TOO_LATE && choice != LEAVE_OFF)
        return false;
    struct rdzv_tell *t = rdzv_tell(out, TELL_CHECKPOINT_SKIPPED);
    t->step = state->step;
    leave_sentence(&f, choice, t->text, sizeof t->text);
    rdzv_say(st, "%s", t->text);
    st->given_up = state->step;
    return true;
}
