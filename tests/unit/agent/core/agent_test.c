/* The agent's rules, one story each. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/agent.h"
#include "tests/unit/bits.h"

struct play {
    struct agent *st;
    struct agent_out *out;
    rm_time now;
};

static void begin_with(struct play *p, bool launcher)
{
    struct agent_settings s = {.job = "story",
                               .worker = 1,
                               .launcher = launcher,
                               .incarnation = 77,
                               .agent_pid = 50,
                               .heartbeat = RM_S,
                               .lost_after = 5 * RM_S,
                               .checkpoint_uri = "file:///c"};
    p->st = agent_open(&s);
    p->out = calloc(1, sizeof *p->out);
    p->now = RM_S;
}

static void begin(struct play *p)
{
    begin_with(p, false);
}

static void end(struct play *p)
{
    agent_free(p->st);
    free(p->out);
}

static void step(struct play *p, struct agent_event e)
{
    agent_step(p->st, &e, p->now, p->out);
}

static void control(struct play *p, struct message *m)
{
    m->term = m->term ? m->term : 2;
    step(p, (struct agent_event){.kind = AGENT_CONTROL, .message = m});
}

static void control_type(struct play *p, enum msg_type type)
{
    struct message m;
    message_init(&m, type);
    control(p, &m);
}

static void from_trainer(struct play *p, struct message *m)
{
    step(p, (struct agent_event){.kind = AGENT_LINK, .message = m});
}

static const struct agent_action *did(const struct play *p, enum agent_action_kind kind)
{
    for (int i = 0; i < p->out->count; i++) {
        if (p->out->action[i].kind == kind)
            return &p->out->action[i];
    }
    return NULL;
}

static const struct message *sent(const struct play *p, enum agent_action_kind to, enum msg_type type)
{
    for (int i = 0; i < p->out->count; i++) {
        const struct agent_action *a = &p->out->action[i];
        if (a->kind == to && a->message->type == type)
            return a->message;
    }
    return NULL;
}

static void up(struct play *p, int64_t pid)
{
    struct message m;
    message_init(&m, MSG_UP);
    m.up.pid = pid;
    text_copy(m.up.fingerprint, sizeof m.up.fingerprint, "exact");
    text_copy(m.up.address, sizeof m.up.address, "127.0.0.1:9");
    text_copy(m.up.data_sha256, sizeof m.up.data_sha256, "abc");
    from_trainer(p, &m);
}

static void connect_to_coordinator(struct play *p)
{
    step(p, (struct agent_event){.kind = AGENT_CONNECTED});
    cr_assert(sent(p, AGENT_SEND_CONTROL, MSG_HELLO));
    control_type(p, MSG_WELCOME);
}

static void start_with(struct play *p, bool launcher)
{
    begin_with(p, launcher);
    step(p, (struct agent_event){.kind = AGENT_START});
    cr_assert(did(p, AGENT_SPAWN));
    cr_assert(did(p, AGENT_CONNECT));
    connect_to_coordinator(p);
    up(p, 100);
}

static void start(struct play *p)
{
    start_with(p, false);
}

static void form(struct play *p, int64_t n, enum msg_role role)
{
    static struct message m;
    message_init(&m, MSG_FORM);
    m.generation = (struct msg_generation){2, n};
    m.form.count = 1;
    m.form.member[0].worker = 1;
    m.form.member[0].role = role;
    m.form.resume = (struct msg_state){.held = true, .step = 20};
    control(p, &m);
}

static void snapshot(struct play *p)
{
    struct message m;
    message_init(&m, MSG_SNAPSHOT);
    m.snapshot.state = (struct msg_state){.held = true, .step = 20};
    m.snapshot.parts = 1;
    from_trainer(p, &m);
}

static void written(struct play *p)
{
    struct message m;
    message_init(&m, MSG_CHECKPOINTED);
    m.checkpointed.step = 20;
    step(p, (struct agent_event){.kind = AGENT_WRITTEN, .ok = true, .message = &m});
}

static void progress(struct play *p, int64_t s)
{
    struct message m;
    message_init(&m, MSG_PROGRESS);
    m.progress.step = s;
    from_trainer(p, &m);
}

Test(agent, says_hello_again_when_its_trainer_is_up)
{
    struct play p;
    start(&p);
    const struct message *m = sent(&p, AGENT_SEND_CONTROL, MSG_HELLO);
    cr_assert(m && m->hello.trainer_pid == 100 && m->hello.incarnation == 77);
    end(&p);
}

Test(agent, a_dead_trainer_is_replaced_at_once_on_the_same_memory)
{
    struct play p;
    start(&p);
    step(&p, (struct agent_event){.kind = AGENT_TRAINER_EXIT, .code = -1, .text = "killed by signal 9"});
    const struct message *fault = sent(&p, AGENT_SEND_CONTROL, MSG_FAULT);
    const struct message *setup = sent(&p, AGENT_SEND_LINK, MSG_SETUP);
    cr_assert(fault && fault->fault.kind == FAULT_TRAINER_EXIT);
    cr_assert(did(&p, AGENT_SPAWN));
    cr_assert_eq(setup->setup.restarts, 1);
    cr_assert_str_eq(setup->setup.data_sha256, "abc", "what is known is not hashed again");
    end(&p);
}

Test(agent, who_comes_back_without_its_trainer_says_what_computed_all_the_same)
{
    struct play p;
    start(&p);
    step(&p, (struct agent_event){.kind = AGENT_DISCONNECTED});
    step(&p, (struct agent_event){.kind = AGENT_TRAINER_EXIT, .code = -1, .text = "killed by signal 9"});
    step(&p, (struct agent_event){.kind = AGENT_CONNECTED});
    const struct message *m = sent(&p, AGENT_SEND_CONTROL, MSG_HELLO);
    cr_assert(m && m->hello.trainer_pid == 0);
    cr_assert_str_eq(m->hello.fingerprint, "exact");
    end(&p);
}

Test(agent, a_trainer_that_can_not_start_ends_the_agent_with_its_code)
{
    struct play p;
    begin(&p);
    step(&p, (struct agent_event){.kind = AGENT_START});
    step(&p, (struct agent_event){.kind = AGENT_TRAINER_EXIT, .code = 3, .text = "no data"});
    cr_assert_eq(did(&p, AGENT_EXIT)->exit_code, 3);
    end(&p);
}

/* In a pod that is all that anybody reads of it. */
Test(agent, a_trainer_that_said_why_it_does_not_start_is_quoted)
{
    struct play p;
    struct message m;
    begin(&p);
    step(&p, (struct agent_event){.kind = AGENT_START});
    message_init(&m, MSG_FAULT);
    m.fault.kind = FAULT_MACHINE;
    text_copy(m.fault.detail, sizeof m.fault.detail, "the program is refused");
    step(&p, (struct agent_event){.kind = AGENT_LINK, .message = &m});
    step(&p, (struct agent_event){.kind = AGENT_TRAINER_EXIT, .code = 2, .text = "exited with code 2"});
    cr_assert_eq(did(&p, AGENT_EXIT)->exit_code, 2);
    cr_assert(strstr(did(&p, AGENT_EXIT)->text, "the program is refused"), "%s", did(&p, AGENT_EXIT)->text);
    end(&p);
}

