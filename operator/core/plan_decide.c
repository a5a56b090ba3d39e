/* Which slots of a job should have a pod: how many workers, which indexes, who goes first when there are too
 * many, and when a job is stopped as a whole. */
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "operator/core/plan_parts.h"
#include "operator/core/pod.h"
#include "operator/core/read.h"

int plan_live(const struct job_status *status)
{
    int live = 0;
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        live += slot_is_live(&status->workers.slot[i]);
    RM_ASSERT(live <= RM_WORKERS_MAX, "%d workers are wanted", live);
    return live;
}

void plan_fail(struct planner *p, const char *reason, const char *message)
{
    RM_ASSERT(*reason && p->mode != OP_DONE, "a job that is over fails: %s", message);
    if (!condition_is(&p->next, OP_STOPPING))
        condition_set(&p->next, OP_STOPPING, true, reason, message, p->job->generation, p->s->now_ms);
}

/* A slot that is wanted no more. One whose pod was never seen keeps its attempt: the pod's name then guards
 * against a second one. */
static void withdraw(struct op_slot *slot)
{
    if (slot->state == OP_SLOT_WANTED)
        slot->state = OP_SLOT_SKIPPED;
    else if (slot->state == OP_SLOT_PRESENT)
        slot->state = OP_SLOT_ENDED;
    RM_ASSERT(!slot_is_live(slot), "attempt %d is withdrawn, and wanted (state %s)", slot->attempt,
              slot_state_name(slot->state));
}

static void withdraw_workers(struct planner *p)
{
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        withdraw(&p->next.workers.slot[i]);
    RM_ASSERT(plan_live(&p->next) == 0, "%d of no workers are wanted", plan_live(&p->next));
}

/* SKIPPED goes on with its attempt, any other with the next. */
static void allocate(struct op_slot *slot)
{
    RM_ASSERT(!slot_is_live(slot), "a slot that has attempt %d is given another one", slot->attempt);
    if (slot->state != OP_SLOT_SKIPPED)
        slot->attempt++;
    slot->state = OP_SLOT_WANTED;
    slot->asked = false;
    slot->told_ms = slot->until_ms = 0;
}

static bool is_quarantined(const struct planner *p, int index)
{
    RM_ASSERT(index >= 0 && index < RM_WORKERS_MAX, "worker %d is in quarantine", index);
    const struct coordinator_view *view = find_coordinator_view(p);
    for (int i = 0; view && i < view->quarantined_count; i++)
        if (view->quarantined[i] == index)
            return true;
    return false;
}

/* How much of an index its old pods still hold: 0 nothing, 1 a pod that is Terminating, 2 one that is not. */
static int held(const struct planner *p, enum pod_role role, int index)
{
    int most = 0;
    RM_ASSERT(index >= -1 && index < RM_WORKERS_MAX, "the pods of worker %d", index);
    for (int i = 0; i < p->s->pods_count; i++) {
        const struct pod_view *pod = p->s->pods[i];
        if (pod->role != role || pod->index != index || pod_is_over(pod))
            continue;
        int holds = !pod->deletion_ms ? 2 : pod_is_vanished(p, pod) ? 0 : 1;
        most = holds > most ? holds : most;
    }
    return most;
}

int64_t plan_rests_until(const struct planner *p, const struct op_slot *slot, const struct pod_view *pod)
{
    int64_t quick = account_quick_until(slot), failed = account_backoff_until(&p->next);
    int64_t until = pod && pod_is_failed(pod) && failed > quick ? failed : quick;
    return slot->state == OP_SLOT_ENDED && until > p->s->now_ms ? until : 0;
}

static int64_t index_rests_until(const struct planner *p, int index)
{
    RM_ASSERT(index >= 0 && index < RM_WORKERS_MAX, "worker %d rests", index);
    const struct op_slot *slot = &p->next.workers.slot[index];
    return plan_rests_until(p, slot, find_worker(p, index, slot->attempt));
}

/* That of a lost worker: should it come back after all, its successor's higher attempt is why it is refused.
 * Else the lowest without a pod; one that is saving its last step keeps its name until it is gone, if others
 * are free. -1: none. */
