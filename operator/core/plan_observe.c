/* What has happened to each slot's pod since the last plan: ends are counted, by whose fault they are. */
#include <stdio.h>
#include <string.h>

#include "operator/core/plan_parts.h"

#include "common/base/assert.h"

/* The coordinator's report that it lost this very attempt; it is taken out of the list when it comes back. */
static const struct op_gone *lost_report(const struct planner *p, int index, int attempt)
{
    RM_ASSERT(index >= -1 && index < RM_WORKERS_MAX, "worker %d is lost", index);
    const struct coordinator_view *view = find_coordinator_view(p);
    const struct op_gone *found = NULL;
    for (int i = 0; view && i < view->lost_count; i++)
        if (view->lost[i].worker == index && view->lost[i].attempt == attempt)
            found = &view->lost[i];
    return found;
}

/* A worker that the coordinator lost: over at once if its node is silent, else when the kubelet had its
 * chance to say how the container ended. */
static bool is_lost(struct planner *p, const struct pod_view *pod)
{
    const struct op_gone *report = lost_report(p, pod->index, pod->attempt);
    const struct node_view *node = find_node(p, pod);
    RM_ASSERT(!pod_is_over(pod), "pod %s is over, and could be lost", pod->name);
    if (!report)
        return false;
    if (p->s->nodes_known && (!node || !node->ready))
        return true;
    if (p->s->now_ms >= report->at_ms + OP_LOST_PATIENCE_MS)
        return true;
    plan_wake(p, report->at_ms + OP_LOST_PATIENCE_MS);
    return false;
}

/* Nobody reports a coordinator lost; it is, where its node is not ready and it has been asked in vain for
 * longer than a training one can be without news. One that only stands in line to be asked, as among
 * thousands each does for longer than that, has been given nothing to answer. Were it alive after all, the
 * higher term of the next one would end it. */
static bool is_silent(struct planner *p, const struct pod_view *pod)
{
    RM_ASSERT(!pod_is_over(pod), "pod %s is over, and silent", pod->name);
    const struct node_view *node = find_node(p, pod);
    int64_t asked_ms = p->s->in_vain_ms ? p->s->in_vain_ms : p->s->now_ms; /* not asked: looked at again */
    int64_t until = asked_ms + OP_SILENT_PATIENCE_MS;
    if (pod->role != OP_COORDINATOR || !node || node->ready || !p->s->answered_ms)
        return false;
    if (p->s->now_ms < until)
        plan_wake(p, until);
    return p->s->now_ms >= until;
}

/* A kubelet that evicts a pod, or shuts down, tells that the containers have ended before it tells why: of
 * one that failed its word is waited for. Where another container runs on beside it there will be none. */
static bool awaits_kubelet(struct planner *p, const struct pod_view *pod)
{
    RM_ASSERT(pod_is_over(pod), "pod %s is not over, and its kubelet is to say why it ended", pod->name);
    int64_t until = pod->ended_ms + OP_PHASE_PATIENCE_MS;
    if (pod_is_spent(pod) || !pod_is_failed(pod) || p->s->now_ms >= until)
        return false;
    plan_wake(p, until);
    return true;
}

/* It is there and its node is well, but it gives no answer: it hangs, or nobody can reach it. Agents may be
 * no better off, and go over to its successor if they are not. Where that one gives no answer either it may
 * be our own way to them that is barred: then it is tried ever more rarely. */
static bool is_mute(struct planner *p, const struct pod_view *pod)
{
    RM_ASSERT(!pod_is_over(pod) && p->stored->ring.coordinator.quick >= 0, "pod %s is over, and silent",
              pod->name);
    int tries = p->stored->ring.coordinator.quick;
    int64_t patience = (int64_t)OP_SUCCESSION_MS << (tries < 4 ? tries : 4);
    return pod->role == OP_COORDINATOR && find_silence(p) >= patience && !p->s->deaf;
}

/* Somebody does, or did: the program was accepted. */
static bool has_trained(const struct planner *p)
{
    const struct coordinator_view *view = find_coordinator_view(p);
    return p->stored->progress.known || (view && (view->ring_size > 0 || view->progress.known));
}