/* What the coordinator is told of a device's failure, and whether the trainer is ended. */
static void fails_by_device(struct play *p, enum fault_class class, const char *detail, bool replaced)
{
    struct message m;
    message_init(&m, MSG_FAULT);
    m.fault.kind = FAULT_MACHINE;
    m.fault.class = CLASS_DEVICE;
    text_copy(m.fault.detail, sizeof m.fault.detail, "the GPU failed");
    from_trainer(p, &m);
    const struct message *told = sent(p, AGENT_SEND_CONTROL, MSG_FAULT);
    cr_assert(told && told->fault.class == class, "%d", told ? (int)told->fault.class : -1);
    cr_assert_str_eq(told->fault.detail, detail);
    cr_assert_eq(did(p, AGENT_KILL) != NULL, replaced);
}

Test(agent, a_device_that_fails_once_gets_another_trainer_and_the_second_time_the_machine_is_to_blame)
{
    struct play p;
    start(&p);
    fails_by_device(&p, CLASS_DEVICE, "the GPU failed", true);
    step(&p, (struct agent_event){.kind = AGENT_TRAINER_EXIT, .code = -1, .text = "killed by signal 9"});
    const struct message *ended = sent(&p, AGENT_SEND_CONTROL, MSG_FAULT);
    cr_assert(ended && ended->fault.kind == FAULT_TRAINER_EXIT);
    cr_assert(strstr(ended->fault.detail, "its device failed under it"), "%s", ended->fault.detail);
    cr_assert(did(&p, AGENT_SPAWN));
    up(&p, 101);
    fails_by_device(&p, CLASS_MACHINE, "for the second time: the GPU failed", false);
    end(&p);
}

