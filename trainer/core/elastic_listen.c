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

/* Nobody waits for who listens, so nothing is broken where it can't. */
void elastic_after_listen(struct elastic *st, const struct elastic_result *r, struct elastic_out *out)
{
    bool all = r->outcome == OUTCOME_OK;
    RM_ASSERT(!all || st->state.held, "all was heard, and step %" PRId64 " is not held", st->state.step);
    if (all || (!st->heard && r->outcome != OUTCOME_ABORTED))
        say_heard(st, out, &st->state, r->text);
    st->heard = st->heard || all;
    st->listens = st->listens && all;
}

/* What it held before is of no use where others train. */
void elastic_listen_on(struct elastic *st, struct elastic_out *out)
{
    RM_ASSERT(st->listens && st->running == CMD_NONE, "it listens while command %d runs", (int)st->running);
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
    } else {
        say_heard(st, out, &none, "it is about something else");
    }
}
