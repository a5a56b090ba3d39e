#include <criterion/criterion.h>
#include <string.h>

#include "cast.h"
#include "operator/core/account.h"

struct one {
    const char *name;
    enum pod_phase phase;
    const char *disruption, *reason, *ended;
    int exit_code;
    bool left, deleted, node_ready;
    const char *taint;
    enum op_class counted;
    const char *why;
};

Test(operator_account, every_way_to_end_counts_as_what_it_was)
{
    static const struct one all[] = {
        {"evicted", OP_RUNNING, "EvictionByEvictionAPI", "", "", 0, false, true, true, "",
         OP_COUNT_PREEMPTION, "EvictionByEvictionAPI"},
        {"preempted", OP_RUNNING, "PreemptionByScheduler", "", "", 0, false, false, true, "",
         OP_COUNT_PREEMPTION, "PreemptionByScheduler"},
        {"preempted and over", OP_POD_FAILED, "PreemptionByScheduler", "", "Error", 143, false, true, true,
         "", OP_COUNT_PREEMPTION, "PreemptionByScheduler"},
        {"kubectl delete", OP_RUNNING, "", "", "", 0, false, true, true, "", OP_COUNT_PREEMPTION, "Deleted"},
        {"taint", OP_RUNNING, "", "", "", 0, false, false, true,
         "has the taint ToBeDeletedByClusterAutoscaler", OP_COUNT_PREEMPTION, "NodeLeaves"},
        {"left", OP_SUCCEEDED, "", "", "Completed", 0, true, false, true, "", OP_COUNT_PREEMPTION, "Left"},
        {"evicted by the kubelet", OP_POD_FAILED, "", "Evicted", "Error", 137, false, false, true, "",
         OP_COUNT_PREEMPTION, "Evicted"},
        {"node shut down", OP_POD_FAILED, "", "NodeShutdown", "Error", 137, false, false, true, "",
         OP_COUNT_INFRASTRUCTURE, "NodeShutdown"},
        {"no room after all", OP_POD_FAILED, "", "OutOfcpu", "", 0, false, false, true, "",
         OP_COUNT_INFRASTRUCTURE, "OutOfcpu"},
        {"unknown after a reboot", OP_POD_FAILED, "", "", "ContainerStatusUnknown", 137, false, false, true,
         "", OP_COUNT_INFRASTRUCTURE, "ContainerStatusUnknown"},
        {"refused by the kubelet", OP_POD_FAILED, "", "UnexpectedAdmissionError", "", 0, false, false, true,
         "", OP_COUNT_INFRASTRUCTURE, "UnexpectedAdmissionError"},
        {"node silent, taint manager came", OP_RUNNING, "DeletionByTaintManager", "", "", 0, false, true,
         false, "", OP_COUNT_INFRASTRUCTURE, "NodeLost"},
        {"node object deleted", OP_POD_FAILED, "DeletionByPodGC", "", "", 0, false, false, true, "",
         OP_COUNT_INFRASTRUCTURE, "NodeLost"},
        {"memory", OP_POD_FAILED, "", "", "OOMKilled", 137, false, false, true, "", OP_COUNT_FAILURE,
         "OOMKilled"},
        {"crash", OP_POD_FAILED, "", "", "Error", 139, false, false, true, "", OP_COUNT_FAILURE, "ExitCode"},
        {"released", OP_SUCCEEDED, "", "", "Completed", 0, false, false, true, "", OP_COUNT_NOTHING,
         "Released"},
    };
    struct cast *c = cast_open("{}");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const struct one *t = &all[i];
        struct op_ending ending;
        struct node_view node = {.name = "n", .ready = t->node_ready};
        struct pod_view pod = {.phase = t->phase, .exit_code = t->exit_code, .left = t->left, .node = "n"};
        pod.terminated = *t->ended != 0;
        pod.deletion_ms = t->deleted ? CAST_NOW : 0;
        text_copy(pod.disruption, sizeof pod.disruption, t->disruption);
        text_copy(pod.reason, sizeof pod.reason, t->reason);
        text_copy(pod.terminated_reason, sizeof pod.terminated_reason, t->ended);
        text_copy(node.leave, sizeof node.leave, t->taint);
        account_pod(&c->job, &pod, &node, 0, &ending);
        cr_assert_eq(ending.counted, t->counted, "%s is %s", t->name, op_class_name(ending.counted));
        cr_assert_str_eq(ending.reason, t->why, "%s", t->name);
        cr_assert_not(ending.fails_job, "%s", t->name);
    }
    cast_free(c);
}

