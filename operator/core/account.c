/* Judges how a pod ended and whose fault that was, counts it in the status, and works out when the next one
 * may be made. */
#include "operator/core/account.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"

enum {
    BACKOFF_FIRST_MS = 1000,
    BACKOFF_MOST_MS = 5 * 60 * 1000,
    MISFIT_MOST_MS = 60 * 1000, /* machines come and go */
    QUICK_MS = 60 * 1000,       /* an end sooner than this after the start... */
    ROW_MS = 15 * 60 * 1000,    /* ...and sooner than this after the one before is one more in a row */
};

const char *op_class_name(enum op_class counted)
{
    static const char *const names[] = {"nothing", "preemption", "infrastructure", "failure", "misfit"};
    RM_ASSERT((unsigned)counted <= OP_COUNT_MISFIT, "an ending of class %d", (int)counted);
    return names[counted];
}

__attribute__((format(printf, 4, 5))) static void ending(struct op_ending *ret, enum op_class counted,
                                                         const char *reason, const char *format, ...)
{
    RM_ASSERT(*reason && (unsigned)counted <= OP_COUNT_MISFIT, "an ending without a reason, of class %d",
              (int)counted);
    va_list arguments;
    ret->counted = counted;
    text_copy(ret->reason, sizeof ret->reason, reason);
    va_start(arguments, format);
    vsnprintf(ret->message, sizeof ret->message, format, arguments);
    va_end(arguments);
}

static void who(const struct pod_view *pod, int index, char *out, size_t size)
{
    const char *on = pod && *pod->node ? " on " : "";
    const char *node = pod ? pod->node : "";
    RM_ASSERT(index >= -1 && index < RM_WORKERS_MAX, "worker %d ended", index);
    if (index < 0)
        snprintf(out, size, "the coordinator%s%.60s", on, node);
    else
        snprintf(out, size, "worker %d%s%.60s", index, on, node);
}

/* What the kubelet did to a pod for reasons of its machine. */
static bool is_infrastructure(const struct pod_view *pod)
{
    static const char *const reasons[] = {"NodeShutdown", "UnexpectedAdmissionError", "NodeLost",
                                          "Terminated"};
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (!strcmp(pod->reason, reasons[i]))
            return true;
    return !strncmp(pod->reason, "OutOf", 5) || !strcmp(pod->terminated_reason, "ContainerStatusUnknown");
}

static const struct op_rule *rule_for(const struct job_view *job, int code)
{
    RM_ASSERT(job->rules_count >= 0 && job->rules_count <= OP_RULES_MAX, "%d rules of exit codes",
              job->rules_count);
    for (int i = 0; i < job->rules_count; i++)
        for (int k = 0; k < job->rule[i].codes_count; k++)
            if (job->rule[i].code[k] == code)
                return &job->rule[i];
    return NULL;
}

/* "worker@sha256:0123456789ab": enough to tell two apart. */
static void brief(const char *image, char out[OP_IMAGE_MAX])
{
    static const char digest[] = "@sha256:";
    const char *folder = strrchr(image, '/');
    image = folder ? folder + 1 : image;
    const char *at = strstr(image, digest);
    int length = at ? (int)(at - image) + (int)sizeof digest - 1 + 12 : OP_IMAGE_MAX;
    snprintf(out, OP_IMAGE_MAX, "%.*s", length, image);
}

static bool differ(const char *pinned, const char *image)
{
    return *pinned && *image && strcmp(pinned, image) != 0;
}

/* Refused by its coordinator. Where it runs another image, or another bundle, than the job began with, that
 * is why. */
static void misfit(const struct job_view *job, const struct pod_view *pod, const char *name,
                   struct op_ending *ret)
{
    RM_ASSERT(pod->elsewhere, "pod %s is refused, and fits", pod->name);
    const struct op_images *pinned = &job->status.images;
    char own[OP_IMAGE_MAX], jobs[OP_IMAGE_MAX];
    bool bundle = differ(pinned->bundle, pod->bundle);
    if (!bundle && !differ(pinned->trainer, pod->image)) {
        ending(ret, OP_COUNT_MISFIT, "Misfit", "%s is refused: %s", name, pod->unfit);
        return;
    }
    brief(bundle ? pod->bundle : pod->image, own);
    brief(bundle ? pinned->bundle : pinned->trainer, jobs);
    if (bundle)
        ending(ret, OP_COUNT_MISFIT, "OtherSoftware",
               "%s is refused: its bundle is of %.56s, the job's of %.56s", name, own, jobs);
    else
        ending(ret, OP_COUNT_MISFIT, "OtherSoftware",
               "%s is refused: worker image %.56s computes other bits than %.56s, the job's", name, own,
               jobs);
}

