/* Calls to the store that do not return: a folder whose server has gone, a disk that answers no more. Whose
 * thread is in one can't be told to give up, so the agent says how long it has been so, and the coordinator
 * goes on without it. */
#include <inttypes.h>
#include <stdio.h>

#include "agent/core/agent_state.h"
#include "common/base/assert.h"

/* A read shows each piece that comes. A flush of what lies in a machine's memory shows nothing until it is
 * done, which takes a slow disk more than a minute. */
static const rm_time read_patience = 30 * RM_S, write_patience = 120 * RM_S;
static const rm_time tell_again = 10 * RM_S;

void agent_call_made(const struct agent *st, struct agent_calls *c)
{
    RM_ASSERT(c->under_way >= 0, "%d calls are under way", c->under_way);
    if (c->under_way++ == 0)
        c->moved = st->now;
}

void agent_call_returned(const struct agent *st, struct agent_calls *c)
{
    RM_ASSERT(c->under_way > 0, "%d calls are under way, and one returns", c->under_way);
    c->under_way--;
    c->moved = st->now;
    c->told = false;
}

static void hear_signs(const struct agent *st, struct agent_calls *c, int64_t signs, rm_time pause)
{
    c->moved = signs != c->signs ? st->now : c->moved + pause;
    c->signs = signs;
    RM_ASSERT(c->moved <= st->now, "a call moved %lld ns from now", (long long)(c->moved - st->now));
}

/* Where this program stood still itself, or its machine, the threads did, too; so did a trainer that starts.
 */
void agent_calls_hear(struct agent *st, const struct agent_event *e, rm_time now)
{
    bool late = st->due != RM_NEVER && now > st->due + st->settings.heartbeat;
    rm_time pause = late ? now - st->now : 0;
    RM_ASSERT(now >= st->now, "time goes back by %lld ns", (long long)(st->now - now));
    st->now = now;
    if (st->up_by != RM_NEVER)
        st->up_by += pause;
    hear_signs(st, &st->reads, e->read_signs, pause);
    hear_signs(st, &st->writes, e->write_signs, pause);
}

static rm_time patience(const struct agent *st, const struct agent_calls *c)
{
    RM_ASSERT(c == &st->reads || c == &st->writes, "worker %d makes other calls", st->settings.worker);
    return c == &st->reads ? read_patience : write_patience;
}

bool agent_calls_are_stuck(const struct agent *st, const struct agent_calls *c)
{
    RM_ASSERT(c->under_way >= 0, "%d calls are under way", c->under_way);
    return c->under_way && st->now - c->moved >= patience(st, c);
}

/* ---- telling ---- */

static void say_stuck(struct agent *st, const struct agent_calls *c, const char *what, int64_t step,
                      struct agent_out *out)
{
    struct message m;
    RM_ASSERT(agent_calls_are_stuck(st, c), "%s is told to stand still, and %d calls are under way", what,
              c->under_way);
    message_init(&m, MSG_FAULT);
    m.generation = st->ring;
    m.fault.kind = FAULT_STORAGE;
    m.fault.class = CLASS_MACHINE;
    m.fault.peer = -1;
    m.fault.step = step;
    m.fault.lasted = st->now - c->moved;
    m.fault.reading = c == &st->reads;
    snprintf(m.fault.detail, sizeof m.fault.detail,
             "%s has not returned for more than %" PRId64 " s: does this machine still reach %.200s?", what,
             patience(st, c) / RM_S, st->settings.checkpoint_uri);
    agent_send_control(st, out, &m);
}

void agent_say_reads_are_stuck(struct agent *st, struct agent_out *out)
{
    RM_ASSERT(agent_calls_are_stuck(st, &st->reads), "%d reads are under way, and get on",
              st->reads.under_way);
    st->reads.told = true;
    st->reads.tell_at = st->now + tell_again;
    if (st->phase == PHASE_TRAINING)
        return; /* nobody waits for them */
    if (st->loading)
        say_stuck(st, &st->reads, "reading the checkpoint", st->form.resume.step, out);
    else
        say_stuck(st, &st->reads, "listing the checkpoints", -1, out);
}

static void say_writes_are_stuck(struct agent *st, struct agent_out *out)
{
    RM_ASSERT(st->writing || st->publishing, "%d writes stand still, of nothing", st->writes.under_way);
    st->writes.told = true;
    st->writes.tell_at = st->now + tell_again;
    bool queues = st->writing && st->publish_first; /* behind the manifest */
    if (st->writing && !queues)
        say_stuck(st, &st->writes, "writing this worker's part", st->write->snapshot.state.step, out);
    else
        say_stuck(st, &st->writes, "publishing the checkpoint", st->publish->publish.step, out);
}

static bool must_tell(const struct agent *st, const struct agent_calls *c)
{
    return agent_calls_are_stuck(st, c) && (!c->told || st->now >= c->tell_at);
}

void agent_tell_of_calls(struct agent *st, struct agent_out *out)
{
    if (st->connection != WELCOMED || st->released)
        return;
    if (must_tell(st, &st->reads))
        agent_say_reads_are_stuck(st, out);
    if (must_tell(st, &st->writes))
        say_writes_are_stuck(st, out);
}

static rm_time look_at(const struct agent *st, const struct agent_calls *c)
{
    rm_time stuck = c->moved + patience(st, c);
    if (!c->under_way || (st->now >= stuck && (st->connection != WELCOMED || st->released)))
        return RM_NEVER;
    RM_ASSERT(stuck >= c->moved, "calls that moved at %lld are looked at from %lld on", (long long)c->moved,
              (long long)stuck);
    return c->told && c->tell_at > stuck ? c->tell_at : stuck;
}

rm_time agent_calls_at(const struct agent *st)
{
    rm_time reads = look_at(st, &st->reads), writes = look_at(st, &st->writes);
    return reads < writes ? reads : writes;
}