static int free_index(const struct planner *p)
{
    int indexes =
        p->job->freezes ? 1 : RM_WORKERS_MAX; /* of two attempts of one index the higher one counts */
    for (int i = 0; i < indexes; i++)
        if (p->lost[i] && !slot_is_live(&p->next.workers.slot[i]) && !is_quarantined(p, i))
            return i;
    for (int most = 0; most < 2; most++)
        for (int i = 0; i < indexes; i++)
            if (!slot_is_live(&p->next.workers.slot[i]) && !is_quarantined(p, i) &&
                !index_rests_until(p, i) && held(p, OP_WORKER, i) <= most)
                return i;
    return -1;
}

/* The number of workers that the job should have now; follows spec.workers.target, growing not before the
 * cool-down is over. */
static void update_target(struct planner *p)
{
    int wanted = p->job->workers_target, *target = &p->next.workers.target;
    int64_t until = p->next.workers.resize_ms + p->job->scale_up_cooldown_ms;
    if (wanted > p->job->workers_max)
        wanted = p->job->workers_max;
    if (wanted < p->job->workers_min)
        wanted = p->job->workers_min;
    RM_ASSERT(wanted >= 1 && wanted <= RM_WORKERS_MAX, "%d workers are wanted", wanted);
    if (wanted == *target)
        return;
    if (wanted > *target && *target && p->s->now_ms < until) {
        plan_wake(p, until);
        return;
    }
    if (*target)
        plan_event(p, false, "Resized", "Scale", "from %d to %d workers", *target, wanted);
    *target = wanted;
    p->next.workers.resize_ms = p->s->now_ms;
}

static bool in_ring(const struct planner *p, int index)
{
    const struct coordinator_view *view = find_coordinator_view(p);
    for (int i = 0; view && i < view->ring_size; i++)
        if (view->member[i].worker == index)
            return true;
    return false;
}

/* It says who trains, and of them one has ended since. */
static bool has_ended_since(const struct planner *p, const struct coordinator_view *view)
{
    RM_ASSERT(view->ring_size >= 0 && view->ring_size <= RM_WORKERS_MAX, "a ring of %d", view->ring_size);
    for (int i = 0; i < view->ring_size; i++) {
        const struct op_slot *slot = &p->next.workers.slot[view->member[i].worker];
        if (!slot_is_live(slot) || slot->attempt != view->member[i].attempt)
            return true;
    }
    return false;
}

enum { AT_WORK = 2, BESIDE = 1 };

/* Who waits beside a ring that a member has left is in its place by now, for all that was told. */
static int place_of(const struct planner *p, int index)
{
    RM_ASSERT(index >= 0 && index < RM_WORKERS_MAX, "the place of worker %d", index);
    const struct coordinator_view *view = find_coordinator_view(p);
    if (!view || in_ring(p, index))
        return view ? AT_WORK : 0;
    for (int i = 0; i < view->workers_count; i++)
        if (view->worker[i].worker == index && view->worker[i].attempt == p->next.workers.slot[index].attempt)
            return view->worker[i].waits && has_ended_since(p, view) ? AT_WORK : BESIDE;
    return 0;
}

/* Who goes first when there are too many: lower goes first, the most significant difference in front. */
struct worth {
    int64_t rank[7];
};

static struct worth worth_of(const struct planner *p, int index)
{
    const struct pod_view *pod = find_worker(p, index, p->next.workers.slot[index].attempt);
    const struct node_view *node = find_node(p, pod);
    RM_ASSERT(slot_is_live(&p->next.workers.slot[index]), "worker %d is weighed, and not wanted", index);
    return (struct worth){{pod && *pod->node, !(node && *node->leave), place_of(p, index),
                           !surge_is_uneasy(p, index), pod && pod->base, pod ? pod->deletion_cost : 0,
                           -index}};
}

static bool goes_before(const struct worth *a, const struct worth *b)
{
    for (size_t i = 0; i < sizeof a->rank / sizeof *a->rank; i++)
        if (a->rank[i] != b->rank[i])
            return a->rank[i] < b->rank[i];
    return false;
}

/* Of the live ones, or of those alone who may be relieved; -1: there is none. */
static int least_worth(struct planner *p, bool relieved)
{
    int victim = -1;
    struct worth least = {0};
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        if (!slot_is_live(&p->next.workers.slot[i]) || (relieved && !surge_relieves(p, i)))
            continue;
        struct worth own = worth_of(p, i);
        if (victim >= 0 && !goes_before(&own, &least))
            continue;
        victim = i;
        least = own;
    }
    RM_ASSERT(victim < 0 || slot_is_live(&p->next.workers.slot[victim]),
              "worker %d goes first, and is not wanted", victim);
    return victim;
}