/* true where this pod is over, or has to go; *ret says why. pod NULL: it is no more. */
static bool has_ended(struct planner *p, const struct pod_view *pod, int index, struct op_ending *ret)
{
    RM_ASSERT(!pod || pod->index == index, "pod %s is of worker %d, and %d has ended", pod->name, pod->index,
              index);
    const struct node_view *node = find_node(p, pod);
    if (pod && !pod_is_over(pod) && (pod_is_vanished(p, pod) || is_lost(p, pod) || is_silent(p, pod))) {
        account_lost(pod, index, ret);
        return true;
    }
    if (pod && !pod_is_over(pod) && is_mute(p, pod)) {
        account_mute(p->s->silence->why, ret);
        return true;
    }
    if (pod && pod_is_over(pod) && awaits_kubelet(p, pod))
        return false;
    bool by_itself =
        pod && pod->role == OP_WORKER && (surge_leaves_by_itself(p, index) || surge_holds(p, index));
    bool leaves = node && *node->leave && !by_itself;
    if (pod && !pod_is_over(pod) && !pod->deletion_ms && !*pod->disruption && !leaves)
        return false;
    account_pod(p->job, pod, node, index, ret);
    if (ret->refused && has_trained(p))
        account_refused_alone(ret);
    return true;
}

/* All were told to go, or are about to be: of an idle job, until its coordinator has ended as well. */
static bool is_stopping(const struct planner *p)
{
    bool idles = p->stored->idle.since_ms && slot_is_live(&p->stored->ring.coordinator);
    return p->pauses || idles || condition_is(p->stored, OP_STOPPING);
}

static void tell_ending(struct planner *p, const struct op_ending *ending)
{
    RM_ASSERT(ending->counted == OP_COUNT_NOTHING || *ending->reason, "an ending without a reason: %s",
              ending->message);
    if (ending->counted == OP_COUNT_PREEMPTION)
        plan_event(p, false, strcmp(ending->reason, "Left") == 0 ? "WorkerLeft" : "Interruption", "Replace",
                   "%s", ending->message);
    else if (ending->counted == OP_COUNT_INFRASTRUCTURE)
        plan_event(p, true, strcmp(ending->reason, "CoordinatorSilent") == 0 ? ending->reason : "NodeLost",
                   "Replace", "%s", ending->message);
    else if (ending->counted == OP_COUNT_FAILURE)
        plan_event(p, true, "PodFailed", "Replace", "%s", ending->message);
    else if (ending->counted == OP_COUNT_MISFIT)
        plan_event(p, true, strcmp(ending->reason, "NodeFails") == 0 ? "PodFailed" : "WorkerRefused",
                   "Replace", "%s", ending->message);
}

/* Counts an ending, and finds out whether it ends the job. */
static void count(struct planner *p, const struct op_ending *ending)
{
    char text[OP_MESSAGE_MAX];
    if (is_stopping(p))
        return; /* we told them to go */
    RM_ASSERT(p->mode != OP_DONE, "a job that is over counts an ending: %s", ending->message);
    bool spent = account_add(&p->next, p->job, ending, p->s->now_ms);
    tell_ending(p, ending);
    if (ending->counted != OP_COUNT_FAILURE)
        return;
    if (ending->fails_job) {
        snprintf(text, sizeof text, "%s, and another attempt would end the same way", ending->message);
        plan_fail(p, "PodFailure", text);
    } else if (spent) {
        snprintf(text, sizeof text,
                 "%s; that is more than failurePolicy.maxRestarts (%d) failures within "
                 "failurePolicy.within",
                 ending->message, p->job->max_restarts);
        plan_fail(p, "TooManyFailures", text);
    }
}

/* Also where nobody says who trains. */
static bool some_train_on(const struct planner *p, const char *type)
{
    RM_ASSERT(*type, "who trains on a machine of no type, in mode %s", plan_mode_name(p));
    const struct coordinator_view *view = find_coordinator_view(p);
    for (int i = 0; view && i < view->ring_size; i++) {
        const struct op_member *m = &view->member[i];
        const struct node_view *node = find_node(p, find_worker(p, m->worker, m->attempt));
        if (node && !strcmp(node->machine.type, type))
            return true;
    }
    return !view;
}

/* Whether the ring has a member on another machine. */
static bool others_train(const struct planner *p, const char *node)
{
    const struct coordinator_view *view = find_coordinator_view(p);
    for (int i = 0; view && view->state == STATUS_TRAINING && i < view->ring_size; i++) {
        const struct pod_view *pod = find_worker(p, view->member[i].worker, view->member[i].attempt);
        if (pod && strcmp(pod->node, node) != 0)
            return true;
    }
    return false;
}

/* One that was lost is made anew at once: it took a while to find out, and its successor is what keeps it out
 * should it come back. */
