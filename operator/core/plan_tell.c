/* What is said of the job: conditions, the word in the list, the sentence. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "operator/core/plan_parts.h"
#include "operator/core/read.h"

static void set_truth(struct planner *p, enum op_condition_type type, bool truth, const char *reason,
                      const char *message)
{
    condition_set(&p->next, type, truth, reason, message, p->job->generation, p->s->now_ms);
}

void plan_finish(struct planner *p, bool complete, const char *reason, const char *message)
{
    RM_ASSERT(p->mode != OP_DONE, "a job ends twice: %s", reason);
    p->mode = OP_DONE;
    p->next.completion_ms = p->s->now_ms;
    set_truth(p, complete ? OP_COMPLETE : OP_FAILED, true, reason, message);
    set_truth(p, OP_FINISHED, true, complete ? "Complete" : "Failed", message);
    plan_event(p, !complete, complete ? "Complete" : "Failed", "Finish", "%s", message);
}

static void say_state(struct planner *p, const char *state, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void say_state(struct planner *p, const char *state, const char *format, ...)
{
    RM_ASSERT(*state, "%s is in no state, but was %s", p->job->name, p->next.state);
    va_list arguments;
    text_copy(p->next.state, sizeof p->next.state, state);
    va_start(arguments, format);
    vsnprintf(p->next.message, sizeof p->next.message, format, arguments);
    va_end(arguments);
}

/* Size and time are told by the coordinator that saw it saved; a successor knows a checkpoint by its step. */
void plan_take_checkpoint(struct planner *p, const struct op_checkpoint *newest)
{
    RM_ASSERT(newest->known, "step %lld is no checkpoint", (long long)newest->step);
    const struct op_checkpoint *stored = &p->stored->checkpoint;
    bool same = stored->known && stored->step == newest->step;
    p->next.checkpoint = *newest;
    p->next.checkpoint.saved_ms = newest->saved_ms / 1000 * 1000;
    if (same && !newest->bytes)
        p->next.checkpoint.bytes = stored->bytes;
    if (same && !newest->saved_ms)
        p->next.checkpoint.saved_ms = stored->saved_ms;
}

/* A coordinator that has not begun does not know yet how far the job is, and of a step it may hear before it
 * hears of its loss. */
static void take_progress(struct planner *p, const struct coordinator_view *view)
{
    const struct op_progress *now = &view->progress;
    if (p->job->stepless) { /* what a program does not tell is not shown, and never a 0 */
        if (now->known)
            p->next.progress = *now;
        return;
    }
    bool begun = view->state == STATUS_TRAINING || now->step > 0 || *now->loss;
    if (!now->known || !begun)
        return;
    p->next.progress = *now;
    if (!*now->loss)
        text_copy(p->next.progress.loss, OP_NUMBER_MAX, p->stored->progress.loss);
}

/* What the coordinator knows goes into the status as it is. */
static void take_view(struct planner *p, const struct coordinator_view *view)
{
    RM_ASSERT(view->term == p->stored->ring.coordinator.attempt && p->mode != OP_DONE,
              "the word of term %d, in mode %s", view->term, plan_mode_name(p));
    p->next.ring.generation = view->ring_generation;
    p->next.ring.size = view->ring_size;
    p->next.ring.formed_ms = view->formed_ms / 1000 * 1000;
    if (p->job->stepless && view->begun > p->next.ring.begun)
        p->next.ring.begun = view->begun;
    memcpy(p->next.ring.member, view->member, sizeof view->member);
    take_progress(p, view);
    if (view->checkpoint.known)
        plan_take_checkpoint(p, &view->checkpoint);
    if (view->interval.known || view->state == STATUS_TRAINING) /* else the job says itself when to save */
        p->next.interval = view->interval;
    if (view->last_recovery.known)
        p->next.last_recovery = view->last_recovery;
    bool stands_still = view->state <= STATUS_GATHERING && view->progress.step == p->stored->progress.step;
    if (!stands_still) /* else every second of waiting would be a write */
        plan_take_goodput(p, view);
}

