/* Plans as stories: each test says what happened and which writes follow. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "cast.h"
#include "common/wire/json.h"

/* The plan's text holds all of `wanted` (lines or parts of them, separated by '\n'). */
static void expect(struct cast *c, const char *wanted)
{
    struct str text = cast_text(c);
    char part[256];
    for (const char *at = wanted; *at;) {
        size_t length = strcspn(at, "\n");
        snprintf(part, sizeof part, "%.*s", (int)length, at);
        cr_assert(strstr(str_text(&text), part), "no \"%s\" in:\n%s", part, str_text(&text));
        at += length + (at[length] == '\n');
    }
    str_clear(&text);
}

static void expect_without(struct cast *c, const char *unwanted)
{
    struct str text = cast_text(c);
    cr_assert_not(strstr(str_text(&text), unwanted), "\"%s\" in:\n%s", unwanted, str_text(&text));
    str_clear(&text);
}

static struct op_slot *slot(struct cast *c, int index)
{
    return &c->job.status.workers.slot[index];
}

static int plan_live_workers(const struct cast *c)
{
    int live = 0;
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        live += slot_is_live(&c->job.status.workers.slot[i]);
    return live;
}

Test(operator_plan, a_new_job_is_tried_gets_its_key_is_promised_then_made)
{
    struct cast *c = cast_open("{}");
    struct str all = str_init(1 << 20);
    for (int i = 0; i < 4; i++) {
        struct str text = cast_text(c);
        str_addf(&all, "# %d\n%s", i + 1, str_text(&text));
        str_clear(&text);
        cast_settle(c);
    }
    golden("plan-new.txt", str_text(&all));
    str_clear(&all);
    cast_free(c);
}

static void refuse_secrets(struct cast *c)
{
    struct op_plan *plan = cast_plan(c);
    for (int i = 0; i < plan->actions_count; i++)
        if (plan->action[i].resource == OP_SECRETS)
            op_memo_refused(&c->memo, &c->job, &plan->action[i], 409, "AlreadyExists", "it is there",
                            CAST_NOW);
    plan_free(plan);
}

Test(operator_plan, a_secret_that_we_did_not_make_is_no_jobs_key)
{
    struct cast *c = cast_open("{}");
    cast_settle(c);
    refuse_secrets(c);
    expect(c, "status (urgent)  Waiting: the API server refused to create secrets: it is there");
    cast_settle_status_only(c);
    cr_assert_str_eq(c->job.status.ring.key, "");
    cr_assert_eq(plan_live_workers(c), 0, "nothing is promised that would refer to it");
    cast_settle(c);
    cast_settle(c);
    cr_assert_str_eq(c->job.status.ring.key, "tiny-key-chancechancechan");
    expect(c, "create pods tiny-w0-pbjqg");
    cast_free(c);
}

/* How many of the plan's applies are tried as creates; there are some. */
static int fresh_applies(struct cast *c)
{
    int fresh = 0, all = 0;
    struct op_plan *plan = cast_plan(c);
    for (int i = 0; i < plan->actions_count; i++) {
        all += plan->action[i].kind == OP_APPLY;
        fresh += plan->action[i].fresh;
    }
    cr_assert_eq(all, 4);
    plan_free(plan);
    return fresh;
}

Test(operator_plan, what_lies_around_a_new_job_is_created_and_that_of_an_old_one_applied)
{
    struct cast *c = cast_open("{}");
    cast_settle(c);
    cast_settle(c);
    cast_settle(c);
    cr_assert_eq(fresh_applies(c), 4);
    cast_train(c);
    memset(c->memo.applied, 0, sizeof c->memo.applied); /* as a new operator would find it */
    cr_assert_eq(fresh_applies(c), 0);
    cast_free(c);
}

Test(operator_plan, a_status_is_json_whatever_the_server_calls_the_job)
{
    struct cast *c = cast_open("{\"suspend\":true}");
    struct error err = {0};
    text_copy(c->job.uid, sizeof c->job.uid, "a\"b\bc");
    struct op_plan *plan = cast_plan(c);
    const struct op_action *last = &plan->action[plan->actions_count - 1];
    cr_assert_eq(last->kind, OP_STATUS);
    struct js *body = js_parse(str_text(&last->body), last->body.length, "body", &err);
    cr_assert(body, "%s", err.text);
    cr_assert_str_eq(js_as_string(js_get(js_get(body, "metadata"), "uid")), "a\"b\bc");
    js_free(body);
    plan_free(plan);
    cast_free(c);
}

