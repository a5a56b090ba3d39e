/* What an agent's launcher is told where no coordinator answers, and where one does again. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "agent/core/agent.h"

static struct agent *st;
static struct agent_out *out;
static rm_time now;

static void step(struct agent_event event)
{
    agent_step(st, &event, now, out);
}

static void coordinator_says(enum msg_type type)
{
    static struct message m;
    message_init(&m, type);
    m.term = 1;
    step((struct agent_event){.kind = AGENT_CONTROL, .message = &m});
}

/* A launcher that is up, and a coordinator that has just said so much. */
static void arrange(void)
{
    static struct message up;
    struct agent_settings settings = {
        .job = "j", .worker = 2, .heartbeat = RM_S, .lost_after = RM_NEVER, .launcher = true};
    st = agent_open(&settings);
    out = calloc(1, sizeof *out);
    now = RM_S;
    agent_fence(st, 10 * RM_S, now);
    step((struct agent_event){.kind = AGENT_START});
    step((struct agent_event){.kind = AGENT_CONNECTED});
    coordinator_says(MSG_WELCOME);
    message_init(&up, MSG_UP);
    up.up.pid = 100;
    step((struct agent_event){.kind = AGENT_LINK, .message = &up});
}

static void dismiss(void)
{
    agent_free(st);
    free(out);
}

TestSuite(hold, .init = arrange, .fini = dismiss);

/* 1: hold; 0: go on; -1: nothing is said of it. */
static int said(void)
{
    for (int i = 0; i < out->count; i++)
        if (out->action[i].kind == AGENT_SEND_LINK && out->action[i].message->type == MSG_HOLD)
            return out->action[i].message->hold.holds;
    return -1;
}

static void ticks_at(rm_time at)
{
    now = at;
    step((struct agent_event){.kind = AGENT_TICK});
}

Test(hold, a_connection_that_stands_without_an_answer_is_none)
{
    ticks_at(10 * RM_S);
    cr_assert_eq(said(), -1);
    cr_assert_leq(agent_deadline(st), 11 * RM_S);
    ticks_at(11 * RM_S);
    cr_assert_eq(said(), 1);
    ticks_at(30 * RM_S);
    cr_assert_eq(said(), -1, "once");
    coordinator_says(MSG_ACK);
    cr_assert_eq(said(), 0);
    ticks_at(39 * RM_S);
    cr_assert_eq(said(), -1);
}

static bool hangs_up(void)
{
    for (int i = 0; i < out->count; i++)
        if (out->action[i].kind == AGENT_HANG_UP)
            return true;
    return false;
}

Test(hold, a_connection_on_which_nothing_comes_is_hung_up_and_the_next_one_as_well)
{
    ticks_at(10 * RM_S);
    cr_assert_not(hangs_up());
    ticks_at(11 * RM_S);
    cr_assert(hangs_up());
    step((struct agent_event){.kind = AGENT_DISCONNECTED});
    cr_assert_not(hangs_up());
    now = 15 * RM_S;
    step((struct agent_event){.kind = AGENT_CONNECTED});
    coordinator_says(MSG_WELCOME);
    ticks_at(24 * RM_S);
    cr_assert_not(hangs_up());
    cr_assert_leq(agent_deadline(st), 25 * RM_S);
    ticks_at(25 * RM_S);
    cr_assert(hangs_up(), "a welcome and no more");
}

Test(hold, who_answers_is_not_hung_up_on)
{
    for (rm_time at = 5 * RM_S; at < 100 * RM_S; at += 5 * RM_S) {
        ticks_at(at);
        cr_assert_not(hangs_up());
        coordinator_says(MSG_ACK);
    }
}

Test(hold, each_answer_puts_it_off)
{
    for (rm_time at = 5 * RM_S; at < 100 * RM_S; at += 5 * RM_S) {
        ticks_at(at);
        coordinator_says(MSG_ACK);
        cr_assert_eq(said(), -1);
    }
}

Test(hold, a_connection_that_is_lost_and_found_is_told_once_somebody_wants_it)
{
    step((struct agent_event){.kind = AGENT_DISCONNECTED});
    ticks_at(11 * RM_S);
    cr_assert_eq(said(), 1);
    step((struct agent_event){.kind = AGENT_CONNECTED});
    cr_assert_eq(said(), -1, "anybody may open like a coordinator");
    coordinator_says(MSG_WELCOME);
    cr_assert_eq(said(), -1, "another one may run the program by now");
    coordinator_says(MSG_ACK);
    cr_assert_eq(said(), 0);
}

Test(hold, who_sends_it_away_lets_nothing_go_on)
{
    ticks_at(11 * RM_S);
    cr_assert_eq(said(), 1);
    coordinator_says(MSG_ABANDON);
    cr_assert_eq(said(), -1);
}

Test(hold, an_order_to_stop_is_heard_by_processes_that_run)
{
    ticks_at(11 * RM_S);
    coordinator_says(MSG_STOP);
    cr_assert_eq(said(), 0);
    cr_assert_eq(out->action[0].message->type, MSG_HOLD, "before the order");
}
