/* What a coordinator hears of a trainer that starts or dies while the connection is being made. */
#include "agent/core/agent.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static struct agent *agent;
static struct agent_out *out;

static void happen(enum agent_event_kind kind, const struct message *message)
{
    struct agent_event event = {.kind = kind, .message = message};
    agent_step(agent, &event, RM_S, out);
}

static void arrange(void)
{
    struct agent_settings settings = {.job = "j",
                                      .worker = 2,
                                      .incarnation = 7,
                                      .agent_pid = 10,
                                      .heartbeat = RM_S,
                                      .lost_after = 5 * RM_S};
    agent = agent_open(&settings);
    out = calloc(1, sizeof *out);
    happen(AGENT_START, NULL);
}

static void dismiss(void)
{
    agent_free(agent);
    free(out);
}

static void trainer_comes_up(void)
{
    static struct message up;
    message_init(&up, MSG_UP);
    up.up.pid = 99;
    text_copy(up.up.address, sizeof up.up.address, "127.0.0.1:5");
    happen(AGENT_LINK, &up);
}

static void coordinator_welcomes(void)
{
    static struct message welcome;
    message_init(&welcome, MSG_WELCOME);
    welcome.term = 1;
    happen(AGENT_CONTROL, &welcome);
}

/* The pid in the last hello among the actions; -1 where none was said. */
static int64_t said(void)
{
    int64_t pid = -1;
    for (int i = 0; i < out->count; i++) {
        const struct agent_action *a = &out->action[i];
        if (a->kind == AGENT_SEND_CONTROL && a->message->type == MSG_HELLO)
            pid = a->message->hello.trainer_pid;
    }
    return pid;
}

/* -1 where no hello was said. */
static int phase_said(void)
{
    int phase = -1;
    for (int i = 0; i < out->count; i++) {
        const struct agent_action *a = &out->action[i];
        if (a->kind == AGENT_SEND_CONTROL && a->message->type == MSG_HELLO)
            phase = a->message->hello.phase;
    }
    return phase;
}

Test(greeting, a_trainer_that_comes_up_before_the_welcome_is_told_after_it, .init = arrange, .fini = dismiss)
{
    happen(AGENT_CONNECTED, NULL);
    cr_assert_eq(said(), 0);
    trainer_comes_up();
    cr_assert_eq(said(), -1);
    coordinator_welcomes();
    cr_assert_eq(said(), 99);
}

Test(greeting, a_trainer_that_dies_before_the_welcome_is_taken_back, .init = arrange, .fini = dismiss)
{
    trainer_comes_up();
    happen(AGENT_CONNECTED, NULL);
    cr_assert_eq(said(), 99);
    happen(AGENT_TRAINER_EXIT, NULL);
    coordinator_welcomes();
    cr_assert_eq(said(), 0);
}

Test(greeting, a_trainer_that_was_told_is_not_told_twice, .init = arrange, .fini = dismiss)
{
    trainer_comes_up();
    happen(AGENT_CONNECTED, NULL);
    coordinator_welcomes();
    cr_assert_eq(said(), -1);
}

/* Its predecessor had told it to, and is gone: the new one would wait for its next step. */
Test(greeting, a_trainer_that_stops_before_the_welcome_is_told_after_it, .init = arrange, .fini = dismiss)
{
    static struct message stopped;
    trainer_comes_up();
    happen(AGENT_CONNECTED, NULL);
    cr_assert_eq(phase_said(), PHASE_IDLE);
    message_init(&stopped, MSG_STOPPED);
    happen(AGENT_LINK, &stopped);
    coordinator_welcomes();
    cr_assert_eq(phase_said(), PHASE_STOPPED);
}

static void at(rm_time now, enum agent_event_kind kind)
{
    struct agent_event event = {.kind = kind, .text = "closed"};
    agent_step(agent, &event, now, out);
}

/* Tries for as long as the agent's patience lasts; each connection ends as `answered` says. */
static const struct agent_action *try_in_vain(bool answered)
{
    for (rm_time now = RM_S; now < 20 * RM_S; now += 100 * RM_MS) {
        at(now, AGENT_TICK);
        for (int i = 0; i < out->count; i++)
            if (out->action[i].kind == AGENT_EXIT)
                return &out->action[i];
        if (answered)
            at(now, AGENT_CONNECTED);
        at(now, AGENT_DISCONNECTED);
    }
    return NULL;
}

Test(greeting, an_agent_whose_hello_is_never_answered_says_that_its_key_is_wrong, .init = arrange,
     .fini = dismiss)
{
    const struct agent_action *end = try_in_vain(true);
    cr_assert_not_null(end);
    cr_assert_eq(end->exit_code, 4);
    cr_assert_not_null(strstr(end->text, "its key is another one than this agent's"), "%s", end->text);
}

Test(greeting, an_agent_that_nobody_listens_to_says_that_the_coordinator_is_lost, .init = arrange,
     .fini = dismiss)
{
    const struct agent_action *end = try_in_vain(false);
    cr_assert_not_null(end);
    cr_assert_eq(end->exit_code, 4);
    cr_assert_not_null(strstr(end->text, "the coordinator is lost"), "%s", end->text);
    cr_assert_not_null(strstr(end->text, "the last one: closed; no checkpoint"), "%s", end->text);
}