Test(operator_plan, that_the_wanted_pods_are_there_may_wait_for_its_turn)
{
    struct cast *c = cast_open("{}");
    for (int i = 0; i < 3; i++)
        cast_settle(c);
    cast_pod(c, OP_COORDINATOR, -1, 1);
    for (int i = 0; i < 3; i++) {
        struct pod_view *pod = cast_pod(c, OP_WORKER, i, 1);
        pod->phase = OP_PENDING;
        pod->ready = false;
    }
    struct op_plan *plan = cast_plan(c);
    cr_assert_eq(plan->change, OP_TICKING);
    plan_free(plan);
    cast_worker(c, 1)->deletion_ms = CAST_NOW + 120000;
    plan = cast_plan(c);
    cr_assert_eq(plan->change, OP_URGENT, "that one is over may not");
    plan_free(plan);
    cast_free(c);
}

Test(operator_plan, a_training_job_needs_nothing)
{
    struct cast *c = cast_training("{}");
    struct op_plan *plan = cast_plan(c);
    cr_assert_eq(plan->actions_count, 0);
    cr_assert_eq(plan->change, OP_SAME);
    cr_assert_str_eq(plan->poll_ip, c->pod[0].ip);
    plan_free(plan);
    cr_assert_str_eq(c->job.status.state, "Training");
    cr_assert_str_eq(c->job.status.message, "3 of 3 workers at step 812");
    cast_free(c);
}

Test(operator_plan, progress_alone_may_wait_for_its_turn)
{
    struct cast *c = cast_training("{}");
    c->coordinator.progress.step = 813;
    struct op_plan *plan = cast_plan(c);
    cr_assert_eq(plan->change, OP_TICKING);
    plan_free(plan);
    c->coordinator.ring_generation++;
    plan = cast_plan(c);
    cr_assert_eq(plan->change, OP_URGENT);
    plan_free(plan);
    cast_free(c);
}

Test(operator_plan, the_first_loss_is_shown_at_once)
{
    struct cast *c = cast_training("{}");
    text_copy(c->coordinator.progress.loss, OP_NUMBER_MAX, "3.1");
    struct op_plan *plan = cast_plan(c);
    cr_assert_eq(plan->change, OP_URGENT);
    plan_free(plan);
    cast_settle(c);
    text_copy(c->coordinator.progress.loss, OP_NUMBER_MAX, "3.0");
    plan = cast_plan(c);
    cr_assert_eq(plan->change, OP_TICKING);
    plan_free(plan);
    cast_free(c);
}

Test(operator_plan, what_is_not_known_yet_is_not_shown_as_nothing)
{
    struct cast *c = cast_open("{}");
    struct str text = str_init(1 << 16);
    cast_train(c);
    c->job.status.progress = (struct op_progress){0};
    c->coordinator.state = STATUS_GATHERING;
    c->coordinator.progress = (struct op_progress){.known = true, .steps = 2000, .eta_seconds = -1};
    cast_settle(c);
    status_write(&c->job.status, "tiny", &text);
    cr_assert_not(strstr(str_text(&text), "\"progress\""), "%s", str_text(&text));
    c->coordinator.state = STATUS_TRAINING;
    cast_settle(c);
    str_reset(&text);
    status_write(&c->job.status, "tiny", &text);
    cr_assert(strstr(str_text(&text), "\"progress\":\"0%\""), "%s", str_text(&text));
    cr_assert_not(strstr(str_text(&text), "\"eta\""), "%s", str_text(&text));
    str_clear(&text);
    cast_free(c);
}

Test(operator_plan, what_a_successor_does_not_know_yet_stays)
{
    struct cast *c = cast_training("{}");
    text_copy(c->coordinator.progress.loss, OP_NUMBER_MAX, "3.1");
    c->coordinator.checkpoint =
        (struct op_checkpoint){.known = true, .step = 800, .bytes = 7, .saved_ms = 5000};
    cast_settle(c);
    c->coordinator.state = STATUS_GATHERING;
    c->coordinator.progress = (struct op_progress){.known = true, .steps = 2000, .eta_seconds = -1};
    c->coordinator.checkpoint = (struct op_checkpoint){.known = true, .step = 800};
    cast_settle(c);
    cr_assert_eq(c->job.status.progress.step, 812);
    cr_assert_str_eq(c->job.status.progress.loss, "3.1");
    cr_assert_eq(c->job.status.checkpoint.bytes, 7);
    cr_assert_eq(c->job.status.checkpoint.saved_ms, 5000);
    c->coordinator.state = STATUS_TRAINING;
    c->coordinator.progress.step = 801;
    c->coordinator.checkpoint.step = 801;
    cast_settle(c);
    cr_assert_eq(c->job.status.progress.step, 801);
    cr_assert_str_eq(c->job.status.progress.loss, "3.1");
    cr_assert_eq(c->job.status.checkpoint.bytes, 0, "of another checkpoint nothing is known");
    cast_free(c);
}

