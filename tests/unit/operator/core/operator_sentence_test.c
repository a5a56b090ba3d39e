/* What a status says of a job that waits, and how often it says it. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "cast.h"

Test(operator_sentence, what_the_api_server_refuses_is_a_sentence_in_the_status)
{
    struct cast *c = cast_open("{}");
    struct op_plan *plan = cast_plan(c);
    cr_assert(plan_has(plan, OP_DRY_RUN, OP_PODS));
    op_memo_refused(&c->memo, &c->job, &plan->action[0], 403, "Forbidden", "exceeded quota: small\n",
                    CAST_NOW);
    plan_free(plan);
    cast_settle_status_only(c);
    cr_assert_str_eq(c->job.status.message, "the API server refused to create pods: exceeded quota: small ");
    cr_assert_str_eq(c->job.status.condition[OP_ADMITTED].reason, "Forbidden");
    cr_assert_str_eq(c->job.status.state, "Waiting");
    plan = cast_plan(c);
    cr_assert_eq(plan->change, OP_SAME, "the same refusal is written once");
    cr_assert(plan_has(plan, OP_DRY_RUN, OP_PODS), "and tried again");
    plan_free(plan);
    cast_free(c);
}

Test(operator_sentence, a_refusal_that_is_long_is_told_with_its_cause_which_stands_last)
{
    char text[2000];
    struct cast *c = cast_open("{}");
    struct op_plan *plan = cast_plan(c);
    snprintf(text, sizeof text, "Pod \"tiny-w0\" is invalid: %01500d: Not found: \"data\"", 0);
    op_memo_refused(&c->memo, &c->job, &plan->action[0], 422, "Invalid", text, CAST_NOW);
    plan_free(plan);
    cast_settle_status_only(c);
    const char *message = c->job.status.message;
    cr_assert(strstr(message, "refused to create pods: Pod \"tiny-w0\" is invalid: 0"), "%s", message);
    cr_assert_str_eq(message + strlen(message) - 17, "Not found: \"data\"");
    cast_free(c);
}

Test(operator_sentence, a_pod_that_no_node_takes_is_two_writes_a_minute_at_first_and_then_one)
{
    int writes[8] = {0};
    struct cast *c = cast_open("{}");
    for (int i = 0; i < 3; i++)
        cast_settle(c);
    struct pod_view *pod = cast_pod(c, OP_WORKER, 0, 1);
    *pod->node = pod->ready = 0;
    pod->created_ms = CAST_NOW;
    text_copy(pod->unschedulable, sizeof pod->unschedulable, "Insufficient cpu");
    cast_settle(c);
    for (int second = 1; second < 240; second++) {
        c->now_ms = CAST_NOW + second * 1000;
        struct op_plan *plan = cast_plan(c);
        writes[second / 60] += plan->change != OP_SAME;
        plan_free(plan);
        cast_settle(c);
    }
    cr_assert_eq(writes[0], 1, "30 s");
    cr_assert_eq(writes[1], 2);
    cr_assert_eq(writes[2], 1);
    cr_assert_eq(writes[3], 1);
    cr_assert_str_eq(
        c->job.status.message,
        "waiting for workers: 0 ready, 2 needed. worker 0 has been Pending for 3 min: Insufficient cpu");
    cast_free(c);
}

Test(operator_sentence, a_job_that_trains_while_more_pods_are_refused_is_shown_as_training)
{
    struct cast *c = cast_open("{}");
    const struct op_action create = {.kind = OP_CREATE, .resource = OP_PODS};
    cast_train(c);
    op_memo_refused(&c->memo, &c->job, &create, 403, "Forbidden", "exceeded quota: small", CAST_NOW);
    cast_settle_status_only(c);
    cr_assert_str_eq(c->job.status.state, "Training");
    cr_assert_str_eq(
        c->job.status.message,
        "3 of 3 workers at step 812; the API server refused to create pods: exceeded quota: small");
    cr_assert_eq(c->job.status.condition[OP_PODS_READY].status, OP_FALSE);
    cast_free(c);
}

Test(operator_sentence, a_status_that_was_refused_once_is_nothing_that_a_job_waits_for)
{
    struct cast *c = cast_open("{}");
    const struct op_action status = {.kind = OP_STATUS, .resource = OP_JOBS};
    cast_train(c);
    op_memo_refused(&c->memo, &c->job, &status, 0, "", "connection refused", CAST_NOW);
    struct op_plan *plan = cast_plan(c);
    cr_assert_eq(plan->change, OP_SAME);
    plan_free(plan);
    cast_free(c);
}

/* The pods' deletion is refused, and the status says what it says then. */
static void refuse_deletes(struct cast *c, const char *wanted)
{
    static const struct op_action deletion = {.kind = OP_DELETE, .resource = OP_PODS};
    struct op_plan *plan = cast_plan(c);
    cr_assert(plan_has(plan, OP_DELETE, OP_PODS), "they are to be deleted");
    plan_free(plan);
    op_memo_refused(&c->memo, &c->job, &deletion, 403, "Forbidden", "no right", c->now_ms);
    cast_settle_status_only(c);
    cr_assert_str_eq(c->job.status.message, wanted);
    cr_assert(op_memo_done(&c->memo, &c->job, &deletion), "it is a reason to look again");
    cast_settle_status_only(c);
    cr_assert_not(strstr(c->job.status.message, "refused"), "%s", c->job.status.message);
}

