/* Starts with too few nodes: how long is waited, for whom, and how soon the next attempt comes. And after a
 * suspension.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "cast.h"
#include "common/wire/json.h"

static int live_workers(const struct cast *c)
{
    int live = 0;
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        live += slot_is_live(&c->job.status.workers.slot[i]);
    return live;
}

/* No node takes it, since an hour ago. */
static void starve(struct pod_view *pod)
{
    *pod->node = 0;
    pod->phase = OP_PENDING;
    pod->ready = false;
    pod->created_ms = CAST_NOW - 3600 * 1000;
    text_copy(pod->unschedulable, RM_WHY_MAX, "Insufficient nvidia.com/gpu");
}

/* Two of three train, the third has waited for a node for an hour; then one of the two is deleted. */
static struct cast *fall_below_min(void)
{
    struct cast *c = cast_training("{}");
    starve(cast_worker(c, 2));
    c->coordinator.ring_size = 2;
    cast_settle(c);
    cast_worker(c, 1)->deletion_ms = CAST_NOW + 1000;
    c->coordinator.state = STATUS_GATHERING;
    c->coordinator.ring_size = 0;
    return c;
}

Test(operator_start, a_fall_below_min_on_a_starved_pool_leaves_the_survivor_start_timeout_of_its_own)
{
    struct cast *c = fall_below_min();
    cast_settle(c);
    cr_assert_geq(live_workers(c), 2, "the survivor holds the state");
    cr_assert_eq(c->job.status.workers.short_ms, CAST_NOW);
    c->now_ms += 299 * 1000;
    cast_settle(c);
    cr_assert_geq(live_workers(c), 2);
    c->now_ms += 1000;
    cast_settle(c);
    cr_assert_eq(live_workers(c), 0);
    cr_assert_eq(c->job.status.workers.short_ms, 0);
    cast_free(c);
}

Test(operator_start, a_job_that_found_its_nodes_in_between_waits_anew)
{
    struct cast *c = fall_below_min();
    cast_settle(c);
    struct pod_view *late = cast_worker(c, 2);
    text_copy(late->node, sizeof late->node, "node-2");
    *late->unschedulable = 0;
    c->now_ms += 200 * 1000;
    cast_settle(c);
    cr_assert_eq(c->job.status.workers.short_ms, 0);
    *late->node = 0; /* as another pod in its place would be */
    c->now_ms += 200 * 1000;
    cast_settle(c);
    cr_assert_eq(c->job.status.workers.short_ms, c->now_ms);
    cr_assert_geq(live_workers(c), 2);
    cast_free(c);
}

Test(operator_start, pods_that_a_queue_holds_back_are_waited_for_and_told)
{
    struct cast *c = cast_training("{}");
    c->coordinator.ring_size = 0;
    c->coordinator.state = STATUS_GATHERING;
    for (int i = 0; i < 3; i++) {
        starve(cast_worker(c, i));
        *cast_worker(c, i)->unschedulable = 0;
        text_copy(cast_worker(c, i)->gates, sizeof cast_worker(c, i)->gates, "kueue.x-k8s.io/admission");
    }
    for (int i = 0; i < 5; i++) {
        cast_settle(c);
        c->now_ms += 3600 * 1000;
    }
    cr_assert_eq(live_workers(c), 3);
    cr_assert_eq(c->job.status.workers.short_ms, 0);
    cr_assert_str_eq(c->job.status.message, "waiting for workers: 0 ready, 2 needed. worker 0 has been "
                                            "Pending for 5 h: waits until whoever gated it "
                                            "lifts kueue.x-k8s.io/admission");
    cr_assert_str_eq(c->job.status.condition[OP_PODS_READY].reason, "SchedulingGated");
    cast_free(c);
}

Test(operator_start, a_pods_gates_are_read_by_their_names)
{
    struct pod_view pod;
    static const char text[] = CAST_POD_BEGINS
        "},\"spec\":{\"schedulingGates\":[{\"name\":\"a/b\"},{\"name\":\"c\"}]},\"status\":{\"phase\":"
        "\"Pending\"}}";
    struct js *object = js_parse(text, strlen(text), "pod", NULL);
    cr_assert_eq(pod_project(object, &pod, NULL), 0);
    cr_assert_str_eq(pod.gates, "a/b, c");
    js_free(object);
}

/* The newest pod of an index, refused or evicted by its kubelet. */
static void end_at_once(struct cast *c, int index, const char *reason)
{
    struct pod_view *pod = cast_worker(c, index);
    pod->phase = OP_POD_FAILED;
    pod->created_ms = c->now_ms - 2000;
    text_copy(pod->reason, sizeof pod->reason, reason);
}

Test(operator_start, what_its_kubelet_refuses_again_and_again_is_made_anew_ever_more_slowly)
{
    static const char *const reasons[] = {"OutOfcpu", "Evicted", "UnexpectedAdmissionError", "NodeShutdown"};
    struct cast *c = cast_training("{}");
    int64_t begun = c->now_ms;
    for (int attempt = 1; attempt <= 8; attempt++) {
        end_at_once(c, 1, reasons[attempt % 4]);
        cast_settle(c);
        cr_assert_eq(live_workers(c), 2, "attempt %d rests", attempt);
        struct op_plan *plan = cast_plan(c);
        cr_assert_eq(plan->wake_ms, c->now_ms + (1000 << (attempt - 1)));
        c->now_ms = plan->wake_ms;
        plan_free(plan);
        cast_settle(c);
        cr_assert_eq(c->job.status.workers.slot[1].attempt, attempt + 1, "the same index, not a fresh one");
        cast_pod(c, OP_WORKER, 1, attempt + 1);
        cast_settle(c);
    }
    cr_assert_eq(c->now_ms - begun, 255 * 1000);
    end_at_once(c, 1, "Evicted");
    cast_settle(c);
    cr_assert_str_eq(c->job.status.message,
                     "3 of 3 workers at step 812; worker 1 ended 9 times soon after its "
                     "start, the next attempt waits");
    cr_assert_eq(c->job.status.restarts.failure, 0);
    cast_free(c);
}