Test(operator_plan, a_coordinator_that_was_told_to_go_and_went_is_no_failure)
{
    struct cast *c = cast_training("{}");
    c->pod[0].phase = OP_SUCCEEDED;
    c->pod[0].terminated = c->pod[0].left = true;
    cast_settle(c);
    cr_assert_eq(c->job.status.restarts.failure, 0);
    cr_assert_eq(c->job.status.restarts.preemption, 1);
    cr_assert_eq(c->job.status.ring.coordinator.attempt, 2);
    cast_free(c);
}

Test(operator_plan, between_two_rings_the_coordinators_sentence_is_shown)
{
    static const struct {
        enum status_state state;
        const char *word;
    } states[] = {{STATUS_FORMING, "Recovering"},
                  {STATUS_RECOVERING, "Recovering"},
                  {STATUS_QUIESCING, "Saving"},
                  {STATUS_SAVING, "Saving"},
                  {STATUS_FINISHED, "Finishing"}};
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        struct cast *c = cast_open("{}");
        cast_train(c);
        c->coordinator.state = states[i].state;
        c->coordinator.ring_size = 0;
        text_copy(c->coordinator.message, RM_WHY_MAX, "worker 3 is new");
        cast_settle(c);
        cr_assert_str_eq(c->job.status.state, states[i].word);
        cr_assert_str_eq(c->job.status.message, "3 of 3 workers ready; worker 3 is new");
        cast_free(c);
    }
}

Test(operator_plan, a_job_that_forms_its_first_ring_is_starting_and_recovers_from_nothing)
{
    struct cast *c = cast_training("{}");
    c->job.status.progress = (struct op_progress){0};
    c->coordinator.state = STATUS_FORMING;
    c->coordinator.ring_size = 0;
    c->coordinator.progress = (struct op_progress){.known = true, .steps = 2000, .eta_seconds = -1};
    cast_settle(c);
    cr_assert_str_eq(c->job.status.state, "Starting");
    cast_free(c);
}

Test(operator_plan, a_job_that_waits_is_not_written_for_the_time_that_passes)
{
    struct cast *c = cast_training("{}");
    c->coordinator.state = STATUS_GATHERING;
    c->coordinator.ring_size = 0;
    c->coordinator.goodput =
        (struct op_goodput){.known = true, .ratio = "0", .seconds = {[GOODPUT_WAITING] = 7}};
    cast_settle(c);
    c->coordinator.goodput.seconds[GOODPUT_WAITING] = 60;
    c->now_ms += 60000;
    struct op_plan *plan = cast_plan(c);
    cr_assert_eq(plan->change, OP_SAME);
    plan_free(plan);
    cast_free(c);
}

Test(operator_plan, what_happens_while_a_pod_is_on_trial_is_told_once_and_afterwards)
{
    struct cast *c = cast_training("{}");
    c->job.generation++;
    cast_worker(c, 1)->deletion_ms = CAST_NOW + 120000;
    struct op_plan *plan = cast_plan(c);
    cr_assert(plan_has(plan, OP_DRY_RUN, OP_PODS));
    cr_assert_eq(plan->change, OP_SAME);
    cr_assert_eq(plan->events_count, 0);
    plan_free(plan);
    cast_settle(c);
    expect(c, "event Interruption  worker 1\nstatus (urgent)");
    cast_settle(c);
    cr_assert_eq(c->job.status.restarts.preemption, 1);
    cast_free(c);
}

Test(operator_plan, an_evicted_worker_is_replaced_at_once_under_another_index)
{
    struct cast *c = cast_training("{}");
    cast_worker(c, 1)->deletion_ms = CAST_NOW + 120000;
    text_copy(cast_worker(c, 1)->disruption, OP_REASON_MAX, "EvictionByEvictionAPI");
    expect(c, "event Interruption  worker 1 on node-1 has to go: EvictionByEvictionAPI\nstatus (urgent)");
    cast_settle(c);
    cr_assert_eq(slot(c, 1)->state, OP_SLOT_ENDED);
    cr_assert_eq(slot(c, 3)->state, OP_SLOT_WANTED, "worker 1 is still saving under its own name");
    cr_assert_eq(c->job.status.restarts.preemption, 1);
    expect(c, "worker 3 is wanted (attempt 1)");
    cast_free(c);
}