static void shrink_by_one(struct planner *p)
{
    int victim = least_worth(p, false);
    if (victim >= 0)
        withdraw(&p->next.workers.slot[victim]);
}

/* Who is on a machine that may go leaves it as soon as the others are as many as are wanted. */
static void relieve(struct planner *p)
{
    RM_ASSERT(p->mode == OP_RUN, "who may go leaves in mode %s", plan_mode_name(p));
    for (int victim; (victim = least_worth(p, true)) >= 0;) {
        surge_relieve(p, find_live(p, victim));
        withdraw(&p->next.workers.slot[victim]);
    }
}

/* Places of workers that failed by themselves, or ended soon after their start: they come back after a while,
 * others at once. */
static int resting_places(struct planner *p)
{
    int count = 0;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        int64_t until = index_rests_until(p, i);
        count += until > 0;
        plan_wake(p, until);
    }
    RM_ASSERT(count <= RM_WORKERS_MAX, "%d places rest", count);
    return count;
}

static void grow_by(struct planner *p, int missing)
{
    RM_ASSERT(p->mode == OP_RUN || p->mode == OP_IDLING, "%d workers more, in mode %s", missing,
              plan_mode_name(p));
    plan_fence(p);
    if (missing > 0)
        missing -= resting_places(p);
    if (missing > 0 && plan_is_fenced(p))
        return;
    for (int index; missing > 0 && (index = free_index(p)) >= 0; missing--)
        allocate(&p->next.workers.slot[index]);
}

/* Who waits for a node holds nothing that is to be saved, and would cost more once it has one. */
static void withdraw_waiting(struct planner *p)
{
    RM_ASSERT(p->lingers, "workers of job %s that wait are wanted no more", p->job->name);
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct pod_view *pod = find_live(p, i);
        if (!pod || !*pod->node)
            withdraw(&p->next.workers.slot[i]);
    }
}

static void decide_workers(struct planner *p)
{
    RM_ASSERT(p->mode != OP_STOP && p->mode != OP_SUSPEND && p->mode != OP_DONE,
              "workers of a job that ends (mode %s)", plan_mode_name(p));
    if (p->mode == OP_RUN && !p->finishing)
        relieve(p);
    p->next.workers.surge = surge_decide(p);
    surge_ask(p);
    int desired = find_places(p) + p->next.workers.surge;
    RM_ASSERT(p->next.workers.surge >= 0, "%d workers more than wanted", p->next.workers.surge);
    for (int live = plan_live(&p->next); live > desired; live--)
        shrink_by_one(p);
    if (p->lingers)
        withdraw_waiting(p);
    if (p->mode != OP_RUN || p->finishing || p->lingers)
        return;
    if (p->s->now_ms < p->next.workers.retry_ms) {
        plan_wake(p, p->next.workers.retry_ms);
        return;
    }
    p->next.workers.retry_ms = 0;
    grow_by(p, desired - plan_live(&p->next));
}

/* A successor is wanted as soon as the one before is told to end: its higher term is what ends it for good.
 */
static void decide_coordinator(struct planner *p)
{
    struct op_slot *slot = &p->next.ring.coordinator;
    int64_t until = plan_rests_until(p, slot, find_coordinator(p, slot->attempt));
    if (p->mode != OP_RUN || slot_is_live(slot) || held(p, OP_COORDINATOR, -1) == 2)
        return;
    if (until) {
        plan_wake(p, until);
        return;
    }
    allocate(slot);
    RM_ASSERT(slot->state == OP_SLOT_WANTED, "term %d is wanted, in state %s", slot->attempt,
              slot_state_name(slot->state));
}

/* Do too few workers have a node, while others wait for the scheduler to find them one? Whoever holds pods
 * back by gates, such as a queue, says itself when they may come, and gives others the places meanwhile. */
static bool is_short(const struct planner *p, const struct op_found *found)
{
    const struct coordinator_view *view = find_coordinator_view(p);
    RM_ASSERT(found->gated <= found->waiting, "%d of %d pods that wait are gated", found->gated,
              found->waiting);
    return found->waiting && !found->gated && found->scheduled < p->job->workers_min &&
           !(view && view->state == STATUS_TRAINING);
}

