/* What a status says of a job whose object stores keep it from beginning. */
#include <criterion/criterion.h>
#include <string.h>

#include "cast.h"
#include "common/wire/json.h"
#include "operator/core/pod.h"
#include "operator/core/read.h"

static const struct op_condition *store_ready(const struct cast *c)
{
    return &c->job.status.condition[OP_STORE_READY];
}

/* How many events of that reason the next plan has; gives its status to the job. */
static int tells(struct cast *c, const char *reason)
{
    int count = 0;
    struct op_plan *plan = cast_plan(c);
    for (int i = 0; i < plan->events_count; i++)
        count += !strcmp(plan->event[i].reason, reason);
    plan_free(plan);
    cast_settle(c);
    return count;
}

/* A job whose pods run, and whose coordinator still looks at the stores. */
static struct cast *preparing(const char *why, bool person)
{
    struct cast *c = cast_training("{}");
    c->coordinator.state = STATUS_GATHERING;
    c->coordinator.ring_size = 0;
    c->coordinator.preparing = true;
    text_copy(c->coordinator.message, RM_WHY_MAX, why);
    text_copy(c->coordinator.store.why, RM_WHY_MAX, why);
    c->coordinator.store.person = person;
    return c;
}

Test(operator_store, a_store_that_refuses_is_a_condition_with_its_sentence_and_one_event)
{
    struct cast *c = preparing("s3://b: access denied", true);
    cr_assert_eq(tells(c, "StoreNotReady"), 1);
    cr_assert_eq(store_ready(c)->status, OP_FALSE);
    cr_assert_str_eq(store_ready(c)->reason, "StoreRefuses");
    cr_assert_str_eq(store_ready(c)->message, "s3://b: access denied");
    cr_assert_eq(tells(c, "StoreNotReady"), 0, "it is told once");
    cast_free(c);
}

Test(operator_store, a_store_that_is_away_is_nothing_that_a_person_has_to_set_right)
{
    struct cast *c = preparing("s3://b: GET gets no good answer", false);
    cast_settle(c);
    cr_assert_str_eq(store_ready(c)->reason, "StoreAway");
    cr_assert_str_eq(c->job.status.state, "Starting", "its pods are there, and it begins by itself");
    cr_assert(strstr(c->job.status.message, "ready; s3://b: GET gets no good answer"), "%s",
              c->job.status.message);
    cast_free(c);
}

Test(operator_store, a_store_that_answers_again_is_ready_and_said_so)
{
    struct cast *c = preparing("s3://b: access denied", true);
    cast_settle(c);
    c->coordinator.store.why[0] = 0;
    cr_assert_eq(tells(c, "StoreReady"), 0);
    cr_assert_eq(store_ready(c)->status, OP_FALSE, "a coordinator that still looks does not know yet");
    c->coordinator.preparing = false;
    cr_assert_eq(tells(c, "StoreReady"), 1);
    cr_assert_eq(store_ready(c)->status, OP_TRUE);
    cast_free(c);
}

Test(operator_store, a_store_that_answers_from_the_beginning_is_no_news)
{
    struct cast *c = cast_training("{}");
    cr_assert_eq(tells(c, "StoreReady"), 0);
    cr_assert_eq(store_ready(c)->status, OP_TRUE);
    cast_free(c);
}

Test(operator_store, a_store_that_takes_no_checkpoint_is_not_ready)
{
    struct cast *c = cast_training("{}");
    text_copy(c->coordinator.outage, RM_WHY_MAX, "connection refused");
    cast_settle(c);
    cr_assert_eq(store_ready(c)->status, OP_FALSE);
    cr_assert_str_eq(store_ready(c)->reason, "CheckpointWaiting");
    cast_free(c);
}

/* The coordinator began, and then a right to read was taken away. */
Test(operator_store, a_store_that_no_worker_can_read_any_more_is_not_ready)
{
    struct cast *c = cast_training("{}");
    cast_settle(c);
    text_copy(c->coordinator.store.why, RM_WHY_MAX, "s3://b: access denied");
    c->coordinator.store.person = true;
    cr_assert_eq(tells(c, "StoreNotReady"), 1);
    cr_assert_eq(store_ready(c)->status, OP_FALSE);
    cr_assert_str_eq(store_ready(c)->reason, "StoreRefuses");
    cast_free(c);
}