Test(operator_sentence, a_suspended_job_whose_pods_may_not_be_deleted_says_so)
{
    struct cast *c = cast_training("{}");
    c->job.suspend = true;
    cast_settle_status_only(c);
    refuse_deletes(c,
                   "the workers save a checkpoint and end; the API server refused to delete pods: no right");
    cast_free(c);
}

Test(operator_sentence, a_job_whose_deadline_has_passed_says_that_its_pods_may_not_be_deleted)
{
    struct cast *c = cast_training("{\"activeDeadlineSeconds\":60}");
    c->now_ms += 61000;
    cast_settle_status_only(c);
    refuse_deletes(c, "the workers save a checkpoint and end: spec.activeDeadlineSeconds (60) has passed; "
                      "the API server refused to delete pods: no right");
    cast_free(c);
}

Test(operator_sentence, a_job_that_is_over_says_that_what_is_left_may_not_be_deleted)
{
    struct cast *c = cast_training("{\"cleanPodPolicy\":\"All\"}");
    condition_set(&c->job.status, OP_COMPLETE, true, "Complete", "100 steps", 1, CAST_NOW);
    condition_set(&c->job.status, OP_FINISHED, true, "Complete", "100 steps", 1, CAST_NOW);
    c->job.status.completion_ms = CAST_NOW;
    c->now_ms += 60000;
    cast_settle_status_only(c);
    refuse_deletes(c, "100 steps; the API server refused to delete pods: no right");
    cr_assert_str_eq(c->job.status.state, "Complete");
    cast_free(c);
}

Test(operator_sentence, a_refusal_of_what_is_wanted_no_more_is_forgotten)
{
    struct cast *c = cast_open("{}");
    const struct op_action deletion = {.kind = OP_DELETE, .resource = OP_PODS};
    cast_train(c);
    op_memo_refused(&c->memo, &c->job, &deletion, 403, "Forbidden", "no right", CAST_NOW);
    struct op_plan *plan = cast_plan(c);
    cr_assert(op_memo_forget(&c->memo, plan), "the pod has gone without us");
    cr_assert_not(op_memo_forget(&c->memo, plan));
    plan_free(plan);
    plan = cast_plan(c);
    cr_assert_eq(plan->change, OP_SAME);
    plan_free(plan);
    c->job.suspend = true;
    cast_settle_status_only(c);
    op_memo_refused(&c->memo, &c->job, &deletion, 403, "Forbidden", "no right", CAST_NOW);
    plan = cast_plan(c);
    cr_assert_not(op_memo_forget(&c->memo, plan), "it is wanted");
    plan_free(plan);
    cast_free(c);
}

