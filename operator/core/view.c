/* Projects pods and nodes of the API into plain structs, and answers questions about one of them. */
#include "operator/core/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/notice/taint.h"
#include "common/wire/json.h"
#include "common/wire/status.h"
#include "operator/core/machine.h"
#include "operator/core/read.h"

bool pod_is_spent(const struct pod_view *pod)
{
    return pod->phase == OP_SUCCEEDED || pod->phase == OP_POD_FAILED;
}

bool pod_is_over(const struct pod_view *pod)
{
    return pod->terminated || pod_is_spent(pod);
}

static const char *label(const struct js *metadata, const char *key)
{
    return js_as_string(js_get(js_get(metadata, "labels"), key));
}

/* A label or annotation that holds a whole number; -1 where it does not. */
static int number_of(const char *text, int highest)
{
    char *end;
    RM_ASSERT(highest >= 0, "a number up to %d", highest);
    if (!text || !*text)
        return -1;
    long value = strtol(text, &end, 10);
    return *end || value < 0 || value > highest ? -1 : (int)value;
}

/* An object has one controller at most, which the API server sees to. */
void object_controller(const struct js *object, char name[OP_NAME_MAX], char uid[OP_UID_MAX])
{
    const struct js *owners = read_at(object, "metadata.ownerReferences");
    *name = *uid = 0;
    for (size_t i = 0; i < js_size(owners); i++) {
        const struct js *from = js_at(owners, i);
        char kind[OP_REASON_MAX] = "", version[OP_NAME_MAX] = "";
        bool controls = false;
        read_text(from, "kind", kind, sizeof kind);
        read_text(from, "apiVersion", version, sizeof version);
        read_flag(from, "controller", &controls);
        if (!controls || strcmp(kind, "TrainingJob") != 0 || strncmp(version, OP_GROUP "/", sizeof OP_GROUP))
            continue;
        read_text(from, "name", name, OP_NAME_MAX);
        read_text(from, "uid", uid, OP_UID_MAX);
    }
}

bool object_is_of(const struct js *object, const struct job_view *job)
{
    char name[OP_NAME_MAX], uid[OP_UID_MAX];
    object_controller(object, name, uid);
    return !strcmp(name, job->name) && !strcmp(uid, job->uid);
}

static bool read_identity(const struct js *metadata, struct pod_view *pod)
{
    const char *role = label(metadata, OP_LABEL_ROLE);
    if (!role)
        return false;
    if (!strcmp(role, "worker")) {
        pod->role = OP_WORKER;
        pod->index = number_of(label(metadata, OP_LABEL_WORKER), RM_WORKERS_MAX - 1);
        pod->attempt = number_of(label(metadata, OP_LABEL_ATTEMPT), INT32_MAX);
        const char *capacity = label(metadata, OP_LABEL_CAPACITY);
        pod->base = capacity && !strcmp(capacity, OP_CAPACITY_BASE);
        pod->fallback = capacity && !strcmp(capacity, OP_CAPACITY_FALLBACK);
        return pod->index >= 0 && pod->attempt > 0;
    }
    pod->role = OP_COORDINATOR;
    pod->index = -1;
    pod->attempt = number_of(label(metadata, OP_LABEL_TERM), INT32_MAX);
    return !strcmp(role, "coordinator") && pod->attempt > 0;
}

static void read_metadata(const struct js *metadata, struct pod_view *pod)
{
    const char *cost =
        js_as_string(js_get(js_get(metadata, "annotations"), "controller.kubernetes.io/pod-deletion-cost"));
    read_text(metadata, "name", pod->name, sizeof pod->name);
    read_text(metadata, "uid", pod->uid, sizeof pod->uid);
    read_instant(metadata, "creationTimestamp", &pod->created_ms);
    read_instant(metadata, "deletionTimestamp", &pod->deletion_ms);
    if (cost)
        pod->deletion_cost = strtoll(cost, NULL, 10);
}

static enum pod_phase phase_of(const char *text)
{
    static const char *const names[] = {"Pending", "Running", "Succeeded", "Failed"};
    for (int i = OP_PENDING; i <= OP_POD_FAILED; i++)
        if (!strcmp(text, names[i]))
            return i;
    return *text ? OP_PHASE_UNKNOWN : OP_PENDING;
}

