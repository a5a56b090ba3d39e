/* The writes: pods that slots want and have not, pods that nobody wants, and what lies around them. A slot is
 * on record in the stored status before its pod is made. */
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/wire/json.h"
#include "operator/core/objects.h"
#include "operator/core/plan_parts.h"
#include "operator/core/pod.h"

static bool is_wanted(const struct op_slot *slot, const struct pod_view *pod)
{
    return slot_is_live(slot) && slot->attempt == pod->attempt;
}

static const struct op_slot *slot_of(const struct job_status *status, const struct pod_view *pod)
{
    RM_ASSERT(pod->role == OP_COORDINATOR || (pod->index >= 0 && pod->index < RM_WORKERS_MAX),
              "pod %s is of worker %d", pod->name, pod->index);
    return pod->role == OP_COORDINATOR ? &status->ring.coordinator : &status->workers.slot[pod->index];
}

/* The newest pod that failed under its index stays for its log, until its job ends; but not one in which
 * something runs on, and holds what the job or others could use. */
static bool is_kept(const struct planner *p, const struct pod_view *pod)
{
    RM_ASSERT(pod_is_over(pod), "pod %s is kept, and not over", pod->name);
    if (!pod_is_failed(pod) || !pod_is_spent(pod))
        return false;
    for (int i = 0; i < p->s->pods_count; i++) {
        const struct pod_view *other = p->s->pods[i];
        if (other->role == pod->role && other->index == pod->index && other->attempt > pod->attempt &&
            pod_is_failed(other))
            return false;
    }
    return true;
}

/* Says why this pod of a running job should go; NULL: it stays. */
static const char *excess(struct planner *p, const struct pod_view *pod)
{
    const struct op_slot *stored = slot_of(p->stored, pod);
    RM_ASSERT(!condition_is(p->stored, OP_FINISHED), "pod %s is one too many of a job that is over",
              pod->name);
    if (is_wanted(stored, pod))
        return NULL;
    if (!pod_is_over(pod)) {
        if (stored->attempt < pod->attempt)
            return NULL; /* our own write of the status has not come back yet */
        return pod->role == OP_WORKER ? "this worker has to go" : "this coordinator's term is over";
    }
    if (is_kept(p, pod))
        return NULL;
    int64_t until = pod->ended_ms + OP_RELEASE_PATIENCE_MS;
    bool waits = pod_is_spent(pod) || account_is_done(pod);
    if (stored->attempt == pod->attempt && waits && p->s->now_ms < until) {
        plan_wake(p, until);
        return NULL; /* that it was released says that the job is about to end */
    }
    return "it is over and counted";
}

/* Says the same of a finished job's. */
static const char *remains(struct planner *p, const struct pod_view *pod)
{
    int64_t until = p->stored->completion_ms + OP_CLEAN_PATIENCE_MS;
    RM_ASSERT(condition_is(p->stored, OP_FINISHED), "pod %s remains of a job that goes on", pod->name);
    if (p->job->clean == OP_CLEAN_NONE || (p->job->clean == OP_CLEAN_RUNNING && pod_is_spent(pod)))
        return NULL;
    if (p->s->now_ms < until) {
        plan_wake(p, until);
        return NULL;
    }
    return p->job->clean == OP_CLEAN_ALL ? "cleanPodPolicy is All" : "the job is over and this pod is not";
}

static void delete_pods(struct planner *p)
{
    bool done = condition_is(p->stored, OP_FINISHED);
    for (int i = 0; i < p->s->pods_count; i++) {
        const struct pod_view *pod = p->s->pods[i];
        if (pod->deletion_ms)
            continue;
        const char *why = done ? remains(p, pod) : excess(p, pod);
        if (!why)
            continue;
        struct op_action *action = plan_add(p, OP_DELETE, OP_PODS, pod->name, "%s", why);
        if (action)
            text_copy(action->uid, sizeof action->uid, pod->uid);
    }
}

/* Before anything that names it stands in the status, so that nobody can lay one there in advance. */
static void create_key(struct planner *p)
{
    char name[OP_NAME_MAX];
    if (!p->wants_key)
        return;
    RM_ASSERT(p->mode == OP_HOLD, "a key for a job that runs (mode %s)", plan_mode_name(p));
    name_key(p->job->name, p->s->chance, name);
    struct op_action *action =
        plan_add(p, OP_CREATE, OP_SECRETS, name, "the job's programs know each other by it");
    if (!action)
        return;
    action->wants_key = true;
    object_key(p->job, name, &action->body);
}

