#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/prng.h"
#include "common/wire/json.h"
#include "operator/core/read.h"

enum { MS = 1000, GRACE_MS = 120 * MS };

uint64_t world_draw(struct world *w, uint64_t bound)
{
    return prng_below(&w->random, bound);
}

static bool chance(struct world *w, int percent)
{
    return (int)world_draw(w, 100) < percent;
}

void world_take(struct world_truth *truth, const struct world_change *change)
{
    if (change->kind == CHANGE_JOB)
        truth->job = change->after.job;
    else if (change->kind == CHANGE_NODE)
        truth->node[change->index] = change->after.node;
    else {
        truth->pod[change->index] = change->after.pod;
        if (truth->pods_count <= change->index)
            truth->pods_count = change->index + 1;
    }
}

void world_note(struct world *w, int kind, int index)
{
    if (w->log_count == WORLD_LOG)
        abort();
    struct world_change *change = calloc(1, sizeof *change);
    change->kind = kind;
    change->index = index;
    if (kind == CHANGE_JOB)
        change->after.job = w->truth.job;
    else if (kind == CHANGE_POD)
        change->after.pod = w->truth.pod[index];
    else
        change->after.node = w->truth.node[index];
    w->log[w->log_count++] = change;
    world_take(&w->told, change);
}

static void set_up(struct node_view *node, int i)
{
    node->machine.capacity = i < 6 ? PRICE_SPOT : PRICE_ON_DEMAND;
    snprintf(node->name, OP_NODE_MAX, "node-%d", i);
}

struct world *world_open(uint64_t seed, int workers, int min)
{
    struct world *w = calloc(1, sizeof *w);
    w->random = seed;
    w->relieved_pod = -1;
    w->now_ms = 1700000000000;
    w->truth.job = (struct world_job){
        .exists = true, .revision = 1, .generation = 1, .target = workers, .min = min, .max = workers + 2};
    text_copy(w->truth.job.status, sizeof w->truth.job.status, "{}");
    world_note(w, CHANGE_JOB, 0);
    for (int i = 0; i < 4; i++) {
        w->truth.node[i].exists = true;
        w->truth.node[i].view.ready = true;
        set_up(&w->truth.node[i].view, i);
        world_note(w, CHANGE_NODE, i);
    }
    return w;
}

void world_free(struct world *w)
{
    for (int i = 0; i < w->log_count; i++)
        free(w->log[i]);
    free(w);
}

static bool is_live(const struct world_pod *pod)
{
    return pod->exists && !pod_is_over(&pod->view);
}

static bool runs(const struct world_pod *pod)
{
    return pod->exists && pod->view.phase == OP_RUNNING && !pod->view.terminated;
}

void world_check(struct world *w)
{
    const struct world_pod *live[WORLD_PODS]; /* a handful of the hundreds that have been */
    int count = 0;
    for (int i = 0; i < w->truth.pods_count; i++)
        if (is_live(&w->truth.pod[i]) && !w->truth.pod[i].view.deletion_ms)
            live[count++] = &w->truth.pod[i];
    for (int i = 0; i < count; i++)
        for (int k = i + 1; k < count; k++) {
            const struct world_pod *a = live[i], *b = live[k];
            if (a->view.role == b->view.role && a->view.index == b->view.index && !*w->wrong)
                snprintf(w->wrong, sizeof w->wrong, "two pods of index %d: attempts %d and %d", a->view.index,
                         a->view.attempt, b->view.attempt);
        }
}

static struct world_node *node_of(struct world *w, const struct pod_view *pod)
{
    for (int i = 0; i < WORLD_NODES && *pod->node; i++)
        if (w->truth.node[i].exists && !strcmp(w->truth.node[i].view.name, pod->node))
            return &w->truth.node[i];
    return NULL;
}

