/* An operator that comes to jobs which run under one before it: of ten thousand each write would be ten
 * thousand. It has nothing to say before their coordinators answer, and nothing to tell again. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "cast.h"

/* A training job, as an operator finds it that has just started: it remembers what annotations tell it alone.
 */
static struct cast *inherited(void)
{
    struct cast *c = cast_training("{}");
    struct op_memo memo = {0};
    c->answered_ms = c->now_ms;
    c->now_ms += 3600 * 1000; /* so that its hearing is news, and gets into the status */
    c->answered_ms = c->now_ms;
    cast_settle(c);
    memcpy(memo.applied, c->memo.applied, sizeof memo.applied);
    c->memo = memo;
    return c;
}

static void has_saved(struct cast *c, int64_t at_ms, const char *note)
{
    struct op_coordinator_event *event = &c->coordinator.event[c->coordinator.events_count++];
    *event = (struct op_coordinator_event){
        .sequence = c->coordinator.events_count, .kind = EVENT_CHECKPOINT_SAVED, .at_ms = at_ms};
    text_copy(event->note, sizeof event->note, note);
}

static bool tells(struct cast *c, const char *note)
{
    bool found = false;
    struct op_plan *plan = cast_plan(c);
    for (int i = 0; i < plan->events_count; i++)
        found |= !strcmp(plan->event[i].note, note);
    plan_free(plan);
    return found;
}

Test(operator_heir, writes_nothing_of_a_job_that_runs_before_its_coordinator_answers)
{
    struct cast *c = inherited();
    c->coordinator_answers = false;
    c->answered_ms = 0;
    struct op_plan *plan = cast_plan(c);
    cr_expect_eq(plan->actions_count, 0, "%s %s", plan->actions_count ? plan->action[0].name : "",
                 plan->actions_count ? plan->action[0].why : "");
    cr_expect_eq(plan->change, OP_SAME);
    cr_expect_str_neq(plan->poll_ip, "", "it asks");
    plan_free(plan);
    cr_assert_str_eq(c->job.status.state, "Training");
    cast_free(c);
}

/* What is known to be otherwise is told. */
Test(operator_heir, says_of_a_job_whose_coordinator_is_not_to_be_asked_that_it_starts)
{
    struct cast *c = inherited();
    c->coordinator_answers = false;
    cast_pod(c, OP_COORDINATOR, -1, 1);
    c->pod[0].phase = OP_PENDING;
    cast_settle(c);
    cr_assert_str_eq(c->job.status.state, "Starting");
    cast_free(c);
}

Test(operator_heir, tells_no_event_that_was_told_before_it)
{
    struct cast *c = inherited();
    int64_t heard_ms = c->job.status.ring.heard_ms;
    cr_assert_eq(heard_ms, c->answered_ms / 1000 * 1000, "it was noted");
    has_saved(c, heard_ms - 3600 * 1000, "step 1000");
    has_saved(c, heard_ms - 10 * 1000, "step 2000");
    has_saved(c, heard_ms + 60 * 1000, "step 3000");
    cr_expect_not(tells(c, "step 1000"), "an hour ago there was an operator, and it heard");
    cr_expect(tells(c, "step 2000"), "it may have ended before it told this");
    cr_expect(tells(c, "step 3000"), "nobody was there");
    cast_settle(c);
    has_saved(c, heard_ms - 3600 * 1000,
              "step 4000"); /* another machine's clock: what is new is told by its number */
    cr_expect(tells(c, "step 4000"));
    cast_free(c);
}

/* Ten minutes behind ours, or ahead of it. */
Test(operator_heir, tells_what_happened_since_it_was_heard_whatever_its_coordinators_clock_shows)
{
    for (int64_t ahead_ms = -600 * 1000; ahead_ms <= 600 * 1000; ahead_ms += 1200 * 1000) {
        struct cast *c = inherited();
        int64_t heard_ms = c->job.status.ring.heard_ms;
        c->answered_ms = c->now_ms = heard_ms + 30 * 1000;
        c->coordinator.at_ms = c->answered_ms + ahead_ms;
        has_saved(c, heard_ms + ahead_ms - 90 * 1000, "step 1000");
        has_saved(c, heard_ms + ahead_ms + 10 * 1000, "step 2000");
        cr_expect_not(tells(c, "step 1000"), "it was told, %lld", (long long)ahead_ms);
        cr_expect(tells(c, "step 2000"), "nobody was there, %lld", (long long)ahead_ms);
        cast_free(c);
    }
}

Test(operator_heir, tells_all_anew_where_the_operator_before_it_heard_of_it_later_than_now)
{
    struct cast *c = inherited();
    c->answered_ms = c->now_ms = c->job.status.ring.heard_ms - 600 * 1000;
    c->coordinator.at_ms = c->answered_ms;
    has_saved(c, c->answered_ms - 1000, "step 1000");
    cr_expect(tells(c, "step 1000"));
    cast_free(c);
}

/* The hash that its annotation has is that of what would be applied: with it nothing is. */
Test(operator_heir, what_is_applied_bears_the_hash_of_what_was)
{
    struct cast *c = inherited();
    int applied = 0;
    memset(c->memo.applied, 0, sizeof c->memo.applied);
    struct op_plan *plan = cast_plan(c);
    for (int i = 0; i < plan->actions_count; i++) {
        const struct op_action *action = &plan->action[i];
        char note[80];
        if (action->kind != OP_APPLY)
            continue;
        applied++;
        snprintf(note, sizeof note,
                 "\"metadata\":{\"annotations\":{\"%s\":\"%016llx\"},\"name\":", OP_NOTE_APPLIED,
                 (unsigned long long)action->hash);
        cr_expect_not_null(strstr(str_text(&action->body), note), "%s lacks %s", str_text(&action->body),
                           note);
        op_memo_done(&c->memo, &c->job, action);
    }
    plan_free(plan);
    cr_assert_eq(applied, 4);
    plan = cast_plan(c);
    cr_assert_not(plan_has(plan, OP_APPLY, OP_SERVICES));
    plan_free(plan);
    cast_free(c);
}