/* Whether all containers are ready says the kubelet; of those beside ours one may have ended long ago. */
static bool is_ready(const struct js *status, const char *ours, bool yes, const char *reason)
{
    const struct js *list = js_get(status, "containerStatuses");
    bool ready = yes;
    for (size_t i = 0; i < js_size(list) && !strcmp(reason, "ContainersNotReady"); i++) {
        const char *name = js_as_string(js_get(js_at(list, i), "name"));
        if (name && !strcmp(name, ours))
            read_flag(js_at(list, i), "ready", &ready);
    }
    return ready;
}

static void read_gates(const struct js *list, struct pod_view *pod)
{
    struct str names = str_init(sizeof pod->gates - 1);
    for (size_t i = 0; i < js_size(list); i++) {
        const char *name = js_as_string(js_get(js_at(list, i), "name"));
        str_addf(&names, "%s%s", i ? ", " : "", name ? name : "");
    }
    text_tame(str_text(&names), pod->gates, sizeof pod->gates);
    str_clear(&names);
}

static const char *ours_of(const struct pod_view *pod)
{
    return pod->role == OP_WORKER ? "trainer" : "coordinator";
}

static void read_conditions(const struct js *pod_status, struct pod_view *pod)
{
    const struct js *list = js_get(pod_status, "conditions");
    for (size_t i = 0; i < js_size(list); i++) {
        const struct js *from = js_at(list, i);
        char type[OP_REASON_MAX] = "", status[OP_REASON_MAX] = "", reason[OP_REASON_MAX] = "";
        read_text(from, "type", type, sizeof type);
        read_text(from, "status", status, sizeof status);
        read_text(from, "reason", reason, sizeof reason);
        bool yes = strcmp(status, "True") == 0;
        if (!strcmp(type, "Ready"))
            pod->ready = is_ready(pod_status, ours_of(pod), yes, reason);
        else if (!strcmp(type, "PodReadyToStartContainers"))
            pod->unprepared = !yes;
        else if (!strcmp(type, "DisruptionTarget") && yes)
            text_copy(pod->disruption, sizeof pod->disruption, *reason ? reason : "DisruptionTarget");
        else if (!strcmp(type, "PodScheduled") && yes)
            read_instant(from, "lastTransitionTime", &pod->bound_ms);
        else if (!strcmp(type, "PodScheduled") && !strcmp(reason, "Unschedulable"))
            read_text(from, "message", pod->unschedulable, sizeof pod->unschedulable);
    }
}

static void read_last_word(const char *message, struct pod_view *pod)
{
    if (!message)
        return;
    struct status_word word;
    last_word_read(message, &pod->last_word);
    struct js *root = js_parse(message, strlen(message), "termination message", NULL);
    status_read_word(&word, root);
    pod->left = word.left;
    pod->elsewhere = word.elsewhere;
    if (pod->elsewhere)
        text_tame_ends(*word.reason ? word.reason : "it gave no reason", pod->unfit, sizeof pod->unfit);
    js_free(root);
}

/* A kubelet that can't pull an image tells the failed pull and its own pause before the next one in turns:
 * the same trouble, in one set of words, or each turn would be an event and a write. The cause stands last.
 */
static void read_waiting(const struct js *waiting, struct pod_view *pod)
{
    static const char failed[] = "ErrImagePull", pause[] = "ImagePullBackOff", cause[] = ": ErrImagePull: ";
    const char *told = js_as_string(read_at(waiting, "message"));
    read_text(waiting, "reason", pod->waiting, sizeof pod->waiting);
    if (!strcmp(pod->waiting, failed))
        text_copy(pod->waiting, sizeof pod->waiting, pause);
    if (told && !strcmp(pod->waiting, pause) && strstr(told, cause))
        told = strstr(told, cause) + sizeof cause - 1;
    text_tame_ends(told ? told : "", pod->waiting_message, sizeof pod->waiting_message);
}

/* Length of "registry/folder/name" in "registry/folder/name:tag@digest". */
static size_t repository_length(const char *image)
{
    const char *name = strrchr(image, '/');
    size_t folder = name ? (size_t)(name - image) : 0;
    return folder + strcspn(image + folder, ":@");
}

