#include "cast.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/os/crypto.h"
#include "common/os/file.h"
#include "common/wire/json.h"
#include "operator/core/read.h"

struct str slurp(const char *path)
{
    struct str text = str_init(1 << 20);
    struct error err = {0};
    cr_assert_eq(file_read(path, &text, &err), 0, "%s", err.text);
    return text;
}

void golden(const char *name, const char *text)
{
    char path[512], got[512];
    snprintf(path, sizeof path, RM_SOURCE "/tests/unit/operator/core/golden/%s", name);
    snprintf(got, sizeof got, RM_BINARY "/%s.got", name);
    FILE *file = fopen(got, "w");
    cr_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
    struct str wanted = slurp(path);
    cr_assert_str_eq(str_text(&wanted), text, "%s is not as golden: diff %s %s", name, path, got);
    remove(got);
    str_clear(&wanted);
}

static void merge(struct js *into, const struct js *from)
{
    for (void *it = js_first(from); it; it = js_next(from, it)) {
        const struct js *old = js_get(into, js_key(it));
        if (old && js_kind(old) == JS_OBJECT && js_kind(js_value(it)) == JS_OBJECT)
            merge((struct js *)(uintptr_t)old, js_value(it));
        else
            js_set(into, js_key(it), js_copy(js_value(it)));
    }
}

struct cast *cast_open(const char *changes)
{
    struct cast *c = calloc(1, sizeof *c);
    struct str text = slurp(RM_SOURCE "/tests/unit/operator/core/golden/job.json");
    struct error err = {0};
    struct js *object = js_parse(str_text(&text), text.length, "job.json", &err);
    struct js *more = js_parse(changes, strlen(changes), "changes", &err);
    cr_assert(object && more, "%s", err.text);
    merge((struct js *)(uintptr_t)js_get(object, "spec"), more);
    cr_assert_eq(job_project(object, &c->job, &err), 0, "%s", err.text);
    js_free(object);
    js_free(more);
    str_clear(&text);
    c->now_ms = CAST_NOW;
    c->nodes_known = true;
    for (int i = 0; i < CAST_NODES; i++) {
        snprintf(c->node[i].name, OP_NODE_MAX, "node-%d", i);
        c->node[i].ready = true;
    }
    return c;
}

void cast_free(struct cast *c)
{
    job_clear(&c->job);
    prices_clear(&c->prices);
    free(c);
}

struct pod_view *cast_pod(struct cast *c, enum pod_role role, int index, int attempt)
{
    cr_assert_lt(c->pods_count, CAST_PODS);
    struct pod_view *pod = &c->pod[c->pods_count];
    c->pods[c->pods_count++] = pod;
    *pod = (struct pod_view){.role = role,
                             .index = index,
                             .attempt = attempt,
                             .phase = OP_RUNNING,
                             .ready = true,
                             .created_ms = CAST_NOW - 60000};
    if (role == OP_WORKER)
        name_worker(c->job.name, c->job.uid, index, attempt, pod->name);
    else
        name_coordinator(c->job.name, c->job.uid, attempt, pod->name);
    snprintf(pod->uid, sizeof pod->uid, "uid-%d", c->pods_count);
    snprintf(pod->ip, sizeof pod->ip, "10.244.0.%d", c->pods_count);
    snprintf(pod->node, sizeof pod->node, "node-%d", index < 0 ? 0 : index % CAST_NODES);
    text_copy(pod->owner, sizeof pod->owner, c->job.name);
    text_copy(pod->owner_uid, sizeof pod->owner_uid, c->job.uid);
    return pod;
}

struct pod_view *cast_worker(struct cast *c, int index)
{
    struct pod_view *found = NULL;
    for (int i = 0; i < c->pods_count; i++)
        if (c->pod[i].role == OP_WORKER && c->pod[i].index == index &&
            (!found || c->pod[i].attempt > found->attempt))
            found = &c->pod[i];
    return found;
}

