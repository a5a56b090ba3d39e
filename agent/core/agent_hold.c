/* The program of an agent that hears no answers stands still, where it may live again in another pod; and the
 * connection on which they do not come is hung up. */
#include "agent/core/agent_state.h"
#include "common/base/assert.h"

void agent_fence(struct agent *st, rm_time after, rm_time now)
{
    RM_ASSERT(st->settings.launcher, "worker %d holds what it does not run", st->settings.worker);
    fence_init(&st->fence, after, now);
}

/* The launcher makes all that it runs stand still, or go on; without one nothing runs. */
static void say_hold(const struct agent *st, struct agent_out *out, bool holds)
{
    RM_ASSERT(st->fence.after, "worker %d holds its program, and is not to", st->settings.worker);
    if (st->trainer == TRAINER_UP)
        agent_say(out, AGENT_SEND_LINK, MSG_HOLD)->hold.holds = holds;
}

/* Who says that this agent is to end does not want it any more, and who welcomes it does not know yet. */
void agent_hold_hear(struct agent *st, const struct message *m, rm_time now, struct agent_out *out)
{
    bool wanted = m->type != MSG_ABANDON && m->type != MSG_RELEASE && m->type != MSG_WELCOME;
    if (wanted && fence_hear(&st->fence, now))
        say_hold(st, out, false);
}

/* A connection without a word is taken for one that leads nowhere, where heartbeats are answered. */
static rm_time hang_up_at(const struct agent *st)
{
    bool answered = st->fence.after && st->connection == WELCOMED;
    return answered ? rm_sum(st->control_heard, st->fence.after) : RM_NEVER;
}

static void hang_up(struct agent *st, rm_time now, struct agent_out *out)
{
    RM_ASSERT(st->connection == WELCOMED, "no connection (%s) is hung up", agent_connection_name(st));
    agent_act(out, AGENT_HANG_UP);
    st->control_heard = now;
}

void agent_hold_on_time(struct agent *st, rm_time now, struct agent_out *out)
{
    RM_ASSERT(st->fence.after || !st->fence.holds, "worker %d holds what nobody fences", st->settings.worker);
    if (fence_is_due(&st->fence, now))
        say_hold(st, out, true);
    if (now >= hang_up_at(st))
        hang_up(st, now, out);
}

rm_time agent_hold_at(const struct agent *st)
{
    return rm_earlier(fence_deadline(&st->fence), hang_up_at(st));
}
