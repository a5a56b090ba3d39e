/* What the store does not take: kept by the agent, tried again, given up for something newer. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/agent.h"

struct play {
    struct agent *st;
    struct agent_out *out;
    rm_time now;
};

static void step(struct play *p, struct agent_event e)
{
    agent_step(p->st, &e, p->now, p->out);
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

static void control(struct play *p, struct message *m)
{
    m->term = 2;
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

static void trainer_says(struct play *p, enum msg_type type)
{
    struct message m;
    message_init(&m, type);
    if (type == MSG_UP)
        m.up.pid = 100;
    from_trainer(p, &m);
}

static void connect_to_coordinator(struct play *p)
{
    step(p, (struct agent_event){.kind = AGENT_CONNECTED});
    control_type(p, MSG_WELCOME);
}

static void start(struct play *p)
{
    struct agent_settings s = {
        .job = "story", .worker = 1, .heartbeat = RM_S, .lost_after = 500 * RM_S, .checkpoint_uri = "s3://b"};
    p->st = agent_open(&s);
    p->out = calloc(1, sizeof *p->out);
    p->now = RM_S;
    step(p, (struct agent_event){.kind = AGENT_START});
    connect_to_coordinator(p);
    trainer_says(p, MSG_UP);
}

static void end(struct play *p)
{
    agent_free(p->st);
    free(p->out);
}

static void snapshot(struct play *p, int64_t number)
{
    struct message m;
    message_init(&m, MSG_SNAPSHOT);
    m.snapshot.state = (struct msg_state){.held = true, .step = number};
    m.snapshot.parts = 1;
    from_trainer(p, &m);
}

static void not_taken(struct play *p, enum agent_event_kind kind, int64_t number)
{
    step(p, (struct agent_event){
                .kind = kind, .again = true, .step = number, .text = "the store does not answer"});
}

static void written(struct play *p, int64_t number)
{
    struct message m;
    message_init(&m, MSG_CHECKPOINTED);
    m.checkpointed.step = number;
    step(p, (struct agent_event){.kind = AGENT_WRITTEN, .ok = true, .message = &m});
}

/* Ticks at each deadline until it asks the store again; how long that took. */
static rm_time next_try(struct play *p, enum agent_action_kind kind)
{
    rm_time since = p->now;
    do {
        p->now = agent_deadline(p->st);
        step(p, (struct agent_event){.kind = AGENT_TICK});
    } while (!did(p, kind) && p->now < since + 100 * RM_S);
    cr_assert(did(p, kind), "it is never tried again");
    return p->now - since;
}

Test(waits, a_slice_that_the_store_does_not_take_is_kept_and_tried_again_with_growing_pauses)
{
    struct play p;
    start(&p);
    snapshot(&p, 20);
    rm_time before = 0;
    for (int i = 0; i < 8; i++) {
        not_taken(&p, AGENT_WRITTEN, 20);
        const struct message *m = sent(&p, AGENT_SEND_CONTROL, MSG_SAVE_WAITS);
        cr_assert(m && m->save_waits.step == 20 && strstr(m->save_waits.why, "does not answer"));
        cr_assert_not(sent(&p, AGENT_SEND_LINK, MSG_SNAPSHOT_FREE), "it lies there");
        cr_assert_not(sent(&p, AGENT_SEND_CONTROL, MSG_FAULT));
        rm_time pause = next_try(&p, AGENT_WRITE);
        cr_assert_geq(pause, before);
        cr_assert_eq(did(&p, AGENT_WRITE)->message->snapshot.state.step, 20);
        before = pause;
    }
    cr_assert_leq(before, 20 * RM_S, "a store that comes back is noticed soon");
    written(&p, 20);
    cr_assert(sent(&p, AGENT_SEND_CONTROL, MSG_CHECKPOINTED));
    cr_assert(sent(&p, AGENT_SEND_LINK, MSG_SNAPSHOT_FREE));
    snapshot(&p, 30);
    cr_assert(did(&p, AGENT_WRITE), "and the next one is tried at once");
    end(&p);
}