/* kubectl describe shows it so. */
static void tell_event(struct planner *p, const struct op_coordinator_event *event)
{
    const struct event_row *row = event_row(event->kind);
    bool notice = event->kind == EVENT_NOTICE_RECEIVED || event->kind == EVENT_NOTICE_WITHDRAWN;
    if (row->reason && !(notice && surge_has_told(p, event)))
        plan_event(p, row->warning, row->reason, "Train", "%s", event->note);
}

/* What happened before that, by the coordinator's clock, an operator before this one has told: it heard of it
 * and noted when, and what it may have missed at its end is told twice rather than never. So is all where
 * it heard of it later than now: its clock was ahead of ours, and nobody knows how far. Of ten thousand jobs
 * nobody tells all anew. */
static int64_t told_before(const struct planner *p, const struct coordinator_view *view)
{
    static const int64_t overlap_ms = OP_HEARD_EACH_MS;
    int64_t heard_ms = p->stored->ring.heard_ms, ahead_ms = view->at_ms ? view->at_ms - p->s->answered_ms : 0;
    RM_ASSERT(view->at_ms >= 0, "the coordinator of %s answered at %lld ms", p->job->name,
              (long long)view->at_ms);
    bool is_new = p->s->memo->told_term == 0 && heard_ms && heard_ms <= p->s->answered_ms + overlap_ms;
    return is_new ? heard_ms - overlap_ms + ahead_ms : 0;
}

static void tell_events(struct planner *p, const struct coordinator_view *view)
{
    RM_ASSERT(view->events_count >= 0 && view->events_count <= OP_COORDINATOR_EVENTS_MAX, "%d events",
              view->events_count);
    struct op_plan *plan = p->plan;
    int64_t told = plan->told_term == view->term ? plan->told_sequence : 0, before = told_before(p, view);
    for (int i = 0; i < view->events_count; i++) {
        const struct op_coordinator_event *event = &view->event[i];
        if (event->sequence <= told)
            continue;
        told = event->sequence;
        bool is_old = event->at_ms && event->at_ms < before;
        if (*event->note && !is_old)
            tell_event(p, event);
    }
    plan->told_term = view->term;
    plan->told_sequence = told;
}

/* The first worker that is not ready, and what holds it up; false where none is known. */
struct laggard {
    int index;
    int64_t since_ms;
    char why[RM_WHY_MAX + OP_REASON_MAX];
    char reason[OP_REASON_MAX];
};

static bool is_trouble(const char *waiting)
{
    return *waiting && strcmp(waiting, "ContainerCreating") != 0 && strcmp(waiting, "PodInitializing") != 0;
}

/* Kubelets say why a volume or the network is not there in events alone, which the operator may not read. */
static bool look_at_preparation(const struct planner *p, const struct pod_view *pod, struct laggard *ret)
{
    bool creates = !strcmp(pod->waiting, "ContainerCreating") || !strcmp(pod->waiting, "PodInitializing");
    if (!creates || !pod->taken_ms || p->s->now_ms < pod->taken_ms + OP_PREPARE_MS)
        return false;
    if (pod->unprepared) {
        text_copy(ret->reason, sizeof ret->reason, "NotPrepared");
        snprintf(ret->why, sizeof ret->why,
                 "a volume (Secret, ConfigMap, claim) or the pod network is not ready on %.60s: kubectl "
                 "describe pod "
                 "%s says which (FailedMount, FailedCreatePodSandBox)",
                 pod->node, pod->name);
    } else {
        text_copy(ret->reason, sizeof ret->reason, pod->waiting);
        snprintf(ret->why, sizeof ret->why, "%s on %.60s: an image is pulled, or an init container runs",
                 pod->waiting, pod->node);
    }
    return true;
}

static bool look_at(const struct planner *p, const struct pod_view *pod, struct laggard *ret)
{
    if (*pod->gates) {
        text_copy(ret->reason, sizeof ret->reason, "SchedulingGated");
        snprintf(ret->why, sizeof ret->why, "waits until whoever gated it lifts %s", pod->gates);
    } else if (*pod->unschedulable) {
        text_copy(ret->reason, sizeof ret->reason, "Unschedulable");
        text_copy(ret->why, sizeof ret->why, pod->unschedulable);
    } else if (is_trouble(pod->waiting)) {
        text_copy(ret->reason, sizeof ret->reason, pod->waiting);
        snprintf(ret->why, sizeof ret->why, "%s%s%s", pod->waiting, *pod->waiting_message ? ": " : "",
                 pod->waiting_message);
    } else if (!look_at_preparation(p, pod, ret))
        return false;
    ret->index = pod->index;
    ret->since_ms = pod->created_ms;
    RM_ASSERT(*ret->reason, "pod %s is held up, and nobody knows why", pod->name);
    return true;
}

