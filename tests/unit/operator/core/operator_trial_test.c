/* A job's first pod is tried before anything is made: whose trial counts for whom, and what comes after it.
 */
#include <criterion/criterion.h>

#include "cast.h"

/* Whether a job of the same cast, with these changes and another name, is tried after the first one was
 * taken. */
static bool is_tried(const char *changes, int64_t later_ms)
{
    struct cast *first = cast_open("{}"), *second = cast_open(changes);
    struct op_plan *plan = cast_plan(first);
    op_trials_note(&second->trials, plan->action[0].trial, CAST_NOW);
    plan_free(plan);
    text_copy(second->job.name, sizeof second->job.name, "other");
    text_copy(second->job.uid, sizeof second->job.uid, "0b5c4e43-65a5-4b4c-8f0e-000000000000");
    second->now_ms = CAST_NOW + later_ms;
    plan = cast_plan(second);
    bool tried = plan_has(plan, OP_DRY_RUN, OP_PODS);
    cr_assert_neq(tried, plan_has(plan, OP_CREATE, OP_SECRETS), "or else it is begun at once");
    plan_free(plan);
    cast_free(first);
    cast_free(second);
    return tried;
}

Test(operator_trial, of_jobs_with_one_template_the_first_stands_trial_for_a_minute)
{
    cr_assert_not(is_tried("{\"trainer\":{\"steps\":77}}", 59000));
    cr_assert(is_tried("{}", 60000));
    cr_assert(is_tried("{\"workers\":{\"template\":{\"spec\":{\"priorityClassName\":\"high\"}}}}", 0));
    cr_assert(is_tried("{\"spot\":{\"prefer\":true}}", 0));
}

Test(operator_trial, a_job_whose_pod_was_on_trial_is_looked_at_again_at_once_for_nobody_else_tells_of_it)
{
    struct cast *c = cast_open("{}");
    struct op_plan *plan = cast_plan(c);
    cr_assert(plan_has(plan, OP_DRY_RUN, OP_PODS));
    cr_assert_eq(plan->change, OP_SAME, "a written status would come back by a watch");
    cr_assert_eq(plan_looks_again_ms(plan), 0);
    plan_free(plan);
    cast_train(c);
    cast_worker(c, 1)->deletion_ms = CAST_NOW + 120000;
    plan = cast_plan(c);
    cr_assert_geq(plan_looks_again_ms(plan), 1000, "a watch tells of what it writes");
    plan_free(plan);
    cast_free(c);
}