Test(agent, a_device_on_which_no_trainer_comes_up_is_the_machines_fault)
{
    struct play p;
    begin(&p);
    step(&p, (struct agent_event){.kind = AGENT_START});
    connect_to_coordinator(&p);
    fails_by_device(&p, CLASS_MACHINE, "the GPU failed", false);
    end(&p);
}

Test(agent, a_lower_term_is_ignored_after_a_higher_one)
{
    struct play p;
    start(&p);
    struct message m;
    message_init(&m, MSG_STOP);
    m.term = 1;
    control(&p, &m);
    cr_assert_not(sent(&p, AGENT_SEND_LINK, MSG_STOP));
    m.term = 2;
    control(&p, &m);
    cr_assert(sent(&p, AGENT_SEND_LINK, MSG_STOP));
    end(&p);
}

Test(agent, a_form_of_an_older_generation_is_ignored)
{
    struct play p;
    start(&p);
    form(&p, 5, ROLE_KEEP);
    cr_assert(sent(&p, AGENT_SEND_LINK, MSG_FORM));
    form(&p, 5, ROLE_KEEP);
    cr_assert_not(sent(&p, AGENT_SEND_LINK, MSG_FORM));
    form(&p, 4, ROLE_KEEP);
    cr_assert_not(sent(&p, AGENT_SEND_LINK, MSG_FORM));
    end(&p);
}

Test(agent, after_a_reconnect_steps_are_said_again_until_acknowledged)
{
    struct play p;
    start(&p);
    for (int64_t s = 1; s <= 3; s++)
        progress(&p, s);
    struct message ack;
    message_init(&ack, MSG_ACK);
    ack.ack.step = 1;
    ack.ack.evaluated = -1;
    control(&p, &ack);
    step(&p, (struct agent_event){.kind = AGENT_DISCONNECTED});
    progress(&p, 4);
    cr_assert_not(sent(&p, AGENT_SEND_CONTROL, MSG_PROGRESS));
    cr_assert_leq(agent_deadline(p.st), p.now + 100 * RM_MS);
    p.now += 100 * RM_MS;
    step(&p, (struct agent_event){.kind = AGENT_TICK});
    cr_assert(did(&p, AGENT_CONNECT));
    connect_to_coordinator(&p);
    int64_t next = 2;
    for (int i = 0; i < p.out->count; i++) {
        if (p.out->action[i].message->type == MSG_PROGRESS)
            cr_assert_eq(p.out->action[i].message->progress.step, next++);
    }
    cr_assert_eq(next, 5);
    end(&p);
}

/* found by the simulator: a long cut with an evaluation at every second step */
Test(agent, many_evaluations_survive_a_long_cut)
{
    struct play p;
    start(&p);
    step(&p, (struct agent_event){.kind = AGENT_DISCONNECTED});
    for (int64_t s = 1; s <= 40; s++) {
        struct message m;
        message_init(&m, MSG_EVALUATED);
        m.evaluated.step = s;
        from_trainer(&p, &m);
    }
    connect_to_coordinator(&p);
    int n = 0;
    for (int i = 0; i < p.out->count; i++)
        n += p.out->action[i].message->type == MSG_EVALUATED;
    cr_assert_eq(n, 40);
    end(&p);
}