Test(operator_plan, a_worker_on_a_node_that_will_go_is_told_to_leave_once_that_is_written)
{
    struct cast *c = cast_training("{}");
    text_copy(c->node[2].leave, OP_REASON_MAX, "has the taint ToBeDeletedByClusterAutoscaler");
    expect_without(c, "delete pods");
    cast_settle(c);
    expect(c, "delete pods tiny-w2-\nthis worker has to go\nworker 3 is wanted");
    cr_assert_eq(c->job.status.restarts.preemption, 1);
    cast_free(c);
}

Test(operator_plan, a_pod_is_not_made_while_another_of_its_index_lives)
{
    struct cast *c = cast_training("{}");
    text_copy(c->node[2].leave, OP_REASON_MAX, "has the taint ToBeDeletedByClusterAutoscaler");
    cast_settle(c);
    *slot(c, 2) = (struct op_slot){.state = OP_SLOT_WANTED, .attempt = 2};
    expect(c, "delete pods tiny-w2-");
    expect_without(c, "worker 2 is wanted (attempt 2)");
    cast_free(c);
}

Test(operator_plan, a_lost_worker_is_replaced_at_once_if_its_node_is_silent)
{
    struct cast *c = cast_training("{}");
    c->coordinator.lost[c->coordinator.lost_count++] =
        (struct op_gone){.worker = 2, .attempt = 1, .at_ms = CAST_NOW};
    c->coordinator.workers_count = 2;
    struct op_plan *plan = cast_plan(c);
    cr_assert_eq(plan->wake_ms, CAST_NOW + 10000, "the kubelet gets a moment to say how it ended");
    plan_free(plan);
    cast_settle(c);
    cr_assert_eq(c->job.status.restarts.infrastructure, 0);
    c->node[2].ready = false;
    expect(c, "warn NodeLost  worker 2 on node-2 is lost");
    cast_settle(c);
    cr_assert_eq(c->job.status.restarts.infrastructure, 1);
    cr_assert_eq(plan_has(plan = cast_plan(c), OP_DELETE, OP_PODS), true);
    plan_free(plan);
    cast_free(c);
}

Test(operator_plan, the_successor_of_a_lost_worker_has_its_index_so_that_one_that_comes_back_is_refused)
{
    struct cast *c = cast_training("{}");
    c->coordinator.lost[c->coordinator.lost_count++] =
        (struct op_gone){.worker = 1, .attempt = 1, .at_ms = CAST_NOW};
    c->node[1].ready = false;
    cast_settle(c);
    cr_assert_eq(slot(c, 1)->attempt, 2);
    cr_assert_eq(slot(c, 1)->state, OP_SLOT_WANTED);
    cr_assert_eq(slot(c, 3)->state, OP_SLOT_FREE);
    expect(c, "delete pods tiny-w1-");
    expect_without(c, "create pods"); /* two pods of one index, and neither is told to go: never */
    cast_worker(c, 1)->deletion_ms = CAST_NOW + 120000;
    expect(c, "create pods tiny-w1-\nworker 1 is wanted (attempt 2)");
    cast_free(c);
}

Test(operator_plan, a_hiccup_of_a_kubelet_kills_nobody)
{
    struct cast *c = cast_training("{}");
    c->node[0].ready = c->node[1].ready = c->node[2].ready = false;
    struct op_plan *plan = cast_plan(c);
    cr_assert_eq(plan->actions_count, 0);
    plan_free(plan);
    cast_free(c);
}

Test(operator_plan, a_crashed_worker_comes_back_after_a_pause_and_keeps_its_log)
{
    struct cast *c = cast_training("{}");
    struct pod_view *pod = cast_worker(c, 0);
    pod->phase = OP_POD_FAILED;
    pod->terminated = true;
    pod->exit_code = 1;
    expect(c, "warn PodFailed  worker 0 on node-0 ended with exit code 1");
    cast_settle(c);
    cr_assert_eq(slot(c, 0)->state, OP_SLOT_ENDED);
    struct op_plan *plan = cast_plan(c);
    cr_assert_eq(plan->wake_ms, CAST_NOW + 1000);
    plan_free(plan);
    c->now_ms += 1000;
    cast_settle(c);
    cr_assert_eq(slot(c, 0)->attempt, 2);
    expect(c, "worker 0 is wanted (attempt 2)");
    expect_without(c, "delete pods");
    cast_free(c);
}

