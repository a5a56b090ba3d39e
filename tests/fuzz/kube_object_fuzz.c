/* Objects of the API server: a job, then its pods and nodes, then its coordinator's answer, cut at lines
 * "%%". Whatever they hold, a plan is made of them; the same one twice; and its writes are names and JSON
 * that a server would take. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/wire/json.h"
#include "operator/core/plan.h"
#include "tests/fuzz/fuzz.h"

enum { PARTS = 12, PODS = 8, NODES = 8, TEXT_MAX = 8 << 20 };

struct cluster {
    struct job_view job;
    struct pod_view pod[PODS];
    const struct pod_view *pods[PODS];
    struct node_view node[NODES];
    int pods_count, nodes_count;
    struct coordinator_view coordinator;
    bool answers;
    struct op_memo memo;
};

static const struct node_view *node_of(void *ctx, const char *name)
{
    struct cluster *cluster = ctx;
    for (int i = 0; i < cluster->nodes_count; i++)
        if (!strcmp(cluster->node[i].name, name))
            return &cluster->node[i];
    return NULL;
}

static struct js *parse(const struct fuzz_part *part)
{
    struct error err = {0};
    char *text = fuzz_text(part->data, part->size);
    struct js *object = js_parse_foreign(text, part->size, "object", &err);
    free(text);
    return object;
}

/* A pod or a node, told apart by who takes it. Pods are given to the job, as the cache would. */
static void add_object(struct cluster *cluster, const struct js *object)
{
    struct error err = {0};
    struct pod_view *pod = &cluster->pod[cluster->pods_count < PODS ? cluster->pods_count : 0];
    struct node_view *node = &cluster->node[cluster->nodes_count < NODES ? cluster->nodes_count : 0];
    if (cluster->pods_count < PODS && pod_project(object, pod, &err) == 0)
        cluster->pods[cluster->pods_count++] = pod;
    else if (cluster->nodes_count < NODES && node_project(object, node, &err) == 0)
        cluster->nodes_count++;
}

static void add_answer(struct cluster *cluster, const struct fuzz_part *part)
{
    struct error err = {0};
    char *text = fuzz_text(part->data, part->size);
    cluster->answers = coordinator_read(text, part->size, &cluster->coordinator, &err) == 0;
    free(text);
}

static struct op_plan *plan_of(struct cluster *cluster)
{
    struct op_view view = {
        .job = &cluster->job,
        .pods = cluster->pods,
        .pods_count = cluster->pods_count,
        .node = node_of,
        .nodes = cluster,
        .nodes_known = cluster->nodes_count > 0,
        .coordinator = cluster->answers ? &cluster->coordinator : NULL,
        .answered_ms = cluster->answers ? 1790000000000 : 0,
        .memo = &cluster->memo,
        .chance = "chancechancechan",
        .now_ms = 1790000001000,
        .settings = {.worker_image = "worker", .operator_namespace = "system", .network_policies = true},
    };
    return job_plan(&view);
}

static void check_action(const struct op_action *action)
{
    struct error err = {0};
    if (!action->name[0] || strnlen(action->name, sizeof action->name) == sizeof action->name)
        fuzz_broken("a write has a name that ends within its room");
    if (action->body.truncated)
        fuzz_broken("a body is whole");
    if (action->kind == OP_DELETE && !action->uid[0])
        fuzz_broken("a delete names the uid");
    if (action->kind == OP_DELETE)
        return;
    struct js *body = js_parse(str_text(&action->body), action->body.length, "body", &err);
    if (!body)
        fuzz_broken(err.text);
    js_free(body);
}

static void check_plan(struct cluster *cluster)
{
    struct op_plan *plan = plan_of(cluster), *again = plan_of(cluster);
    struct str first = str_init(TEXT_MAX), second = str_init(TEXT_MAX);
    for (int i = 0; i < plan->actions_count; i++)
        check_action(&plan->action[i]);
    plan_print(plan, true, &first);
    plan_print(again, true, &second);
    fuzz_same(&first, &second, "the same view leads to the same plan");
    str_clear(&first);
    str_clear(&second);
    plan_free(plan);
    plan_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_part part[PARTS];
    int parts = fuzz_split(data, size, part, PARTS);
    struct cluster *cluster = calloc(1, sizeof *cluster);
    struct error err = {0};
    if (!cluster)
        fuzz_broken("no memory");
    struct js *job = parse(&part[0]);
    for (int i = 1; i < parts; i++) {
        struct js *object = parse(&part[i]);
        if (object)
            add_object(cluster, object);
        js_free(object);
    }
    if (parts > 1)
        add_answer(cluster, &part[parts - 1]);
    if (job && job_project(job, &cluster->job, &err) == 0)
        check_plan(cluster);
    else if (job)
        fuzz_refused(&err);
    job_clear(&cluster->job);
    js_free(job);
    free(cluster);
    return 0;
}