Test(waits, a_newer_state_takes_the_place_of_the_one_that_waits_and_is_tried_when_that_would_have_been)
{
    struct play p;
    start(&p);
    snapshot(&p, 20);
    not_taken(&p, AGENT_WRITTEN, 20);
    trainer_says(&p, MSG_SNAPSHOT_WANTED);
    cr_assert(sent(&p, AGENT_SEND_LINK, MSG_SNAPSHOT_FREE), "at once: training goes on");
    snapshot(&p, 30);
    cr_assert_not(did(&p, AGENT_WRITE), "the store has only just failed");
    cr_assert_eq(sent(&p, AGENT_SEND_CONTROL, MSG_SAVE_WAITS)->save_waits.step, 30);
    next_try(&p, AGENT_WRITE);
    cr_assert_eq(did(&p, AGENT_WRITE)->message->snapshot.state.step, 30);
    end(&p);
}

Test(waits, a_slice_under_way_is_given_up_for_a_newer_state_only_by_the_stores_own_word)
{
    struct play p;
    start(&p);
    snapshot(&p, 20);
    trainer_says(&p, MSG_SNAPSHOT_WANTED);
    cr_assert(did(&p, AGENT_YIELD));
    cr_assert_not(sent(&p, AGENT_SEND_LINK, MSG_SNAPSHOT_FREE), "it may be taken yet");
    not_taken(&p, AGENT_WRITTEN, 20);
    cr_assert(sent(&p, AGENT_SEND_LINK, MSG_SNAPSHOT_FREE));
    cr_assert_eq(sent(&p, AGENT_SEND_CONTROL, MSG_SAVE_WAITS)->save_waits.step, 20);
    p.now += 100 * RM_S;
    step(&p, (struct agent_event){.kind = AGENT_TICK});
    cr_assert_not(did(&p, AGENT_WRITE), "its memory is the trainer's again");
    end(&p);
}

Test(waits, a_manifest_that_the_store_does_not_take_is_tried_again)
{
    struct play p;
    static struct message m;
    start(&p);
    message_init(&m, MSG_PUBLISH);
    m.publish.step = 20;
    control(&p, &m);
    not_taken(&p, AGENT_PUBLISHED, 20);
    cr_assert_eq(sent(&p, AGENT_SEND_CONTROL, MSG_SAVE_WAITS)->save_waits.step, 20);
    control(&p, &m);
    cr_assert_not(did(&p, AGENT_PUBLISH), "said again: it is known");
    next_try(&p, AGENT_PUBLISH);
    cr_assert_eq(did(&p, AGENT_PUBLISH)->message->publish.step, 20);
    end(&p);
}

Test(waits, damage_is_not_tried_again)
{
    struct play p;
    start(&p);
    snapshot(&p, 20);
    step(&p,
         (struct agent_event){.kind = AGENT_WRITTEN, .step = 20, .text = "a checkpoint of another history"});
    cr_assert(sent(&p, AGENT_SEND_CONTROL, MSG_FAULT));
    cr_assert(sent(&p, AGENT_SEND_LINK, MSG_SNAPSHOT_FREE));
    end(&p);
}

Test(waits, a_new_coordinator_hears_what_waits_and_a_new_trainer_that_its_memory_is_in_use)
{
    struct play p;
    start(&p);
    snapshot(&p, 20);
    not_taken(&p, AGENT_WRITTEN, 20);
    p.now += 300 * RM_MS;
    step(&p, (struct agent_event){.kind = AGENT_DISCONNECTED});
    connect_to_coordinator(&p);
    const struct message *m = sent(&p, AGENT_SEND_CONTROL, MSG_SAVE_WAITS);
    cr_assert(m && m->save_waits.age == 300 * RM_MS);
    step(&p, (struct agent_event){.kind = AGENT_TRAINER_EXIT, .code = -1});
    cr_assert(sent(&p, AGENT_SEND_LINK, MSG_SETUP)->setup.snapshot_busy);
    end(&p);
}