Test(operator_plan, too_many_failures_stop_the_job_with_a_checkpoint_and_then_fail_it)
{
    struct cast *c = cast_training("{\"failurePolicy\":{\"maxRestarts\":0}}");
    struct pod_view *pod = cast_worker(c, 0);
    pod->phase = OP_POD_FAILED;
    pod->terminated = true;
    pod->exit_code = 1;
    cast_settle(c);
    cr_assert(condition_is(&c->job.status, OP_STOPPING));
    cr_assert_str_eq(c->job.status.state, "Stopping");
    expect(c, "delete pods tiny-w1-\ndelete pods tiny-w2-");
    expect_without(c, "delete pods tiny-coordinator");
    for (int i = 0; i < c->pods_count; i++)
        if (c->pod[i].role == OP_WORKER)
            c->pod[i].phase = OP_POD_FAILED;
    c->coordinator.workers_count = 0;
    cast_settle(c);
    expect(c, "delete pods tiny-coordinator");
    c->pods_count = 0;
    cast_settle(c);
    cr_assert(condition_is(&c->job.status, OP_FAILED) && condition_is(&c->job.status, OP_FINISHED));
    cr_assert_str_eq(c->job.status.condition[OP_FAILED].reason, "TooManyFailures");
    cr_assert_eq(c->job.status.restarts.failure, 1, "those that were told to stop are no failures");
    cast_free(c);
}

Test(operator_plan, suspending_ends_workers_first_and_resuming_goes_on_with_higher_attempts_and_term)
{
    struct cast *c = cast_training("{}");
    c->job.suspend = true;
    cast_settle(c);
    cr_assert_str_eq(c->job.status.state, "Suspending");
    expect(c, "delete pods tiny-w0-\ndelete pods tiny-w1-\ndelete pods tiny-w2-");
    expect_without(c, "delete pods tiny-coordinator");
    c->pod[1].phase = c->pod[2].phase = c->pod[3].phase = OP_SUCCEEDED;
    c->coordinator.workers_count = 0;
    cast_settle(c);
    expect(c, "delete pods tiny-coordinator");
    c->pods_count = 0;
    cast_settle(c);
    cast_settle(c);
    cr_assert(condition_is(&c->job.status, OP_SUSPENDED));
    cr_assert_eq(c->job.status.restarts.preemption + c->job.status.restarts.failure, 0);
    c->job.suspend = false;
    cast_settle(c);
    cast_settle(c); /* its key first */
    expect(c, "term 2 is wanted\nworker 0 is wanted (attempt 2)\nworker 2 is wanted (attempt 2)");
    cast_free(c);
}

Test(operator_plan, a_job_made_suspended_has_no_pods)
{
    struct cast *c = cast_open("{\"suspend\":true}");
    cast_settle(c);
    cr_assert(condition_is(&c->job.status, OP_SUSPENDED));
    expect_without(c, "create");
    cr_assert_eq(c->job.status.start_ms, 0);
    cast_free(c);
}

Test(operator_plan, scaling_down_takes_the_worker_that_is_worth_least)
{
    struct cast *c = cast_training("{\"workers\":{\"target\":5}}");
    cast_worker(c, 1)->deletion_cost = -5;
    text_copy(c->node[3].leave, OP_REASON_MAX, "x");
    *cast_worker(c, 2)->node = 0; /* not scheduled */
    static const int order[] = {2, 3, 1};
    for (int i = 0; i < 3; i++) {
        *c->node[3].leave = 0; /* it would leave by itself; here it is only worth less */
        c->job.workers_target = 4 - i;
        c->job.generation = 1;
        if (i == 1)
            c->coordinator.member[3].worker = 63; /* not in the ring */
        cast_settle(c);
        cr_assert_eq(slot(c, order[i])->state, OP_SLOT_ENDED, "the %d. to go should be %d", i + 1, order[i]);
    }
    cr_assert_eq(c->job.status.restarts.preemption, 0, "our own scaling counts as nothing");
    cr_assert_eq(c->job.status.workers.current, 2);
    cast_free(c);
}