Test(operator_start, one_that_ran_a_while_is_replaced_at_once_and_its_row_is_over)
{
    struct cast *c = cast_training("{}");
    c->job.status.workers.slot[1].quick = 5;
    c->job.status.workers.slot[1].quick_ms = CAST_NOW - 120000;
    end_at_once(c, 1, "Evicted");
    cast_worker(c, 1)->created_ms = CAST_NOW - 60000;
    cast_settle(c);
    cr_assert_eq(c->job.status.workers.slot[1].attempt, 2);
    cr_assert_eq(c->job.status.workers.slot[1].state, OP_SLOT_WANTED);
    cr_assert_eq(c->job.status.workers.slot[1].quick, 0);
    cast_free(c);
}

Test(operator_start, one_that_rests_keeps_nobody_else_waiting)
{
    struct cast *c = cast_training("{}");
    c->job.status.workers.slot[0].quick = 6;
    c->job.status.workers.slot[0].quick_ms = CAST_NOW;
    end_at_once(c, 0, "OutOfcpu");
    cast_worker(c, 1)->deletion_ms = CAST_NOW + 120000;
    cast_settle(c);
    cr_assert_eq(c->job.status.workers.slot[0].state, OP_SLOT_ENDED);
    cr_assert_eq(c->job.status.workers.slot[3].state, OP_SLOT_WANTED, "for worker 1, and not for worker 0");
    cr_assert_eq(live_workers(c), 2);
    cast_free(c);
}

Test(operator_start, a_coordinator_that_is_evicted_at_once_is_followed_ever_more_slowly)
{
    struct cast *c = cast_training("{}");
    for (int term = 1; term <= 4; term++) {
        struct pod_view *pod = &c->pod[c->pods_count - 1];
        pod = term == 1 ? &c->pod[0] : pod;
        pod->phase = OP_POD_FAILED;
        pod->created_ms = c->now_ms - 1000;
        text_copy(pod->reason, sizeof pod->reason, "Evicted");
        cast_settle(c);
        cr_assert_eq(c->job.status.ring.coordinator.state, OP_SLOT_ENDED);
        c->now_ms += (1000 << (term - 1));
        cast_settle(c);
        cr_assert_eq(c->job.status.ring.coordinator.attempt, term + 1);
        cast_pod(c, OP_COORDINATOR, -1, term + 1);
        cast_settle(c);
    }
    cast_free(c);
}

Test(operator_start, a_pod_whose_volumes_or_network_do_not_come_is_told_with_where_to_look)
{
    struct pod_view told;
    static const char text[] = CAST_POD_BEGINS
        "},\"status\":{\"phase\":\"Pending\",\"startTime\":\"2026-01-01T00:00:00Z\",\"conditions\":[{"
        "\"type\":"
        "\"PodReadyToStartContainers\",\"status\":\"False\"}],\"containerStatuses\":[{\"name\":\"trainer\","
        "\"state\":{\"waiting\":{\"reason\":\"ContainerCreating\"}}}]}}";
    struct js *object = js_parse(text, strlen(text), "pod", NULL);
    cr_assert_eq(pod_project(object, &told, NULL), 0);
    js_free(object);
    struct cast *c = cast_training("{}");
    c->coordinator.ring_size = 0;
    c->coordinator.state = STATUS_GATHERING;
    struct pod_view *pod = cast_worker(c, 0);
    pod->phase = told.phase;
    pod->ready = false;
    pod->unprepared = told.unprepared;
    pod->taken_ms = CAST_NOW - 59000;
    text_copy(pod->waiting, sizeof pod->waiting, told.waiting);
    cast_settle(c);
    cr_assert_str_eq(c->job.status.state, "Starting", "that takes a moment");
    c->now_ms += 1000;
    cast_settle(c);
    cr_assert(strstr(c->job.status.message,
                     "the pod network is not ready on node-0: kubectl describe pod tiny-w0-"),
              "%s", c->job.status.message);
    cr_assert_str_eq(c->job.status.condition[OP_PODS_READY].reason, "NotPrepared");
    cr_assert(told.taken_ms && told.unprepared);
    cast_free(c);
}

/* Whoever deleted the Secret that the job began with has it go on, so, and whoever copied it knows nothing
 * more. */
Test(operator_start, a_job_that_was_suspended_goes_on_with_a_key_of_its_own)
{
    struct cast *c = cast_training("{}");
    char before[OP_NAME_MAX];
    text_copy(before, sizeof before, c->job.status.ring.key);
    c->job.suspend = true;
    cast_settle(c);
    c->pods_count = 0;
    cast_settle(c);
    cast_settle(c);
    cr_assert(condition_is(&c->job.status, OP_SUSPENDED));
    cr_assert_not(cast_says(c, "create secrets"));
    c->job.suspend = false;
    cr_assert(cast_says(c, "create secrets tiny-key-"));
    cr_assert_not(cast_says(c, "create pods"));
    cast_settle(c);
    cast_settle(c);
    cr_assert(cast_says(c, "term 2 is wanted"));
    cr_assert(*c->job.status.ring.key && strcmp(c->job.status.ring.key, before) != 0, "%s, before %s",
              c->job.status.ring.key, before);
    cast_settle(c);
    cr_assert_not(cast_says(c, "create secrets"));
    cast_free(c);
}