/* The coordinator's pod counts too, as index -1. */
static bool find_laggard(const struct planner *p, struct laggard *ret)
{
    const struct op_slot *own = &p->next.ring.coordinator;
    const struct pod_view *pod = slot_is_live(own) ? find_coordinator(p, own->attempt) : NULL;
    if (pod && look_at(p, pod, ret))
        return true;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        pod = find_live(p, i);
        if (pod && look_at(p, pod, ret))
            return true;
    }
    return false;
}

static void count_workers(struct planner *p)
{
    p->next.workers.ready = 0;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct pod_view *pod = find_live(p, i);
        p->next.workers.ready += pod && pod->ready && !pod->deletion_ms;
    }
    p->next.workers.current = plan_live(&p->next);
    RM_ASSERT(p->next.workers.ready <= p->next.workers.current, "%d of %d workers are ready",
              p->next.workers.ready, p->next.workers.current);
}

static void tell_pods(struct planner *p, bool held_up, const struct laggard *laggard)
{
    RM_ASSERT(!held_up || *laggard->reason, "a pod of job %s is held up, and nobody knows why", p->job->name);
    int target = p->next.workers.target;
    if (*p->trouble)
        set_truth(p, OP_PODS_READY, false, p->trouble_reason, p->trouble);
    else if (target && p->next.workers.ready >= target)
        set_truth(p, OP_PODS_READY, true, "Ready", "all workers are ready");
    else if (p->next.workers.retry_ms)
        set_truth(p, OP_PODS_READY, false, "StartTimeout",
                  "fewer than workers.min found a node within elasticity.startTimeout");
    else if (held_up)
        set_truth(p, OP_PODS_READY, false, laggard->reason, "a pod can't start; status.message says why");
    else
        set_truth(p, OP_PODS_READY, false, "Starting", "workers are on their way");
}

static void tell_work(struct planner *p, bool works)
{
    if (p->job->stepless)
        set_truth(p, OP_TRAINING, works, works ? "Running" : "NotRunning",
                  !works ? "the program does not run at the moment"
                  : p->next.progress.known
                      ? "the program runs, and reports its progress"
                      : "the program runs; it reports no steps, so that a hang can't be seen");
    else
        set_truth(p, OP_TRAINING, works, works ? "Training" : "NotTraining",
                  works ? "steps are committed" : "no steps are committed at the moment");
}

static void tell_ring(struct planner *p, const struct coordinator_view *view)
{
    RM_ASSERT(p->mode == OP_RUN || p->mode == OP_HOLD, "a ring is told of in mode %s", plan_mode_name(p));
    bool ring = view && view->ring_size > 0, training = ring && view->state == STATUS_TRAINING;
    if (!view && slot_is_live(&p->next.ring.coordinator) && condition_is(p->stored, OP_RING_FORMED))
        return; /* no answer yet, perhaps to a new operator: the last word stands */
    set_truth(p, OP_RING_FORMED, ring, ring ? "Formed" : "NoRing",
              ring ? "the workers' ring stands" : "the workers have no ring");
    tell_work(p, training);
    if (view && view->mixed)
        set_truth(
            p, OP_DEGRADED, true, "MixedHardware",
            "machines of several kinds trained this, as trainer.allowMixedHardware lets them: other machines "
            "would end with other bits");
    else if (ring && view->ring_size < p->next.workers.target)
        set_truth(p, OP_DEGRADED, true, "FewerWorkers",
                  "fewer workers are training than workers.target asks for");
    else
        set_truth(p, OP_DEGRADED, false, "Whole", "all wanted workers are training");
}

/* " 60 s", " 7 min", " 3 h", and nothing at first: a sentence whose every second were told would be a write
 * every ten. */