Test(operator_plan, a_worker_that_was_only_promised_is_taken_back_under_the_same_attempt)
{
    struct cast *c = cast_training("{}");
    c->job.workers_target = 4;
    cast_settle(c);
    cr_assert_eq(slot(c, 3)->state, OP_SLOT_WANTED);
    c->job.workers_target = 3;
    cast_settle(c);
    cr_assert_eq(slot(c, 3)->state, OP_SLOT_SKIPPED);
    c->job.workers_target = 4;
    cast_settle(c);
    cr_assert_eq(slot(c, 3)->state, OP_SLOT_WANTED);
    cr_assert_eq(slot(c, 3)->attempt, 1, "its name guards against a second pod");
    cast_free(c);
}

Test(operator_plan, growing_waits_for_the_cool_down_but_replacing_does_not)
{
    struct cast *c = cast_training("{\"elasticity\":{\"scaleUpCooldown\":\"10m\"}}");
    c->job.workers_target = 5;
    struct op_plan *plan = cast_plan(c);
    cr_assert_eq(plan->change, OP_SAME);
    cr_assert_eq(plan->wake_ms, CAST_NOW + 600000);
    plan_free(plan);
    cast_worker(c, 0)->deletion_ms = CAST_NOW + 1;
    cast_settle(c);
    cr_assert_eq(slot(c, 3)->state, OP_SLOT_WANTED);
    cr_assert_eq(slot(c, 4)->state, OP_SLOT_FREE);
    c->now_ms += 600000;
    cast_settle(c);
    cr_assert_eq(c->job.status.workers.target, 5);
    cast_free(c);
}

Test(operator_plan, a_dead_coordinator_is_succeeded_term_first_and_the_service_moves_last)
{
    struct cast *c = cast_training("{}");
    c->pod[0].phase = OP_POD_FAILED;
    c->pod[0].terminated = true;
    c->pod[0].exit_code = 137;
    cast_settle(c);
    cr_assert_eq(c->job.status.ring.coordinator.state, OP_SLOT_ENDED);
    c->now_ms += 1000;
    cast_settle(c);
    cr_assert_eq(c->job.status.ring.coordinator.attempt, 2);
    expect(c, "term 2 is wanted");
    expect_without(c, "apply services");
    cast_pod(c, OP_COORDINATOR, -1, 2);
    expect(c, "apply services tiny-coordinator  workers find the coordinator of term 2 by it");
    cast_free(c);
}

Test(operator_plan,
     a_coordinator_that_does_not_answer_from_a_silent_node_is_succeeded_before_the_node_is_given_up)
{
    struct cast *c = cast_training("{}");
    c->answered_ms = c->in_vain_ms = CAST_NOW;
    cast_settle(c);
    c->node[0].ready = false;
    struct op_plan *plan = cast_plan(c);
    cr_assert_eq(plan->actions_count, 0, "a hiccup of its kubelet alone does it no harm");
    cr_assert_eq(plan->wake_ms, CAST_NOW + 12000);
    plan_free(plan);
    c->now_ms += 12000;
    cast_settle(c);
    cr_assert_eq(c->job.status.ring.coordinator.state, OP_SLOT_ENDED);
    expect(c, "delete pods tiny-coordinator-");
    cr_assert_eq(c->job.status.restarts.infrastructure, 1);
    c->pod[0].deletion_ms = c->now_ms + 135000;
    cast_settle(c);
    cr_assert_eq(c->job.status.ring.coordinator.attempt, 2, "its pod is told to go and may take its time");
    cast_free(c);
}

Test(operator_plan, a_coordinator_on_a_silent_node_is_succeeded_and_told_to_go)
{
    struct cast *c = cast_training("{}");
    c->pod[0].deletion_ms = CAST_NOW + 1000;
    c->node[0].ready = false;
    cast_settle(c);
    cr_assert_eq(c->job.status.ring.coordinator.attempt, 2);
    cr_assert_eq(c->job.status.restarts.infrastructure, 1 + 0);
    cast_free(c);
}

static void finish(struct cast *c, int code, const char *hash, const char *reason)
{
    struct op_last_word *last_word = &c->pod[0].last_word;
    c->pod[0].phase = code ? OP_POD_FAILED : OP_SUCCEEDED;
    c->pod[0].terminated = true;
    c->pod[0].exit_code = last_word->exit_code = code;
    last_word->known = last_word->result.known = true;
    last_word->result.step = 2000;
    last_word->result.exact = true;
    last_word->bytes = 4096;
    last_word->saved_ms = 9000;
    text_copy(last_word->result.loss, OP_NUMBER_MAX, "2.5");
    text_copy(last_word->result.weights_sha256, RM_HASH_HEX, hash);
    text_copy(last_word->reason, sizeof last_word->reason, reason);
}