Test(waits, a_release_waits_for_no_store_that_is_away)
{
    struct play p;
    start(&p);
    snapshot(&p, 20);
    not_taken(&p, AGENT_WRITTEN, 20);
    control_type(&p, MSG_RELEASE);
    cr_assert(did(&p, AGENT_EXIT) && did(&p, AGENT_EXIT)->exit_code == 0);
    end(&p);
}

static int64_t beat(struct play *p)
{
    p->now += RM_S;
    step(p, (struct agent_event){.kind = AGENT_TICK});
    const struct message *m = sent(p, AGENT_SEND_CONTROL, MSG_HEARTBEAT);
    cr_assert(m);
    return m->heartbeat.counter;
}

static void form(struct play *p)
{
    static struct message m;
    message_init(&m, MSG_FORM);
    m.generation = (struct msg_generation){2, 1};
    m.form.count = 1;
    m.form.member[0].worker = 1;
    control(p, &m);
}

static void train(struct play *p)
{
    static struct message m;
    form(p);
    message_init(&m, MSG_READY);
    from_trainer(p, &m);
    message_init(&m, MSG_GO);
    m.generation = (struct msg_generation){2, 1};
    control(p, &m);
}

Test(waits, a_trainer_that_hangs_while_its_agent_writes_is_seen_to_hang)
{
    struct play p;
    start(&p);
    train(&p);
    snapshot(&p, 20);
    int64_t counter = beat(&p);
    cr_assert_eq(beat(&p), counter, "the trainer does not need the store for its next step");
    trainer_says(&p, MSG_SNAPSHOT_WANTED);
    cr_assert_gt(beat(&p), counter, "now it does");
    end(&p);
}

static void told_to_save(struct play *p, int64_t number)
{
    struct message m;
    message_init(&m, MSG_SAVE);
    m.save.step = number;
    m.save.count = 1;
    control(p, &m);
}

/* All train on meanwhile, and the trainer knows of no such step. */
Test(waits, a_save_that_is_begun_while_it_trains_is_passed_on_and_makes_nobody_wait)
{
    struct play p;
    start(&p);
    train(&p);
    told_to_save(&p, 20);
    struct message m;
    message_init(&m, MSG_SAVE);
    control(&p, &m);
    cr_assert_eq(sent(&p, AGENT_SEND_LINK, MSG_SAVE)->save.count, 0);
    snapshot(&p, 0);
    int64_t counter = beat(&p);
    cr_assert_eq(beat(&p), counter);
    end(&p);
}

static bool counts_on(struct play *p)
{
    int64_t counter = beat(p);
    return beat(p) > counter;
}

Test(waits, a_trainer_that_has_saved_as_it_was_told_waits_for_the_store)
{
    struct play p;
    start(&p);
    trainer_says(&p, MSG_STOPPED);
    told_to_save(&p, 20);
    snapshot(&p, 20);
    not_taken(&p, AGENT_WRITTEN, 20);
    cr_assert(counts_on(&p));
    end(&p);
}

Test(waits, a_trainer_that_stands_still_while_the_store_is_away_hangs_by_itself)
{
    struct play p;
    start(&p);
    snapshot(&p, 20);
    not_taken(&p, AGENT_WRITTEN, 20);
    form(&p);
    cr_assert_not(counts_on(&p), "it forms a ring, and the store has nothing to do with that");
    trainer_says(&p, MSG_STOPPED);
    told_to_save(&p, 30);
    cr_assert_not(counts_on(&p), "it has not saved yet");
    told_to_save(&p, 20);
    control_type(&p, MSG_STOP);
    cr_assert_not(counts_on(&p), "what it was told last is to stop");
    end(&p);
}

/* ---- calls that do not return ---- */