static void note_end(struct planner *p, struct op_slot *slot, const struct pod_view *pod, bool lost)
{
    RM_ASSERT(!slot_is_live(slot), "attempt %d has ended, and is wanted", slot->attempt);
    if (!lost && !is_stopping(p))
        account_end(slot, pod ? pod->created_ms : 0, p->s->now_ms);
}

/* Where others of its kind train it is this one machine that is different. */
static void note_unfit(struct planner *p, const struct pod_view *pod)
{
    struct op_unfit *unfit = &p->next.workers.unfit;
    const struct node_view *node = find_node(p, pod);
    if (!pod || pod_is_of_other_image(p, pod)) /* of a pod that is gone nobody knows the machine */
        return;
    if (*pod->failed_init) /* its disk is full; others of its kind are none the worse */
        account_unfit(&unfit->nodes, pod->node);
    else if (node && *node->machine.type && !some_train_on(p, node->machine.type))
        account_unfit(&unfit->types, node->machine.type);
    else
        account_unfit(&unfit->nodes, pod->node);
}

static void observe_worker(struct planner *p, int index)
{
    struct op_ending ending;
    struct op_slot *slot = &p->next.workers.slot[index];
    const struct pod_view *pod = find_worker(p, index, slot->attempt);
    RM_ASSERT(!pod || pod->role == OP_WORKER, "pod %s is no worker", pod->name);
    if (slot->state == OP_SLOT_SKIPPED && pod)
        slot->state = OP_SLOT_ENDED;
    if (slot->state == OP_SLOT_WANTED && pod)
        slot->state = OP_SLOT_PRESENT;
    if (slot->state != OP_SLOT_PRESENT || !has_ended(p, pod, index, &ending))
        return;
    slot->state = OP_SLOT_ENDED;
    if (slot->asked && !strcmp(ending.reason, "Left")) {
        surge_relieve(p, pod);
        return;
    }
    p->lost[index] = pod && !pod_is_over(pod) && ending.counted == OP_COUNT_INFRASTRUCTURE;
    RM_ASSERT(!slot_is_live(slot), "attempt %d of worker %d has ended, and is wanted", slot->attempt, index);
    note_end(p, slot, pod, p->lost[index]);
    bool blamed =
        !is_stopping(p) && account_blames_node(&p->next, pod, pod && others_train(p, pod->node), &ending);
    bool tolerated = !strcmp(ending.reason, "NodeLeaves") && pod && pod->undrained;
    if (blamed || tolerated) /* no taint keeps the next one from it */
        account_unfit(&p->next.workers.unfit.nodes, pod->node);
    else if (ending.counted == OP_COUNT_MISFIT)
        note_unfit(p, pod);
    if (!is_stopping(p))
        plan_note_interruption(p, pod, &ending);
    count(p, &ending);
}

/* A worker that was released has finished, and its coordinator is about to say so. */
static bool is_finishing(struct planner *p)
{
    const struct coordinator_view *view = find_coordinator_view(p);
    const struct pod_view *own = find_coordinator(p, p->stored->ring.coordinator.attempt);
    if (!own || pod_is_over(own))
        return false;
    if (view && (view->state == STATUS_FINISHED || view->last_word.known))
        return true;
    for (int i = 0; i < p->s->pods_count; i++) {
        const struct pod_view *pod = p->s->pods[i];
        int64_t until = pod->ended_ms + OP_RELEASE_PATIENCE_MS;
        if (pod->role != OP_WORKER || !pod_is_over(pod) || !account_is_done(pod) ||
            pod->created_ms < own->created_ms || p->s->now_ms >= until)
            continue;
        plan_wake(p, until);
        return true;
    }
    return false;
}

static const char *last_word_reason(const struct planner *p, int exit_code)
{
    RM_ASSERT(exit_code != EXIT_DONE, "job %s failed with %d", p->job->name, exit_code);
    switch (exit_code) {
    case EXIT_USAGE:
        return "JobRefused";
    case EXIT_DATA:
        return "DataError";
    default:
        return p->job->launched ? "ProgramFailed" : "TrainingFailed";
    }
}

/* What is at the end of a job that was trained to its end: no other checkpoint is newer. */
static void take_final(struct planner *p, const struct op_last_word *last_word)
{
    RM_ASSERT(last_word->known && last_word->exit_code == EXIT_DONE, "a run that ended with %d has a result",
              last_word->exit_code);
    struct op_checkpoint final = {.known = true,
                                  .step = last_word->result.step,
                                  .bytes = last_word->bytes,
                                  .saved_ms = last_word->saved_ms};
    text_copy(final.uri, sizeof final.uri, last_word->result.uri);
    p->next.result = last_word->result;
    plan_take_checkpoint(p, &final);
}

