/* A coordinator that can't be reached, or hangs: who is told, when, and when another one takes its place. */
#include <criterion/criterion.h>
#include <string.h>

#include "cast.h"
#include "operator/core/plan_parts.h"

/* It is asked each 10 s from CAST_NOW on, in vain, until so many seconds have passed. */
static void be_silent(struct cast *c, int seconds)
{
    for (int64_t at = c->silence.last_ms ? c->silence.last_ms + 10000 : CAST_NOW;
         at <= CAST_NOW + seconds * 1000; at += 10000)
        silence_note(&c->silence, at, at, "connection refused");
    c->now_ms = CAST_NOW + seconds * 1000;
}

Test(operator_silence, after_half_a_minute_the_status_says_where_and_why_and_no_longer_that_it_trains)
{
    struct cast *c = cast_training("{}");
    c->answered_ms = CAST_NOW;
    cast_settle(c);
    be_silent(c, 20);
    cast_settle(c);
    cr_assert_str_eq(c->job.status.state, "Training", "one question without an answer is no silence");
    be_silent(c, 30);
    cr_assert(cast_says(c, "warn CoordinatorSilent  the coordinator at 10.244.0.1 (pod tiny-coordinator-"));
    cast_settle(c);
    cr_assert_str_eq(c->job.status.state, "Unreachable");
    cr_assert(strstr(c->job.status.message, "has given no answer for 30 s: connection refused"), "%s",
              c->job.status.message);
    cr_assert_eq(c->job.status.condition[OP_REACHABLE].status, OP_FALSE);
    cr_assert_eq(c->job.status.condition[OP_TRAINING].status, OP_UNKNOWN);
    cr_assert_eq(c->job.status.ring.heard_ms, CAST_NOW, "the age of its last word");
    struct str text = cast_text(c);
    cr_assert_not(strstr(str_text(&text), "CoordinatorSilent"), "it is told once");
    str_clear(&text);
    c->silence = (struct op_silence){0};
    cr_assert(cast_says(c, "event CoordinatorAnswers"));
    cast_settle(c);
    cr_assert_str_eq(c->job.status.state, "Training");
    cr_assert_eq(c->job.status.condition[OP_TRAINING].status, OP_TRUE);
    cast_free(c);
}

Test(operator_silence, after_two_minutes_another_one_of_a_higher_term_takes_its_place)
{
    struct cast *c = cast_training("{}");
    be_silent(c, 110);
    cast_settle(c);
    cr_assert_eq(c->job.status.ring.coordinator.state, OP_SLOT_PRESENT);
    be_silent(c, 120);
    cast_settle(c);
    cr_assert_eq(c->job.status.ring.coordinator.state, OP_SLOT_ENDED);
    cr_assert_eq(c->job.status.restarts.infrastructure, 1);
    cr_assert(cast_says(c, "delete pods tiny-coordinator-"));
    c->pod[0].deletion_ms = c->now_ms + 135000;
    c->now_ms += 1000;
    cast_settle(c);
    cr_assert_eq(c->job.status.ring.coordinator.attempt, 2);
    cr_assert(cast_says(c, "term 2 is wanted"));
    cast_free(c);
}

Test(operator_silence, where_the_successor_can_not_be_reached_either_the_next_one_waits_twice_as_long)
{
    struct cast *c = cast_training("{}");
    c->job.status.ring.coordinator.quick = 1;
    c->job.status.ring.coordinator.quick_ms = CAST_NOW;
    be_silent(c, 230);
    cast_settle(c);
    cr_assert_eq(c->job.status.ring.coordinator.state, OP_SLOT_PRESENT);
    be_silent(c, 240);
    cast_settle(c);
    cr_assert_eq(c->job.status.ring.coordinator.state, OP_SLOT_ENDED);
    cr_assert_eq(c->job.status.ring.coordinator.quick, 2);
    cast_free(c);
}

Test(operator_silence, an_operator_whom_nobody_answers_replaces_nobody_and_says_so)
{
    struct cast *c = cast_training("{}");
    c->deaf = true;
    be_silent(c, 3600);
    cast_settle(c);
    cr_assert_eq(c->job.status.ring.coordinator.state, OP_SLOT_PRESENT);
    cr_assert(strstr(c->job.status.message, "look at the operator's own network"), "%s",
              c->job.status.message);
    cast_free(c);
}