static void end_pod(struct world *w, int i, enum pod_phase phase, int code, const char *reason)
{
    struct pod_view *pod = &w->truth.pod[i].view;
    pod->phase = w->truth.pod[i].sidecar ? OP_RUNNING : phase;
    pod->ready = false;
    pod->terminated = true;
    pod->exit_code = code;
    pod->ended_ms = w->now_ms;
    text_copy(pod->terminated_reason, sizeof pod->terminated_reason, reason);
    world_note(w, CHANGE_POD, i);
}

static void remove_pod(struct world *w, int i)
{
    w->truth.pod[i].exists = false;
    world_note(w, CHANGE_POD, i);
}

static bool is_full(const struct world *w, const struct world_node *node)
{
    for (int i = 0; i < w->truth.pods_count && w->single; i++) {
        const struct world_pod *pod = &w->truth.pod[i];
        if (is_live(pod) && pod->view.role == OP_WORKER && !strcmp(pod->view.node, node->view.name))
            return true;
    }
    return false;
}

static void schedule(struct world *w, int i)
{
    int pick = (int)world_draw(w, WORLD_NODES);
    const struct world_node *node = &w->truth.node[pick];
    const struct world_pod *pod = &w->truth.pod[i];
    if (!node->exists || !node->view.ready || *node->view.leave || *node->view.may_leave ||
        pod->barred[pick] || (pod->view.role == OP_WORKER && is_full(w, node)))
        return;
    text_copy(w->truth.pod[i].view.node, OP_NODE_MAX, node->view.name);
    w->truth.pod[i].view.bound_ms = w->lies ? w->now_ms : 0;
    world_note(w, CHANGE_POD, i);
}

static void run_pod(struct world *w, int i)
{
    struct pod_view *pod = &w->truth.pod[i].view;
    pod->phase = OP_RUNNING;
    pod->ready = true;
    w->truth.pod[i].waits = w->beside && pod->role == OP_WORKER;
    w->truth.pod[i].sidecar = w->sidecars && chance(w, 50);
    snprintf(pod->ip, sizeof pod->ip, "10.0.0.%d", i % 250);
    world_note(w, CHANGE_POD, i);
}

static bool is_misfit(const struct world *w, const struct pod_view *pod)
{
    return w->mixed && pod->role == OP_WORKER && !strcmp(pod->node, "node-3");
}

static void refuse_pod(struct world *w, int i)
{
    struct pod_view *pod = &w->truth.pod[i].view;
    w->refused++;
    pod->elsewhere = true;
    text_copy(pod->unfit, sizeof pod->unfit, "it computes other bits");
    end_pod(w, i, OP_POD_FAILED, 3, "Error");
}

static bool coordinator_is_newest(const struct world *w, int i)
{
    for (int k = 0; k < w->truth.pods_count; k++) {
        const struct world_pod *other = &w->truth.pod[k];
        if (runs(other) && !other->hung && other->view.role == OP_COORDINATOR &&
            other->view.attempt > w->truth.pod[i].view.attempt)
            return false;
    }
    return true;
}

static void kubelet(struct world *w, int i)
{
    struct world_pod *pod = &w->truth.pod[i];
    struct world_node *node = node_of(w, &pod->view);
    if (!*pod->view.node && !pod->view.deletion_ms) {
        schedule(w, i);
        return;
    }
    if (*pod->view.node && (!node || !node->view.ready))
        return; /* a dead machine does nothing */
    if (pod->view.deletion_ms) {
        if (!pod_is_over(&pod->view) && *pod->view.node) {
            pod->view.left = pod->view.role == OP_WORKER;
            end_pod(w, i, OP_SUCCEEDED, 0, "Completed");
        } else
            remove_pod(w, i);
    } else if (pod->view.phase == OP_PENDING)
        run_pod(w, i);
    else if (runs(pod) && is_misfit(w, &pod->view))
        refuse_pod(w, i);
    else if (runs(pod) && !pod->hung && pod->view.role == OP_COORDINATOR && !coordinator_is_newest(w, i))
        end_pod(w, i, OP_POD_FAILED, 4, "Error");
}

