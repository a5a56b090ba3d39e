/* Words of a trainer, a launcher or a coordinator that can't be meant: they fail no assertion of the agent.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/agent.h"
#include "common/base/prng.h"

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

static void says(const struct message *m)
{
    step((struct agent_event){.kind = AGENT_LINK, .message = m});
}

static void coordinator_says(struct message m)
{
    step((struct agent_event){.kind = AGENT_CONTROL, .message = &m});
}

static void comes_up(int64_t pid)
{
    static struct message up;
    message_init(&up, MSG_UP);
    up.up.pid = pid;
    says(&up);
}

static void begin(bool launcher)
{
    struct agent_settings settings = {
        .job = "j", .worker = 2, .heartbeat = RM_S, .lost_after = RM_NEVER, .launcher = launcher};
    st = agent_open(&settings);
    out = calloc(1, sizeof *out);
    now = RM_S;
    step((struct agent_event){.kind = AGENT_START});
    step((struct agent_event){.kind = AGENT_CONNECTED});
    coordinator_says((struct message){.type = MSG_WELCOME, .term = 1});
}

static void arrange(void)
{
    begin(false);
    comes_up(100);
}

static void arrange_launcher(void)
{
    begin(true);
    comes_up(100);
}

static void dismiss(void)
{
    agent_free(st);
    free(out);
}

static void leaves_a_snapshot(int64_t at)
{
    static struct message m;
    message_init(&m, MSG_SNAPSHOT);
    m.snapshot.state = (struct msg_state){.held = true, .step = at};
    m.snapshot.parts = 1;
    says(&m);
}

static void a_write_ends(bool ok)
{
    static struct message m;
    message_init(&m, MSG_CHECKPOINTED);
    step((struct agent_event){.kind = AGENT_WRITTEN,
                              .ok = ok,
                              .again = !ok,
                              .message = ok ? &m : NULL,
                              .text = "the store is away"});
}

/* It is killed, which is told with the reason; what it says until then is heard by nobody, and another one
 * starts. */
static void it_is_ended_for(const char *why)
{
    cr_assert(did(AGENT_KILL));
    comes_up(100);
    cr_assert_eq(out->count, 0, "it is heard although it was killed");
    step((struct agent_event){.kind = AGENT_TRAINER_EXIT, .code = -1, .text = "killed by signal 9"});
    cr_assert(did(AGENT_SPAWN));
    const struct message *fault = did(AGENT_SEND_CONTROL)->message;
    cr_assert(fault->type == MSG_FAULT && fault->fault.kind == FAULT_TRAINER_EXIT);
    cr_assert(strstr(fault->fault.detail, why), "%s", fault->fault.detail);
    step((struct agent_event){.kind = AGENT_TRAINER_EXIT, .code = -1, .text = "killed by signal 11"});
    cr_assert(strstr(did(AGENT_SEND_CONTROL)->message->fault.detail, "killed by signal 11"), "its own end");
}

Test(refused_words, a_second_snapshot_while_the_first_is_written_ends_its_trainer, .init = arrange,
     .fini = dismiss)
{
    leaves_a_snapshot(10);
    cr_assert(did(AGENT_WRITE));
    leaves_a_snapshot(20);
    cr_assert_null(did(AGENT_WRITE));
    it_is_ended_for(
        "the trainer was killed: it said `snapshot` while the memory that it lies in was not its own "
        "again");
    a_write_ends(true);
}

Test(refused_words, a_second_snapshot_while_the_first_waits_for_the_store_ends_its_trainer, .init = arrange,
     .fini = dismiss)
{
    leaves_a_snapshot(10);
    a_write_ends(false);
    leaves_a_snapshot(20);
    it_is_ended_for("it said `snapshot` while");
}

static void says_a_fault(enum msg_fault_kind kind)
{
    static struct message m;
    message_init(&m, MSG_FAULT);
    m.fault.kind = kind;
    m.fault.peer = m.fault.step = -1;
    says(&m);
}

static const char said_by_others[] = "it said `fault` of a kind that only others can say of it";