/* Ticks until it tells the coordinator of a fault; how long that took, RM_NEVER: not in `most`. */
static rm_time until_it_tells(struct play *p, int64_t signs, rm_time most)
{
    for (rm_time since = p->now; p->now < since + most;) {
        rm_time at = agent_deadline(p->st);
        p->now = at < since + most ? at : since + most;
        step(p, (struct agent_event){.kind = AGENT_TICK, .read_signs = signs, .write_signs = signs});
        if (sent(p, AGENT_SEND_CONTROL, MSG_FAULT))
            return p->now - since;
    }
    return RM_NEVER;
}

Test(waits, a_list_that_does_not_return_is_told_and_again_and_whoever_asks_hears_it_at_once)
{
    struct play p;
    start(&p);
    control_type(&p, MSG_LIST);
    cr_assert_eq(until_it_tells(&p, 0, 100 * RM_S), 30 * RM_S);
    const struct message *m = sent(&p, AGENT_SEND_CONTROL, MSG_FAULT);
    cr_assert(m->fault.kind == FAULT_STORAGE && m->fault.step == -1 && m->fault.reading);
    cr_assert_eq(m->fault.lasted, 30 * RM_S);
    cr_assert(strstr(m->fault.detail, "listing the checkpoints has not returned for more than 30 s") &&
                  strstr(m->fault.detail, "s3://b"),
              "%s", m->fault.detail);
    cr_assert_eq(until_it_tells(&p, 0, 100 * RM_S), 10 * RM_S);
    control_type(&p, MSG_LIST);
    cr_assert_not(did(&p, AGENT_LIST), "behind the one that does not return it would never begin");
    cr_assert(sent(&p, AGENT_SEND_CONTROL, MSG_FAULT));
    end(&p);
}

Test(waits, a_call_that_gets_on_or_has_returned_is_never_said_to_stand_still)
{
    struct play p;
    struct message m;
    start(&p);
    control_type(&p, MSG_LIST);
    for (int i = 1; i < 10; i++)
        cr_assert_eq(until_it_tells(&p, i, 20 * RM_S), RM_NEVER, "it shows a sign every 20 s");
    message_init(&m, MSG_CHECKPOINTS);
    step(&p, (struct agent_event){.kind = AGENT_LISTED, .ok = true, .message = &m});
    cr_assert_eq(until_it_tells(&p, 9, 200 * RM_S), RM_NEVER);
    end(&p);
}

Test(waits, a_slice_whose_write_does_not_return_is_told_and_its_trainer_vouched_for_no_more)
{
    struct play p;
    start(&p);
    train(&p);
    snapshot(&p, 20);
    trainer_says(&p, MSG_SNAPSHOT_WANTED);
    cr_assert(counts_on(&p));
    cr_assert_eq(until_it_tells(&p, 0, 200 * RM_S), 118 * RM_S, "two beats went by before");
    const struct message *m = sent(&p, AGENT_SEND_CONTROL, MSG_FAULT);
    cr_assert(m->fault.step == 20 && !m->fault.reading && m->fault.lasted == 120 * RM_S);
    cr_assert_not(counts_on(&p));
    end(&p);
}

Test(waits, a_release_waits_for_no_call_that_does_not_return)
{
    struct play p;
    start(&p);
    snapshot(&p, 20);
    control_type(&p, MSG_RELEASE);
    cr_assert_not(did(&p, AGENT_EXIT), "it may be done in a moment");
    p.now = agent_deadline(p.st);
    cr_assert_eq(p.now, 121 * RM_S);
    step(&p, (struct agent_event){.kind = AGENT_TICK});
    cr_assert(did(&p, AGENT_EXIT) && did(&p, AGENT_EXIT)->exit_code == 0);
    end(&p);
}

/* Complete, and somebody's older slice hangs: another worker wrote what the job ended with. */
Test(waits, where_the_run_is_over_a_release_waits_for_no_write_at_all)
{
    struct play p;
    static struct message m;
    start(&p);
    snapshot(&p, 20);
    control_type(&p, MSG_RELEASE);
    cr_assert_not(did(&p, AGENT_EXIT), "a leave: others may need what it writes");
    message_init(&m, MSG_RELEASE);
    m.release.over = true;
    control(&p, &m);
    cr_assert(did(&p, AGENT_EXIT) && did(&p, AGENT_EXIT)->exit_code == 0);
    end(&p);
}