static const struct world_pod *running_coordinator(const struct world *w)
{
    const struct world_pod *best = NULL;
    for (int i = 0; i < w->truth.pods_count; i++) {
        const struct world_pod *pod = &w->truth.pod[i];
        if (runs(pod) && !pod->hung && pod->view.role == OP_COORDINATOR &&
            (!best || pod->view.attempt > best->view.attempt))
            best = pod;
    }
    return best;
}

static bool is_here(struct world *w, const struct world_pod *pod)
{
    const struct world_node *node = node_of(w, &pod->view);
    return runs(pod) && pod->view.role == OP_WORKER && !pod->view.deletion_ms && node && node->view.ready;
}

static bool trains(struct world *w, const struct world_pod *pod)
{
    return is_here(w, pod) && !pod->waits;
}

static int training(struct world *w)
{
    int count = 0;
    for (int i = 0; i < w->truth.pods_count; i++)
        count += trains(w, &w->truth.pod[i]);
    return count;
}

/* The end of training: workers go one by one, then the coordinator with its last word. */
static void release(struct world *w)
{
    for (int i = 0; i < w->truth.pods_count; i++)
        if (trains(w, &w->truth.pod[i])) {
            end_pod(w, i, OP_SUCCEEDED, 0, "Completed");
            return;
        }
    for (int i = 0; i < w->truth.pods_count; i++) {
        struct world_pod *pod = &w->truth.pod[i];
        const struct world_node *node = node_of(w, &pod->view);
        if (!runs(pod) || pod->hung || pod->view.role != OP_COORDINATOR || !node || !node->view.ready)
            continue;
        struct op_last_word *last_word = &pod->view.last_word;
        last_word->known = last_word->result.known = true;
        last_word->result.step = WORLD_STEPS;
        if (!w->launched)
            text_copy(last_word->result.weights_sha256, RM_HASH_HEX, "ab");
        end_pod(w, i, OP_SUCCEEDED, 0, "Completed");
        return;
    }
}

static void report_lost(struct world *w)
{
    for (int i = 0; i < w->truth.pods_count; i++) {
        const struct world_pod *pod = &w->truth.pod[i];
        const struct world_node *node = node_of(w, &pod->view);
        bool dead = runs(pod) && pod->view.role == OP_WORKER && (!node || !node->view.ready);
        for (int k = 0; dead && k < w->lost_count; k++)
            dead = w->lost[k].worker != pod->view.index || w->lost[k].attempt != pod->view.attempt;
        if (dead && w->lost_count < RM_WORKERS_MAX)
            w->lost[w->lost_count++] =
                (struct op_gone){.worker = pod->view.index, .attempt = pod->view.attempt, .at_ms = w->now_ms};
    }
}

bool world_view(const struct world *w, int term, struct coordinator_view *ret)
{
    const struct world_pod *pod = running_coordinator(w);
    *ret = (struct coordinator_view){.term = term, .state = STATUS_GATHERING};
    if (!pod || pod->view.attempt != term)
        return false;
    name_identity("tiny", "job-uid", ret->job);
    for (int i = 0; i < w->truth.pods_count; i++)
        if (is_here((struct world *)(uintptr_t)w, &w->truth.pod[i])) {
            const struct world_pod *one = &w->truth.pod[i];
            int index = one->view.index, attempt = one->view.attempt;
            ret->worker[ret->workers_count++] = (struct op_present){.worker = index,
                                                                    .attempt = attempt,
                                                                    .in_ring = !one->waits,
                                                                    .waits = one->waits,
                                                                    .may_go = one->told == TOLD_MAY,
                                                                    .will_go = one->told == TOLD_WILL};
            if (!one->waits)
                ret->member[ret->ring_size++] = (struct op_member){.worker = index, .attempt = attempt};
        }
    memcpy(ret->lost, w->lost, sizeof ret->lost);
    ret->lost_count = w->lost_count;
    if (w->launched)
        ret->begun = w->step > 0;
    else
        ret->progress = (struct op_progress){.known = true, .step = w->step, .steps = WORLD_STEPS};
    if (w->released)
        ret->state = STATUS_FINISHED;
    else if (ret->ring_size >= w->truth.job.min)
        ret->state = STATUS_TRAINING;
    return true;
}