Test(operator_plan, the_result_is_read_from_the_coordinators_last_word)
{
    struct cast *c = cast_training("{\"ttlSecondsAfterFinished\":60}");
    finish(c, 0, "abcd", "");
    expect(c, "event Complete  trained to step 2000");
    cast_settle(c);
    cr_assert(condition_is(&c->job.status, OP_COMPLETE) && condition_is(&c->job.status, OP_FINISHED));
    cr_assert_str_eq(c->job.status.result.weights_sha256, "abcd");
    cr_assert(c->job.status.result.exact);
    cr_assert_str_eq(c->job.status.state, "Complete");
    cr_assert_str_eq(c->job.status.progress.loss, "2.5");
    cr_assert_eq(c->job.status.checkpoint.step, 2000);
    cr_assert_eq(c->job.status.checkpoint.bytes, 4096,
                 "the last checkpoint may be saved after the last answer");
    cr_assert_eq(c->job.status.checkpoint.saved_ms, 9000);
    expect_without(c, "delete");
    c->now_ms += 15000;
    expect(c, "delete pods tiny-w0-\nthe job is over and this pod is not");
    c->now_ms += 45000;
    expect(c, "delete trainingjobs tiny  ttlSecondsAfterFinished has passed");
    cast_free(c);
}

Test(operator_plan, a_last_word_that_no_other_attempt_could_better_fails_the_job)
{
    static const struct {
        int code;
        const char *reason;
    } ends[] = {{2, "JobRefused"}, {3, "DataError"}, {5, "TrainingFailed"}};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct cast *c = cast_open("{}");
        cast_train(c);
        finish(c, ends[i].code, "", "the loss is NaN");
        cast_settle(c);
        cr_assert_str_eq(c->job.status.condition[OP_FAILED].reason, ends[i].reason);
        cr_assert_str_eq(c->job.status.message, "the loss is NaN");
        cast_free(c);
    }
}

Test(operator_plan, a_coordinator_that_lost_its_machine_is_no_end)
{
    struct cast *c = cast_training("{}");
    finish(c, 4, "", "no port");
    cast_settle(c);
    cr_assert_not(condition_is(&c->job.status, OP_FINISHED));
    cr_assert_eq(c->job.status.restarts.failure, 1);
    cast_free(c);
}

Test(operator_plan, released_workers_are_not_replaced_while_their_coordinator_finishes)
{
    struct cast *c = cast_training("{}");
    struct pod_view *pod = cast_worker(c, 0);
    pod->phase = OP_SUCCEEDED;
    pod->terminated = true;
    pod->ended_ms = CAST_NOW;
    cast_settle(c);
    cr_assert_eq(plan_live_workers(c), 2);
    cr_assert_eq(c->job.status.restarts.preemption, 0);
    c->now_ms += 60000;
    cast_settle(c);
    cr_assert_eq(plan_live_workers(c), 3, "a coordinator that does not finish needs its workers");
    cast_free(c);
}

Test(operator_plan, the_deadline_stops_and_fails_a_job_without_counting_suspended_time)
{
    struct cast *c = cast_training("{\"activeDeadlineSeconds\":3600}");
    c->job.status.active_ms = CAST_NOW - 1800 * 1000;
    c->job.status.active_seconds = 1799;
    struct op_plan *plan = cast_plan(c);
    cr_assert_eq(plan->wake_ms, CAST_NOW + 1000);
    plan_free(plan);
    c->now_ms += 1000;
    cast_settle(c);
    cr_assert_str_eq(c->job.status.condition[OP_STOPPING].reason, "DeadlineExceeded");
    expect(c, "delete pods tiny-w0-");
    c->pods_count = 0;
    cast_settle(c);
    cast_settle(c);
    cr_assert_str_eq(c->job.status.condition[OP_FAILED].reason, "DeadlineExceeded");
    cast_free(c);
}

