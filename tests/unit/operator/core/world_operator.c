#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/wire/json.h"
#include "operator/core/read.h"
#include "world.h"

static int pod_named(const struct world *w, const char *name)
{
    for (int i = 0; i < w->truth.pods_count; i++)
        if (w->truth.pod[i].exists && !strcmp(w->truth.pod[i].view.name, name))
            return i;
    return -1;
}

/* But for those that were told to go, and may be anywhere: of these none is to come back. */
static bool is_empty(const struct world *w)
{
    for (int i = 0; i < w->truth.pods_count; i++) {
        const struct pod_view *pod = &w->truth.pod[i].view;
        if (w->truth.pod[i].exists && !pod_is_over(pod) && !pod->deletion_ms)
            return false;
    }
    return true;
}

/* All programs of a job that meet, of whatever operator, have one key, and it is there before them. */
static void check_key(struct world *w, const struct js *body)
{
    const char *key = NULL;
    bool made = false;
    const struct js *volumes = read_at(body, "spec.volumes");
    for (size_t i = 0; i < js_size(volumes); i++)
        if (read_at(js_at(volumes, i), "secret.secretName"))
            key = js_as_string(read_at(js_at(volumes, i), "secret.secretName"));
    for (int i = 0; i < w->secrets_count; i++)
        made = made || !strcmp(w->secret[i], key ? key : "");
    if (key && (!*w->key || is_empty(w)))
        text_copy(w->key, sizeof w->key, key);
    if (!made || strcmp(w->key, key) != 0)
        snprintf(w->wrong, sizeof w->wrong, "a pod has the key %.60s, others %.60s; it is %s", key, w->key,
                 made ? "there" : "not there");
}

/* What it requires of a node says by name which ones it is not to be put on. */
static void note_barred(const struct js *body, struct world_pod *pod)
{
    char name[OP_NODE_MAX];
    struct str text = str_init(1 << 16);
    const struct js *required =
        read_at(body, "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution");
    if (required)
        js_print(required, &text);
    for (int i = 0; i < WORLD_NODES; i++) {
        snprintf(name, sizeof name, "\"node-%d\"", i);
        pod->barred[i] = strstr(str_text(&text), name) != NULL;
    }
    str_clear(&text);
}

static int create_pod(struct world *w, const struct op_action *action)
{
    struct error err = {0};
    if (pod_named(w, action->name) >= 0)
        return 409;
    struct js *body = js_parse(str_text(&action->body), action->body.length, "pod", &err);
    int i = w->truth.pods_count++;
    if (i == WORLD_PODS || !body)
        abort();
    char uid[OP_UID_MAX];
    snprintf(uid, sizeof uid, "pod-%d", i);
    js_set_string((struct js *)(uintptr_t)js_get(body, "metadata"), "uid", uid);
    struct world_pod *pod = &w->truth.pod[i];
    if (pod_project(body, &pod->view, &err) < 0 || strcmp(pod->view.owner, "tiny") != 0 ||
        strcmp(pod->view.owner_uid, "job-uid") != 0)
        snprintf(w->wrong, sizeof w->wrong, "a pod that nobody would find: %.200s", err.text);
    check_key(w, body);
    if (w->single)
        note_barred(body, pod);
    js_free(body);
    pod->exists = true;
    pod->view.created_ms = w->now_ms;
    w->creates++;
    world_note(w, CHANGE_POD, i);
    world_check(w);
    return 0;
}

static int delete_pod(struct world *w, const struct op_action *action)
{
    int i = pod_named(w, action->name);
    if (i < 0)
        return 404;
    struct world_pod *pod = &w->truth.pod[i];
    if (strcmp(pod->view.uid, action->uid) != 0)
        return 409;
    w->deletes++;
    if (!*pod->view.node || pod_is_spent(&pod->view))
        pod->exists = false; /* nothing runs: gone at once */
    else if (!pod->view.deletion_ms)
        pod->view.deletion_ms = w->now_ms + 120000;
    world_note(w, CHANGE_POD, i);
    return 0;
}

static int put_status(struct world *w, const struct op_action *action)
{
    char version[OP_VERSION_MAX] = "";
    struct world_job *job = &w->truth.job;
    struct error err = {0};
    struct js *body = js_parse(str_text(&action->body), action->body.length, "status", &err);
    if (!body)
        abort();
    read_text(body, "metadata.resourceVersion", version, sizeof version);
    if (!job->exists || strtol(version, NULL, 10) != job->revision) {
        js_free(body);
        w->conflicts++;
        return job->exists ? 409 : 404;
    }
    struct str text = str_init(sizeof job->status - 1);
    js_print(js_get(body, "status"), &text);
    js_free(body);
    if (text.truncated)
        abort();
    text_copy(job->status, sizeof job->status, str_text(&text));
    str_clear(&text);
    job->revision++;
    w->status_writes++;
    world_note(w, CHANGE_JOB, 0);
    return 0;
}