/* It has left behind why it ended so: whatever else may end a container, that is the agent's own word. */
static bool has_said_why(const struct pod_view *pod)
{
    return pod->last_word.known && pod->last_word.exit_code == pod->exit_code && *pod->last_word.reason;
}

/* What a worker of a user's program ends with may be anybody's word, where no trainer of ours refuses that
 * program. */
static bool is_refused(const struct job_view *job, const struct pod_view *pod)
{
    RM_ASSERT(pod_is_over(pod), "pod %s is refused, and not over", pod->name);
    bool program = job->launched && !job->stepless && pod->role == OP_WORKER && has_said_why(pod);
    return program && (pod->exit_code == EXIT_USAGE || pod->exit_code == EXIT_DATA);
}

/* Codes by which a program of ours says that another attempt would end the same. */
static bool is_final(const struct job_view *job, const struct pod_view *pod)
{
    bool ours = !job->launched || pod->role == OP_COORDINATOR;
    bool final = pod->exit_code == EXIT_USAGE || pod->exit_code == EXIT_DATA;
    return (ours && final) || is_refused(job, pod);
}

/* Of a user's program the coordinator learns the exit code, and asks the rules about it: the pod's own code
 * is never that. */
static void failure(const struct job_view *job, const struct pod_view *pod, const char *name,
                    struct op_ending *ret)
{
    RM_ASSERT(pod_is_over(pod), "pod %s failed, and is not over", pod->name);
    bool memory = strcmp(pod->terminated_reason, "OOMKilled") == 0;
    const struct op_rule *rule = job->launched ? NULL : rule_for(job, pod->exit_code);
    if (*pod->failed_init && !pod->terminated) {
        ending(ret, pod->elsewhere ? OP_COUNT_MISFIT : OP_COUNT_FAILURE, "InitContainerFailed", "%s: %s",
               name, pod->failed_init);
        return;
    }
    if (pod->elsewhere) { /* the machine's or the image's fault, whatever a rule says of such a code */
        misfit(job, pod, name, ret);
        return;
    }
    if (memory && job->launched)
        ending(ret, OP_COUNT_FAILURE, "OOMKilled", "%s: killed by signal 9, out of memory", name);
    else if (memory)
        ending(ret, OP_COUNT_FAILURE, "OOMKilled", "%s used more memory than its limit", name);
    else if (is_final(job, pod) && has_said_why(pod))
        ending(ret, OP_COUNT_FAILURE, "ExitCode", "%s ended with exit code %d: %s", name, pod->exit_code,
               pod->last_word.reason);
    else
        ending(ret, OP_COUNT_FAILURE, "ExitCode", "%s ended with exit code %d", name, pod->exit_code);
    if (rule) {
        ret->fails_job = rule->action == OP_RULE_FAIL_JOB;
        ret->spares_budget = rule->action == OP_RULE_RESTART && !memory; /* it would never be enough */
    } else {
        ret->fails_job = is_final(job, pod);
        ret->refused = is_refused(job, pod) && !memory;
    }
}

/* Its program may have been slow to come up, or its image's disk is broken. Where it is the program after all
 * the coordinator, who hears of each, says so. */
void account_refused_alone(struct op_ending *ending)
{
    RM_ASSERT(ending->refused, "what nobody refused is refused alone: %s", ending->message);
    ending->counted = OP_COUNT_MISFIT;
    text_copy(ending->reason, sizeof ending->reason, "Refused");
    ending->fails_job = ending->refused = false;
}