static void publish(struct play *p, int64_t at)
{
    static struct message m;
    message_init(&m, MSG_PUBLISH);
    m.publish.step = at;
    m.publish.count = MSG_PIECES_MAX;
    control(p, &m);
}

/* Fills all that is kept. What is handed in is gone after each step. */
static void keep_all(struct play *p)
{
    struct message m;
    for (int64_t s = 1; s <= 100; s++) {
        progress(p, s);
        message_init(&m, MSG_EVALUATED);
        m.evaluated.step = s;
        from_trainer(p, &m);
    }
    publish(p, 20);
    publish(p, 40);
    message_init(&m, MSG_PUBLISHED);
    m.published.step = 20;
    step(p, (struct agent_event){.kind = AGENT_PUBLISHED, .ok = true, .message = &m});
    for (int i = 0; i < 3; i++) {
        snapshot(p);
        written(p);
    }
    snapshot(p);
    step(p, (struct agent_event){.kind = AGENT_WRITTEN, .again = true, .step = 20, .text = "disk full"});
    static const enum msg_type newest[] = {MSG_FAULT, MSG_READY, MSG_FINISHED};
    for (int i = 0; i < 3; i++) {
        message_init(&m, newest[i]);
        if (m.type == MSG_FAULT)
            m.fault.kind = FAULT_RING;
        from_trainer(p, &m);
    }
}

Test(agent, all_that_is_kept_is_said_again_in_one_step_with_room_to_spare)
{
    struct play p;
    start(&p);
    form(&p, 1, ROLE_KEEP);
    keep_all(&p);
    step(&p, (struct agent_event){.kind = AGENT_TERM, .deadline = RM_S});
    step(&p, (struct agent_event){.kind = AGENT_DISCONNECTED});
    connect_to_coordinator(&p);
    static const enum msg_type said[] = {MSG_LEAVING,      MSG_PROGRESS,  MSG_EVALUATED,
                                         MSG_CHECKPOINTED, MSG_PUBLISHED, MSG_SAVE_WAITS,
                                         MSG_FAULT,        MSG_READY,     MSG_FINISHED};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        cr_assert(sent(&p, AGENT_SEND_CONTROL, said[i]), "%s is lost", msg_type_name(said[i]));
    cr_assert_eq(sent(&p, AGENT_SEND_CONTROL, MSG_PUBLISHED)->published.step, 20);
    cr_assert_eq(sent(&p, AGENT_SEND_CONTROL, MSG_CHECKPOINTED)->checkpointed.step, 20);
    cr_assert_gt(p.out->count, 130);
    cr_assert_lt(p.out->count, AGENT_ACTIONS_MAX);
    cr_assert_lt(p.out->arena.used, AGENT_BODIES_MAX / 2, "%zu bytes", p.out->arena.used);
    end(&p);
}

Test(agent, a_coordinator_that_stays_away_ends_it_with_4_naming_the_checkpoint)
{
    struct play p;
    start(&p);
    struct message m;
    message_init(&m, MSG_PUBLISH);
    m.publish.step = 20;
    control(&p, &m);
    message_init(&m, MSG_PUBLISHED);
    m.published.step = 20;
    step(&p, (struct agent_event){.kind = AGENT_PUBLISHED, .ok = true, .message = &m});
    step(&p, (struct agent_event){.kind = AGENT_DISCONNECTED});
    p.now += 4 * RM_S;
    step(&p, (struct agent_event){.kind = AGENT_TICK});
    step(&p, (struct agent_event){.kind = AGENT_DISCONNECTED});
    cr_assert_not(did(&p, AGENT_EXIT));
    p.now += RM_S;
    step(&p, (struct agent_event){.kind = AGENT_TICK});
    cr_assert_eq(did(&p, AGENT_EXIT)->exit_code, 4);
    cr_assert(strstr(did(&p, AGENT_EXIT)->text, "the newest checkpoint is of step 20 in file:///c"));
    end(&p);
}