static int training_untold(struct world *w)
{
    int count = 0;
    for (int i = 0; i < w->truth.pods_count; i++)
        count += trains(w, &w->truth.pod[i]) && w->truth.pod[i].told != TOLD_WILL;
    return count;
}

static void leave_ring(struct world *w, int i)
{
    w->left++;
    w->truth.pod[i].view.left = true;
    end_pod(w, i, OP_SUCCEEDED, 0, "Completed");
}

/* ---- a ring that takes in who waits beside it, as coordinator/core makes it ---- */

/* The operator asked that it go when another one has come in its place. */
static bool is_eased(const struct world *w, const struct world_pod *pod)
{
    char name[2][40];
    snprintf(name[0], sizeof name[0], "=%d.%d", pod->view.index, pod->view.attempt);
    snprintf(name[1], sizeof name[1], ",%d.%d", pod->view.index, pod->view.attempt);
    for (int k = 0; k < 2; k++) {
        const char *at = strstr(w->relief, name[k]);
        if (at && (at[strlen(name[k])] == ',' || at[strlen(name[k])] == '&'))
            return pod->told != TOLD_WILL;
    }
    return false;
}

/* The member that goes first of those whose machines will go; of the eased the last; -1: nobody. */
static int first_to_go(struct world *w)
{
    int first = -1;
    for (int i = 0; i < w->truth.pods_count; i++) {
        const struct world_pod *pod = &w->truth.pod[i];
        if (trains(w, pod) && pod->told == TOLD_WILL &&
            (first < 0 || pod->goes_ms < w->truth.pod[first].goes_ms))
            first = i;
    }
    return first;
}

static int last_eased(struct world *w)
{
    int last = -1;
    for (int i = 0; i < w->truth.pods_count; i++)
        if (trains(w, &w->truth.pod[i]) && is_eased(w, &w->truth.pod[i]))
            last = i;
    return last;
}

static int to_stay(const struct world *w)
{
    const char *stay = strstr(w->relief, "&stay=");
    int wanted = stay ? (int)strtol(stay + 6, NULL, 10) : 0;
    return wanted > w->truth.job.min ? wanted : w->truth.job.min;
}

/* The next one who waits comes in, and who has no place any more goes in the same change. */
static void form(struct world *w)
{
    int size = training(w), staying = training_untold(w), will = first_to_go(w), eased = last_eased(w);
    bool makes_room = eased >= 0 && staying >= to_stay(w);
    if (size >= w->truth.job.max && will < 0 && !makes_room)
        return;
    for (int i = 0; i < w->truth.pods_count; i++) {
        struct world_pod *pod = &w->truth.pod[i];
        if (!is_here(w, pod) || !pod->waits || pod->told == TOLD_WILL ||
            (is_eased(w, pod) && staying >= to_stay(w)))
            continue;
        pod->waits = false;
        if (will >= 0 && size >= w->truth.job.target)
            leave_ring(w, will);
        else if (makes_room)
            leave_ring(w, eased);
        return;
    }
}

/* As a coordinator has it: another one is in its place, or it is time. */
static void let_go(struct world *w)
{
    for (int i = 0; i < w->truth.pods_count; i++) {
        struct world_pod *pod = &w->truth.pod[i];
        bool replaced = !w->beside && training_untold(w) >= w->truth.job.target;
        if (pod->told != TOLD_WILL || !trains(w, pod) || (!replaced && w->now_ms < pod->goes_ms))
            continue;
        w->late += !replaced;
        leave_ring(w, i);
        return;
    }
    if (w->beside && chance(w, 30))
        form(w);
}

void world_tell(struct world *w, int told, int64_t in_ms)
{
    int i = w->truth.pods_count ? (int)world_draw(w, (uint64_t)w->truth.pods_count) : 0;
    if (w->truth.pods_count == 0 || !trains(w, &w->truth.pod[i]))
        return;
    w->truth.pod[i].told = told;
    w->truth.pod[i].goes_ms = w->now_ms + in_ms;
}