Test(operator_plan, half_a_start_gives_its_places_back_after_start_timeout)
{
    struct cast *c = cast_training("{}");
    c->coordinator.ring_size = 0;
    c->coordinator.state = STATUS_GATHERING;
    for (int i = 0; i < 2; i++) {
        *cast_worker(c, i)->node = 0;
        cast_worker(c, i)->phase = OP_PENDING;
        cast_worker(c, i)->ready = false;
        text_copy(cast_worker(c, i)->unschedulable, RM_WHY_MAX, "Insufficient nvidia.com/gpu");
    }
    cast_settle(c);
    cr_assert_str_eq(c->job.status.message, "waiting for workers: 1 ready, 2 needed. worker 0 has been "
                                            "Pending for 60 s: Insufficient nvidia.com/gpu");
    c->now_ms += 300 * 1000;
    cast_settle(c);
    cr_assert_eq(plan_live_workers(c), 0);
    cr_assert_geq(c->job.status.workers.retry_ms, c->now_ms + 29000);
    expect(c, "delete pods tiny-w0-\ndelete pods tiny-w2-");
    expect_without(c, "is wanted");
    c->pods_count = 1;
    c->now_ms = c->job.status.workers.retry_ms;
    cast_settle(c);
    cr_assert_eq(plan_live_workers(c), 3);
    cr_assert_eq(slot(c, 0)->attempt, 2);
    cast_free(c);
}

Test(operator_plan, a_deleted_job_and_a_deleted_jobs_pods_are_left_to_the_collector)
{
    struct cast *c = cast_training("{}");
    c->job.deleting = true;
    c->pods_count = 0;
    struct op_plan *plan = cast_plan(c);
    cr_assert_eq(plan->actions_count, 0);
    plan_free(plan);
    cast_free(c);
}

Test(operator_plan, the_coordinators_events_are_told_once)
{
    struct cast *c = cast_training("{}");
    c->coordinator.event[c->coordinator.events_count++] = (struct op_coordinator_event){
        .sequence = 7, .kind = EVENT_RING_FORMED, .note = "generation 3 with 8 workers"};
    expect(c, "event RingFormed  generation 3 with 8 workers");
    cast_settle(c);
    expect_without(c, "RingFormed");
    cast_free(c);
}

/* It is the coordinator's own worker that goes, and by its own word: the operator only tells. */
Test(operator_plan, a_notice_and_its_end_are_told_once_each_and_move_nobody)
{
    struct cast *c = cast_training("{}");
    int workers = plan_live_workers(c);
    c->coordinator.event[c->coordinator.events_count++] = (struct op_coordinator_event){
        .sequence = 7, .kind = EVENT_NOTICE_RECEIVED, .note = "worker 1: its machine may go"};
    expect(c, "event NoticeReceived  worker 1: its machine may go");
    cast_settle(c);
    expect_without(c, "NoticeReceived");
    c->coordinator.event[c->coordinator.events_count++] = (struct op_coordinator_event){
        .sequence = 8, .kind = EVENT_NOTICE_WITHDRAWN, .note = "worker 1: it was withdrawn"};
    expect(c, "event NoticeWithdrawn  worker 1: it was withdrawn");
    cast_settle(c);
    expect_without(c, "Notice");
    cr_assert_eq(plan_live_workers(c), workers);
    cast_free(c);
}

Test(operator_plan, a_quarantined_worker_is_not_replaced)
{
    struct cast *c = cast_training("{}");
    c->coordinator.quarantined[c->coordinator.quarantined_count++] = 1;
    struct pod_view *pod = cast_worker(c, 1);
    pod->phase = OP_POD_FAILED;
    pod->terminated = true;
    pod->exit_code = 1;
    cast_settle(c);
    c->now_ms += 3600 * 1000;
    cast_settle(c);
    cr_assert_eq(plan_live_workers(c), 2);
    cast_free(c);
}

/* Nobody else would ever come: a job that waited for them would wait for ever, at the price of who is left.
 */
Test(operator_plan, a_job_whose_quarantines_leave_too_few_ends)
{
    struct cast *c = cast_training("{\"workers\":{\"min\":3}}");
    c->coordinator.quarantined[c->coordinator.quarantined_count++] = 1;
    expect_without(c, "TooManyFailures"); /* those in the ring may finish */
    c->coordinator.state = STATUS_GATHERING;
    expect(c, "1 of 3 workers are in quarantine for their failures, and the 2 that are left are fewer than "
              "workers.min (3)");
    cast_free(c);
}

Test(operator_plan, a_job_that_may_have_more_workers_outlives_a_quarantine)
{
    struct cast *c = cast_training("{\"workers\":{\"min\":3,\"target\":4}}");
    c->coordinator.quarantined[c->coordinator.quarantined_count++] = 1;
    c->coordinator.state = STATUS_GATHERING;
    expect_without(c, "TooManyFailures");
    cast_free(c);
}