/* What the coordinator that is about to be made is to do. */
static void effective_spec(const struct planner *p, struct str *text, struct op_spec *ret)
{
    uint8_t sha256[RM_HASH_BYTES];
    job_effective_spec(p->job, text, NULL); /* is_admitted has made the same text before */
    p->s->sha256(str_text(text), text->length, sha256);
    hex_encode(sha256, sizeof sha256, ret->sha256);
    ret->text = str_text(text);
}

/* Nothing of this job was made yet, as far as its status tells. */
static bool is_beginning(const struct planner *p)
{
    const struct op_slot *slot = &p->stored->ring.coordinator;
    return slot->state == OP_SLOT_WANTED && slot->attempt == 1;
}

/* Beside its labels: by it an operator that comes knows what it need not apply. It is not part of the hash.
 */
static void annotate(struct str *body, uint64_t hash)
{
    static const char place[] = "\"metadata\":{";
    const char *text = str_text(body), *found = strstr(text, place);
    RM_ASSERT(found, "an object of %zu bytes without metadata", body->length);
    size_t head = (size_t)(found - text) + strlen(place);
    struct str whole = str_init(OP_POD_TEXT_MAX);
    str_add(&whole, text, head);
    str_addf(&whole, "\"annotations\":{\"" OP_NOTE_APPLIED "\":\"%016llx\"},", (unsigned long long)hash);
    str_adds(&whole, text + head);
    str_clear(body);
    *body = whole;
}

/* Adds an APPLY of `body` unless the same was applied before; takes the body over. */
static void apply(struct planner *p, enum op_resource resource, enum op_applied which, const char *name,
                  struct str *body, const char *why)
{
    struct op_action *action = NULL;
    RM_ASSERT((unsigned)which < OP_APPLIED && body->length > 0, "%s %s is applied as %d, with %zu bytes",
              op_resource_name(resource), name, (int)which, body->length);
    uint64_t hash = op_body_hash(body);
    if (p->s->memo->applied[which] != hash)
        action = plan_add(p, OP_APPLY, resource, name, "%s", why);
    if (!action) {
        str_clear(body);
        return;
    }
    annotate(body, hash);
    action->hash = hash;
    action->body = *body;
    action->fresh = is_beginning(p);
}

static void apply_service(struct planner *p)
{
    char name[OP_NAME_MAX], why[RM_WHY_MAX];
    int term = p->stored->ring.coordinator.attempt;
    const struct pod_view *pod = find_coordinator(p, term);
    if (!pod && term > 1)
        return; /* the one before answers until its successor is there */
    struct str body = str_init(OP_POD_TEXT_MAX);
    name_service(p->job->name, name);
    object_service(p->job, term, &body);
    snprintf(why, sizeof why, "workers find the coordinator of term %d by it", term);
    apply(p, OP_SERVICES, OP_APPLIED_SERVICE, name, &body, why);
}

static void apply_around(struct planner *p)
{
    RM_ASSERT(p->mode == OP_RUN || p->mode == OP_IDLING, "a Service is made in mode %s", plan_mode_name(p));
    char name[OP_NAME_MAX];
    const struct op_settings *settings = &p->s->settings;
    struct str budget = str_init(OP_POD_TEXT_MAX), workers = budget, coordinator = budget;
    apply_service(p);
    if (p->job->disruption_budget) {
        name_budget(p->job->name, name);
        object_budget(p->job, &budget);
        apply(p, OP_BUDGETS, OP_APPLIED_BUDGET, name, &budget, "an eviction must leave workers.min");
    }
    if (!settings->network_policies)
        return;
    name_policy_worker(p->job->name, name);
    object_policy_worker(p->job, settings, &workers);
    apply(p, OP_POLICIES, OP_APPLIED_WORKERS, name, &workers, "only its own job speaks to a worker");
    name_policy_coordinator(p->job->name, name);
    object_policy_coordinator(p->job, settings, &coordinator);
    apply(p, OP_POLICIES, OP_APPLIED_COORDINATOR, name, &coordinator,
          "only workers and operator speak to it");
}