Test(refused_words, its_own_end_is_not_a_trainers_to_tell, .init = arrange, .fini = dismiss)
{
    says_a_fault(FAULT_TRAINER_EXIT);
    it_is_ended_for(said_by_others);
}

Test(refused_words, that_it_hangs_is_not_a_trainers_to_tell, .init = arrange, .fini = dismiss)
{
    says_a_fault(FAULT_HANG);
    it_is_ended_for(said_by_others);
}

Test(refused_words, a_launcher_knows_nothing_of_a_store, .init = arrange_launcher, .fini = dismiss)
{
    says_a_fault(FAULT_STORAGE);
    it_is_ended_for(said_by_others);
}

Test(refused_words, a_step_that_it_was_asked_to_save_and_does_not_hold_is_a_trainers_to_tell, .init = arrange,
     .fini = dismiss)
{
    says_a_fault(FAULT_STORAGE);
    cr_assert_null(did(AGENT_KILL));
    cr_assert_eq(did(AGENT_SEND_CONTROL)->message->fault.kind, FAULT_STORAGE);
}

Test(refused_words, a_snapshot_after_the_memory_was_given_back_is_written, .init = arrange, .fini = dismiss)
{
    leaves_a_snapshot(10);
    a_write_ends(true);
    leaves_a_snapshot(20);
    cr_assert(did(AGENT_WRITE) && !did(AGENT_KILL));
}

Test(refused_words, a_trainer_that_is_up_without_a_pid_is_ended, .fini = dismiss)
{
    begin(false);
    comes_up(0);
    it_is_ended_for("it said `up` without its pid");
}

static const enum msg_type of_the_link[] = {MSG_PROGRESS,        MSG_EVALUATED, MSG_STOPPED,  MSG_READY,
                                            MSG_FINISHED,        MSG_PROBED,    MSG_REPORTED, MSG_SNAPSHOT,
                                            MSG_SNAPSHOT_WANTED, MSG_LOAD,      MSG_HEARD,    MSG_FROZEN};

Test(refused_words, whatever_a_trainer_says_before_it_is_up_but_that_it_lives_and_why_it_fails_ends_it)
{
    static struct message m;
    for (size_t i = 0; i < sizeof of_the_link / sizeof *of_the_link; i++) {
        begin(false);
        message_init(&m, of_the_link[i]);
        says(&m);
        cr_assert(did(AGENT_KILL), "%s", msg_type_name(m.type));
        it_is_ended_for("before it was up");
        dismiss();
    }
}

Test(refused_words, a_launcher_that_asks_the_store_for_something_is_ended)
{
    static const enum msg_type of_store[] = {MSG_LOAD, MSG_SNAPSHOT, MSG_SNAPSHOT_WANTED};
    static struct message m;
    for (size_t i = 0; i < sizeof of_store / sizeof *of_store; i++) {
        arrange_launcher();
        message_init(&m, of_store[i]);
        says(&m);
        it_is_ended_for("and has no state");
        dismiss();
    }
}

Test(refused_words, what_a_coordinator_asks_of_a_store_that_a_launchers_job_does_not_have_is_not_done,
     .init = arrange_launcher, .fini = dismiss)
{
    static struct message form;
    coordinator_says((struct message){.type = MSG_LIST, .term = 1});
    cr_assert_eq(out->count, 0);
    coordinator_says((struct message){.type = MSG_PUBLISH, .term = 1});
    cr_assert_eq(out->count, 0);
    message_init(&form, MSG_FORM);
    form.term = 1;
    form.generation = (struct msg_generation){1, 1};
    form.form.count = 1;
    form.form.member[0] = (struct msg_member){.worker = 2, .role = ROLE_LOAD};
    step((struct agent_event){.kind = AGENT_CONTROL, .message = &form});
    cr_assert(did(AGENT_SEND_LINK) && !did(AGENT_LOAD));
}