/* "worker:1" may be told as "docker.io/library/worker". */
static bool is_same_repository(const char *image, const char *told)
{
    size_t length = repository_length(image), full = repository_length(told);
    return full >= length && !strncmp(told + full - length, image, length) &&
           (full == length || told[full - length - 1] == '/');
}

/* What ran under that name: the digest that the kubelet told where it can be asked for by that. (Of an image
 * that was put on a node by hand it tells a name that no registry has, or no name.) */
static void read_image(const char *image, const char *told, char out[OP_IMAGE_MAX])
{
    static const char scheme[] = "docker-pullable://";
    if (!strncmp(told, scheme, sizeof scheme - 1))
        told += sizeof scheme - 1;
    bool usable = strstr(told, "@sha256:") && strlen(told) < OP_IMAGE_MAX && is_same_repository(image, told);
    const char *chosen = usable ? told : image;
    text_copy(out, OP_IMAGE_MAX, strlen(chosen) < OP_IMAGE_MAX ? chosen : "");
}

static const char *image_asked_for(const struct js *list, const char *container)
{
    for (size_t i = 0; i < js_size(list); i++) {
        const char *name = js_as_string(js_get(js_at(list, i), "name"));
        const char *image = js_as_string(js_get(js_at(list, i), "image"));
        if (name && image && !strcmp(name, container))
            return image;
    }
    return NULL;
}

/* Of the container of that name, where it runs or ran. */
static void read_what_ran(const struct js *asked, const struct js *list, const char *container,
                          char out[OP_IMAGE_MAX])
{
    const char *image = image_asked_for(asked, container);
    for (size_t i = 0; image && i < js_size(list); i++) {
        const struct js *from = js_at(list, i);
        const char *name = js_as_string(js_get(from, "name")), *told = js_as_string(js_get(from, "imageID"));
        bool ran = read_at(from, "state.running") || read_at(from, "state.terminated");
        if (ran && name && !strcmp(name, container))
            read_image(image, told ? told : "", out);
    }
}

/* Reads one that ended with something else than 0. Ours has left a last word (ringmaster-agent install). */
static void read_failed_init(const char *name, const struct js *ended, struct pod_view *pod)
{
    char text[RM_WHY_MAX], reason[OP_REASON_MAX] = "";
    const char *message = js_as_string(js_get(ended, "message"));
    struct status_word word;
    int code = 0;
    read_small(ended, "exitCode", INT32_MIN, INT32_MAX, &code);
    if (!code || *pod->failed_init)
        return;
    read_text(ended, "reason", reason, sizeof reason);
    struct js *root =
        message && !strcmp(name, OP_INSTALLER) ? js_parse(message, strlen(message), "its word", NULL) : NULL;
    status_read_word(&word, root);
    if (word.elsewhere)
        pod->elsewhere = true;
    if (*word.reason)
        snprintf(text, sizeof text, "init container %.40s: %s", name, word.reason);
    else
        snprintf(text, sizeof text, "init container %.63s ended with exit code %d (%.40s)", name, code,
                 *reason ? reason : "Error");
    text_tame(text, pod->failed_init, sizeof pod->failed_init);
    js_free(root);
}

static void read_init(const struct js *list, struct pod_view *pod)
{
    for (size_t i = 0; i < js_size(list); i++) {
        char name[OP_NODE_MAX] = "";
        const struct js *ended = read_at(js_at(list, i), "state.terminated");
        read_text(js_at(list, i), "name", name, sizeof name);
        if (ended)
            read_failed_init(name, ended, pod);
    }
}

static void read_containers(const struct js *list, struct pod_view *pod)
{
    for (size_t i = 0; i < js_size(list); i++) {
        int64_t finished_ms = 0;
        char name[OP_NODE_MAX] = "";
        const struct js *from = js_at(list, i), *ended = read_at(from, "state.terminated");
        read_text(from, "name", name, sizeof name);
        if (!*pod->waiting)
            read_waiting(read_at(from, "state.waiting"), pod);
        read_instant(ended, "finishedAt", &finished_ms);
        pod->finished_ms = finished_ms > pod->finished_ms ? finished_ms : pod->finished_ms;
        if (!ended || strcmp(name, ours_of(pod)) != 0)
            continue;
        pod->terminated = true;
        read_small(ended, "exitCode", INT32_MIN, INT32_MAX, &pod->exit_code);
        read_instant(ended, "finishedAt", &pod->ended_ms);
        read_text(ended, "reason", pod->terminated_reason, sizeof pod->terminated_reason);
        read_last_word(js_as_string(js_get(ended, "message")), pod);
    }
}