static void rough_span(int64_t ms, char *out, size_t size)
{
    int64_t seconds = ms / 1000;
    *out = 0;
    if (seconds >= 7200)
        snprintf(out, size, " %lld h", (long long)(seconds / 3600));
    else if (seconds >= 120)
        snprintf(out, size, " %lld min", (long long)(seconds / 60));
    else if (seconds >= OP_ROUGH_S)
        snprintf(out, size, " %lld s", (long long)(seconds / OP_ROUGH_S * OP_ROUGH_S));
}

enum { QUICK_TOLD = 3 }; /* ends in a row from which on they are a trouble and not an accident */

/* One that waits because it ended soon after its start again and again; -1: none. */
static int find_resting(const struct planner *p)
{
    RM_ASSERT(p->mode != OP_DONE, "who rests of a job that is over, %s", p->job->name);
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct op_slot *slot = &p->next.workers.slot[i];
        if (slot->quick >= QUICK_TOLD && plan_rests_until(p, slot, find_worker(p, i, slot->attempt)))
            return i;
    }
    return -1;
}

/* "; worker 3 ended ..." or "". */
static void tell_resting(const struct planner *p, char *out, size_t size)
{
    int resting = find_resting(p);
    *out = 0;
    if (resting >= 0)
        snprintf(out, size, "; worker %d ended %d times soon after its start, the next attempt waits",
                 resting, p->next.workers.slot[resting].quick);
}

static void pending_for(int64_t ms, char *out, size_t size)
{
    char since[24];
    rough_span(ms, since, sizeof since);
    if (*since)
        snprintf(out, size, "has been Pending for%s", since);
    else
        snprintf(out, size, "is Pending");
}

static void describe_ready(const struct planner *p, char *out, size_t size)
{
    int ready = p->next.workers.ready, needed = p->job->workers_min;
    if (ready < needed)
        snprintf(out, size, "waiting for workers: %d ready, %d needed", ready, needed);
    else
        snprintf(out, size, "%d worker%s ready", ready, ready == 1 ? "" : "s");
}

static void tell_waiting(struct planner *p, const struct coordinator_view *view, bool held_up,
                         const struct laggard *laggard)
{
    RM_ASSERT(p->mode == OP_RUN || p->mode == OP_HOLD, "a job waits in mode %s", plan_mode_name(p));
    char who[OP_REASON_MAX], since[32], more[RM_WHY_MAX], workers[64];
    describe_ready(p, workers, sizeof workers);
    plan_wake(p, p->s->now_ms + OP_TICK_MS);
    if (*p->trouble)
        say_state(p, "Waiting", "%s", p->trouble);
    else if (p->next.workers.retry_ms > p->s->now_ms)
        say_state(p, "Waiting",
                  "too few workers found a node within elasticity.startTimeout; trying again in %lld s",
                  (long long)((p->next.workers.retry_ms - p->s->now_ms + OP_ROUGH_S * 1000 - 1) /
                              (OP_ROUGH_S * 1000) * OP_ROUGH_S));
    else if (!plan_live(&p->next) && p->s->now_ms < plan_fenced_until(p))
        say_state(p, "Waiting", "%s; the one before may still run the program%s", workers,
                  p->next.workers.stray.answered
                      ? ": the next one comes when it has ended"
                      : ", where nobody sees it: the next one comes when it has to have stopped");
    else if (held_up) {
        if (laggard->index < 0)
            snprintf(who, sizeof who, "the coordinator");
        else
            snprintf(who, sizeof who, "worker %d", laggard->index);
        pending_for(p->s->now_ms - laggard->since_ms, since, sizeof since);
        say_state(p, "Waiting", "%s. %s %s: %s", workers, who, since, laggard->why);
    } else if (find_resting(p) >= 0) {
        tell_resting(p, more, sizeof more);
        say_state(p, "Waiting", "%s%s", workers, more);
    } else if (view && *view->message)
        say_state(p, "Starting", "%s; %s", workers, view->message);
    else
        say_state(p, "Starting", "%s", workers);
}