/* Of a job that runs a user's program: nothing but the program's own code is left of it. */
static void take_program(struct planner *p, int exit_code)
{
    RM_ASSERT(p->job->launched, "job %s runs no program", p->job->name);
    if (exit_code >= 0)
        p->next.result = (struct op_result){.known = true, .program = true, .exit_code = exit_code};
}

/* A last word that ends the job; the others (a lost machine, an interruption) end the coordinator alone. */
static bool take_last_word(struct planner *p, const struct op_last_word *last_word)
{
    RM_ASSERT(p->mode != OP_DONE, "a job that is over has another last word, %d", last_word->exit_code);
    int code = last_word->exit_code;
    char text[OP_MESSAGE_MAX];
    if (!last_word->known || last_word->interrupted)
        return false;
    if (code == EXIT_DONE && p->job->stepless) {
        take_program(p, 0);
        plan_finish(p, true, "ProgramEnded", "all processes of the program ended with 0");
        return true;
    }
    if (code == EXIT_DONE && *last_word->result.weights_sha256) {
        take_final(p, last_word);
        snprintf(text, sizeof text, "trained to step %lld", (long long)last_word->result.step);
        plan_finish(p, true, "Trained", text);
        return true;
    }
    if (code != EXIT_USAGE && code != EXIT_DATA && code != EXIT_TRAINING)
        return false;
    snprintf(text, sizeof text, "%s",
             *last_word->reason ? last_word->reason : "the coordinator gave no reason");
    if (p->job->launched)
        take_program(p, last_word->program_code);
    plan_finish(p, false, last_word_reason(p, code), text);
    return true;
}

static void observe_coordinator(struct planner *p)
{
    struct op_ending ending;
    struct op_slot *slot = &p->next.ring.coordinator;
    const struct pod_view *pod = find_coordinator(p, slot->attempt);
    RM_ASSERT(!pod || pod->role == OP_COORDINATOR, "pod %s is no coordinator", pod->name);
    if (pod && pod_is_over(pod) && take_last_word(p, &pod->last_word)) {
        slot->state = OP_SLOT_ENDED;
        return;
    }
    if (slot->state == OP_SLOT_SKIPPED && pod)
        slot->state = OP_SLOT_ENDED;
    if (slot->state == OP_SLOT_WANTED && pod)
        slot->state = OP_SLOT_PRESENT;
    if (slot->state != OP_SLOT_PRESENT || !has_ended(p, pod, -1, &ending))
        return;
    slot->state = OP_SLOT_ENDED;
    if (!strcmp(ending.reason, "CoordinatorSilent"))
        account_end(slot, 0, p->s->now_ms);
    else
        note_end(p, slot, pod, pod && !pod_is_over(pod) && ending.counted == OP_COUNT_INFRASTRUCTURE);
    if (ending.counted == OP_COUNT_NOTHING && !is_stopping(p)) {
        ending.counted = OP_COUNT_FAILURE;
        text_copy(ending.message, sizeof ending.message, "the coordinator ended without a result");
    }
    count(p, &ending);
}

static void pin(char pinned[OP_IMAGE_MAX], const char *image)
{
    if (!*pinned)
        text_copy(pinned, OP_IMAGE_MAX, image);
}

/* The first of each that runs says what the job is made with. What goes on after a pause may be another
 * program. */
static void pin_images(struct planner *p)
{
    struct op_images *images = &p->next.images;
    const struct op_slot *own = &p->next.ring.coordinator;
    if (p->job->suspend) {
        *images = (struct op_images){0};
        return;
    }
    const struct pod_view *pod = slot_is_live(own) ? find_coordinator(p, own->attempt) : NULL;
    if (pod)
        pin(images->coordinator, pod->image);
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        pod = find_live(p, i);
        if (!pod)
            continue;
        pin(images->trainer, pod->image);
        pin(images->bundle, pod->bundle);
    }
}

void plan_observe(struct planner *p)
{
    RM_ASSERT(p->mode == OP_RUN, "a plan begins in mode %s", plan_mode_name(p));
    if (condition_is(p->stored, OP_FINISHED)) {
        p->mode = OP_DONE;
        return;
    }
    pin_images(p);
    observe_coordinator(p);
    for (int i = 0; i < RM_WORKERS_MAX && p->mode != OP_DONE; i++)
        observe_worker(p, i);
    p->finishing = is_finishing(p);
}