int world_do(struct world *w, const struct op_action *action)
{
    if (action->kind == OP_STATUS)
        return put_status(w, action);
    if (action->kind == OP_DELETE)
        return delete_pod(w, action);
    if (!w->truth.job.exists && action->kind == OP_CREATE)
        return 404; /* the collector would take it at once */
    if (action->kind == OP_CREATE && action->resource == OP_PODS)
        return create_pod(w, action);
    if (action->resource == OP_SECRETS) {
        if (w->secrets_count == WORLD_SECRETS)
            abort();
        text_copy(w->secret[w->secrets_count++], OP_NAME_MAX, action->name);
    }
    return 0;
}

/* Up to a place in the log, for one kind. */
static void follow(struct world *w, struct process *o, int kind, int until)
{
    for (; o->seen[kind] < until; o->seen[kind]++)
        if ((int)w->log[o->seen[kind]]->kind == kind)
            world_take(&o->cache, w->log[o->seen[kind]]);
}

void process_catch_up(struct world *w, struct process *o, bool all)
{
    for (int kind = 0; kind < 3; kind++) {
        int behind = w->log_count - o->seen[kind];
        int some = behind ? (int)world_draw(w, (uint64_t)behind + 1) : 0;
        follow(w, o, kind, all ? w->log_count : o->seen[kind] + some);
    }
}

/* Of all that a list tells only the last word of each thing counts; pods are never fewer than before. */
static void list(const struct world_truth *told, struct world_truth *cache)
{
    cache->job = told->job;
    cache->pods_count = told->pods_count;
    memcpy(cache->pod, told->pod, (size_t)told->pods_count * sizeof *cache->pod);
    memcpy(cache->node, told->node, sizeof cache->node);
}

void process_start(struct world *w, struct process *o)
{
    list(&w->told, &o->cache);
    for (int kind = 0; kind < 3; kind++) {
        world_draw(w, (uint64_t)w->log_count + 1); /* as where it catches up: a seed stays what it is */
        o->seen[kind] = w->log_count;
    }
    o->memo = (struct op_memo){0};
    o->silence = (struct op_silence){0};
    o->silent_term = 0;
    o->expect_until_ms = 0;
    o->expect_log = 0;
}

void process_end(struct process *o)
{
    plan_free(o->late);
    free(o);
}

void process_late_writes(struct world *w, struct process *o)
{
    if (!o->late || o->late_turns-- > 0)
        return;
    for (int i = o->late_from; i < o->late->actions_count; i++)
        world_do(w, &o->late->action[i]);
    plan_free(o->late);
    o->late = NULL;
}

static const char trainer[] =
    "\"trainer\":{\"model\":{\"layers\":1,\"heads\":1,\"width\":8,\"context\":8},\"data\":{\"uri\":"
    "\"s3://a/b\"},\"steps\":9},\"checkpoint\":{\"uri\":\"s3://a/c\"}";
static const char spot[] = "\"spot\":{\"prefer\":true,\"onDemandBase\":1,\"onDemandFallback\":{"
                           "\"afterInterruptions\":2,\"within\":\"5m\",\"until\":\"5m\"}},";
static const char cost[] = "\"cost\":{\"idleAfter\":\"30s\"},";
static const char launch[] = "\"launch\":{\"command\":[\"train\"],\"mode\":\"Restart\"}";
static const char elastic[] = "\"launch\":{\"command\":[\"train\"],\"mode\":\"Elastic\",\"steps\":9},"
                              "\"checkpoint\":{\"uri\":\"s3://a/c\"}";

static void project(const struct world *w, const struct world_job *job, struct job_view *ret)
{
    struct str text = str_init(1 << 20);
    struct error err = {0};
    str_addf(&text,
             "{\"metadata\":{\"name\":\"tiny\",\"namespace\":\"ml\",\"uid\":\"job-uid\",\"generation\":%lld,"
             "\"resourceVersion\":\"%d\"},\"spec\":{%s%s\"suspend\":%s,\"workers\":{\"target\":%d,\"min\":%d,"
             "\"max\":%d,\"template\":{\"spec\":{\"containers\":[{\"name\":\"trainer\",\"image\":\"a\"}]}}},"
             "%s,\"failurePolicy\":{\"maxRestarts\":1000}},\"status\":%s}",
             (long long)job->generation, job->revision, w->spot ? spot : "", w->idles ? cost : "",
             job->suspend ? "true" : "false", job->target, job->min, job->max,
             w->launched  ? launch
             : w->elastic ? elastic
                          : trainer,
             job->status);
    struct js *object = js_parse(str_text(&text), text.length, "job", &err);
    if (!object || job_project(object, ret, &err) < 0)
        abort();
    js_free(object);
    str_clear(&text);
}