/* Whether its coordinator can be asked at all; what it said last is of no use where it can't. */
static bool tell_reachable(struct planner *p, const struct coordinator_view *view)
{
    RM_ASSERT(p->mode == OP_RUN || p->mode == OP_HOLD, "a coordinator is asked in mode %s",
              plan_mode_name(p));
    bool silent = find_silence(p) >= OP_SILENCE_MS;
    const struct op_condition *before = &p->stored->condition[OP_REACHABLE];
    static const char lost[] = "the coordinator gives no answer; status.message says why";
    if (!silent && !view)
        return true; /* it has not been asked yet: the last word stands */
    set_truth(p, OP_REACHABLE, !silent, silent ? "Silent" : "Answers",
              silent ? lost : "the coordinator answers the operator");
    if (!silent) {
        if (before->status == OP_FALSE)
            plan_event(p, false, "CoordinatorAnswers", "Ask", "the coordinator answers again");
        return true;
    }
    condition_unknown(&p->next, OP_TRAINING, "CoordinatorSilent", lost, p->job->generation, p->s->now_ms);
    condition_unknown(&p->next, OP_RING_FORMED, "CoordinatorSilent", lost, p->job->generation, p->s->now_ms);
    return false;
}

/* Workers train on without it, as long as nothing happens to them. */
static void tell_silence(struct planner *p)
{
    char since[24];
    const struct pod_view *pod = find_coordinator(p, p->stored->ring.coordinator.attempt);
    RM_ASSERT(pod, "a coordinator that is not there is silent, of term %d",
              p->stored->ring.coordinator.attempt);
    rough_span(find_silence(p), since, sizeof since);
    say_state(p, "Unreachable", "the coordinator at %s (pod %s) has given no answer for%s: %.150s%s", pod->ip,
              pod->name, since, p->s->silence->why,
              p->s->deaf ? "; nor has any other: look at the operator's own network" : "");
    if (p->stored->condition[OP_REACHABLE].status != OP_FALSE)
        plan_event(p, true, "CoordinatorSilent", "Ask", "%s", p->next.message);
}

/* Between two rings the coordinator's own sentence says more than any of ours. Where the processes of a
 * program are told to end nothing is saved: they begin anew. */
static const char *state_word(const struct planner *p, enum status_state state)
{
    RM_ASSERT(state != STATUS_TRAINING, "job %s trains, and the word for it is another one", p->job->name);
    bool begun = p->job->stepless ? p->next.ring.begun > 0 : p->next.progress.known;
    bool stops = state == STATUS_QUIESCING || state == STATUS_SAVING;
    if (stops && !p->job->stepless)
        return "Saving";
    if (stops || state == STATUS_FORMING || state == STATUS_RECOVERING)
        return begun ? "Recovering" : "Starting"; /* nothing was lost before the first ring */
    return "Finishing";
}

/* One whose place is not taken again yet. */
static const struct pod_view *find_refused(const struct planner *p)
{
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct op_slot *slot = &p->next.workers.slot[i];
        const struct pod_view *pod = slot->state == OP_SLOT_ENDED ? find_worker(p, i, slot->attempt) : NULL;
        if (pod && pod->elsewhere)
            return pod;
    }
    return NULL;
}

/* "3 of 4 workers at step 812", and what stands in the way of more. */
static void say_program(struct planner *p, const struct coordinator_view *view, const char *more)
{
    RM_ASSERT(p->job->stepless && view->state == STATUS_TRAINING, "job %s runs no program, in state %s",
              p->job->name, status_state_name(view->state));
    char at[48] = "";
    if (p->next.progress.known)
        snprintf(at, sizeof at, ", at step %lld", (long long)p->next.progress.step);
    say_state(p, "Running", "%d of %d workers run the program%s%.300s", view->ring_size,
              p->next.workers.target, at, more);
}

static void tell_training(struct planner *p, const struct coordinator_view *view,
                          const struct laggard *laggard)
{
    char more[OP_MESSAGE_MAX] = "";
    const struct pod_view *refused = find_refused(p);
    RM_ASSERT(view->state == STATUS_TRAINING, "training is told in state %s", status_state_name(view->state));
    tell_resting(p, more, sizeof more);
    if (*view->outage)
        snprintf(more, sizeof more, "; the store does not take the newest checkpoint: %s", view->outage);
    else if (*p->trouble)
        snprintf(more, sizeof more, "; %s", p->trouble);
    else if (laggard && laggard->index >= 0)
        snprintf(more, sizeof more, "; worker %d is Pending: %s", laggard->index, laggard->why);
    else if (refused)
        snprintf(more, sizeof more, "; worker %d on %.60s is refused: %s", refused->index, refused->node,
                 *refused->unfit ? refused->unfit : refused->failed_init);
    else if (*view->slower)
        snprintf(more, sizeof more, "; the GPUs' sums go over TCP: %s", view->slower);
    if (p->job->stepless)
        say_program(p, view, more);
    else
        say_state(p, "Training", "%d of %d workers at step %lld%.300s", view->ring_size,
                  p->next.workers.target, (long long)view->progress.step, more);
}