void world_lie(struct world *w)
{
    for (int i = 0; i < w->truth.pods_count; i++) {
        struct world_pod *pod = &w->truth.pod[i];
        if (trains(w, pod) && !strcmp(pod->view.node, "node-0") && chance(w, 50))
            pod->told = chance(w, 70) ? TOLD_MAY : TOLD_NOTHING;
    }
}

void world_check_relieved(struct world *w, const struct op_event *event)
{
    static const int64_t apart_ms = 60 * MS;
    int index;
    if (strcmp(event->reason, "Relieved") != 0 || !strstr(event->note, " leaves node-0, ") ||
        sscanf(event->note, "worker %d ", &index) != 1)
        return;
    int i = w->truth.pods_count - 1;
    while (i >= 0 && (w->truth.pod[i].view.index != index || w->truth.pod[i].view.role != OP_WORKER ||
                      strcmp(w->truth.pod[i].view.node, "node-0") != 0))
        i--;
    if (i < 0 || i == w->relieved_pod)
        return; /* told again by the operator's next process */
    bool follows = w->relieved_pod >= 0 && w->truth.pod[i].view.bound_ms > w->relieved_ms;
    if (follows && w->now_ms < w->relieved_ms + apart_ms && !*w->wrong)
        snprintf(w->wrong, sizeof w->wrong, "worker %d is relieved of a machine %lld s after another one",
                 index, (long long)(w->now_ms - w->relieved_ms) / MS);
    w->relieved_pod = i;
    w->relieved_ms = w->now_ms;
    w->relieved++;
}

void world_kubelets(struct world *w)
{
    for (int i = 0; i < w->truth.pods_count; i++)
        if (w->truth.pod[i].exists && chance(w, 40))
            kubelet(w, i);
    const struct world_pod *coordinator = running_coordinator(w);
    report_lost(w);
    if (!coordinator || !w->truth.job.exists)
        return;
    let_go(w);
    if (w->step >= WORLD_STEPS && (w->released || training(w) > 0)) {
        w->released = true;
        release(w);
    } else if (training(w) >= w->truth.job.min)
        w->step++;
}

static int any_pod(struct world *w)
{
    for (int tries = 0; tries < 20 && w->truth.pods_count; tries++) {
        int i = (int)world_draw(w, (uint64_t)w->truth.pods_count);
        if (is_live(&w->truth.pod[i]))
            return i;
    }
    return -1;
}

/* Beside a program of the user's a worker may end with anything: it ends no job. */
static int fatal_code(struct world *w, const struct pod_view *pod)
{
    if (w->launched && pod->role == OP_WORKER && chance(w, 50))
        return chance(w, 50) ? 2 : 3;
    return chance(w, 50) ? 137 : 1;
}

static void pod_fault(struct world *w, int i)
{
    struct pod_view *pod = &w->truth.pod[i].view;
    const struct world_node *node = node_of(w, pod);
    switch (world_draw(w, 4)) {
    case 0: /* kubectl delete */
    case 1: /* eviction */
        if (pod->deletion_ms)
            return;
        if (chance(w, 50))
            text_copy(pod->disruption, sizeof pod->disruption, "EvictionByEvictionAPI");
        pod->deletion_ms = w->now_ms + GRACE_MS;
        world_note(w, CHANGE_POD, i);
        return;
    case 2: /* the process dies, or hangs */
        if (pod->role == OP_COORDINATOR && pod->phase == OP_RUNNING && chance(w, 50)) {
            w->truth.pod[i].hung = true;
            w->hung++;
            return;
        }
        if (runs(&w->truth.pod[i]) && node && node->view.ready)
            end_pod(w, i, OP_POD_FAILED, fatal_code(w, pod), chance(w, 30) ? "OOMKilled" : "Error");
        return;
    default: /* by force */
        remove_pod(w, i);
    }
}