static bool has_other_pod(const struct planner *p, enum pod_role role, int index)
{
    RM_ASSERT(role == OP_COORDINATOR ? index == -1 : index >= 0 && index < RM_WORKERS_MAX,
              "another pod of worker %d, of role %d", index, (int)role);
    for (int i = 0; i < p->s->pods_count; i++) {
        const struct pod_view *pod = p->s->pods[i];
        if (pod->role == role && pod->index == index && !pod_is_over(pod) && !pod->deletion_ms)
            return true;
    }
    return false;
}

static void create_coordinator(struct planner *p)
{
    char name[OP_NAME_MAX];
    const struct op_slot *stored = &p->stored->ring.coordinator;
    if (stored->state != OP_SLOT_WANTED || p->next.ring.coordinator.state != OP_SLOT_WANTED ||
        find_coordinator(p, stored->attempt) || has_other_pod(p, OP_COORDINATOR, -1))
        return;
    RM_ASSERT(stored->attempt == p->next.ring.coordinator.attempt, "term %d is made, and %d wanted",
              stored->attempt, p->next.ring.coordinator.attempt);
    name_coordinator(p->job->name, p->job->uid, stored->attempt, name);
    struct op_action *action = plan_add(p, OP_CREATE, OP_PODS, name, "term %d is wanted", stored->attempt);
    if (!action)
        return;
    struct op_spec spec;
    struct str text = str_init(OP_SPEC_TEXT_MAX);
    effective_spec(p, &text, &spec);
    pod_coordinator(p->job, &p->s->settings, &spec, stored->attempt, &action->body, NULL);
    str_clear(&text);
}

static void create_worker(struct planner *p, int index)
{
    char name[OP_NAME_MAX];
    const struct op_slot *stored = &p->stored->workers.slot[index];
    if (stored->state != OP_SLOT_WANTED || p->next.workers.slot[index].state != OP_SLOT_WANTED ||
        find_worker(p, index, stored->attempt) || has_other_pod(p, OP_WORKER, index))
        return;
    RM_ASSERT(stored->attempt == p->next.workers.slot[index].attempt,
              "attempt %d of worker %d is made, and %d wanted", stored->attempt, index,
              p->next.workers.slot[index].attempt);
    name_worker(p->job->name, p->job->uid, index, stored->attempt, name);
    struct op_action *action =
        plan_add(p, OP_CREATE, OP_PODS, name, "worker %d is wanted (attempt %d)", index, stored->attempt);
    if (!action)
        return;
    struct op_elsewhere elsewhere = {.unfit = &p->stored->workers.unfit,
                                     .base = plan_wants_base(p, index),
                                     .fallback = p->stored->spot.fell_ms > 0};
    if (p->mode == OP_IDLING)
        idle_choose(p, &elsewhere);
    else if (surge_is_more(p, index))
        surge_bar(p, &elsewhere);
    pod_worker(p->job, &p->s->settings, &elsewhere, index, stored->attempt, &action->body, NULL);
}

static void create_pods(struct planner *p)
{
    RM_ASSERT(p->mode == OP_RUN || p->mode == OP_IDLING, "pods are made in mode %s", plan_mode_name(p));
    if (p->mode == OP_RUN && !slot_is_live(&p->stored->ring.coordinator))
        return;
    apply_around(p);
    create_coordinator(p);
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        create_worker(p, i);
}

/* The template on trial, before anything is made of it. */
static void try_pod(struct planner *p)
{
    char name[OP_NAME_MAX];
    if (p->mode != OP_HOLD || p->wants_key || !strcmp(p->trouble_reason, "Invalid"))
        return;
    name_worker(p->job->name, p->job->uid, 0, 1, name);
    struct op_action *action = plan_add(p, OP_DRY_RUN, OP_PODS, name, "does the API server take such a pod?");
    if (!action)
        return;
    action->trial = p->trial;
    pod_worker(p->job, &p->s->settings, NULL, 0, 1, &action->body, NULL);
}

/* A pod is on trial: the next plan knows more in a moment, finds all of this again, and tells it. One write
 * less for each new job. */
static void keep_quiet(struct planner *p)
{
    RM_ASSERT(p->mode == OP_HOLD && !*p->trouble, "nothing is told of a job in mode %s", plan_mode_name(p));
    p->plan->events_count = 0;
    p->plan->told_sequence = p->s->memo->told_sequence;
    p->plan->told_term = p->s->memo->told_term;
}