/* An evicted pod may have no word of any container left. Its conditions changed when it ended, the later of
 * these two at the latest. */
static int64_t ended_by_conditions(const struct js *list)
{
    int64_t last_ms = 0;
    for (size_t i = 0; i < js_size(list); i++) {
        int64_t at_ms = 0;
        char type[OP_REASON_MAX] = "", status[OP_REASON_MAX] = "";
        read_text(js_at(list, i), "type", type, sizeof type);
        read_text(js_at(list, i), "status", status, sizeof status);
        read_instant(js_at(list, i), "lastTransitionTime", &at_ms);
        bool says = (!strcmp(type, "DisruptionTarget") && !strcmp(status, "True")) ||
                    (!strcmp(type, "Ready") && !strcmp(status, "False"));
        if (says && at_ms > last_ms)
            last_ms = at_ms;
    }
    return last_ms;
}

/* Of the containers that run, not of those that prepared them. */
static void read_end(const struct js *pod_status, struct pod_view *pod)
{
    int64_t begun_ms = pod->finished_ms;
    read_containers(js_get(pod_status, "containerStatuses"), pod);
    int64_t told_ms = ended_by_conditions(js_get(pod_status, "conditions"));
    if (pod_is_spent(pod) && pod->finished_ms == begun_ms && told_ms > begun_ms)
        pod->finished_ms = told_ms;
}

/* One without a key is for all taints, one without an effect for each; Karpenter's is NoSchedule. */
static bool tolerates_karpenter(const struct js *list)
{
    for (size_t i = 0; i < js_size(list); i++) {
        const char *key = js_as_string(js_get(js_at(list, i), "key"));
        const char *effect = js_as_string(js_get(js_at(list, i), "effect"));
        bool against = !effect || !*effect || !strcmp(effect, "NoSchedule");
        if (against && (!key || !*key || notice_of_taint(key) == NOTICE_KARPENTER))
            return true;
    }
    return false;
}

int pod_project(const struct js *object, struct pod_view *ret, struct error *err)
{
    struct pod_view pod = {0};
    char phase[OP_REASON_MAX] = "";
    const struct js *metadata = js_get(object, "metadata");
    if (!read_identity(metadata, &pod))
        return err_set(err, ERR_NOT_FOUND, "this pod has not the labels of a worker or coordinator");
    read_metadata(metadata, &pod);
    object_controller(object, pod.owner, pod.owner_uid);
    if (!*pod.owner || !*pod.owner_uid || !*pod.name || !*pod.uid)
        return err_set(err, ERR_NOT_FOUND, "pod %s is controlled by no TrainingJob", pod.name);
    read_text(object, "spec.nodeName", pod.node, sizeof pod.node);
    read_text(object, "status.podIP", pod.ip, sizeof pod.ip);
    read_instant(object, "status.startTime", &pod.taken_ms);
    read_text(object, "status.reason", pod.reason, sizeof pod.reason);
    read_text(object, "status.phase", phase, sizeof phase);
    pod.phase = phase_of(phase);
    read_conditions(js_get(object, "status"), &pod);
    read_gates(read_at(object, "spec.schedulingGates"), &pod);
    read_containers(read_at(object, "status.initContainerStatuses"), &pod);
    read_end(js_get(object, "status"), &pod);
    read_init(read_at(object, "status.initContainerStatuses"), &pod);
    read_what_ran(read_at(object, "spec.containers"), read_at(object, "status.containerStatuses"),
                  ours_of(&pod), pod.image);
    read_what_ran(read_at(object, "spec.initContainers"), read_at(object, "status.initContainerStatuses"),
                  OP_INSTALLER, pod.bundle);
    resources_of_pod(js_get(object, "spec"), &pod.asked);
    pod.undrained = tolerates_karpenter(read_at(object, "spec.tolerations"));
    if (*pod.node && !pod.bound_ms) /* told to go there by somebody else than a scheduler */
        pod.bound_ms = pod.taken_ms;
    *ret = pod;
    return 0;
}