Test(agent, sigterm_waits_for_the_release)
{
    struct play p;
    start(&p);
    step(&p, (struct agent_event){.kind = AGENT_TERM});
    cr_assert(sent(&p, AGENT_SEND_CONTROL, MSG_LEAVING));
    cr_assert_not(did(&p, AGENT_EXIT));
    control_type(&p, MSG_RELEASE);
    cr_assert(sent(&p, AGENT_SEND_LINK, MSG_RELEASE));
    cr_assert_eq(did(&p, AGENT_EXIT)->exit_code, 0);
    end(&p);
}

Test(agent, a_release_waits_for_the_slice_that_is_being_written)
{
    struct play p;
    start(&p);
    snapshot(&p);
    cr_assert(did(&p, AGENT_WRITE));
    control_type(&p, MSG_RELEASE);
    cr_assert_not(did(&p, AGENT_EXIT));
    written(&p);
    cr_assert(sent(&p, AGENT_SEND_CONTROL, MSG_CHECKPOINTED));
    cr_assert_eq(did(&p, AGENT_EXIT)->exit_code, 0);
    end(&p);
}

static void loaded(struct play *p, int64_t n, bool ok)
{
    static struct message m;
    message_init(&m, MSG_LOADED);
    m.generation = (struct msg_generation){2, n};
    m.loaded.state = (struct msg_state){.held = true, .step = 20};
    step(p, (struct agent_event){
                .kind = AGENT_LOADED, .ok = ok, .given_up = !ok, .message = ok ? &m : NULL, .step = 20});
}

Test(agent, a_checkpoint_is_read_beside_a_slice_that_is_written)
{
    struct play p;
    start(&p);
    snapshot(&p);
    form(&p, 1, ROLE_LOAD);
    const struct msg_load *load = &did(&p, AGENT_LOAD)->message->load;
    cr_assert_eq(load->state.step, 20);
    cr_assert(load->in_state, "its trainer holds nothing");
    cr_assert(set_equals(load->shares, set_of(0)) && load->parts == 1);
    loaded(&p, 1, true);
    cr_assert(sent(&p, AGENT_SEND_LINK, MSG_LOADED)->loaded.state.held);
    cr_assert_not(sent(&p, AGENT_SEND_LINK, MSG_SNAPSHOT_FREE));
    end(&p);
}

Test(agent, each_member_reads_the_share_of_its_rank_and_what_its_trainer_misses)
{
    struct play p;
    static struct message m;
    start(&p);
    message_init(&m, MSG_FORM);
    m.generation = (struct msg_generation){2, 1};
    m.form.count = 3;
    m.form.member[0].worker = 4;
    m.form.member[1].worker = 0;
    m.form.member[2].worker = 1;
    for (int i = 0; i < 3; i++)
        m.form.member[i].role = ROLE_LOAD;
    m.form.resume = (struct msg_state){.held = true, .step = 20};
    control(&p, &m);
    cr_assert(bits_of_set(did(&p, AGENT_LOAD)->message->load.shares) == 4 &&
              did(&p, AGENT_LOAD)->message->load.parts == 3);
    loaded(&p, 1, true);
    message_init(&m, MSG_LOAD);
    m.generation = (struct msg_generation){2, 1};
    m.load.shares = set_of_bits(3);
    from_trainer(&p, &m);
    cr_assert_eq(bits_of_set(did(&p, AGENT_LOAD)->message->load.shares), 3);
    m.generation.n = 0;
    from_trainer(&p, &m);
    cr_assert_not(did(&p, AGENT_LOAD), "of a ring that is over");
    cr_assert_not(sent(&p, AGENT_SEND_LINK, MSG_LOADED)->loaded.state.held, "but it is answered");
    end(&p);
}