bool account_blames_node(struct job_status *status, const struct pod_view *pod, bool others_train,
                         struct op_ending *ending)
{
    bool quick = pod && *pod->node && pod->ended_ms && pod->ended_ms - pod->created_ms < QUICK_MS;
    bool memory = pod && strcmp(pod->terminated_reason, "OOMKilled") == 0;
    if (!quick || memory || ending->counted != OP_COUNT_FAILURE || ending->fails_job)
        return false;
    bool again = !strcmp(status->restarts.node, pod->node);
    int times = again ? status->restarts.node_failures : 0;
    status->restarts.node_failures = times < OP_COUNT_MAX ? times + 1 : times;
    text_copy(status->restarts.node, sizeof status->restarts.node, pod->node);
    if (!times || !others_train)
        return false;
    ending->counted = OP_COUNT_MISFIT;
    text_copy(ending->reason, sizeof ending->reason, "NodeFails");
    size_t said = strlen(ending->message);
    RM_ASSERT(said < sizeof ending->message, "a sentence of %zu bytes", said);
    snprintf(ending->message + said, sizeof ending->message - said,
             "; so did the last one on %.100s, which is rather avoided from now on", pod->node);
    return true;
}

bool account_is_done(const struct pod_view *pod)
{
    bool good = pod->terminated ? pod->exit_code == EXIT_DONE : pod->phase == OP_SUCCEEDED;
    return good && !pod->left;
}

/* A pod whose container has ended by itself or by a signal. */
static void over(const struct job_view *job, const struct pod_view *pod, const char *name,
                 struct op_ending *ret)
{
    RM_ASSERT(pod_is_over(pod), "pod %s ended, and is not over", pod->name);
    if (is_infrastructure(pod))
        ending(ret, OP_COUNT_INFRASTRUCTURE, *pod->reason ? pod->reason : "ContainerStatusUnknown",
               "%s was ended by its node", name);
    else if (*pod->reason && strcmp(pod->reason, "DeadlineExceeded") != 0)
        ending(ret, OP_COUNT_PREEMPTION, pod->reason, "%s was taken away: %s", name, pod->reason);
    else if (pod->left)
        ending(ret, OP_COUNT_PREEMPTION, "Left", "%s left when it was told to", name);
    else if (account_is_done(pod))
        ending(ret, OP_COUNT_NOTHING, "Released", "%s was released", name);
    else
        failure(job, pod, name, ret);
}

void account_lost(const struct pod_view *pod, int index, struct op_ending *ret)
{
    char name[RM_WHY_MAX / 2];
    *ret = (struct op_ending){0};
    who(pod, index, name, sizeof name);
    ending(ret, OP_COUNT_INFRASTRUCTURE, "NodeLost", "%s is lost: it or its node is gone or silent", name);
}

void account_mute(const char *why, struct op_ending *ret)
{
    *ret = (struct op_ending){0};
    ending(ret, OP_COUNT_INFRASTRUCTURE, "CoordinatorSilent",
           "the coordinator gives no answer, and another one takes its place: %s", why);
}

void account_pod(const struct job_view *job, const struct pod_view *pod, const struct node_view *node,
                 int index, struct op_ending *ret)
{
    char name[RM_WHY_MAX / 2];
    *ret = (struct op_ending){0};
    who(pod, index, name, sizeof name);
    if (!pod)
        ending(ret, OP_COUNT_PREEMPTION, "Deleted", "%s was deleted at once by somebody else", name);
    else if ((node && !node->ready && !pod_is_over(pod)) || !strcmp(pod->disruption, "DeletionByPodGC"))
        account_lost(pod, index, ret);
    else if (*pod->disruption)
        ending(ret, OP_COUNT_PREEMPTION, pod->disruption, "%s has to go: %s", name, pod->disruption);
    else if (pod_is_over(pod))
        over(job, pod, name, ret);
    else if (node && *node->leave)
        ending(ret, OP_COUNT_PREEMPTION, "NodeLeaves", "%s has to go: its node %s", name, node->leave);
    else if (pod->deletion_ms)
        ending(ret, OP_COUNT_PREEMPTION, "Deleted", "%s was deleted by somebody else", name);
    else
        account_lost(pod, index, ret);
    RM_ASSERT(*ret->message && (!ret->fails_job || ret->counted == OP_COUNT_FAILURE),
              "%s fails the job, and counts as %s", ret->message, op_class_name(ret->counted));
}

static void add_to_window(struct job_status *status, const struct job_view *job, int64_t now_ms)
{
    if (!status->restarts.window_ms || now_ms - status->restarts.window_ms > job->restarts_within_ms) {
        status->restarts.window_ms = now_ms;
        status->restarts.window_failures = 0;
    }
    status->restarts.window_failures++;
    RM_ASSERT(status->restarts.window_failures > 0, "%d failures in a window of one",
              status->restarts.window_failures);
}