static void note_short(struct planner *p)
{
    RM_ASSERT(p->mode == OP_RUN || p->mode == OP_HOLD, "too few have a node, in mode %s", plan_mode_name(p));
    struct op_found found = find_present(p);
    int64_t *since = &p->next.workers.short_ms;
    if (!is_short(p, &found))
        *since = 0;
    else if (!*since)
        *since = p->s->now_ms;
}

/* Fewer than min had a node for too long: all give their places back, so that two jobs that started half
 * can't wait for each other for ever. They come again at different times. That a pod has waited long says
 * nothing: one beyond min may wait for days beside those that train. */
static void decide_start(struct planner *p)
{
    struct op_found found = find_present(p);
    int64_t *since = &p->next.workers.short_ms;
    if (!*since)
        return;
    if (p->s->now_ms < *since + p->job->start_timeout_ms) {
        plan_wake(p, *since + p->job->start_timeout_ms);
        return;
    }
    char hash[OP_HASH_TEXT];
    name_hash(p->job->uid, "retry", *since, 0, hash);
    int64_t jitter = (hash[0] * 31 + hash[1]) % 1000 * OP_RETRY_FIRST_MS / 1000;
    *since = 0;
    if (p->next.idle.short_ms)
        idle_note(p);
    withdraw_workers(p);
    p->next.workers.retry_ms = p->s->now_ms + OP_RETRY_FIRST_MS + jitter;
    RM_ASSERT(jitter >= 0 && jitter < OP_RETRY_FIRST_MS, "another try %lld ms later", (long long)jitter);
    plan_event(p, true, "Waiting", "Delete",
               "%d workers found a node within elasticity.startTimeout, %d are needed; trying again later",
               found.scheduled, p->job->workers_min);
}

static void check_deadline(struct planner *p)
{
    RM_ASSERT(p->mode != OP_DONE, "a job that is over has a deadline, %s", p->job->name);
    int64_t left_s = p->job->active_deadline_s - p->next.active_seconds;
    int64_t end = p->next.active_ms + left_s * 1000;
    if (!p->job->active_deadline_s || !p->next.active_ms || condition_is(&p->next, OP_STOPPING))
        return;
    if (p->s->now_ms < end) {
        plan_wake(p, end);
        return;
    }
    char text[OP_MESSAGE_MAX];
    snprintf(text, sizeof text, "spec.activeDeadlineSeconds (%lld) has passed",
             (long long)p->job->active_deadline_s);
    plan_fail(p, "DeadlineExceeded", text);
}

/* Whether programs could be made of this spec at all. Of a job that has begun nobody asks where its cache is:
 * it may have been taken before that was asked, and a new number of workers must not be what stops it. */
static int check_texts(const struct planner *p, struct error *err)
{
    struct str text = str_init(OP_POD_TEXT_MAX);
    int status = job_effective_spec(p->job, &text, err);
    str_reset(&text);
    if (status == 0 && p->stored->ring.coordinator.attempt == 0)
        status = job_check_cache(p->job, err);
    if (status == 0)
        status = pod_worker(p->job, &p->s->settings, NULL, 0, 1, &text, err);
    str_reset(&text);
    if (status == 0)
        status = pod_coordinator(p->job, &p->s->settings, &(struct op_spec){0}, 1, &text, err);
    str_clear(&text);
    if (status == 0 && p->job->freezes && !p->s->settings.process_snapshots)
        status = err_set(err, ERR_USAGE,
                         "spec.checkpoint.process is CRIU, which this operator is not told to allow "
                         "(processSnapshots.enabled of "
                         "its chart); write None, or have it allowed");
    return status;
}

/* Of a pod as this job's are, under a name that all jobs share. */
static uint64_t trial_of(const struct planner *p)
{
    struct job_view nobody = *p->job;
    struct str text = str_init(OP_POD_TEXT_MAX);
    text_copy(nobody.name, sizeof nobody.name, "any");
    text_copy(nobody.uid, sizeof nobody.uid, "any");
    *nobody.status.ring.key = 0;
    nobody.status.images = (struct op_images){0};
    pod_worker(&nobody, &p->s->settings, NULL, 0, 1, &text, NULL);
    uint64_t hash = op_body_hash(&text);
    str_clear(&text);
    return hash;
}