Test(agent, what_a_trainer_holds_is_not_read_over)
{
    struct play p;
    struct message m;
    start(&p);
    message_init(&m, MSG_STOPPED);
    m.stopped.state = (struct msg_state){.held = true, .step = 7};
    from_trainer(&p, &m);
    form(&p, 1, ROLE_LOAD);
    cr_assert_not(did(&p, AGENT_LOAD)->message->load.in_state);
    end(&p);
}

/* The weights of a trainer may lie in another machine's memory: on a device. */
Test(agent, a_checkpoint_is_read_beside_a_state_that_lies_out_of_reach)
{
    struct play p;
    struct message m;
    start(&p);
    message_init(&m, MSG_UP);
    m.up.pid = 51;
    m.up.params_at = -1;
    from_trainer(&p, &m);
    form(&p, 1, ROLE_LOAD);
    cr_assert_not(did(&p, AGENT_LOAD)->message->load.in_state);
    end(&p);
}

Test(agent, a_new_trainer_is_told_that_the_snapshot_memory_is_busy_and_when_it_is_free)
{
    struct play p;
    start(&p);
    snapshot(&p);
    step(&p, (struct agent_event){.kind = AGENT_TRAINER_EXIT, .code = -1});
    cr_assert(sent(&p, AGENT_SEND_LINK, MSG_SETUP)->setup.snapshot_busy);
    written(&p);
    cr_assert(sent(&p, AGENT_SEND_LINK, MSG_SNAPSHOT_FREE), "although it is not up yet");
    end(&p);
}

static void stopped(struct play *p)
{
    struct message m;
    message_init(&m, MSG_STOPPED);
    from_trainer(p, &m);
}

Test(agent, a_load_that_nobody_waits_for_any_more_is_given_up_and_its_end_told)
{
    struct play p;
    static struct message m;
    start(&p);
    form(&p, 1, ROLE_LOAD);
    message_init(&m, MSG_STOP);
    m.stop.at = STOP_NOW;
    control(&p, &m);
    cr_assert(did(&p, AGENT_LOAD_STOP));
    stopped(&p);
    form(&p, 2, ROLE_KEEP);
    cr_assert_not(sent(&p, AGENT_SEND_LINK, MSG_LOADED));
    loaded(&p, 1, false);
    cr_assert_not(sent(&p, AGENT_SEND_LINK, MSG_LOADED)->loaded.state.held);
    cr_assert_not(sent(&p, AGENT_SEND_CONTROL, MSG_FAULT), "the checkpoint is not to blame");
    end(&p);
}

Test(agent, the_next_load_begins_when_the_one_before_has_ended)
{
    struct play p;
    start(&p);
    form(&p, 1, ROLE_LOAD);
    form(&p, 2, ROLE_LOAD);
    cr_assert(did(&p, AGENT_LOAD_STOP));
    cr_assert_not(did(&p, AGENT_LOAD));
    loaded(&p, 1, true); /* it was too late to give it up */
    cr_assert(did(&p, AGENT_LOAD));
    cr_assert_not(sent(&p, AGENT_SEND_LINK, MSG_LOADED), "the memory is in use again at once");
    loaded(&p, 2, true);
    cr_assert_eq(sent(&p, AGENT_SEND_LINK, MSG_LOADED)->generation.n, 2);
    end(&p);
}

Test(agent, a_new_trainer_is_told_that_a_checkpoint_is_still_written_where_its_state_lies)
{
    struct play p;
    start(&p);
    form(&p, 1, ROLE_LOAD);
    step(&p, (struct agent_event){.kind = AGENT_TRAINER_EXIT, .code = -1});
    cr_assert(did(&p, AGENT_LOAD_STOP));
    cr_assert(sent(&p, AGENT_SEND_LINK, MSG_SETUP)->setup.load_busy);
    loaded(&p, 1, false);
    cr_assert(sent(&p, AGENT_SEND_LINK, MSG_LOADED), "although it is not up yet");
    end(&p);
}