/* {"apiVersion":...,"metadata":{...},"status": */
static void print_head(const struct job_view *job, struct str *out)
{
    struct js *o = js_object(), *metadata = js_object();
    js_set_string(o, "apiVersion", OP_VERSION);
    js_set_string(o, "kind", "TrainingJob");
    js_set_string(metadata, "name", job->name);
    js_set_string(metadata, "namespace", job->namespace_name);
    js_set_string(metadata, "uid", job->uid);
    js_set_string(metadata, "resourceVersion", job->resource_version);
    js_set(o, "metadata", metadata);
    js_print(o, out);
    js_free(o);
    RM_ASSERT(out->length > 0 && out->data[out->length - 1] == '}', "an object of %zu bytes, without an end",
              out->length);
    out->length--; /* its closing brace: what follows is one member more */
    str_adds(out, ",\"status\":");
}

/* The whole object: the API server takes nothing of it but status, and compares resourceVersion. */
static void write_status(struct planner *p)
{
    if (p->mode == OP_HOLD && !*p->trouble) {
        keep_quiet(p);
        return;
    }
    struct str before = str_init(OP_STATUS_TEXT_MAX), after = before, urgent_before = before,
               urgent_after = before;
    int64_t heard_ms = p->next.ring.heard_ms, stored_ms = p->stored->ring.heard_ms;
    struct op_cost cost = p->next.cost;
    if (!plan_is_due(p))
        p->next.cost = p->stored->cost;
    status_write(p->stored, p->job->name, &before);
    p->next.ring.heard_ms = heard_ms < stored_ms + OP_HEARD_EACH_MS ? stored_ms : heard_ms;
    status_write(&p->next, p->job->name, &after);
    status_write_urgent(p->stored, p->job->name, &urgent_before);
    status_write_urgent(&p->next, p->job->name, &urgent_after);
    if (strcmp(str_text(&urgent_before), str_text(&urgent_after)) != 0)
        p->plan->change = OP_URGENT;
    else if (strcmp(str_text(&before), str_text(&after)) != 0)
        p->plan->change = OP_TICKING;
    if (p->plan->change != OP_SAME) {
        p->next.ring.heard_ms = heard_ms;
        p->next.cost = cost;
        str_reset(&after);
        status_write(&p->next, p->job->name, &after);
    }
    struct op_action *action =
        p->plan->change == OP_SAME
            ? NULL
            : plan_add(p, OP_STATUS, OP_JOBS, p->job->name, "%s: %.150s", p->next.state, p->next.message);
    RM_ASSERT(p->plan->change == OP_SAME || after.length > 0, "a status of %zu bytes, that has changed",
              after.length);
    if (action) {
        print_head(p->job, &action->body);
        str_add(&action->body, after.data, after.length);
        str_adds(&action->body, "}");
    }
    str_clear(&before);
    str_clear(&after);
    str_clear(&urgent_before);
    str_clear(&urgent_after);
}

static void delete_job(struct planner *p)
{
    int64_t until = p->stored->completion_ms + p->job->ttl_s * 1000;
    if (p->job->ttl_s < 0 || !condition_is(p->stored, OP_FINISHED))
        return;
    if (p->s->now_ms < until) {
        plan_wake(p, until);
        return;
    }
    RM_ASSERT(p->mode == OP_DONE, "a job is deleted in mode %s", plan_mode_name(p));
    struct op_action *action =
        plan_add(p, OP_DELETE, OP_JOBS, p->job->name, "ttlSecondsAfterFinished has passed");
    if (action)
        text_copy(action->uid, sizeof action->uid, p->job->uid);
}

static void poll(struct planner *p)
{
    RM_ASSERT(!*p->plan->poll_ip, "coordinators are asked twice, the first at %s", p->plan->poll_ip);
    const struct op_slot *slot = &p->stored->ring.coordinator;
    const struct pod_view *pod = slot_is_live(slot) ? find_coordinator(p, slot->attempt) : NULL;
    if (!pod || pod_is_over(pod) || pod->phase != OP_RUNNING || !*pod->ip)
        return;
    text_copy(p->plan->poll_ip, sizeof p->plan->poll_ip, pod->ip);
    p->plan->poll_term = slot->attempt;
    surge_say_asked(p, p->plan->relief);
}

void plan_act(struct planner *p)
{
    RM_ASSERT(p->plan->actions_count == 0, "%d writes before the plan is made", p->plan->actions_count);
    delete_pods(p);
    delete_job(p);
    try_pod(p);
    create_key(p);
    if (p->mode == OP_RUN || p->mode == OP_IDLING)
        create_pods(p);
    poll(p);
    write_status(p);
}