/* The condition's words do not change while it lasts: each change of them is a write. */
static void tell_lingering(struct planner *p)
{
    char said[OP_MESSAGE_MAX];
    plan_say_lingering(p, said, sizeof said);
    set_truth(p, OP_SUSPENDED, false, "Suspending",
              "the budget is spent; the workers end when what they hold is saved");
    say_state(p, "Suspending", "%s", said);
}

/* A new operator comes to a job that runs, and is about to ask its coordinator: to say that it starts would
 * be a write, and another one to take it back, of each job there is. */
static bool is_yet_to_ask(const struct planner *p)
{
    const struct op_slot *own = &p->next.ring.coordinator;
    const struct pod_view *pod = slot_is_live(own) ? find_coordinator(p, own->attempt) : NULL;
    RM_ASSERT(!find_coordinator_view(p), "the coordinator of %s has answered", p->job->name);
    return p->s->memo->told_term == 0 && pod && pod->phase == OP_RUNNING && *pod->ip && !pod_is_over(pod) &&
           condition_is(p->stored, OP_RING_FORMED) && !*p->trouble;
}

static void tell_running(struct planner *p)
{
    RM_ASSERT(p->mode == OP_RUN || p->mode == OP_HOLD, "a job runs in mode %s", plan_mode_name(p));
    struct laggard laggard = {0};
    bool held_up = find_laggard(p, &laggard);
    const struct coordinator_view *view = find_coordinator_view(p);
    tell_pods(p, held_up, &laggard);
    tell_ring(p, view);
    plan_tell_store(p, view);
    set_truth(p, OP_SUSPENDED, false, "Running", "spec.suspend is false");
    bool answers = tell_reachable(p, view);
    if (p->lingers)
        tell_lingering(p);
    else if (!answers)
        tell_silence(p);
    else if (p->mode == OP_HOLD && !*p->trouble)
        say_state(p, "Pending", "asking the API server whether it takes such pods");
    else if (view && view->state == STATUS_TRAINING)
        tell_training(p, view, held_up ? &laggard : NULL);
    else if (!view && is_yet_to_ask(p))
        plan_wake(p, p->s->now_ms + OP_TICK_MS); /* the last word stands */
    else if (!view || view->state <= STATUS_GATHERING || *p->trouble)
        tell_waiting(p, view, held_up, &laggard);
    else
        say_state(p, state_word(p, view->state), "%d of %d workers ready; %s", p->next.workers.ready,
                  p->next.workers.target, view->message);
}

/* What a coordinator told last: with none there nobody knows, and an alert on it would never end. */
static void forget_word(struct planner *p, enum op_condition_type type, const char *reason,
                        const char *message)
{
    RM_ASSERT((unsigned)type < OP_CONDITIONS, "condition %d is forgotten: %s", (int)type, reason);
    if (p->next.condition[type].status != OP_UNSET)
        condition_unknown(&p->next, type, reason, message, p->job->generation, p->s->now_ms);
}

static void no_ring(struct planner *p, const char *reason, const char *message)
{
    RM_ASSERT(p->mode != OP_RUN && p->mode != OP_HOLD, "no ring of a job in mode %s: %s", plan_mode_name(p),
              reason);
    p->next.ring.size = 0;
    memset(p->next.ring.member, 0, sizeof p->next.ring.member);
    set_truth(p, OP_PODS_READY, false, reason, message);
    set_truth(p, OP_RING_FORMED, false, reason, message);
    set_truth(p, OP_TRAINING, false, reason, message);
    set_truth(p, OP_DEGRADED, false, reason, message);
    forget_word(p, OP_STORE_READY, reason, message);
    forget_word(p, OP_REACHABLE, reason, message);
}