/* It was the first of each plan, before the status: so nobody ever read that it was refused. */
Test(operator_sentence, a_delete_that_was_refused_waits_as_all_do_and_the_status_is_written_meanwhile)
{
    struct cast *c = cast_open("{}");
    const struct op_action pod = {.kind = OP_DELETE, .resource = OP_PODS},
                           job = {.kind = OP_DELETE, .resource = OP_JOBS},
                           made = {.kind = OP_CREATE, .resource = OP_PODS},
                           status = {.kind = OP_STATUS, .resource = OP_JOBS};
    cr_assert(op_memo_goes_on(&c->memo, &pod) && op_memo_goes_on(&c->memo, &status));
    cr_assert_not(op_memo_goes_on(&c->memo, &made));
    op_memo_refused(&c->memo, &c->job, &pod, 403, "Forbidden", "no right", CAST_NOW);
    cr_assert_not(op_memo_goes_on(&c->memo, &pod));
    cr_assert(op_memo_goes_on(&c->memo, &job) && op_memo_goes_on(&c->memo, &status));
    op_memo_done(&c->memo, &c->job, &pod);
    cr_assert(op_memo_goes_on(&c->memo, &pod));
    cast_free(c);
}

Test(operator_sentence, a_status_that_may_not_be_written_is_told_beside_the_job)
{
    char text[OP_MESSAGE_MAX];
    const struct op_action pod = {.kind = OP_CREATE, .resource = OP_PODS},
                           status = {.kind = OP_STATUS, .resource = OP_JOBS};
    cr_assert(op_status_refusal(&status, 403, "no right", text));
    cr_assert_str_eq(text, "the API server refused to write status of trainingjobs: no right");
    cr_assert(op_status_refusal(&status, 422, "no such field", text));
    cr_assert_not(op_status_refusal(&pod, 403, "no right", text), "the status tells it");
    cr_assert_not(op_status_refusal(&status, 0, "no connection", text), "it passes");
    cr_assert_not(op_status_refusal(&status, 429, "too many", text));
    cr_assert_not(op_status_refusal(&status, 503, "later", text));
}

Test(operator_sentence, a_spec_that_can_not_be_is_not_even_tried)
{
    struct cast *c = cast_open("{\"checkpoint\":{\"uri\":\"file:///runs\"}}");
    cast_settle(c);
    cr_assert_str_eq(c->job.status.condition[OP_ADMITTED].reason, "Invalid");
    cr_assert(strstr(c->job.status.message, "mounts no shared volume"), "%s", c->job.status.message);
    struct op_plan *plan = cast_plan(c);
    cr_assert_eq(plan->actions_count, 0);
    plan_free(plan);
    cast_free(c);
}

/* Whether a job with that cache, and a disk at /big in each worker, below which there is a read-only one,
 * would be made. */
static bool is_taken(const char *data, const char *cache, const char **sentence)
{
    char changes[1024];
    static char message[OP_MESSAGE_MAX];
    snprintf(
        changes, sizeof changes,
        "{\"trainer\":{\"data\":{\"uri\":\"%s\",\"cache\":\"%s\"}},\"workers\":{\"template\":{\"spec\":{"
        "\"containers\":[{\"name\":\"trainer\",\"image\":\"worker:1\",\"volumeMounts\":[{\"name\":\"disk\","
        "\"mountPath\":\"/big\"},{\"name\":\"disk\",\"mountPath\":\"/big/"
        "books\",\"readOnly\":true}]}],\"volumes\":[{\"name\":\"disk\",\"emptyDir\":{}}]}}}}",
        data, cache);
    struct cast *c = cast_open(changes);
    cast_settle(c);
    bool taken = strcmp(c->job.status.condition[OP_ADMITTED].reason, "Invalid") != 0;
    text_copy(message, sizeof message, c->job.status.message);
    cast_free(c);
    *sentence = message;
    return taken;
}

Test(operator_sentence, a_cache_where_no_volume_is_mounted_is_refused)
{
    const char *said;
    cr_assert_not(is_taken("s3://books/a", "file:///bigger/cache", &said));
    cr_assert(strstr(said,
                     "spec.trainer.data.cache is file:///bigger/cache, but spec.workers.template mounts "
                     "no volume there"),
              "%s", said);
    cr_assert_not(is_taken("s3://books/a", "file:///var/cache/ringmasters", &said));
    cr_assert(is_taken("s3://books/a", "file:///big/cache", &said), "%s", said);
    cr_assert(is_taken("s3://books/a", "file:///var/cache/ringmaster", &said), "%s", said);
    cr_assert(is_taken("s3://books/a", "file:///var/cache/ringmaster/a", &said), "%s", said);
    cr_assert(is_taken("file:///big/books", "file:///bigger", &said), "nothing is fetched: %s", said);
}