void cast_train(struct cast *c)
{
    struct coordinator_view *view = &c->coordinator;
    c->memo = (struct op_memo){.dry_generation = c->job.generation};
    text_copy(c->job.status.ring.key, sizeof c->job.status.ring.key, "tiny-key-0123456789abcdef");
    cast_pod(c, OP_COORDINATOR, -1, 1);
    c->job.status.ring.coordinator = (struct op_slot){.state = OP_SLOT_PRESENT, .attempt = 1};
    for (int i = 0; i < c->job.workers_target; i++) {
        cast_pod(c, OP_WORKER, i, 1);
        c->job.status.workers.slot[i] = (struct op_slot){.state = OP_SLOT_PRESENT, .attempt = 1};
        view->member[i] = (struct op_member){.worker = i, .attempt = 1};
        view->worker[i] = (struct op_present){.worker = i, .attempt = 1, .in_ring = true};
    }
    view->ring_size = view->workers_count = c->job.workers_target;
    view->term = 1;
    view->state = STATUS_TRAINING;
    view->progress = (struct op_progress){.known = !c->job.stepless, .step = 812, .steps = 2000};
    name_identity(c->job.name, c->job.uid, view->job);
    c->coordinator_answers = true;
    cast_settle(c);
    cast_settle(c);
}

struct cast *cast_training(const char *changes)
{
    struct cast *c = cast_open(changes);
    cast_train(c);
    return c;
}

static const struct node_view *find(void *nodes, const char *name)
{
    struct node_view *node = nodes;
    for (int i = 0; i < CAST_NODES; i++)
        if (!strcmp(node[i].name, name))
            return &node[i];
    return NULL;
}

struct op_plan *cast_plan(struct cast *c)
{
    struct op_view s = {.job = &c->job,
                        .pods = c->pods,
                        .pods_count = c->pods_count,
                        .node = find,
                        .nodes = c->node,
                        .nodes_known = c->nodes_known,
                        .memo = &c->memo,
                        .trials = &c->trials,
                        .prices = &c->prices,
                        .now_ms = c->now_ms,
                        .chance = "chancechancechan",
                        .sha256 = sha256_once,
                        .settings = {.worker_image = "ours:1",
                                     .operator_namespace = "ringmaster-system",
                                     .network_policies = true,
                                     .process_snapshots = c->snapshots}};
    s.coordinator = c->coordinator_answers ? &c->coordinator : NULL;
    s.answered_ms = c->answered_ms;
    s.in_vain_ms = c->in_vain_ms;
    s.silence = &c->silence;
    s.deaf = c->deaf;
    return job_plan(&s);
}

static void settle(struct cast *c, bool all)
{
    struct error err = {0};
    struct op_plan *plan = cast_plan(c);
    op_memo_metered(&c->memo, &c->job, plan);
    for (int i = 0; i < plan->actions_count; i++) {
        const struct op_action *action = &plan->action[i];
        if (all)
            op_memo_done(&c->memo, &c->job, action);
        if (action->kind != OP_STATUS)
            continue;
        struct js *object = js_parse(str_text(&action->body), action->body.length, "status", &err);
        cr_assert(object, "%s", err.text);
        status_read(js_get(object, "status"), &c->job.status);
        js_free(object);
    }
    op_memo_told(&c->memo, plan);
    plan_free(plan);
}

struct str cast_text(struct cast *c)
{
    struct str text = str_init(1 << 20);
    struct op_plan *plan = cast_plan(c);
    plan_print(plan, false, &text);
    plan_free(plan);
    return text;
}

bool cast_says(struct cast *c, const char *wanted)
{
    struct str text = cast_text(c);
    bool there = strstr(str_text(&text), wanted) != NULL;
    if (!there)
        fprintf(stderr, "no \"%s\" in:\n%s", wanted, str_text(&text));
    str_clear(&text);
    return there;
}

void cast_settle(struct cast *c)
{
    settle(c, true);
}

void cast_settle_status_only(struct cast *c)
{
    settle(c, false);
}

bool plan_has(const struct op_plan *plan, enum op_kind kind, enum op_resource resource)
{
    for (int i = 0; i < plan->actions_count; i++)
        if (plan->action[i].kind == kind && plan->action[i].resource == resource)
            return true;
    return false;
}