/* No namespace that enforces baseline or restricted takes a pod with the rights that a snapshot takes. */
static void say_label(struct planner *p)
{
    RM_ASSERT(p->job->freezes, "job %s takes no label", p->job->name);
    enum { WORDS = 172 }; /* so many leave room for all that stands around them */
    char words[WORDS];
    text_tame_ends(p->s->memo->refusal.message, words, sizeof words);
    snprintf(p->trouble, sizeof p->trouble,
             "the API server refused to %s: %s; label namespace %s "
             "pod-security.kubernetes.io/enforce=privileged, which checkpoint.process: CRIU takes",
             p->s->memo->refusal.what, words, p->job->namespace_name);
}

static void note_refusal(struct planner *p)
{
    const struct op_memo *memo = p->s->memo;
    if (!memo->refusal.at_ms || memo->refusal.generation != p->job->generation)
        return;
    text_copy(p->trouble_reason, sizeof p->trouble_reason,
              *memo->refusal.reason ? memo->refusal.reason : "NoAnswer");
    if (!strcmp(memo->refusal.reason, OP_NAME_TAKEN)) { /* it was we who refused */
        text_copy(p->trouble, sizeof p->trouble, memo->refusal.message);
        return;
    }
    if (p->job->freezes && strstr(memo->refusal.message, "PodSecurity")) {
        say_label(p);
        return;
    }
    snprintf(p->trouble, sizeof p->trouble,
             memo->refusal.code ? "the API server refused to %s: %s"
                                : "no answer of the API server to %s: %s",
             memo->refusal.what, memo->refusal.message);
}

/* Once per generation: the spec means something, the template fits, and the API server took its pod on trial.
 */
static bool is_admitted(struct planner *p)
{
    RM_ASSERT(p->mode != OP_DONE, "job %s is over, and admitted", p->job->name);
    const struct op_condition *admitted = &p->stored->condition[OP_ADMITTED];
    struct error err = {0};
    note_refusal(p);
    if (admitted->status == OP_TRUE && admitted->generation == p->job->generation)
        return true;
    if (check_texts(p, &err) < 0) {
        text_copy(p->trouble_reason, sizeof p->trouble_reason, "Invalid");
        text_copy(p->trouble, sizeof p->trouble, err.text);
        return false;
    }
    if (plan_lacks_prices(p)) {
        text_copy(p->trouble_reason, sizeof p->trouble_reason, "Invalid");
        text_copy(p->trouble, sizeof p->trouble, plan_lacks_prices(p));
        return false;
    }
    if (p->s->memo->dry_generation == p->job->generation)
        return true;
    p->trial = trial_of(p);
    return op_trials_know(p->s->trials, p->trial, p->s->now_ms);
}

/* From a suspension, when nobody is left who knows the key of before: a Secret that somebody deleted
 * meanwhile is missed by nobody. Where none can be made the job goes on with the one that it had. So does one
 * whose snapshots are sealed by it: under another key nobody would go on from them. */
static bool comes_back(const struct planner *p)
{
    return condition_is(p->stored, OP_SUSPENDED) && p->stored->ring.coordinator.attempt > 0 &&
           !p->job->freezes;
}

/* The Secret is made under a name that nobody could foresee, and only then told in the status; both before
 * anything is wanted that refers to it. A job of older operators has one whose name stands in no status. */
static bool has_key(struct planner *p)
{
    RM_ASSERT(!*p->next.ring.key || !strcmp(p->next.ring.key, p->stored->ring.key),
              "job %s has a key before it is looked for", p->job->name);
    if (comes_back(p)) {
        if (!*p->s->memo->key || !strcmp(p->s->memo->key, p->stored->ring.key))
            return false;
        text_copy(p->next.ring.key, sizeof p->next.ring.key, p->s->memo->key);
        return true;
    }
    if (*p->stored->ring.key || p->stored->ring.coordinator.attempt > 0)
        return true;
    text_copy(p->next.ring.key, sizeof p->next.ring.key, p->s->memo->key);
    return *p->next.ring.key;
}

/* What it said last is of before its workers went, so not of what they saved as they did. It answers with the
 * next word, unless it answers nobody. */
static bool has_more_to_say(const struct planner *p)
{
    const struct coordinator_view *view = find_coordinator_view(p);
    const struct pod_view *pod = find_coordinator(p, p->stored->ring.coordinator.attempt);
    return view && view->workers_count && pod && !pod_is_over(pod) && !pod->deletion_ms &&
           find_silence(p) < OP_SILENCE_MS;
}

/* Workers leave first and together, with a checkpoint; their coordinator serves them until then, and says
 * what they saved. */