/* Of ten thousand each is asked every ten seconds, and on a busy machine later. */
Test(operator_silence, a_coordinator_that_stands_in_line_to_be_asked_is_not_silent_whatever_its_node_is)
{
    struct cast *c = cast_training("{}");
    c->answered_ms = CAST_NOW;
    cast_settle(c);
    c->node[0].ready = false;
    c->now_ms = CAST_NOW + 60000;
    cast_settle(c);
    cr_assert_eq(c->job.status.ring.coordinator.state, OP_SLOT_PRESENT);
    struct op_plan *plan = cast_plan(c);
    cr_assert_eq(plan->wake_ms, c->now_ms + 12000, "it is looked whether it has been asked");
    plan_free(plan);
    c->in_vain_ms = c->now_ms;
    c->now_ms += 12000;
    cast_settle(c);
    cr_assert_eq(c->job.status.ring.coordinator.state, OP_SLOT_ENDED);
    cast_free(c);
}

Test(operator_silence, the_operators_own_pause_is_nobodys_silence)
{
    struct op_silence silence = {0};
    silence_note(&silence, CAST_NOW, CAST_NOW + 30000, "timed out");
    cr_assert_eq(silence_ms(&silence), 30000, "a question that hangs counts from when it was asked");
    int64_t later = CAST_NOW + 3600 * 1000;
    silence_note(&silence, CAST_NOW + 31000, later, "timed out");
    cr_assert_eq(silence_ms(&silence), 30000, "for an hour nobody asked");
    silence_note(&silence, later + 1000, later + 31000, "timed out");
    cr_assert_eq(silence_ms(&silence), 61000);
}

Test(operator_silence, that_it_was_heard_again_is_written_once_a_minute_and_with_other_news)
{
    struct cast *c = cast_training("{}");
    c->answered_ms = CAST_NOW;
    cast_settle(c);
    c->answered_ms = c->now_ms = CAST_NOW + 59000;
    struct op_plan *plan = cast_plan(c);
    cr_assert_eq(plan->change, OP_SAME);
    plan_free(plan);
    c->coordinator.progress.step++;
    cast_settle(c);
    cr_assert_eq(c->job.status.ring.heard_ms, CAST_NOW + 59000);
    c->answered_ms = c->now_ms = CAST_NOW + 119000;
    plan = cast_plan(c);
    cr_assert_eq(plan->change, OP_TICKING);
    plan_free(plan);
    cast_free(c);
}

Test(operator_silence, an_outage_of_the_store_is_a_warning_among_the_events)
{
    static const char text[] = "{\"term\":1,\"events\":[{\"sequence\":4,\"event\":\"checkpointWaiting\","
                               "\"step\":40,\"uri\":\"s3://a\","
                               "\"reason\":\"503 from store\",\"ageSeconds\":31}]}";
    struct cast *c = cast_open("{}");
    struct coordinator_view view;
    cast_train(c);
    cr_assert_eq(coordinator_read(text, strlen(text), &view, NULL), 0);
    c->coordinator.event[c->coordinator.events_count++] = view.event[0];
    cr_assert(cast_says(c, "warn CheckpointWaiting  the store does not take step 40: 503 from store"));
    cast_free(c);
}

/* The kubelet's word of their end is here before its own; one that does not answer is not waited for. */
Test(operator_silence, a_coordinator_ends_when_it_has_said_what_its_workers_saved_as_they_went)
{
    for (int answers = 0; answers < 2; answers++) {
        struct cast *c = cast_training("{}");
        c->job.suspend = true;
        cast_settle(c);
        c->pod[1].phase = c->pod[2].phase = c->pod[3].phase = OP_SUCCEEDED;
        cast_settle(c);
        cr_assert_not(cast_says(c, "delete pods tiny-coordinator"));
        if (answers) {
            c->coordinator.workers_count = 0;
            c->coordinator.checkpoint = (struct op_checkpoint){.known = true, .step = 812};
        } else {
            c->silence.since_ms = c->now_ms - OP_SILENCE_MS;
            c->silence.last_ms = c->now_ms;
        }
        cast_settle(c);
        cr_assert(cast_says(c, "delete pods tiny-coordinator"));
        cr_assert_eq(c->job.status.checkpoint.known, answers);
        cr_assert(!answers || c->job.status.checkpoint.step == 812);
        cast_free(c);
    }
}
