/* Who is no member, and is to be one, listens to those who train until it holds what they hold. */
#include <inttypes.h>

#include "common/base/assert.h"
#include "trainer/core/elastic_parts.h"

static void say_heard(struct elastic *st, struct elastic_out *out, const struct msg_state *state,
                      const char *why)
{
    struct message *m = elastic_say(st, out, MSG_HEARD);
    m->heard.state = *state;
    text_copy(m->heard.why, sizeof m->heard.why, why);
}

static void tell_step(struct elastic *st, struct elastic_out *out, int64_t step,
                      const struct elastic_result *r)
{
    struct message *m = elastic_say(st, out, MSG_PROGRESS);
    m->progress.step = step;
    m->progress.loss_known = losses_know(&r->heard, step, &m->progress.loss);
    RM_ASSERT(m->progress.loss_known, "step %" PRId64 " is told, and nothing is known of it", step);
    m->progress.numbers = msg_numbers_unknown();
    m->progress.tokens = r->tokens;
}

static void tell_evaluation(struct elastic *st, struct elastic_out *out, int64_t step, double held_out)
{
    struct message *m = elastic_say(st, out, MSG_EVALUATED);
    RM_ASSERT(step > st->heard_evaluated, "the evaluation of step %" PRId64 " is told twice", step);
    m->evaluated.step = st->heard_evaluated = step;
    m->evaluated.loss = held_out;
}

/* Those who made the steps behind the state that is held now may be gone before they have told them. */
static void tell_what_was_heard(struct elastic *st, const struct elastic_result *r, struct elastic_out *out)
{
    int64_t first = r->heard.step - r->heard.count + 1;
    double held_out;
    RM_ASSERT(r->heard.count >= 0 && r->heard.count <= LOSSES_KEPT, "%d steps were heard", r->heard.count);
    if (!st->state.held || r->heard.step != st->state.step)
        return;
    for (int64_t step = first; step <= r->heard.step; step++) {
        if (step > st->heard_told)
            tell_step(st, out, step, r);
        if (step > st->heard_evaluated && losses_know_evaluation(&r->heard, step, &held_out))
            tell_evaluation(st, out, step, held_out);
    }
    st->heard_told = r->heard.step;
    st->loss_known = losses_know(&r->heard, st->state.step, &st->last_loss);
}

/* Nobody waits for who listens, so nothing is broken where it can't. */
void elastic_after_listen(struct elastic *st, const struct elastic_result *r, struct elastic_out *out)
{
    bool all = r->outcome == OUTCOME_OK;
    RM_ASSERT(!all || st->state.held, "all was heard, and step %" PRId64 " is not held", st->state.step);
    tell_what_was_heard(st, r, out);
    if (all || (!st->heard && r->outcome != OUTCOME_ABORTED))
        say_heard(st, out, &st->state, r->text);
    st->heard = st->heard || all;
    st->listens = st->listens && all;
}

/* What it held before is of no use where others train. */
void elastic_listen_on(struct elastic *st, struct elastic_out *out)
{
    RM_ASSERT(st->listens && st->running == CMD_NONE, "it listens while command %s runs",
              elastic_running_name(st));
    if (!st->load_busy)
        elastic_begin(st, out, st->state.held && !st->heard ? CMD_DROP : CMD_LISTEN);
}

/* Told again, as by another coordinator, it says again what it has said. */
void elastic_on_listen(struct elastic *st, const struct message *m, struct elastic_out *out)
{
    struct msg_state none = {0};
    bool free = st->mode == MODE_IDLE && !st->stop_pending && !st->next_set && st->running == CMD_NONE;
    if (st->listens) {
        if (st->heard)
            say_heard(st, out, &st->state, "");
    } else if (free) {
        message_copy(&st->listen, m);
        st->listens = true;
        st->heard = false;
        st->heard_told = st->heard_evaluated = -1;
        st->finished = false; /* where it made the last step, others don't know that one */
    } else {
        say_heard(st, out, &none, "it is about something else");
    }
}
