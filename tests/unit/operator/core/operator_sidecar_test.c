/* Pods in which a container that is not ours stands beside it: what is over is decided by ours. */
#include <criterion/criterion.h>
#include <string.h>

#include "cast.h"
#include "common/wire/json.h"

/* Our container has ended, the other one runs on: the kubelet keeps the phase Running. */
static void end_beside_a_sidecar(struct pod_view *pod, int code, int64_t at_ms)
{
    pod->ready = false;
    pod->terminated = true;
    pod->exit_code = code;
    pod->ended_ms = at_ms;
    text_copy(pod->terminated_reason, sizeof pod->terminated_reason, code ? "Error" : "Completed");
}

static bool deletes(struct cast *c, const struct pod_view *pod)
{
    bool found = false;
    struct op_plan *plan = cast_plan(c);
    for (int i = 0; i < plan->actions_count; i++)
        found |= plan->action[i].kind == OP_DELETE && !strcmp(plan->action[i].uid, pod->uid);
    plan_free(plan);
    return found;
}

Test(operator_sidecar, a_job_whose_pods_have_a_sidecar_completes_and_its_pods_are_deleted)
{
    struct cast *c = cast_training("{}");
    struct op_last_word *last_word = &c->pod[0].last_word;
    last_word->known = last_word->result.known = true;
    last_word->result.step = 2000;
    text_copy(last_word->result.weights_sha256, RM_HASH_HEX, "abcd");
    for (int i = 0; i < c->pods_count; i++)
        end_beside_a_sidecar(&c->pod[i], 0, CAST_NOW);
    cast_settle(c);
    cr_assert(condition_is(&c->job.status, OP_COMPLETE));
    c->now_ms += 15000;
    for (int i = 0; i < c->pods_count; i++)
        cr_assert(deletes(c, &c->pod[i]), "the sidecar of %s would run for ever", c->pod[i].name);
    cast_free(c);
}

Test(operator_sidecar, a_worker_that_fails_beside_a_sidecar_is_counted_replaced_and_deleted)
{
    struct cast *c = cast_training("{}");
    struct pod_view *pod = cast_worker(c, 1);
    end_beside_a_sidecar(pod, 1, CAST_NOW - 20000);
    cast_settle(c);
    cr_assert_eq(c->job.status.restarts.failure, 1);
    cr_assert(deletes(c, pod), "its log is not worth what the sidecar holds");
    c->now_ms += 1000;
    cast_settle(c);
    cr_assert_eq(c->job.status.workers.slot[1].attempt, 2);
    cr_assert_eq(c->job.status.workers.slot[1].state, OP_SLOT_WANTED);
    cast_free(c);
}

/* A kubelet tells that containers have ended before it tells that it evicted their pod. */
Test(operator_sidecar, a_failure_waits_a_moment_for_the_kubelets_own_word)
{
    struct cast *c = cast_training("{}");
    struct pod_view *pod = cast_worker(c, 1);
    end_beside_a_sidecar(pod, 137, CAST_NOW);
    struct op_plan *plan = cast_plan(c);
    cr_assert_eq(plan->wake_ms, CAST_NOW + 10000);
    plan_free(plan);
    cast_settle(c);
    cr_assert_eq(c->job.status.restarts.failure, 0);
    pod->phase = OP_POD_FAILED;
    text_copy(pod->reason, sizeof pod->reason, "Evicted");
    cast_settle(c);
    cr_assert_eq(c->job.status.restarts.failure, 0);
    cr_assert_eq(c->job.status.restarts.preemption, 1);
    cast_free(c);
}

Test(operator_sidecar, a_sidecar_that_failed_takes_nothing_from_a_worker_that_finished)
{
    struct cast *c = cast_training("{}");
    struct pod_view *pod = cast_worker(c, 1);
    end_beside_a_sidecar(pod, 0, CAST_NOW);
    pod->phase = OP_POD_FAILED; /* what the sidecar's exit code makes of the pod */
    cast_settle(c);
    cr_assert_eq(c->job.status.restarts.failure, 0);
    for (int i = 0; i < 3; i++)
        cr_assert_leq(c->job.status.workers.slot[i].attempt, 1,
                      "workers that were released are not replaced while their coordinator finishes");
    cast_free(c);
}

Test(operator_sidecar, suspending_is_over_when_our_containers_are)
{
    struct cast *c = cast_training("{}");
    c->job.suspend = true;
    cast_settle(c);
    for (int i = 1; i < 4; i++) {
        end_beside_a_sidecar(&c->pod[i], 0, CAST_NOW);
        c->pod[i].left = true;
    }
    c->coordinator.workers_count = 0;
    cast_settle(c);
    cr_assert_eq(c->job.status.ring.coordinator.state, OP_SLOT_ENDED, "no worker needs it any more");
    cr_assert(deletes(c, &c->pod[1]) && deletes(c, &c->pod[0]));
    cast_free(c);
}

Test(operator_sidecar, a_sidecar_that_ended_early_leaves_the_worker_running_and_ready)
{
    struct pod_view pod;
    static const char text[] = CAST_POD_BEGINS
        "},\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\","
        "\"reason\":\"ContainersNotReady\"}],\"containerStatuses\":[{\"name\":\"proxy\",\"ready\":false,"
        "\"state\":{\"terminated\":{\"exitCode\":1,\"reason\":\"Error\"}}},{\"name\":\"trainer\",\"ready\":"
        "true,\"state\":{\"running\":{\"startedAt\":\"2026-01-01T00:00:00Z\"}}}]}}";
    struct js *object = js_parse(text, strlen(text), "pod", NULL);
    cr_assert_eq(pod_project(object, &pod, NULL), 0);
    cr_assert_not(pod_is_over(&pod));
    cr_assert(pod.ready, "the pod is not Ready, but our container is");
    js_free(object);
}