Test(waits, a_leave_says_how_much_time_is_left_also_when_it_is_said_again)
{
    struct play p;
    start(&p);
    step(&p, (struct agent_event){.kind = AGENT_TERM, .deadline = 30 * RM_S});
    cr_assert_eq(sent(&p, AGENT_SEND_CONTROL, MSG_LEAVING)->leaving.deadline, 30 * RM_S);
    p.now += 10 * RM_S;
    step(&p, (struct agent_event){.kind = AGENT_DISCONNECTED});
    connect_to_coordinator(&p);
    cr_assert_eq(sent(&p, AGENT_SEND_CONTROL, MSG_LEAVING)->leaving.deadline, 20 * RM_S);
    end(&p);
}

static void publish(struct play *p, int64_t number, uint8_t history)
{
    static struct message m;
    message_init(&m, MSG_PUBLISH);
    m.publish.step = number;
    m.publish.lineage[0] = history;
    control(p, &m);
}

static void published(struct play *p, int64_t number)
{
    struct message m;
    message_init(&m, MSG_PUBLISHED);
    m.published.step = number;
    step(p, (struct agent_event){.kind = AGENT_PUBLISHED, .ok = true, .message = &m});
}

Test(waits, a_store_that_has_just_failed_is_not_asked_sooner_for_a_newer_manifest)
{
    struct play p;
    start(&p);
    publish(&p, 20, 1);
    not_taken(&p, AGENT_PUBLISHED, 20);
    publish(&p, 30, 1);
    cr_assert_not(did(&p, AGENT_PUBLISH));
    cr_assert_eq(sent(&p, AGENT_SEND_CONTROL, MSG_SAVE_WAITS)->save_waits.step, 30);
    p.now += 2 * RM_S;
    step(&p, (struct agent_event){.kind = AGENT_TICK});
    cr_assert_eq(did(&p, AGENT_PUBLISH)->message->publish.step, 30);
    end(&p);
}

/* Found by the simulator: a damaged final checkpoint was made again, and its publisher answered from memory.
 */
Test(waits, another_history_of_a_step_that_was_published_is_not_answered_from_memory)
{
    struct play p;
    start(&p);
    publish(&p, 20, 1);
    published(&p, 20);
    publish(&p, 20, 1);
    cr_assert_not(did(&p, AGENT_PUBLISH), "said again");
    publish(&p, 20, 2);
    cr_assert(did(&p, AGENT_PUBLISH));
    end(&p);
}

Test(waits, a_checkpoint_that_a_ring_went_back_behind_is_published_once_more)
{
    struct play p;
    start(&p);
    publish(&p, 20, 1);
    published(&p, 20);
    train(&p);
    publish(&p, 20, 1);
    cr_assert(did(&p, AGENT_PUBLISH), "the ring began anew: that one was damaged");
    end(&p);
}

/* Found by the simulator: who holds the state reached nobody, and was in no ring that loaded what it had
 * published.
 */
Test(waits, what_is_to_replace_a_damaged_checkpoint_is_not_answered_from_memory)
{
    struct play p;
    struct message m;
    start(&p);
    publish(&p, 20, 1);
    published(&p, 20);
    message_init(&m, MSG_PUBLISH);
    m.publish.step = 20;
    m.publish.lineage[0] = 1;
    m.publish.replaces = true;
    control(&p, &m);
    cr_assert(did(&p, AGENT_PUBLISH), "others found what it had published to be damaged");
    step(&p, (struct agent_event){.kind = AGENT_DISCONNECTED});
    connect_to_coordinator(&p);
    cr_assert_not(sent(&p, AGENT_SEND_CONTROL, MSG_PUBLISHED), "nor said again of the damaged one");
    end(&p);
}
