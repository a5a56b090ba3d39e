/* A trainer or a launcher that starts, and what becomes of one that stands still before it is up. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/agent.h"

static struct agent *st;
static struct agent_out *out;
static rm_time now;

static void step(struct agent_event e)
{
    agent_step(st, &e, now, out);
}

static const struct agent_action *did(enum agent_action_kind kind)
{
    for (int i = 0; i < out->count; i++)
        if (out->action[i].kind == kind)
            return &out->action[i];
    return NULL;
}

static const struct message *told(enum msg_type type)
{
    for (int i = 0; i < out->count; i++)
        if (out->action[i].kind == AGENT_SEND_CONTROL && out->action[i].message->type == type)
            return out->action[i].message;
    return NULL;
}

static void be_welcome(void)
{
    static struct message welcome;
    step((struct agent_event){.kind = AGENT_CONNECTED});
    message_init(&welcome, MSG_WELCOME);
    welcome.term = 1;
    step((struct agent_event){.kind = AGENT_CONTROL, .message = &welcome});
}

static void begin(bool launcher)
{
    struct agent_settings settings = {.job = "j",
                                      .worker = 2,
                                      .heartbeat = RM_S,
                                      .lost_after = RM_NEVER,
                                      .launcher = launcher,
                                      .up_within = 20 * RM_S};
    st = agent_open(&settings);
    out = calloc(1, sizeof *out);
    now = RM_S;
    step((struct agent_event){.kind = AGENT_START});
    be_welcome();
}

static void arrange(void)
{
    begin(true);
}

static void dismiss(void)
{
    agent_free(st);
    free(out);
}

static void says(struct message m)
{
    step((struct agent_event){.kind = AGENT_LINK, .message = &m});
}

static void beats(int64_t counter)
{
    says((struct message){.type = MSG_HEARTBEAT,
                          .heartbeat = {.step = -1, .counter = counter, .waiting_for = -1}});
}

/* Time passes, and the agent is called whenever it is due; until it kills, or for so long. */
static bool kills_within(rm_time span)
{
    rm_time end = now + span;
    while (agent_deadline(st) <= end) {
        now = agent_deadline(st);
        step((struct agent_event){.kind = AGENT_TICK});
        if (did(AGENT_KILL))
            return true;
    }
    now = end;
    return false;
}

static void is_killed(void)
{
    step((struct agent_event){.kind = AGENT_TRAINER_EXIT, .code = -1, .text = "killed by signal 9"});
}

Test(start, one_that_says_nothing_before_it_is_up_is_killed_and_another_one_starts, .init = arrange,
     .fini = dismiss)
{
    cr_assert(!kills_within(19 * RM_S));
    cr_assert(kills_within(RM_S));
    cr_assert_null(told(MSG_FAULT), "once may be chance");
    cr_assert(!kills_within(60 * RM_S), "it is killed once");
    is_killed();
    cr_assert(did(AGENT_SPAWN));
    cr_assert_eq(told(MSG_FAULT)->fault.kind, FAULT_TRAINER_EXIT);
    cr_assert(strstr(told(MSG_FAULT)->fault.detail, "the launcher was killed"), "%s",
              told(MSG_FAULT)->fault.detail);
}

Test(start, two_that_say_nothing_in_a_row_are_a_fault_of_this_machine, .init = arrange, .fini = dismiss)
{
    cr_assert(kills_within(20 * RM_S));
    is_killed();
    cr_assert(kills_within(20 * RM_S));
    const struct message *fault = told(MSG_FAULT);
    cr_assert(fault && fault->fault.kind == FAULT_MACHINE && fault->fault.class == CLASS_MACHINE);
    cr_assert_eq(fault->fault.exit_code, EXIT_MACHINE);
    cr_assert(strstr(fault->fault.detail, "the launcher has said nothing for 20 s since it was started"),
              "%s", fault->fault.detail);
}

Test(start, that_two_stood_still_is_said_again_to_a_coordinator_that_was_away, .init = arrange,
     .fini = dismiss)
{
    cr_assert(kills_within(20 * RM_S));
    is_killed();
    step((struct agent_event){.kind = AGENT_DISCONNECTED});
    cr_assert(kills_within(20 * RM_S));
    cr_assert_null(told(MSG_FAULT));
    be_welcome();
    cr_assert(told(MSG_FAULT) && told(MSG_FAULT)->fault.kind == FAULT_MACHINE);
}

Test(start, one_that_stood_still_after_another_one_had_been_up_is_the_first, .init = arrange, .fini = dismiss)
{
    cr_assert(kills_within(20 * RM_S));
    is_killed();
    says((struct message){.type = MSG_UP, .up = {.pid = 100}});
    is_killed();
    cr_assert(kills_within(20 * RM_S));
    cr_assert_null(told(MSG_FAULT));
}

Test(start, an_agent_none_of_whose_launchers_starts_ends_with_what_it_saw, .init = arrange, .fini = dismiss)
{
    for (int i = 0; i < 5; i++) {
        cr_assert(kills_within(20 * RM_S), "launcher %d", i);
        is_killed();
    }
    const struct agent_action *end = did(AGENT_EXIT);
    cr_assert(end && end->exit_code == EXIT_MACHINE);
    cr_assert(strstr(end->text, "the launcher does not start: the launcher has said nothing for 20 s"), "%s",
              end->text);
}

Test(start, one_that_says_that_it_lives_may_take_its_time, .fini = dismiss)
{
    begin(false);
    for (int i = 0; i < 200; i++) {
        cr_assert(!kills_within(RM_S), "after %d s", i);
        beats(i);
    }
    cr_assert(kills_within(20 * RM_S), "and then stands still");
}

Test(start, one_that_is_up_is_the_coordinators_to_judge, .init = arrange, .fini = dismiss)
{
    says((struct message){.type = MSG_UP, .up = {.pid = 100}});
    cr_assert(!kills_within(300 * RM_S));
}

Test(start, what_is_killed_and_speaks_once_more_is_not_waited_for, .init = arrange, .fini = dismiss)
{
    cr_assert(kills_within(20 * RM_S));
    beats(1);
    says((struct message){.type = MSG_UP, .up = {.pid = 100}});
    cr_assert(!kills_within(100 * RM_S));
    is_killed();
    cr_assert(did(AGENT_SPAWN));
}

/* Its machine stood still, perhaps, and the launcher with it. */
Test(start, the_agents_own_pause_is_not_held_against_it, .init = arrange, .fini = dismiss)
{
    cr_assert(!kills_within(10 * RM_S));
    now += 300 * RM_S;
    step((struct agent_event){.kind = AGENT_TICK});
    cr_assert_null(did(AGENT_KILL));
    cr_assert(kills_within(11 * RM_S));
}

Test(start, that_one_lives_before_it_is_up_is_no_word_of_a_trainers_progress, .init = arrange,
     .fini = dismiss)
{
    says((struct message){.type = MSG_UP, .up = {.pid = 100}});
    beats(77);
    is_killed();
    beats(1);
    now = agent_deadline(st);
    step((struct agent_event){.kind = AGENT_TICK});
    cr_assert_eq(told(MSG_HEARTBEAT)->heartbeat.counter, 77);
}