static bool all_gone(const struct planner *p)
{
    RM_ASSERT(p->mode == OP_STOP || p->mode == OP_SUSPEND, "all have gone in mode %s", plan_mode_name(p));
    return plan_live(p->stored) == 0 && !slot_is_live(&p->stored->ring.coordinator) &&
           plan_live(&p->next) == 0 && !slot_is_live(&p->next.ring.coordinator) &&
           !find_any_alive(p, OP_WORKER) && !find_any_alive(p, OP_COORDINATOR);
}

static const char *how_it_ends(const struct planner *p)
{
    RM_ASSERT(p->mode != OP_RUN && p->mode != OP_HOLD, "a job in mode %s ends", plan_mode_name(p));
    if (p->job->freezes)
        return "a snapshot of the program's processes is made, and the worker ends";
    return p->job->stepless ? "the program's processes are told to end, and the workers with them"
                            : "the workers save a checkpoint and end";
}

/* Once: what was spent stands still from then on. */
static void tell_suspended(struct planner *p, const char *budget)
{
    RM_ASSERT(p->mode == OP_SUSPEND, "a job is suspended in mode %s", plan_mode_name(p));
    if (condition_is(p->stored, OP_SUSPENDED))
        return;
    if (p->job->suspend)
        plan_event(p, false, "Suspended", "Suspend", "no pods are left; spec.suspend: false goes on");
    else if (p->next.cost.spent.micros > p->job->budget_micros)
        plan_event(p, true, "BudgetSpent", "Suspend", "no pods are left: %s", budget);
}

static void tell_suspend(struct planner *p)
{
    RM_ASSERT(p->mode == OP_SUSPEND && p->pauses, "a job pauses in mode %s", plan_mode_name(p));
    char budget[RM_WHY_MAX], more[RM_WHY_MAX];
    if (!all_gone(p)) {
        set_truth(p, OP_SUSPENDED, false, "Suspending", how_it_ends(p));
        say_state(p, "Suspending", "%s", how_it_ends(p));
        return;
    }
    plan_say_end(p, budget, sizeof budget);
    tell_suspended(p, budget);
    set_truth(p, OP_SUSPENDED, true, p->job->suspend ? "Suspended" : "BudgetSpent",
              p->job->suspend ? "spec.suspend is true" : budget);
    no_ring(p, "Suspended", "the job is suspended");
    if (!p->job->suspend) {
        plan_say_resumption(p, more, sizeof more);
        say_state(p, "Suspended", "%s; %s", budget, more);
        return;
    }
    if (p->next.checkpoint.known)
        say_state(p, "Suspended",
                  p->job->freezes ? "suspended; the newest snapshot is number %lld"
                                  : "suspended; the last checkpoint is of step %lld",
                  (long long)p->next.checkpoint.step);
    else
        say_state(p, "Suspended", "suspended");
}

/* The coordinator is the last one to end. */
static void tell_idle(struct planner *p)
{
    RM_ASSERT(p->mode == OP_IDLING && p->next.idle.since_ms, "a job is idle in mode %s", plan_mode_name(p));
    char said[OP_MESSAGE_MAX];
    struct laggard laggard = {0};
    idle_say(p, said, sizeof said);
    set_truth(p, OP_IDLE, true, "TooFewNodes", said);
    if (slot_is_live(&p->next.ring.coordinator) || find_any_alive(p, OP_COORDINATOR)) {
        say_state(p, "Idling", "%s; one then waits for a node, as fewer than min %d have had one",
                  how_it_ends(p), p->job->workers_min);
        return;
    }
    no_ring(p, "Idle", "the job is idle; status.message says what it waits for");
    bool held_up = find_laggard(p, &laggard);
    say_state(p, "Idle", "%s%s%.150s", said, held_up ? ": " : "", laggard.why);
}

static void tell_not_idle(struct planner *p)
{
    RM_ASSERT(p->mode != OP_IDLING, "job %s is idle, and is not", p->job->name);
    if (p->next.condition[OP_IDLE].status == OP_TRUE)
        set_truth(p, OP_IDLE, false, "NotIdle", "the job is not idle");
}