void world_cordon(struct world *w, int i, bool on)
{
    text_copy(w->truth.node[i].view.may_leave, OP_REASON_MAX, on ? "is cordoned" : "");
    world_note(w, CHANGE_NODE, i);
}

void world_taint(struct world *w, int i, bool on)
{
    struct node_view *node = &w->truth.node[i].view;
    text_copy(node->leave, sizeof node->leave, on ? "has the taint ToBeDeletedByClusterAutoscaler" : "");
    node->lead_ms = on ? 2400 * MS : 0;
    world_note(w, CHANGE_NODE, i);
}

void world_take_node(struct world *w, int i)
{
    w->truth.node[i].exists = false;
    world_note(w, CHANGE_NODE, i);
}

void world_lose_one(struct world *w)
{
    int i = any_pod(w);
    if (i >= 0 && w->truth.pod[i].view.role == OP_WORKER)
        remove_pod(w, i);
}

void world_delete_pending(struct world *w)
{
    for (int i = 0; i < w->truth.pods_count; i++) {
        const struct world_pod *pod = &w->truth.pod[i];
        if (is_live(pod) && pod->view.role == OP_WORKER && !*pod->view.node) {
            remove_pod(w, i);
            return;
        }
    }
}

int world_training(struct world *w)
{
    return training(w);
}

int world_wanted(const struct world *w, enum pod_role role)
{
    int count = 0;
    for (int i = 0; i < w->truth.pods_count; i++) {
        const struct world_pod *pod = &w->truth.pod[i];
        count += is_live(pod) && pod->view.role == role && !pod->view.deletion_ms;
    }
    return count;
}

bool world_is(const struct world *w, const char *state)
{
    char wanted[OP_REASON_MAX];
    snprintf(wanted, sizeof wanted, "\"state\":\"%s\"", state);
    return strstr(w->truth.job.status, wanted) != NULL;
}

static void node_fault(struct world *w, int i)
{
    struct world_node *node = &w->truth.node[i];
    switch (world_draw(w, 5)) {
    case 0:
        node->view.ready = false;
        break;
    case 1:
        node->exists = false;
        break;
    case 2:
        text_copy(node->view.leave, sizeof node->view.leave, "is being deleted");
        break;
    case 3:
        world_cordon(w, i, true);
        return;
    default:
        node->exists = node->view.ready = true;
        *node->view.leave = *node->view.may_leave = 0;
        set_up(&node->view, i);
    }
    world_note(w, CHANGE_NODE, i);
}

void world_fault(struct world *w)
{
    int pod = any_pod(w);
    if (chance(w, 30))
        node_fault(w, (int)world_draw(w, WORLD_NODES));
    else if (pod >= 0)
        pod_fault(w, pod);
}

void world_repair_nodes(struct world *w)
{
    for (int i = 0; i < WORLD_NODES; i++) {
        struct world_node *node = &w->truth.node[i];
        node->exists = node->view.ready = true;
        *node->view.leave = *node->view.may_leave = 0;
        set_up(&node->view, i);
        world_note(w, CHANGE_NODE, i);
    }
}

void world_user(struct world *w)
{
    struct world_job *job = &w->truth.job;
    if (!job->exists)
        return;
    if (chance(w, 50))
        job->suspend = !job->suspend;
    else
        job->target = job->min + (int)world_draw(w, (uint64_t)(job->max - job->min + 1));
    job->generation++;
    job->revision++;
    world_note(w, CHANGE_JOB, 0);
}

void world_delete_job(struct world *w)
{
    w->truth.job.exists = false;
    world_note(w, CHANGE_JOB, 0);
}

void world_collect(struct world *w)
{
    for (int i = 0; i < w->truth.pods_count && !w->truth.job.exists; i++)
        if (w->truth.pod[i].exists && !w->truth.pod[i].view.deletion_ms) {
            w->truth.pod[i].view.deletion_ms = w->now_ms + GRACE_MS;
            world_note(w, CHANGE_POD, i);
        }
}