Test(agent, a_checkpoint_that_does_not_verify_is_a_storage_fault)
{
    struct play p;
    start(&p);
    form(&p, 1, ROLE_LOAD);
    step(&p, (struct agent_event){.kind = AGENT_LOADED, .step = 20, .text = "a hash does not match"});
    const struct message *m = sent(&p, AGENT_SEND_CONTROL, MSG_FAULT);
    cr_assert(m && m->fault.kind == FAULT_STORAGE && m->fault.step == 20);
    end(&p);
}

Test(agent, a_publish_said_twice_is_done_once)
{
    struct play p;
    start(&p);
    static struct message m;
    message_init(&m, MSG_PUBLISH);
    m.publish.step = 20;
    control(&p, &m);
    cr_assert(did(&p, AGENT_PUBLISH));
    control(&p, &m);
    cr_assert_not(did(&p, AGENT_PUBLISH));
    struct message done;
    message_init(&done, MSG_PUBLISHED);
    done.published.step = 20;
    step(&p, (struct agent_event){.kind = AGENT_PUBLISHED, .ok = true, .message = &done});
    control(&p, &m);
    cr_assert_not(did(&p, AGENT_PUBLISH));
    cr_assert(sent(&p, AGENT_SEND_CONTROL, MSG_PUBLISHED), "but answered again");
    end(&p);
}

Test(agent, someone_elses_coordinator_is_refused_with_4)
{
    struct play p;
    start(&p);
    step(&p, (struct agent_event){.kind = AGENT_REFUSED, .text = "it does not know the job's key"});
    cr_assert_eq(did(&p, AGENT_EXIT)->exit_code, 4);
    end(&p);
}

Test(agent, a_probe_goes_to_the_trainer_and_what_it_found_to_the_coordinator)
{
    struct play p;
    start(&p);
    struct message m;
    message_init(&m, MSG_PROBE);
    m.probe.id = 7;
    control(&p, &m);
    cr_assert_eq(sent(&p, AGENT_SEND_LINK, MSG_PROBE)->probe.id, 7);
    message_init(&m, MSG_PROBED);
    m.probed.id = 7;
    m.probed.peer = 3;
    from_trainer(&p, &m);
    cr_assert_eq(sent(&p, AGENT_SEND_CONTROL, MSG_PROBED)->probed.peer, 3);
    end(&p);
}

Test(agent, to_listen_is_told_to_the_trainer_and_what_it_heard_to_the_coordinator)
{
    struct play p;
    start(&p);
    struct message m;
    message_init(&m, MSG_LISTEN);
    m.listen.sources_count = 2;
    control(&p, &m);
    cr_assert_eq(sent(&p, AGENT_SEND_LINK, MSG_LISTEN)->listen.sources_count, 2);
    message_init(&m, MSG_HEARD);
    m.heard.state = (struct msg_state){.held = true, .step = 9};
    from_trainer(&p, &m);
    cr_assert_eq(sent(&p, AGENT_SEND_CONTROL, MSG_HEARD)->heard.state.step, 9);
    end(&p);
}

Test(agent, how_long_to_train_between_two_checkpoints_goes_to_the_trainer)
{
    struct play p;
    start(&p);
    struct message m;
    message_init(&m, MSG_SAVE_EVERY);
    m.save_every.every = 90 * RM_S;
    control(&p, &m);
    cr_assert_eq(sent(&p, AGENT_SEND_LINK, MSG_SAVE_EVERY)->save_every.every, 90 * RM_S);
    end(&p);
}

static void program_fails(struct play *p, int64_t n)
{
    struct message m;
    message_init(&m, MSG_FAULT);
    m.generation = (struct msg_generation){2, n};
    m.fault.kind = FAULT_PROGRAM;
    m.fault.exit_code = 42;
    from_trainer(p, &m);
}