Test(refused_words, a_coordinator_that_names_no_term_is_none, .fini = dismiss)
{
    struct agent_settings settings = {.job = "j", .heartbeat = RM_S, .lost_after = RM_NEVER};
    st = agent_open(&settings);
    out = calloc(1, sizeof *out);
    step((struct agent_event){.kind = AGENT_START});
    step((struct agent_event){.kind = AGENT_CONNECTED});
    coordinator_says((struct message){.type = MSG_WELCOME});
    cr_assert(did(AGENT_EXIT) && did(AGENT_EXIT)->exit_code == EXIT_MACHINE);
    cr_assert(strstr(did(AGENT_EXIT)->text, "does not say of which term"), "%s", did(AGENT_EXIT)->text);
}

static const struct message *said(enum msg_type type)
{
    for (int i = 0; i < out->count; i++)
        if (out->action[i].kind == AGENT_SEND_CONTROL && out->action[i].message->type == type)
            return out->action[i].message;
    return NULL;
}

/* A higher number would be refused by the coordinator, with the whole message. */
Test(refused_words, what_is_counted_on_from_the_highest_number_stays_one_that_can_be_said, .init = arrange,
     .fini = dismiss)
{
    static struct message m;
    message_init(&m, MSG_FORM);
    m.term = 1;
    m.generation = (struct msg_generation){1, 1};
    m.form.begun = MSG_NUMBER_MOST;
    step((struct agent_event){.kind = AGENT_CONTROL, .message = &m});
    message_init(&m, MSG_READY);
    m.generation = (struct msg_generation){1, 1};
    says(&m);
    comes_up(101);
    cr_assert_eq(said(MSG_HELLO)->hello.begun, MSG_NUMBER_MOST);
    message_init(&m, MSG_HEARTBEAT);
    m.heartbeat.counter = MSG_NUMBER_MOST;
    says(&m);
    message_init(&m, MSG_PROGRESS);
    says(&m);
    now += RM_S;
    step((struct agent_event){.kind = AGENT_TICK});
    cr_assert_eq(said(MSG_HEARTBEAT)->heartbeat.counter, 0);
}

/* Every word that a link carries, in any order, with the answers of a store: nothing fails, and whoever was
 * killed ends. */
Test(refused_words, no_order_of_a_trainers_words_and_a_stores_answers_fails_the_agent)
{
    static struct message m;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        uint64_t chance = seed;
        int written = 0, loads = 0;
        begin(seed % 4 == 0);
        for (int i = 0; i < 60; i++) {
            uint64_t what = prng_below(&chance, 16);
            now += (rm_time)prng_below(&chance, 3) * RM_S;
            if (what < 10) {
                message_init(&m, of_the_link[what]);
                m.generation = (struct msg_generation){1, (int64_t)prng_below(&chance, 3)};
                m.snapshot.parts = what == 7 ? 1 : m.snapshot.parts;
                says(&m);
            } else if (what == 10) {
                comes_up((int64_t)prng_below(&chance, 3));
            } else if (what == 11 && written > 0) {
                a_write_ends(prng_below(&chance, 2) == 0);
                written--;
            } else if (what == 12 && loads > 0) {
                step((struct agent_event){.kind = AGENT_LOADED, .given_up = true});
                loads--;
            } else if (what == 13) {
                message_init(&m, MSG_FORM);
                m.term = 1;
                m.generation = (struct msg_generation){1, 1 + (int64_t)prng_below(&chance, 9)};
                m.form.count = (int)prng_below(&chance, 3);
                for (int k = 0; k < m.form.count; k++)
                    m.form.member[k] = (struct msg_member){.worker = 2, .role = ROLE_LOAD};
                step((struct agent_event){.kind = AGENT_CONTROL, .message = &m});
            } else if (what == 14) {
                message_init(&m, MSG_FAULT);
                m.fault.kind = (enum msg_fault_kind)prng_below(&chance, 10);
                says(&m);
            } else {
                step((struct agent_event){.kind = AGENT_TICK});
            }
            for (int k = 0; k < out->count; k++) {
                written += out->action[k].kind == AGENT_WRITE;
                loads += out->action[k].kind == AGENT_LOAD;
            }
            if (did(AGENT_KILL))
                step((struct agent_event){.kind = AGENT_TRAINER_EXIT, .code = -1, .text = "killed"});
        }
        dismiss();
    }
}