static struct op_ending exit_with(const struct cast *c, int code)
{
    struct op_ending ending;
    struct pod_view pod = {
        .phase = OP_POD_FAILED, .terminated = true, .exit_code = code, .terminated_reason = "Error"};
    account_pod(&c->job, &pod, NULL, 0, &ending);
    return ending;
}

Test(operator_account, rules_see_failures_by_exit_code)
{
    struct cast *c = cast_open("{\"failurePolicy\":{\"rules\":[{\"onExitCodes\":[42],\"action\":\"FailJob\"},"
                               "{\"onExitCodes\":[137,2],\"action\":\"Restart\"}]}}");
    cr_assert(exit_with(c, 42).fails_job);
    cr_assert(exit_with(c, 137).spares_budget);
    cr_assert_not(exit_with(c, 2).fails_job, "a rule goes before what the program's own codes mean");
    cr_assert(exit_with(c, 3).fails_job, "data that can't be read is no better for the next attempt");
    cr_assert_not(exit_with(c, 1).fails_job);
    cr_assert_not(exit_with(c, 1).spares_budget);
    cast_free(c);
}

Test(operator_account, no_rule_makes_running_out_of_memory_free)
{
    struct cast *c =
        cast_open("{\"failurePolicy\":{\"rules\":[{\"onExitCodes\":[137],\"action\":\"Restart\"}]}}");
    struct op_ending ending;
    struct pod_view pod = {
        .phase = OP_POD_FAILED, .terminated = true, .exit_code = 137, .terminated_reason = "OOMKilled"};
    account_pod(&c->job, &pod, NULL, 0, &ending);
    cr_assert_eq(ending.counted, OP_COUNT_FAILURE);
    cr_assert_not(ending.spares_budget);
    cast_free(c);
}

Test(operator_account, only_failures_within_the_window_spend_the_budget)
{
    struct cast *c = cast_open("{\"failurePolicy\":{\"maxRestarts\":2,\"within\":\"1h\"}}");
    struct job_status status = {0};
    struct op_ending crash = exit_with(c, 1), evicted = {.counted = OP_COUNT_PREEMPTION};
    int64_t now = CAST_NOW, hour = 3600 * 1000;
    for (int i = 0; i < 100; i++)
        cr_assert_not(account_add(&status, &c->job, &evicted, now));
    cr_assert_not(account_add(&status, &c->job, &crash, now));
    cr_assert_not(account_add(&status, &c->job, &crash, now + hour / 2));
    cr_assert(account_add(&status, &c->job, &crash, now + hour), "the third within an hour is one too many");
    cr_assert_not(account_add(&status, &c->job, &crash, now + 3 * hour), "that is another hour");
    cr_assert_eq(status.restarts.preemption, 100);
    cr_assert_eq(status.restarts.failure, 4);
    cast_free(c);
}

Test(operator_account, the_pause_after_failures_doubles_from_a_second_to_five_minutes)
{
    struct cast *c = cast_open("{\"failurePolicy\":{\"maxRestarts\":1000}}");
    struct job_status status = {0};
    struct op_ending crash = exit_with(c, 1);
    static const int64_t pauses[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300};
    cr_assert_eq(account_backoff_until(&status), 0);
    for (size_t i = 0; i < sizeof pauses / sizeof *pauses; i++) {
        account_add(&status, &c->job, &crash, CAST_NOW);
        cr_assert_eq(account_backoff_until(&status), CAST_NOW + pauses[i] * 1000, "after %zu failures",
                     i + 1);
    }
    cast_free(c);
}