/* Said again as long as no newer ring was formed; whoever hears it knows what it has heard before. */
Test(agent, a_programs_failure_is_said_again_on_the_next_connection_with_its_age)
{
    struct play p;
    start_with(&p, true);
    form(&p, 3, ROLE_KEEP);
    step(&p, (struct agent_event){.kind = AGENT_DISCONNECTED});
    program_fails(&p, 3);
    cr_assert_null(sent(&p, AGENT_SEND_CONTROL, MSG_FAULT));
    p.now += 2 * RM_S;
    up(&p, 100); /* the launcher has ended the rest, and is ready for the next one */
    connect_to_coordinator(&p);
    const struct message *fault = sent(&p, AGENT_SEND_CONTROL, MSG_FAULT);
    cr_assert(fault && fault->fault.kind == FAULT_PROGRAM && fault->fault.exit_code == 42);
    cr_assert(fault->generation.n == 3 && fault->fault.lasted == 2 * RM_S);
    form(&p, 4, ROLE_KEEP);
    step(&p, (struct agent_event){.kind = AGENT_DISCONNECTED});
    connect_to_coordinator(&p);
    cr_assert_null(sent(&p, AGENT_SEND_CONTROL, MSG_FAULT));
    end(&p);
}

/* Trainer and program end together, and nobody hears of either. */
static void pair_fails(struct play *p, int64_t n)
{
    program_fails(p, n);
    step(p, (struct agent_event){.kind = AGENT_TRAINER_EXIT, .code = -1, .text = "ended with its program"});
    cr_assert(did(p, AGENT_SPAWN));
}

static const struct message *connects_again(struct play *p)
{
    step(p, (struct agent_event){.kind = AGENT_DISCONNECTED});
    connect_to_coordinator(p);
    return sent(p, AGENT_SEND_CONTROL, MSG_FAULT);
}

static void goes(struct play *p, int64_t n)
{
    struct message m;
    form(p, n, ROLE_KEEP);
    message_init(&m, MSG_READY);
    m.generation = (struct msg_generation){2, n};
    from_trainer(p, &m);
    message_init(&m, MSG_GO);
    m.generation = (struct msg_generation){2, n};
    control(p, &m);
}

Test(agent, a_failure_beside_a_trainer_outlives_both_until_another_trainer_trains)
{
    struct play p;
    start(&p);
    goes(&p, 3);
    step(&p, (struct agent_event){.kind = AGENT_DISCONNECTED});
    pair_fails(&p, 3);
    cr_assert_null(sent(&p, AGENT_SEND_CONTROL, MSG_FAULT));
    p.now += 3 * RM_S;
    up(&p, 200);
    connect_to_coordinator(&p);
    const struct message *fault = sent(&p, AGENT_SEND_CONTROL, MSG_FAULT);
    cr_assert(fault && fault->fault.kind == FAULT_PROGRAM && fault->fault.exit_code == 42);
    cr_assert(fault->fault.over && fault->fault.trainer == 1 && fault->fault.lasted == 3 * RM_S);
    form(&p, 4, ROLE_KEEP);
    cr_assert(connects_again(&p), "nobody has said yet that it was heard");
    goes(&p, 5);
    cr_assert_null(connects_again(&p));
    end(&p);
}

Test(agent, a_failure_and_the_trainers_end_that_were_said_name_the_trainer_that_they_are_about)
{
    struct play p;
    start(&p);
    goes(&p, 3);
    pair_fails(&p, 3);
    const struct message *ended = sent(&p, AGENT_SEND_CONTROL, MSG_FAULT);
    cr_assert(ended && ended->fault.kind == FAULT_TRAINER_EXIT && ended->fault.trainer == 1);
    up(&p, 200);
    program_fails(&p, 4);
    const struct message *failed = sent(&p, AGENT_SEND_CONTROL, MSG_FAULT);
    cr_assert(failed && failed->fault.trainer == 2 && !failed->fault.over);
    const struct message *again = connects_again(&p);
    cr_assert(again && again->fault.trainer == 2 && !again->fault.over, "its trainer's end is told yet");
    end(&p);
}