static const struct node_view *find_node(void *nodes, const char *name)
{
    const struct world_node *node = nodes;
    for (int i = 0; i < WORLD_NODES; i++)
        if (node[i].exists && !strcmp(node[i].view.name, name))
            return &node[i].view;
    return NULL;
}

static void hash(const void *bytes, size_t length, uint8_t out[RM_HASH_BYTES])
{
    (void)bytes;
    memset(out, (int)(length % 256), RM_HASH_BYTES);
}

static void draw_name(struct world *w, char out[OP_CHANCE_TEXT])
{
    uint8_t random[OP_CHANCE_TEXT - 1] = {0};
    uint64_t number = ++w->chance;
    memcpy(random, &number, sizeof number);
    name_chance(random, out);
}

/* As the one who asks would find it. */
static void note_silence(const struct world *w, struct process *o, int term, bool answers)
{
    if (answers || o->silent_term != term)
        o->silence = (struct op_silence){0};
    if (!answers)
        silence_note(&o->silence, w->now_ms, w->now_ms, "no answer");
    o->silent_term = term;
}

static struct op_plan *make_plan(struct world *w, struct process *o, const struct job_view *job)
{
    const struct pod_view *pods[WORLD_PODS];
    char chance[OP_CHANCE_TEXT];
    draw_name(w, chance);
    struct coordinator_view *view = calloc(1, sizeof *view);
    struct op_view s = {.job = job,
                        .pods = pods,
                        .node = find_node,
                        .nodes = o->cache.node,
                        .nodes_known = true,
                        .memo = &o->memo,
                        .now_ms = w->now_ms,
                        .chance = chance,
                        .sha256 = hash,
                        .settings = {.worker_image = "ours:1", .operator_namespace = "rm"}};
    for (int i = 0; i < o->cache.pods_count; i++)
        if (o->cache.pod[i].exists)
            pods[s.pods_count++] = &o->cache.pod[i].view;
    if (world_view(w, job->status.ring.coordinator.attempt, view))
        s.coordinator = view;
    s.answered_ms = w->now_ms - (s.coordinator ? 0 : 12000);
    s.in_vain_ms = s.coordinator ? 0 : w->now_ms - 12000;
    note_silence(w, o, job->status.ring.coordinator.attempt, s.coordinator != NULL);
    s.silence = &o->silence;
    struct op_plan *plan = job_plan(&s);
    free(view);
    return plan;
}

void process_reconcile(struct world *w, struct process *o, int die_before, bool replaced)
{
    struct job_view job;
    if (!o->cache.job.exists)
        return;
    project(w, &o->cache.job, &job);
    struct op_plan *plan = make_plan(w, o, &job);
    op_memo_metered(&o->memo, &job, plan);
    if (*plan->poll_ip)
        text_copy(w->relief, sizeof w->relief, plan->relief);
    w->told_will += *plan->poll_ip && strstr(plan->relief, "&will=");
    int done = 0, code = 0;
    for (; done < plan->actions_count && done != die_before && (code == 0 || code == 409 || code == 404);
         done++) {
        if (plan->change == OP_TICKING && plan->action[done].kind == OP_STATUS && world_draw(w, 4))
            continue; /* its turn has not come */
        code = world_do(w, &plan->action[done]);
        if (code == 0 || (code == 409 && plan->action[done].kind == OP_CREATE))
            op_memo_done(&o->memo, &job, &plan->action[done]);
    }
    for (int i = 0; i < plan->events_count; i++) {
        w->fell += !strcmp(plan->event[i].reason, "FellBack");
        w->idled += !strcmp(plan->event[i].reason, "Idle");
        if (w->lies)
            world_check_relieved(w, &plan->event[i]);
    }
    op_memo_told(&o->memo, plan);
    o->expect_log = w->log_count;
    o->expect_until_ms = w->now_ms + 30000;
    job_clear(&job);
    if (replaced && !o->late && done == die_before) {
        o->late = plan;
        o->late_from = done;
        o->late_turns = (int)world_draw(w, 4);
    } else
        plan_free(plan);
}