Test(operator_sentence, a_cache_may_lie_on_any_volume_that_is_written_to_however_its_path_is_spelled)
{
    static const char *const taken[] = {"file:////big/c", "file:///./big/c", "file:///big/bookshelf",
                                        "file:///tmp",    "file:///tmp/c",   "file:///dev/shm/c"};
    static const char *const refused[] = {"file:///big/../etc",
                                          "file:///big/books",
                                          "file:///big/books/c",
                                          "file:///tmp/../c",
                                          "file:///tmpfiles",
                                          "file:///dev",
                                          "file:///var/cache/ringmaster/../c"};
    const char *said;
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        cr_assert(is_taken("s3://books/a", taken[i], &said), "%s: %s", taken[i], said);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        cr_assert_not(is_taken("s3://books/a", refused[i], &said), "%s", refused[i]);
        cr_assert(strstr(said, "mounts no volume there"), "%s", said);
    }
}

/* As by an operator of before this was refused. */
Test(operator_sentence, a_job_that_runs_goes_on_wherever_its_cache_is)
{
    struct cast *c = cast_open("{\"trainer\":{\"data\":{\"cache\":\"file:///bigger\"}}}");
    struct op_condition *admitted = &c->job.status.condition[OP_ADMITTED];
    cast_train(c);
    admitted->status = OP_TRUE;
    admitted->generation = c->job.generation;
    c->pods_count = 0;
    for (int i = 0; i < 3; i++) {
        cast_settle(c);
        c->now_ms += 1000;
    }
    struct op_plan *plan = cast_plan(c);
    bool made = false;
    for (int i = 0; i < plan->actions_count; i++) {
        const struct op_action *action = &plan->action[i];
        if (action->kind != OP_CREATE || !strstr(action->name, "-coordinator-"))
            continue;
        made = true;
        cr_assert(strstr(str_text(&action->body), "file:///bigger"));
    }
    cr_assert(made);
    plan_free(plan);
    cast_free(c);
}

/* As after `kubectl scale`, and whatever became of the question whether the API server takes the new pods. */
Test(operator_sentence, a_job_that_runs_goes_on_with_a_new_spec_wherever_its_cache_is)
{
    static const enum op_truth before[] = {OP_TRUE, OP_FALSE};
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        struct cast *c = cast_open("{\"trainer\":{\"data\":{\"cache\":\"file:///bigger\"}}}");
        struct op_condition *admitted = &c->job.status.condition[OP_ADMITTED];
        cast_train(c);
        admitted->status = before[i];
        admitted->generation = c->job.generation++;
        c->job.workers_target = 4;
        for (int k = 0; k < 3; k++) {
            cast_settle(c);
            c->now_ms += 1000;
        }
        cr_assert_eq(admitted->status, OP_TRUE, "%s", admitted->message);
        cr_assert_str_eq(admitted->message, "the cluster accepts this job's pods");
        cr_assert_eq(c->job.status.workers.slot[3].state, OP_SLOT_WANTED);
        cast_free(c);
    }
}

Test(operator_sentence, a_store_that_takes_no_checkpoint_stands_in_the_sentence_of_a_job_that_trains)
{
    struct cast *c = cast_training("{}");
    text_copy(c->coordinator.outage, RM_WHY_MAX, "connection refused");
    cast_settle(c);
    cr_assert_str_eq(
        c->job.status.message,
        "3 of 3 workers at step 812; the store does not take the newest checkpoint: connection refused");
    cast_free(c);
}

Test(operator_sentence, why_the_sums_of_gpus_go_over_tcp_stands_in_the_sentence_of_a_job_that_trains)
{
    struct cast *c = cast_training("{}");
    text_copy(c->coordinator.slower, RM_WHY_MAX, "worker 1 has none: no NCCL");
    cast_settle(c);
    cr_assert_str_eq(c->job.status.message, "3 of 3 workers at step 812; the GPUs' sums go over TCP: "
                                            "worker 1 has none: no NCCL");
    cast_free(c);
}

Test(operator_sentence, a_job_with_all_its_workers_says_so_in_the_condition_of_fewer)
{
    struct cast *c = cast_training("{}");
    cast_settle(c);
    cr_assert_str_eq(c->job.status.condition[OP_DEGRADED].message, "all wanted workers are training");
    cast_free(c);
}