Test(operator_store, a_store_whose_place_another_job_has_is_not_ready_while_the_job_trains)
{
    struct cast *c = cast_training("{}");
    cast_settle(c);
    text_copy(c->coordinator.store.why, RM_WHY_MAX, "end one of two runs: job other took s3://b");
    c->coordinator.store.person = true;
    text_copy(c->coordinator.outage, RM_WHY_MAX, "s3://b belongs to another run now");
    cr_assert_eq(tells(c, "StoreNotReady"), 1);
    cr_assert_eq(store_ready(c)->status, OP_FALSE);
    cr_assert_str_eq(store_ready(c)->reason, "StoreRefuses");
    cr_assert_str_eq(store_ready(c)->message, "end one of two runs: job other took s3://b");
    cr_assert_str_eq(c->job.status.state, "Training");
    c->coordinator.store.why[0] = 0;
    cast_settle(c);
    cr_assert_str_eq(store_ready(c)->reason, "CheckpointWaiting",
                     "what was trained meanwhile is not saved yet");
    c->coordinator.outage[0] = 0;
    cr_assert_eq(tells(c, "StoreReady"), 1);
    cr_assert_eq(store_ready(c)->status, OP_TRUE);
    cast_free(c);
}

Test(operator_store, of_a_job_that_is_suspended_nobody_knows_whether_its_store_or_its_coordinator_answers)
{
    struct cast *c = cast_open("{}");
    condition_set(&c->job.status, OP_STORE_READY, false, "StoreRefuses", "access denied", 1, CAST_NOW);
    condition_set(&c->job.status, OP_REACHABLE, false, "Silent", "no answer", 1, CAST_NOW);
    c->job.suspend = true;
    cast_settle(c);
    cast_settle(c);
    cr_assert_eq(c->job.status.condition[OP_SUSPENDED].status, OP_TRUE);
    cr_assert_eq(store_ready(c)->status, OP_UNKNOWN);
    cr_assert_str_eq(store_ready(c)->reason, "Suspended");
    cr_assert_eq(c->job.status.condition[OP_REACHABLE].status, OP_UNKNOWN);
    cast_free(c);
}

Test(operator_store, a_store_that_is_not_fenced_stands_in_the_status_and_is_told_once)
{
    struct cast *c = cast_open("{}");
    struct str text = str_init(OP_STATUS_TEXT_MAX);
    cast_train(c);
    cr_assert_eq(tells(c, "NotFenced"), 0);
    c->coordinator.unfenced = true;
    cr_assert_eq(tells(c, "NotFenced"), 1);
    cr_assert_eq(tells(c, "NotFenced"), 0);
    status_write(&c->job.status, c->job.name, &text);
    cr_assert(strstr(str_text(&text), "\"fenced\":false"), "%s", str_text(&text));
    str_clear(&text);
    cast_free(c);
}

Test(operator_store, what_the_coordinator_waits_for_is_read)
{
    static const char text[] =
        "{\"preparing\":true,\"fenced\":false,\"storeWaiting\":{\"reason\":\"denied\",\"person\":true}}";
    struct coordinator_view view;
    struct error err = {0};
    cr_assert_eq(coordinator_read(text, strlen(text), &view, &err), 0, "%s", err.text);
    cr_assert(view.preparing && view.store.person && view.unfenced);
    cr_assert_str_eq(view.store.why, "denied");
}

static bool has_credentials_folder(const char *env)
{
    static const struct op_settings settings = {.worker_image = "x", .operator_namespace = "n"};
    struct str changes = str_init(4096), text = str_init(OP_POD_TEXT_MAX);
    struct error err = {0};
    str_addf(&changes,
             "{\"workers\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"trainer\",\"env\":[%s]}]}}}}",
             env);
    struct cast *c = cast_open(str_text(&changes));
    cr_assert_eq(pod_worker(&c->job, &settings, NULL, 0, 1, &text, &err), 0, "%s", err.text);
    bool has = strstr(str_text(&text), "{\"name\":\"RINGMASTER_POD_CREDENTIALS\",\"value\":\"/etc/ringmaster/"
                                       "credentials\"}") != NULL;
    cr_assert_eq(has, strstr(str_text(&text), "\"ringmaster-credentials\"") != NULL, "%s", str_text(&text));
    str_clear(&changes);
    str_clear(&text);
    cast_free(c);
    return has;
}

Test(operator_store, a_jobs_secret_is_mounted_so_that_a_mended_key_reaches_pods_that_run)
{
    cr_assert(has_credentials_folder(""));
    cr_assert_not(has_credentials_folder("{\"name\":\"AWS_ACCESS_KEY_ID\",\"value\":\"own\"}"),
                  "what the template says wins over the Secret");
}