static void stop_all(struct planner *p)
{
    withdraw_workers(p);
    RM_ASSERT(p->mode != OP_RUN && p->mode != OP_HOLD, "all of a job that runs are stopped (mode %s)",
              plan_mode_name(p));
    if (plan_live(p->stored) == 0 && !find_any_alive(p, OP_WORKER) && !has_more_to_say(p))
        withdraw(&p->next.ring.coordinator);
}

/* The probe comes when all others have ended: until then it would be given one of their places. */
static bool decide_idle(struct planner *p)
{
    RM_ASSERT(p->mode == OP_RUN || p->mode == OP_HOLD, "a job idles in mode %s", plan_mode_name(p));
    if (!idle_goes_on(p))
        return false;
    if (p->mode != OP_RUN)
        return true;
    p->mode = OP_IDLING;
    if (slot_is_live(&p->next.ring.coordinator))
        stop_all(p);
    for (int live = plan_live(&p->next); live > 1; live--) /* somebody has written in the status */
        shrink_by_one(p);
    if (!slot_is_live(&p->next.ring.coordinator) && !find_any_unwanted(p))
        grow_by(p, 1 - plan_live(&p->next));
    return true;
}

/* An index in quarantine gets no worker, and no wait brings one. Who trains is let finish. */
static void check_places(struct planner *p)
{
    RM_ASSERT(p->mode != OP_DONE, "job %s is over, and its places are looked at", p->job->name);
    const struct coordinator_view *view = find_coordinator_view(p);
    int places = find_places(p), least = p->job->workers_min;
    bool waits = view && view->quarantined_count && view->state == STATUS_GATHERING && !view->preparing;
    if (!waits || p->finishing || places >= least ||
        p->job->workers_target - view->quarantined_count >= least)
        return;
    char text[OP_MESSAGE_MAX];
    snprintf(text, sizeof text,
             "%d of %d workers are in quarantine for their failures, and the %d that are left are fewer than "
             "workers.min (%d): see `kubectl describe` and the workers' logs for what failed",
             view->quarantined_count, p->next.workers.target, places, least);
    plan_fail(p, "TooManyFailures", text);
}

static void decide_run(struct planner *p)
{
    RM_ASSERT(p->mode == OP_RUN || p->mode == OP_HOLD, "a job runs in mode %s", plan_mode_name(p));
    decide_coordinator(p);
    decide_workers(p);
    note_short(p);
    if (p->mode == OP_RUN && idle_begins(p)) {
        p->mode = OP_IDLING;
        stop_all(p);
    } else
        decide_start(p);
}

static void note_activity(struct planner *p)
{
    if (p->pauses && p->next.active_ms) {
        p->next.active_seconds += (p->s->now_ms - p->next.active_ms) / 1000;
        p->next.active_ms = 0;
    }
    if (!p->pauses && !p->next.active_ms)
        p->next.active_ms = p->s->now_ms;
    if (!p->next.start_ms && !p->pauses)
        p->next.start_ms = p->s->now_ms;
    RM_ASSERT(p->pauses == !p->next.active_ms, "a job that %s is active since %lld",
              p->pauses ? "pauses" : "goes on", (long long)p->next.active_ms);
}

void plan_decide(struct planner *p)
{
    RM_ASSERT(p->mode == OP_RUN || p->mode == OP_DONE, "a plan begins in mode %s", plan_mode_name(p));
    p->next.workers.surge = 0;
    if (p->mode == OP_DONE) {
        note_refusal(p);
        withdraw_workers(p);
        withdraw(&p->next.ring.coordinator);
        return;
    }
    note_activity(p);
    check_deadline(p);
    check_places(p);
    bool admitted = is_admitted(p);
    if (condition_is(&p->next, OP_STOPPING))
        p->mode = OP_STOP;
    else if (p->pauses)
        p->mode = OP_SUSPEND;
    else
        p->mode = admitted && has_key(p) ? OP_RUN : OP_HOLD;
    p->wants_key = p->mode == OP_HOLD && admitted;
    if (p->mode == OP_STOP || p->mode == OP_SUSPEND) {
        memset(&p->next.idle, 0, sizeof p->next.idle);
        stop_all(p);
        plan_fence(p);
        return;
    }
    update_target(p);
    plan_fallback(p);
    if (!decide_idle(p))
        decide_run(p);
    plan_fence(p);
}