/* By taints clouds and autoscalers announce that a node will go, or may. Karpenter's is a *may*: it taints
 * before it has a replacement, waits for that up to an hour, and takes the taint back where none comes (its
 * disruption queue, v1.13); that the node goes is certain once it is deleted, and then its drain begins. The
 * autoscaler's candidates are nodes that it looks at, most of which stay, and workers on one say themselves
 * that it is in use. What is out of service is gone already: pods there are seen to be lost. Of several by
 * which it will go the one counts that promises least, in whatever order they stand there. */
static void read_taint(const char *key, struct node_view *node)
{
    enum notice_source source = notice_of_taint(key);
    if (source == NOTICE_SOURCES || source == NOTICE_AUTOSCALER_CANDIDATE || source == NOTICE_OUT_OF_SERVICE)
        return;
    if (notice_kind(source)->certainty == NOTICE_WILL) {
        int64_t lead_ms = notice_kind(source)->lead / RM_MS;
        RM_ASSERT(lead_ms >= 0, "the taint %s promises %lld ms", key, (long long)lead_ms);
        if (*node->leave && node->lead_ms <= lead_ms)
            return;
        snprintf(node->leave, sizeof node->leave, "has the taint %.100s", key);
        node->lead_ms = lead_ms;
    } else if (source != NOTICE_CORDON) /* which spec.unschedulable says as well, and in better words */
        snprintf(node->may_leave, sizeof node->may_leave, "has the taint %.100s", key);
}

static void read_leaving(const struct js *object, struct node_view *node)
{
    bool cordoned = false;
    const struct js *taints = read_at(object, "spec.taints");
    read_flag(object, "spec.unschedulable", &cordoned);
    if (cordoned)
        text_copy(node->may_leave, sizeof node->may_leave, "is cordoned");
    for (size_t i = 0; i < js_size(taints); i++) {
        char key[OP_NODE_MAX] = "";
        read_text(js_at(taints, i), "key", key, sizeof key);
        read_taint(key, node);
    }
    if (js_as_string(read_at(object, "metadata.deletionTimestamp"))) {
        text_copy(node->leave, sizeof node->leave, "is being deleted");
        node->lead_ms = 0;
    }
}

/* A machine whose kubelet says nothing more is told as such when Kubernetes has waited for 50 s
 * (node-monitor-grace-period) since the newest lease, and has looked, which it does each 5 s. The lease is
 * renewed each 10 s, so the machine was there for 5 s more, give or take as much. Its heartbeat is older. */
int64_t node_last_seen(int64_t told_ms, int64_t heard_ms)
{
    static const int64_t missed_after_ms = 50000 + 5000 / 2 - 10000 / 2;
    if (!told_ms)
        return 0;
    return told_ms - missed_after_ms > heard_ms ? told_ms - missed_after_ms : heard_ms;
}

static int64_t last_seen(const struct js *ready)
{
    int64_t told_ms = 0, heard_ms = 0;
    read_instant(ready, "lastTransitionTime", &told_ms);
    read_instant(ready, "lastHeartbeatTime", &heard_ms);
    return node_last_seen(told_ms, heard_ms);
}

int node_project(const struct js *object, struct node_view *ret, struct error *err)
{
    struct node_view node = {0};
    const struct js *list = read_at(object, "status.conditions");
    read_text(object, "metadata.name", node.name, sizeof node.name);
    machine_read(object, &node.machine);
    resources_read(read_at(object, "status.allocatable"), &node.allocatable);
    if (!*node.name)
        return err_set(err, ERR_PROTOCOL, "a node without a name");
    read_leaving(object, &node);
    for (size_t i = 0; i < js_size(list); i++) {
        char type[OP_REASON_MAX] = "", status[OP_REASON_MAX] = "";
        read_text(js_at(list, i), "type", type, sizeof type);
        read_text(js_at(list, i), "status", status, sizeof status);
        if (strcmp(type, "Ready") != 0)
            continue;
        node.ready = strcmp(status, "True") == 0;
        node.unseen_ms = strcmp(status, "Unknown") ? 0 : last_seen(js_at(list, i));
    }
    *ret = node;
    return 0;
}