bool account_add(struct job_status *status, const struct job_view *job, const struct op_ending *what,
                 int64_t now_ms)
{
    RM_ASSERT((unsigned)what->counted <= OP_COUNT_MISFIT, "an ending of class %d", (int)what->counted);
    switch (what->counted) {
    case OP_COUNT_NOTHING:
        return false;
    case OP_COUNT_PREEMPTION:
        status->restarts.preemption++;
        return false;
    case OP_COUNT_INFRASTRUCTURE:
        status->restarts.infrastructure++;
        return false;
    case OP_COUNT_MISFIT:
        status->restarts.misfit++;
        status->restarts.misfit_ms = now_ms;
        return false;
    case OP_COUNT_FAILURE:
        break;
    }
    status->restarts.failure++;
    status->restarts.failure_ms = now_ms;
    if (what->spares_budget)
        return false;
    add_to_window(status, job, now_ms);
    return status->restarts.window_failures > job->max_restarts;
}

int64_t account_interruptions(const struct job_status *status)
{
    RM_ASSERT(status->restarts.preemption >= 0 && status->restarts.infrastructure >= 0,
              "%d preemptions, %d endings of machines", status->restarts.preemption,
              status->restarts.infrastructure);
    return (int64_t)status->restarts.preemption + status->restarts.infrastructure;
}

int64_t account_restarts(const struct job_status *status)
{
    RM_ASSERT(status->restarts.failure >= 0 && status->restarts.misfit >= 0, "%d failures, %d misfits",
              status->restarts.failure, status->restarts.misfit);
    return (int64_t)status->restarts.failure + status->restarts.misfit;
}

void account_unfit(struct op_names *names, const char *name)
{
    int at = 0;
    if (!*name)
        return;
    while (at < names->count && strcmp(names->name[at], name) != 0)
        at++;
    if (at == OP_AVOIDED_MAX)
        at = 0;
    for (; at + 1 < names->count; at++)
        memcpy(names->name[at], names->name[at + 1], sizeof names->name[at]);
    text_copy(names->name[at], sizeof names->name[at], name);
    names->count = at + 1;
    RM_ASSERT(names->count <= OP_AVOIDED_MAX, "%d names are avoided", names->count);
}

static int64_t after(int64_t last_ms, int times, int64_t most_ms)
{
    int64_t wait = BACKOFF_FIRST_MS;
    for (int i = 1; i < times && wait < most_ms; i++)
        wait *= 2;
    RM_ASSERT(wait > 0, "the next attempt waits %lld ms", (long long)wait);
    return last_ms ? last_ms + (wait < most_ms ? wait : most_ms) : 0;
}

void account_end(struct op_slot *slot, int64_t created_ms, int64_t now_ms)
{
    bool in_a_row = slot->quick_ms && now_ms - slot->quick_ms < ROW_MS;
    bool quick = !created_ms || now_ms - created_ms < QUICK_MS;
    slot->quick = quick ? (in_a_row ? slot->quick : 0) + 1 : 0;
    slot->quick_ms = quick ? now_ms : 0;
    RM_ASSERT((slot->quick > 0) == (slot->quick_ms != 0), "it ended soon %d times in a row, last at %lld",
              slot->quick, (long long)slot->quick_ms);
}

int64_t account_quick_until(const struct op_slot *slot)
{
    RM_ASSERT(slot->quick >= 0, "attempt %d ended soon %d times in a row", slot->attempt, slot->quick);
    return after(slot->quick_ms, slot->quick, BACKOFF_MOST_MS);
}

int64_t account_backoff_until(const struct job_status *status)
{
    RM_ASSERT(status->restarts.window_failures >= 0 && status->restarts.misfit >= 0,
              "%d failures, %d misfits", status->restarts.window_failures, status->restarts.misfit);
    int64_t failure = after(status->restarts.failure_ms, status->restarts.window_failures, BACKOFF_MOST_MS),
            misfit = after(status->restarts.misfit_ms, status->restarts.misfit, MISFIT_MOST_MS);
    return failure > misfit ? failure : misfit;
}
