/* Filling the list of actions. */
#include "agent/core/agent_state.h"

#include "common/base/assert.h"

struct agent_action *agent_act(struct agent_out *out, enum agent_action_kind kind)
{
    RM_ASSERT(out->count < AGENT_ACTIONS_MAX, "%d actions in one step", out->count);
    struct agent_action *a = &out->action[out->count++];
    *a = (struct agent_action){.kind = kind, .text = ""};
    return a;
}

struct message *agent_say(struct agent_out *out, enum agent_action_kind kind, enum msg_type type)
{
    struct agent_action *a = agent_act(out, kind);
    RM_ASSERT((unsigned)type < MSG_TYPES, "a message of type %d", (int)type);
    return a->message = message_place(&out->arena, type);
}

void agent_pass(struct agent_out *out, enum agent_action_kind kind, const struct message *m)
{
    agent_act(out, kind)->message = message_place_copy(&out->arena, m);
}

void agent_send_control(struct agent *st, struct agent_out *out, const struct message *m)
{
    if (st->connection != WELCOMED)
        return;
    RM_ASSERT(!st->over, "a word after the last one: %s", msg_type_name(m->type));
    struct message *copy = message_place_copy(&out->arena, m);
    copy->term = st->term;
    agent_act(out, AGENT_SEND_CONTROL)->message = copy;
}

void agent_quit(struct agent *st, struct agent_out *out, int exit_code, const char *text)
{
    struct agent_action *a = agent_act(out, AGENT_EXIT);
    RM_ASSERT(!st->over, "it ends twice, now with %d: %s", exit_code, text);
    a->exit_code = exit_code;
    a->text = arena_text(&out->arena, text);
    st->over = true;
}