static void tell_stop(struct planner *p)
{
    RM_ASSERT(p->mode == OP_STOP && condition_is(&p->next, OP_STOPPING), "a job stops in mode %s",
              plan_mode_name(p));
    struct op_condition why = p->next.condition[OP_STOPPING];
    if (all_gone(p))
        plan_finish(p, false, why.reason, why.message);
    else
        say_state(p, "Stopping", "%s: %.200s", how_it_ends(p), why.message);
}

static void tell_end(struct planner *p)
{
    RM_ASSERT(p->mode == OP_DONE, "a job ends in mode %s", plan_mode_name(p));
    bool complete = condition_is(&p->next, OP_COMPLETE);
    const struct op_condition *c = &p->next.condition[complete ? OP_COMPLETE : OP_FAILED];
    bool just_now = !condition_is(p->stored, OP_FINISHED);
    if (just_now)
        no_ring(p, "Finished", "the job is over");
    if (just_now)
        plan_end_goodput(p);
    if (complete && just_now && p->job->stepless)
        p->next.progress.eta_seconds = 0;
    if (complete && just_now && p->next.result.known && !p->next.result.program) {
        p->next.progress.known = true;
        p->next.progress.step = p->next.progress.steps = p->next.result.step;
        p->next.progress.eta_seconds = 0;
        if (*p->next.result.loss)
            text_copy(p->next.progress.loss, OP_NUMBER_MAX, p->next.result.loss);
    }
    say_state(p, complete ? "Complete" : "Failed", "%s", c->message);
}

/* What is to go, and may not, stands behind what is said of a job that comes to its end. */
static void add_trouble(struct planner *p)
{
    RM_ASSERT(p->mode != OP_RUN && p->mode != OP_HOLD, "a job in mode %s comes to its end",
              plan_mode_name(p));
    char said[OP_MESSAGE_MAX], trouble[OP_REFUSAL_MAX];
    if (!*p->trouble)
        return;
    text_tame_ends(p->trouble, trouble, sizeof trouble);
    text_tame(p->next.message, said, sizeof said - strlen(trouble) - 2);
    snprintf(p->next.message, sizeof p->next.message, "%s; %s", said, trouble);
}

static void tell_admission(struct planner *p)
{
    if (p->mode == OP_RUN || p->mode == OP_IDLING)
        set_truth(p, OP_ADMITTED, true, "Accepted", "the cluster accepts this job's pods");
    else if (p->mode == OP_HOLD && *p->trouble)
        set_truth(p, OP_ADMITTED, false, p->trouble_reason, p->trouble);
}

static void tell_trouble(struct planner *p)
{
    const struct op_condition *before = &p->stored->condition[OP_PODS_READY],
                              *now = &p->next.condition[OP_PODS_READY];
    if (p->mode != OP_DONE && now->status == OP_FALSE && strcmp(before->reason, now->reason) != 0 &&
        strcmp(now->reason, "Starting") != 0 && strcmp(now->reason, "Suspended") != 0 &&
        strcmp(now->reason, "Idle") != 0)
        plan_event(p, true, "Waiting", "Wait", "%.180s", p->next.message);
    if (plan_live(p->stored) == 0 && plan_live(&p->next) > 0 && p->mode != OP_IDLING)
        plan_event(p, false, "WorkersCreated", "Create", "%d workers", plan_live(&p->next));
}

void plan_tell(struct planner *p)
{
    const struct coordinator_view *view = find_coordinator_view(p);
    p->next.observed_generation = p->job->generation;
    if (view && p->mode != OP_DONE) {
        take_view(p, view);
        tell_events(p, view);
        p->next.ring.heard_ms = p->s->answered_ms / 1000 * 1000;
    }
    surge_tell(p);
    count_workers(p);
    tell_admission(p);
    if (p->mode == OP_STOP)
        tell_stop(p);
    if (p->mode == OP_SUSPEND)
        tell_suspend(p);
    if (p->mode == OP_IDLING)
        tell_idle(p);
    else if (!p->next.idle.since_ms)
        tell_not_idle(p);
    if (p->mode == OP_RUN || p->mode == OP_HOLD)
        tell_running(p);
    if (p->mode == OP_DONE)
        tell_end(p);
    if (p->mode == OP_IDLING || p->mode == OP_STOP || p->mode == OP_SUSPEND || p->mode == OP_DONE)
        add_trouble(p);
    tell_trouble(p);
    plan_price_tokens(p);
}
