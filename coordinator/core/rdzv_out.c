/* Fills the list of actions, and the arena in which their bodies lie. Both are larger than what any step
 * makes (crowd_test.c), so that a full one is a bug: an action more would be written over the one before it.
 */
#include "coordinator/core/rdzv_out.h"

#include "common/base/assert.h"

static struct rdzv_action *add_action(struct rdzv_out *out, enum rdzv_action_kind kind)
{
    RM_ASSERT(out->count < RDZV_ACTIONS_MAX, "%d actions in one step", out->count);
    struct rdzv_action *a = &out->action[out->count++];
    a->kind = kind;
    return a;
}

void rdzv_out_begin(struct rdzv_out *out)
{
    out->count = 0;
    out->arena = arena_over(out->bodies, sizeof out->bodies);
}

static struct message *begin_send(const struct turn *turn, enum msg_type type, int most)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(most >= 1 && most <= RM_WORKERS_MAX, "a message for up to %d workers", most);
    struct rdzv_action *a = add_action(turn->out, RDZV_SEND);
    a->send.count = 0;
    a->send.most = most;
    a->send.conn = arena_take(&turn->out->arena, (size_t)most * sizeof *a->send.conn);
    a->send.message = message_place(&turn->out->arena, type);
    a->send.message->term = st->settings.term;
    a->send.message->generation = st->ring;
    return a->send.message;
}

struct message *rdzv_send(const struct turn *turn, enum msg_type type)
{
    return begin_send(turn, type, RM_WORKERS_MAX);
}

void rdzv_send_to(const struct turn *turn, const struct rdzv_worker *w)
{
    RM_ASSERT(turn->out->count > 0, "connection %d is to get the last of %d actions", w->conn,
              turn->out->count);
    struct rdzv_action *a = &turn->out->action[turn->out->count - 1];
    RM_ASSERT(a->kind == RDZV_SEND, "a recipient for an action of kind %d", (int)a->kind);
    if (w->conn < 0)
        return;
    RM_ASSERT(a->send.count < a->send.most, "%d recipients of one message, and another one", a->send.count);
    a->send.conn[a->send.count++] = w->conn;
}

struct message *rdzv_send_one(const struct turn *turn, const struct rdzv_worker *w, enum msg_type type)
{
    struct message *m = begin_send(turn, type, 1);
    rdzv_send_to(turn, w);
    return m;
}

void rdzv_send_away(const struct turn *turn, const struct rdzv_worker *w, int exit_code, const char *why)
{
    struct message *m = rdzv_send_one(turn, w, MSG_ABANDON);
    RM_ASSERT(exit_code != EXIT_DONE, "a worker is sent away with the code of one that is done: %s", why);
    m->abandon.exit_code = exit_code;
    text_copy_ends(m->abandon.why, sizeof m->abandon.why, why);
}

void rdzv_acknowledge(const struct turn *turn, const struct rdzv_worker *w)
{
    struct message *m = rdzv_send_one(turn, w, MSG_ACK);
    RM_ASSERT(turn->st->told >= -1, "step %lld was told", (long long)turn->st->told);
    m->ack.step = turn->st->told;
    m->ack.evaluated = turn->st->evaluated;
}

void rdzv_close_conn(const struct turn *turn, int conn)
{
    if (conn >= 0)
        add_action(turn->out, RDZV_CLOSE)->close = conn;
}

void rdzv_tell_end(const struct turn *turn, int exit_code, const char *why)
{
    struct rdzv_action *a = add_action(turn->out, RDZV_END);
    RM_ASSERT(exit_code != EXIT_DONE || !*why, "the run ends with %d, and why: '%s'", exit_code, why);
    a->end.exit_code = exit_code;
    a->end.why = arena_text(&turn->out->arena, why);
}

struct rdzv_tell *rdzv_tell(const struct turn *turn, enum rdzv_tell_kind kind)
{
    struct rdzv_action *a = add_action(turn->out, RDZV_TELL);
    RM_ASSERT((unsigned)kind < EVENT_KINDS, "event %d is told", (int)kind);
    a->tell = arena_take(&turn->out->arena, sizeof *a->tell);
    a->tell->kind = kind;
    return a->tell;
}

struct rdzv_tell *rdzv_tell_worker(const struct turn *turn, enum rdzv_tell_kind kind, int worker,
                                   const char *text)
{
    struct rdzv *st = turn->st;
    struct rdzv_tell *t = rdzv_tell(turn, kind);
    RM_ASSERT(worker >= 0 && worker < RM_WORKERS_MAX, "event %d of worker %d", (int)kind, worker);
    t->worker = worker;
    t->attempt = st->worker[worker].attempt;
    t->step = st->told < 0 ? 0 : st->told;
    text_copy_ends(t->text, sizeof t->text, text);
    return t;
}
