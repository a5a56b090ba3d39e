/* spot.onDemandBase: so many workers are on machines that nobody takes away. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "cast.h"
#include "operator/core/pod.h"

#define LABEL "\"ringmaster.dev/capacity\":\"on-demand\""
#define NO_SPOT                                                                                              \
    "{\"key\":\"eks.amazonaws.com/capacityType\",\"operator\":\"NotIn\",\"values\":[\"SPOT\"]},"             \
    "{\"key\":\"karpenter.sh/capacity-type\",\"operator\":\"NotIn\",\"values\":[\"spot\"]},"                 \
    "{\"key\":\"cloud.google.com/gke-spot\",\"operator\":\"NotIn\",\"values\":[\"true\"]},"                  \
    "{\"key\":\"kubernetes.azure.com/scalesetpriority\",\"operator\":\"NotIn\",\"values\":[\"spot\"]}]"

static const struct op_settings settings = {.worker_image = "w", .operator_namespace = ""};

static struct op_slot *slot(struct cast *c, int index)
{
    return &c->job.status.workers.slot[index];
}

/* Of the workers' pods that the next plan makes: a bit for each index, set for those of the base. */
static unsigned made(struct cast *c, unsigned *ret_base)
{
    unsigned all = 0;
    struct op_plan *plan = cast_plan(c);
    *ret_base = 0;
    for (int i = 0; i < plan->actions_count; i++) {
        const struct op_action *a = &plan->action[i];
        if (a->kind != OP_CREATE || a->resource != OP_PODS)
            continue;
        for (int w = 0; w < 8; w++) {
            char label[64];
            snprintf(label, sizeof label, "\"ringmaster.dev/worker\":\"%d\"", w);
            if (!strstr(str_text(&a->body), label))
                continue;
            bool labelled = strstr(str_text(&a->body), LABEL) != NULL;
            cr_assert_eq(strstr(str_text(&a->body), NO_SPOT) != NULL, labelled,
                         "its label says what it requires");
            all |= 1u << w;
            *ret_base |= (unsigned)labelled << w;
        }
    }
    plan_free(plan);
    return all;
}

static void replaces(struct cast *c, int index)
{
    cast_worker(c, index)->deletion_ms = CAST_NOW + 30000;
    cast_settle(c);
}

Test(operator_base, so_many_of_the_first_workers_go_to_no_spot_machine_and_the_others_prefer_one)
{
    struct cast *c = cast_open("{\"spot\":{\"prefer\":true,\"onDemandBase\":2}}");
    unsigned base;
    text_copy(c->job.status.ring.key, sizeof c->job.status.ring.key, "tiny-key-0123456789abcdef");
    c->memo.dry_generation = c->job.generation;
    cast_settle(c);
    cr_assert_eq(made(c, &base), 7);
    cr_assert_eq(base, 3, "of three the first two: %x", base);
    cast_free(c);
}

Test(operator_base, who_follows_one_of_them_is_one_and_who_follows_another_is_none)
{
    struct cast *c = cast_training("{\"spot\":{\"onDemandBase\":1}}");
    unsigned base;
    cast_worker(c, 0)->base = true;
    replaces(c, 1);
    cr_assert_eq(made(c, &base), 8);
    cr_assert_eq(base, 0, "there is one");
    replaces(c, 0);
    cr_assert_eq(made(c, &base), 8 + 16, "both are made");
    cr_assert_eq(base, 8, "one of the two takes its place");
    cast_free(c);
}

Test(operator_base, the_replacement_of_one_on_a_machine_that_may_go_is_one)
{
    struct cast *c = cast_training("{\"spot\":{\"onDemandBase\":1}}");
    unsigned base;
    cast_worker(c, 0)->base = true;
    text_copy(c->node[0].may_leave, sizeof c->node[0].may_leave, "is cordoned");
    cast_settle(c);
    cr_assert_eq(made(c, &base), 8);
    cr_assert_eq(base, 8);
    cast_free(c);
}

Test(operator_base, when_there_are_fewer_places_they_stay)
{
    struct cast *c = cast_training("{\"spot\":{\"onDemandBase\":1}}");
    cast_worker(c, 2)->base = true;
    cast_worker(c, 2)->deletion_cost = -100;
    c->job.workers_target = 2;
    cast_settle(c);
    cr_assert_eq(slot(c, 2)->state, OP_SLOT_PRESENT);
    cr_assert_eq(slot(c, 1)->state, OP_SLOT_ENDED);
    cast_free(c);
}

static struct str body(const struct job_view *job, bool base)
{
    struct str text = str_init(OP_POD_TEXT_MAX);
    struct error err = {0};
    struct op_elsewhere elsewhere = {.base = base};
    cr_assert_eq(pod_worker(job, &settings, &elsewhere, 0, 1, &text, &err), 0, "%s", err.text);
    return text;
}

Test(operator_base, a_templates_own_requirements_stay_beside)
{
    struct cast *c = cast_open(
        "{\"spot\":{\"onDemandBase\":1},\"workers\":{\"template\":{\"metadata\":{\"labels\":{" LABEL "}},"
        "\"spec\":{\"containers\":[{\"name\":\"trainer\",\"image\":\"i\"}],\"affinity\":{\"nodeAffinity\":{"
        "\"requiredDuringSchedulingIgnoredDuringExecution\":{\"nodeSelectorTerms\":[{\"matchExpressions\":["
        "{\"key\":\"a\",\"operator\":\"Exists\"}]}]}}}}}}}");
    struct str one = body(&c->job, true), other = body(&c->job, false);
    cr_assert(strstr(str_text(&one), "{\"key\":\"a\",\"operator\":\"Exists\"}," NO_SPOT), "%s",
              str_text(&one));
    cr_assert_not(strstr(str_text(&other), "NotIn"), "%s", str_text(&other));
    cr_assert_not(strstr(str_text(&other), LABEL), "the label is ours to give: %s", str_text(&other));
    str_clear(&one);
    str_clear(&other);
    cast_free(c);
}

Test(operator_base, a_template_that_asks_for_spot_machines_alone_is_refused_with_what_to_do)
{
    struct cast *c =
        cast_open("{\"spot\":{\"onDemandBase\":1},\"workers\":{\"template\":{\"spec\":{\"nodeSelector\":{"
                  "\"cloud.google.com/"
                  "gke-spot\":\"true\"},\"containers\":[{\"name\":\"trainer\",\"image\":\"i\"}]}}}}");
    struct str text = str_init(OP_POD_TEXT_MAX);
    struct error err = {0};
    cr_assert_lt(pod_worker(&c->job, &settings, NULL, 0, 1, &text, &err), 0);
    cr_assert_str_eq(err.text, "spec.workers.template: its nodeSelector asks for spot machines "
                               "(cloud.google.com/gke-spot) and spec.spot.onDemandBase is 1; take one of the "
                               "two out");
    c->job.on_demand_base = 0;
    cr_assert_eq(pod_worker(&c->job, &settings, NULL, 0, 1, &text, &err), 0, "%s", err.text);
    str_clear(&text);
    cast_free(c);
}
