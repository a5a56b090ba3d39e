/* Makes the pods of a job: completes the template of a worker or a coordinator with all that is ours in it,
 * and refuses one that sets what is ours. */
#include "operator/core/pod.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/job/field.h"
#include "common/wire/json.h"
#include "operator/core/objects.h"
#include "operator/core/pod_frozen.h"
#include "operator/core/pod_inherit.h"
#include "operator/core/pod_parts.h"
#include "operator/core/pod_program.h"
#include "operator/core/read.h"

#define AGENT       "/usr/bin/ringmaster-agent"
#define CREDENTIALS "/etc/ringmaster/credentials"
#define TEMPORARY   "/tmp"
#define SHARED      "/dev/shm"
#define FETCHED     "/var/cache/ringmaster"

enum { ADDRESS_MAX = OP_NAME_MAX + 8 };

struct making {
    const struct job_view *job;
    const struct op_settings *settings;
    const struct js *job_spec; /* parsed */
    struct js *pod_spec;       /* being made; owned by the pod */
    const char *field;         /* "spec.workers.template" */
    const char *ours;          /* the container's name */
    struct error *err;
};

/* An image, and how it is fetched. */
struct image {
    const char *name, *policy; /* imagePullPolicy; NULL: as the API server would */
};

/* The member of that key, made by `fresh` where there is none. */
static struct js *member(struct js *object, const char *key, struct js *(*fresh)(void))
{
    if (!js_get(object, key))
        js_set(object, key, fresh());
    return part_mutable(js_get(object, key));
}

static const struct js *named(const struct js *list, const char *name)
{
    for (size_t i = 0; i < js_size(list); i++) {
        const char *found = js_as_string(js_get(js_at(list, i), "name"));
        if (found && !strcmp(found, name))
            return js_at(list, i);
    }
    return NULL;
}

/* How much of `path` a mount at `at` is; 0: it is neither there nor above it. */
static size_t covers(const char *at, const char *path)
{
    size_t length = at ? strlen(at) : 0;
    while (length > 1 && at[length - 1] == '/')
        length--;
    bool above =
        length && !strncmp(at, path, length) && (!path[length] || path[length] == '/' || length == 1);
    return above ? length : 0;
}

static const struct js *worker_mounts(const struct js *pod)
{
    return js_get(named(js_get(pod, "containers"), "trainer"), "volumeMounts");
}

static const struct js *mounted(const struct js *pod, const struct js *mount)
{
    const char *volume = js_as_string(js_get(mount, "name"));
    return volume ? named(js_get(pod, "volumes"), volume) : NULL;
}

bool pod_template_holds(const struct job_view *job, const char *path, bool scratch)
{
    bool holds = false;
    struct js *spec = js_parse(job->spec, strlen(job->spec), "spec", NULL);
    const struct js *pod = read_at(spec, "workers.template.spec"), *mounts = worker_mounts(pod);
    for (size_t i = 0; i < js_size(mounts) && !holds; i++) {
        const struct js *mount = js_at(mounts, i), *found = mounted(pod, mount);
        holds = covers(js_as_string(js_get(mount, "mountPath")), path) && found &&
                (scratch || !js_get(found, "emptyDir"));
    }
    js_free(spec);
    return holds;
}

bool pod_keeps(const struct job_view *job, const char *path)
{
    size_t deepest = covers(TEMPORARY, path) + covers(SHARED, path) + covers(FETCHED, path);
    bool keeps = deepest > 0;
    struct js *spec = js_parse(job->spec, strlen(job->spec), "spec", NULL);
    const struct js *pod = read_at(spec, "workers.template.spec"), *mounts = worker_mounts(pod);
    for (size_t i = 0; i < js_size(mounts); i++) {
        const struct js *mount = js_at(mounts, i);
        size_t length = covers(js_as_string(js_get(mount, "mountPath")), path);
        bool read_only = false;
        if (!length || length < deepest)
            continue;
        js_as_bool(js_get(mount, "readOnly"), &read_only);
        deepest = length;
        keeps = !read_only && mounted(pod, mount);
    }
    js_free(spec);
    return keeps;
}

static int refuse_template(const struct making *m, const char *what)
{
    RM_ASSERT(*what && *m->field, "\"%s\" is refused for \"%s\"", m->field, what);
    return err_set(m->err, ERR_USAGE, "%s: %s", m->field, what);
}

/* What only the operator may say; it would not work otherwise, so silence would be worse than a refusal. */
static int check_container(const struct making *m, const struct js *container)
{
    static const char *const ours[] = {"command",       "args",         "workingDir",
                                       "livenessProbe", "startupProbe", "restartPolicy"};
    char text[RM_WHY_MAX];
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (js_get(container, ours[i])) {
            snprintf(text, sizeof text, "container %s sets %s, which the operator does; remove it", m->ours,
                     ours[i]);
            return refuse_template(m, text);
        }
    const struct js *env = js_get(container, "env");
    for (size_t i = 0; i < js_size(env); i++) {
        const char *name = js_as_string(js_get(js_at(env, i), "name"));
        if (name && !strncmp(name, "RINGMASTER_POD_", 15)) {
            snprintf(text, sizeof text, "container %s sets %.60s, which the operator does; remove it",
                     m->ours, name);
            return refuse_template(m, text);
        }
    }
    return 0;
}

static bool is_ours(const struct js *named_one)
{
    const char *name = js_as_string(js_get(named_one, "name"));
    return name && !strncmp(name, "ringmaster-", 11);
}

static int check_names(const struct making *m, const char *key, const char *what)
{
    char text[RM_WHY_MAX];
    const struct js *list = js_get(m->pod_spec, key);
    for (size_t i = 0; i < js_size(list); i++)
        if (is_ours(js_at(list, i))) {
            snprintf(text, sizeof text, "%s %.60s has a name of the operator's; choose another", what,
                     js_as_string(js_get(js_at(list, i), "name")));
            return refuse_template(m, text);
        }
    return 0;
}

static int check_spec(const struct making *m)
{
    const char *policy = js_as_string(js_get(m->pod_spec, "restartPolicy"));
    if (policy && strcmp(policy, "Never") != 0)
        return refuse_template(
            m, "restartPolicy must be Never: an ended worker is replaced by a new pod; remove it");
    if (check_names(m, "volumes", "volume") < 0)
        return -1;
    return check_names(m, "initContainers", "init container");
}

/* Containers of the template stay; ours is made where a coordinator's template has none. */
static struct js *find_container(const struct making *m)
{
    struct js *containers = member(m->pod_spec, "containers", js_array);
    const struct js *found = named(containers, m->ours);
    if (found)
        return part_mutable(found);
    struct js *made = js_object();
    js_set_string(made, "name", m->ours);
    js_push(containers, made);
    return made;
}

static const struct js *worker_container(const struct making *m)
{
    return named(read_at(m->job_spec, "workers.template.spec.containers"), "trainer");
}

/* The worker's pod of a user's program, in an image of theirs. */
static bool runs_program(const struct making *m)
{
    return m->job->launched && strcmp(m->ours, "trainer") == 0;
}

static void read_image(const struct js *container, struct image *ret)
{
    const char *name = js_as_string(js_get(container, "image"));
    const char *policy = js_as_string(js_get(container, "imagePullPolicy"));
    if (name)
        *ret = (struct image){name, policy};
}

/* What a program's job has of Ringmaster's own, the coordinator and the bundle, is of one build, and so of
 * one image: the one that the coordinator's template names, else the operator's. `first`: whose pin counts.
 */
static struct image image_of_ours(const struct making *m, const char *first, const char *second)
{
    RM_ASSERT(m->job->launched, "job %s has no bundle", m->job->name);
    struct image image = {0};
    if (*m->settings->worker_image)
        image.name = m->settings->worker_image;
    read_image(named(read_at(m->job_spec, "coordinator.template.spec.containers"), "coordinator"), &image);
    if (*first)
        image.name = first;
    else if (*second)
        image.name = second;
    return image;
}

/* A trainer's coordinator runs the workers' image unless it is told another. */
static struct image image_of(const struct making *m, const struct js *container)
{
    const struct op_images *pinned = &m->job->status.images;
    bool worker = strcmp(m->ours, "trainer") == 0;
    struct image image = {0};
    if (m->job->launched && !worker)
        return image_of_ours(m, pinned->coordinator, pinned->bundle);
    if (*m->settings->worker_image && !m->job->launched)
        image.name = m->settings->worker_image;
    read_image(worker_container(m), &image);
    read_image(container, &image);
    if (*(worker ? pinned->trainer : pinned->coordinator))
        image.name = worker ? pinned->trainer : pinned->coordinator;
    return image;
}

/* What the job began with it goes on with. The image of the operator's holds nobody's program. */
static int set_image(const struct making *m, struct js *container)
{
    char kept[RM_URI_MAX], policy[OP_REASON_MAX] = "";
    struct image image = image_of(m, container);
    if (!image.name && runs_program(m))
        return refuse_template(
            m, "the container has no image; a program of spec.launch runs in one of yours, set it");
    if (!image.name)
        return refuse_template(
            m, "the container has no image, and the operator was given none to fall back on; set it");
    text_copy(kept, sizeof kept, image.name);
    if (image.policy)
        text_copy(policy, sizeof policy, image.policy);
    js_set_string(container, "image", kept);
    if (*policy && !js_get(container, "imagePullPolicy"))
        js_set_string(container, "imagePullPolicy", policy);
    return 0;
}

static int check_no_mount(const struct making *m, const struct js *container)
{
    char text[RM_WHY_MAX];
    const struct js *mounts = js_get(container, "volumeMounts");
    for (size_t i = 0; i < js_size(mounts); i++) {
        const char *path = js_as_string(js_get(js_at(mounts, i), "mountPath"));
        if (!path || !covers(POD_BUNDLE, path))
            continue;
        snprintf(text, sizeof text,
                 "container %s mounts a volume at %.100s, where Ringmaster's own programs lie; mount it "
                 "elsewhere",
                 m->ours, path);
        return refuse_template(m, text);
    }
    return 0;
}

/* Ringmaster's programs and a home, in a container that need have neither. */
static int set_program(const struct making *m, struct js *container)
{
    RM_ASSERT(runs_program(m), "container %s of job %s runs no program", m->ours, m->job->name);
    const struct op_images *pinned = &m->job->status.images;
    struct image image = image_of_ours(m, pinned->bundle, pinned->coordinator);
    if (check_no_mount(m, container) < 0)
        return -1;
    if (!image.name)
        return refuse_template(
            m, "the operator was given no worker image, out of which Ringmaster's programs come into "
               "the containers of spec.launch; name one in spec.coordinator.template");
    pod_program_bundle(m->pod_spec, container, image.name, image.policy, m->settings->leave_uid);
    pod_program_home(m->pod_spec, container);
    return 0;
}

/* Variables of the container itself win over those of a Secret. */
static bool has_own_key(const struct js *container)
{
    const struct js *env = js_get(container, "env");
    return named(env, "AWS_ACCESS_KEY_ID") || named(env, "AWS_SECRET_ACCESS_KEY") ||
           named(env, "AWS_SESSION_TOKEN");
}

/* They come as environment, and as files: a container's environment stays as it began, and a key that was
 * mistyped or has been changed since would be wrong until each pod is made anew. Without the Secret the pod
 * waits for it by the environment, with a sentence that names it. */
static void set_credentials(const struct making *m, struct js *container)
{
    const char *name = js_as_string(read_at(m->job_spec, "checkpoint.secretRef.name"));
    char kept[OP_NAME_MAX];
    if (!name)
        return;
    text_copy(kept, sizeof kept, name);
    struct js *reference = js_object(), *entry = js_object();
    js_set_string(reference, "name", kept);
    js_set(entry, "secretRef", reference);
    js_push(member(container, "envFrom", js_array), entry);
    if (has_own_key(container))
        return;
    part_secret(m->pod_spec, container,
                &(struct part_secret){.volume = "ringmaster-credentials",
                                      .secret = kept,
                                      .path = CREDENTIALS,
                                      .optional = true,
                                      .any_user = m->settings->leave_uid});
    part_variable(container, "RINGMASTER_POD_CREDENTIALS", CREDENTIALS);
}

/* What the fetched data may take, in MiB. */
static int64_t cache_size(const struct making *m)
{
    int64_t bytes = (int64_t)8 << 30;
    read_int(m->job_spec, "trainer.data.cacheBytes", 1 << 20, (int64_t)1 << 50, &bytes);
    RM_ASSERT(bytes >= 1 << 20, "a cache of %lld bytes", (long long)bytes);
    return bytes >> 20;
}

/* What is fetched from a store lies on the node's disk. A pod that asked for none of it is put where there is
 * no room, and is the first to be evicted. */
static void request_cache(const struct making *m, struct js *container)
{
    const char *uri = js_as_string(read_at(m->job_spec, "trainer.data.uri"));
    bool elsewhere = js_as_string(read_at(m->job_spec, "trainer.data.cache")) != NULL;
    if (uri && job_uri_is_bucket(uri) && !elsewhere && part_has_volume(m->pod_spec, "ringmaster-cache"))
        part_disk(container, cache_size(m));
}

/* The Secret with the job's key: what its status says. */
static void key_name(const struct job_view *job, char out[OP_NAME_MAX])
{
    if (*job->status.ring.key)
        text_copy(out, OP_NAME_MAX, job->status.ring.key);
    else
        name_key_of_old(job->name, job->uid, out);
    RM_ASSERT(*out, "the key of job %s has no name", job->name);
}

static void set_volumes(const struct making *m, struct js *container)
{
    char name[OP_NAME_MAX], limit[32];
    snprintf(limit, sizeof limit, "%lldMi", (long long)(cache_size(m) + 2048));
    part_scratch(m->pod_spec, container, "ringmaster-tmp", TEMPORARY, "1Gi", NULL);
    part_scratch(m->pod_spec, container, "ringmaster-shm", SHARED, NULL, "Memory");
    if (!m->job->launched) /* nothing is fetched */
        part_scratch(m->pod_spec, container, "ringmaster-cache", FETCHED, limit, NULL);
    key_name(m->job, name);
    part_secret(m->pod_spec, container,
                &(struct part_secret){.volume = "ringmaster-key",
                                      .secret = name,
                                      .path = "/etc/ringmaster/key",
                                      .any_user = m->settings->leave_uid});
}

/* The worker's pod of a program of which snapshots are made. */
static bool is_frozen(const struct making *m)
{
    return runs_program(m) && m->job->freezes;
}

static void set_frozen(const struct making *m, struct js *container)
{
    RM_ASSERT(is_frozen(m), "of job %s no snapshots are made", m->job->name);
    const char *older = js_as_string(read_at(m->job_spec, "checkpoint.processKeyRef.name"));
    pod_frozen_place(m->pod_spec, container, older);
}

/* What all pods of a job have in common. */
static int complete(const struct making *m, struct js **ret_container)
{
    struct js *container = find_container(m);
    if (check_spec(m) < 0 || check_container(m, container) < 0 || set_image(m, container) < 0)
        return -1;
    js_set_string(m->pod_spec, "restartPolicy", "Never");
    part_default_bool(m->pod_spec, "automountServiceAccountToken", false);
    part_default_bool(m->pod_spec, "enableServiceLinks", false);
    if (is_frozen(m))
        pod_frozen_rights(container);
    part_security(m->pod_spec, m->settings->leave_uid);
    if (!runs_program(m)) /* which writes where it likes, unless the template says otherwise */
        part_read_only_root(container);
    part_tolerations(m->pod_spec);
    set_credentials(m, container);
    set_volumes(m, container);
    *ret_container = container;
    return runs_program(m) ? set_program(m, container) : 0;
}

/* Of a worker whose template says nothing: a program has its own grace whole, and the agent some to spare. */
static int64_t usual_grace(const struct making *m)
{
    rm_time own;
    const char *text = js_as_string(read_at(m->job_spec, "launch.gracePeriod"));
    int64_t wanted = text && duration_parse(text, &own) ? own / RM_S + OP_RESERVE_S : 0;
    return wanted > OP_WORKER_GRACE_S ? wanted : OP_WORKER_GRACE_S;
}

static int64_t grace_of(const struct making *m, int64_t fallback)
{
    int64_t grace = fallback;
    read_int(m->pod_spec, "terminationGracePeriodSeconds", 0, 86400, &grace);
    js_set_int(m->pod_spec, "terminationGracePeriodSeconds", grace);
    RM_ASSERT(grace >= 0, "a grace of %lld s", (long long)grace);
    return grace;
}

/* From SIGTERM on a machine that may be taken away there is no more time than its cloud gives, whatever the
 * pod says. */
static int64_t grace_believed(const struct making *m)
{
    rm_time lead;
    int64_t grace = grace_of(m, usual_grace(m));
    const char *text = js_as_string(read_at(m->job_spec, "spot.leadTime"));
    bool less = text && duration_parse(text, &lead) && lead / RM_S < grace;
    return less ? lead / RM_S : grace;
}

static void add_words(struct js *command, const char *const *words)
{
    for (; *words; words++)
        js_push_string(command, *words);
}

/* By which agents find the one of the current term, and one that has to go its successor. */
static void name_of_coordinators(const struct making *m, char out[ADDRESS_MAX])
{
    char service[OP_NAME_MAX];
    name_service(m->job->name, service);
    snprintf(out, ADDRESS_MAX, "%s:%d", service, OP_COORDINATOR_PORT);
}

static void set_worker_command(const struct making *m, struct js *container, int index, int attempt)
{
    RM_ASSERT(index >= 0 && attempt >= 0 && strcmp(m->ours, "trainer") == 0, "attempt %d of worker %d is %s",
              attempt, index, m->ours);
    char address[ADDRESS_MAX], number[16], tries[16], grace[24];
    struct js *command = js_array();
    name_of_coordinators(m, address);
    snprintf(number, sizeof number, "%d", index);
    snprintf(tries, sizeof tries, "%d", attempt);
    snprintf(grace, sizeof grace, "%lld", (long long)grace_believed(m));
    const char *const words[] = {runs_program(m) ? POD_BUNDLE_AGENT : AGENT,
                                 "work",
                                 "--pod",
                                 "--worker",
                                 number,
                                 "--attempt",
                                 tries,
                                 "--coordinator",
                                 address,
                                 "--key-file",
                                 "/etc/ringmaster/key/key",
                                 "--listen",
                                 "$(RINGMASTER_POD_IP)",
                                 "--grace",
                                 grace,
                                 NULL};
    add_words(command, words);
    js_set(container, "command", command);
}

/* What saves cost, and how often all workers were lost, nobody else tells a coordinator whose workers are all
 * new. That they had been further than the newest checkpoint is one loss more. */
static void set_saves(const struct job_status *status, struct js *container)
{
    char saves[128];
    const struct op_interval *i = &status->interval;
    const int64_t ms = 1000000;
    if (!i->known)
        return;
    snprintf(saves, sizeof saves, "%lld,%lld,%lld,%lld,%lld", (long long)i->losses,
             (long long)status->progress.step, (long long)(i->observed_seconds * 1000 * ms),
             (long long)(i->stall_ms * ms), (long long)(i->safe_ms * ms));
    part_variable(container, "RINGMASTER_POD_SAVES", saves);
}

/* It stands in its environment and not on its command line: a job's image may be older than this operator. */
static void set_what_job(const struct making *m, struct js *container, const struct op_spec *spec)
{
    char identity[OP_NAME_MAX], port[16];
    snprintf(port, sizeof port, "%d", OP_COORDINATOR_METRICS_PORT);
    name_identity(m->job->name, m->job->uid, identity);
    part_variable(container, "RINGMASTER_POD_JOB", identity);
    part_variable(container, "RINGMASTER_POD_SPEC_SHA256", spec->sha256);
    part_variable(container, "RINGMASTER_POD_METRICS_PORT", port);
    if (m->job->stepless && m->job->status.ring.begun) {
        char begun[24];
        snprintf(begun, sizeof begun, "%lld", (long long)m->job->status.ring.begun);
        part_variable(container, "RINGMASTER_POD_GENERATION", begun);
    }
    if (m->job->freezes && m->job->status.workers.slot[0].attempt > 0) {
        char attempt[16];
        snprintf(attempt, sizeof attempt, "%d", m->job->status.workers.slot[0].attempt);
        part_variable(container, "RINGMASTER_POD_ATTEMPT", attempt);
    }
    set_saves(&m->job->status, container);
}

static void set_coordinator_command(const struct making *m, struct js *container, int term)
{
    RM_ASSERT(term > 0 && strcmp(m->ours, "coordinator") == 0, "term %d is %s", term, m->ours);
    char address[ADDRESS_MAX], port[16], number[16], grace[24];
    struct js *command = js_array();
    name_of_coordinators(m, address);
    snprintf(grace, sizeof grace, "%lld", (long long)grace_of(m, usual_grace(m) + OP_RESERVE_S));
    snprintf(port, sizeof port, "%d", OP_COORDINATOR_PORT);
    snprintf(number, sizeof number, "%d", term);
    const char *const words[] = {AGENT,
                                 "coordinate",
                                 "--pod",
                                 "--term",
                                 number,
                                 "--coordinator",
                                 address,
                                 "--job",
                                 "/etc/ringmaster/job/spec.json",
                                 "--key-file",
                                 "/etc/ringmaster/key/key",
                                 "--listen",
                                 "::", /* pods of a cluster of either family of addresses find it */
                                 "--port",
                                 port,
                                 "--grace",
                                 grace,
                                 NULL};
    add_words(command, words);
    js_set(container, "command", command);
}

/* Where there is no other machine a spot machine is still better than none. */
static void set_capacity(const struct making *m, const struct op_elsewhere *elsewhere)
{
    if (elsewhere && elsewhere->base)
        part_require_on_demand(m->pod_spec);
    else if (elsewhere && elsewhere->fallback) {
        part_avoid_spot(m->pod_spec);
        part_tolerate_spot(m->pod_spec);
    } else if (m->job->prefers_spot)
        part_prefer_spot(m->pod_spec);
}

/* No machine is both, and the pods of the base would wait for one for ever. */
static int check_base(const struct making *m)
{
    char text[RM_WHY_MAX];
    const char *label = part_asks_for_spot(m->pod_spec);
    if (!label || !m->job->on_demand_base)
        return 0;
    snprintf(text, sizeof text,
             "its nodeSelector asks for spot machines (%s) and spec.spot.onDemandBase is %d; take one of the "
             "two out",
             label, m->job->on_demand_base);
    return refuse_template(m, text);
}

/* Whom a worker asks for notices of its machine's end: its machine's agent; where there is none the metadata,
 * which answer who shares the machine's network. The template's own word wins, an empty one too. */
static void set_listening(const struct making *m, struct js *container)
{
    RM_ASSERT(strcmp(m->ours, "trainer") == 0, "container %s listens for notices", m->ours);
    bool host_network = false;
    read_flag(m->pod_spec, "hostNetwork", &host_network);
    if (m->settings->node_port)
        part_node_agent(container, m->settings->node_port);
    else if (host_network && !named(js_get(container, "env"), "RINGMASTER_METADATA"))
        part_metadata(container);
}

static int make_worker(const struct making *m, int index, int attempt, const struct op_elsewhere *elsewhere)
{
    struct js *container;
    if (!worker_container(m))
        return refuse_template(
            m, "spec.containers has no container named trainer; name yours so, it runs the training");
    if (check_base(m) < 0 || complete(m, &container) < 0)
        return -1;
    part_pod_environment(container);
    set_listening(m, container);
    request_cache(m, container);
    part_port(container, "metrics", OP_WORKER_METRICS_PORT);
    if (is_frozen(m))
        set_frozen(m, container);
    set_capacity(m, elsewhere);
    set_worker_command(m, container, index, attempt);
    return 0;
}

static int make_coordinator(const struct making *m, const struct op_spec *spec, int term)
{
    struct js *container;
    pod_inherit(m->pod_spec, find_container(m), read_at(m->job_spec, "workers.template.spec"),
                worker_container(m));
    if (complete(m, &container) < 0)
        return -1;
    part_pod_environment(container);
    part_port(container, "coordinator", OP_COORDINATOR_PORT);
    part_port(container, "metrics", OP_COORDINATOR_METRICS_PORT);
    part_small_resources(container);
    part_prefer_on_demand(m->pod_spec);
    part_note(m->pod_spec, container, "ringmaster-job", OP_NOTE_SPEC, "/etc/ringmaster/job", "spec.json");
    set_what_job(m, container, spec);
    set_coordinator_command(m, container, term);
    return 0;
}

/* The template's labels and annotations, ours over them. */
static struct js *metadata_of(const struct job_view *job, const char *name, const struct js *template)
{
    RM_ASSERT(*name && *job->uid, "a pod '%s' of no job", name);
    struct js *metadata = object_metadata(job, name), *labels = part_mutable(js_get(metadata, "labels"));
    const struct js *theirs = read_at(template, "metadata.labels");
    const struct js *notes = read_at(template, "metadata.annotations");
    for (void *it = js_first(theirs); it; it = js_next(theirs, it))
        if (!js_get(labels, js_key(it)) && strcmp(js_key(it), OP_LABEL_CAPACITY) != 0)
            js_set(labels, js_key(it), js_copy(js_value(it)));
    if (notes)
        js_set(metadata, "annotations", js_copy(notes));
    return metadata;
}

static struct js *begin_pod(struct making *m, const struct js *template, const char *name)
{
    RM_ASSERT(!m->pod_spec, "pod %s is begun twice", name);
    const struct js *spec = js_get(template, "spec");
    struct js *pod = js_object();
    m->pod_spec = spec ? js_copy(spec) : js_object();
    js_set_string(pod, "apiVersion", "v1");
    js_set_string(pod, "kind", "Pod");
    js_set(pod, "metadata", metadata_of(m->job, name, template));
    js_set(pod, "spec", m->pod_spec);
    return pod;
}

static void label(struct js *pod, const char *key, int value)
{
    char text[16];
    RM_ASSERT(value >= 0, "%s is %d", key, value);
    snprintf(text, sizeof text, "%d", value);
    js_set_string(part_mutable(read_at(pod, "metadata.labels")), key, text);
}

/* Over the template's, if it has one of that name. */
static void note_annotation(struct js *pod, const char *key, const char *text)
{
    struct js *metadata = part_mutable(read_at(pod, "metadata"));
    if (!js_get(metadata, "annotations"))
        js_set(metadata, "annotations", js_object());
    js_set_string(part_mutable(js_get(metadata, "annotations")), key, text);
}

static int finish_pod(struct js *pod, struct js *job_spec, int status, struct str *out)
{
    RM_ASSERT(status <= 0, "a pod is made with %d", status);
    if (status == 0)
        js_print(pod, out);
    js_free(pod);
    js_free(job_spec);
    return status;
}

int pod_worker(const struct job_view *job, const struct op_settings *settings,
               const struct op_elsewhere *elsewhere, int index, int attempt, struct str *out,
               struct error *err)
{
    char name[OP_NAME_MAX];
    RM_ASSERT(index >= 0 && index < RM_WORKERS_MAX && attempt >= 0, "worker %d, attempt %d", index, attempt);
    struct js *spec = js_parse(job->spec, strlen(job->spec), "spec", err);
    if (!spec)
        return -1;
    struct making m = {.job = job,
                       .settings = settings,
                       .job_spec = spec,
                       .ours = "trainer",
                       .field = "spec.workers.template",
                       .err = err};
    name_worker(job->name, job->uid, index, attempt, name);
    struct js *pod = begin_pod(&m, read_at(spec, "workers.template"), name);
    js_set_string(part_mutable(read_at(pod, "metadata.labels")), OP_LABEL_ROLE, "worker");
    label(pod, OP_LABEL_WORKER, index);
    label(pod, OP_LABEL_ATTEMPT, attempt);
    if (elsewhere && (elsewhere->base || elsewhere->fallback))
        js_set_string(part_mutable(read_at(pod, "metadata.labels")), OP_LABEL_CAPACITY,
                      elsewhere->base ? OP_CAPACITY_BASE : OP_CAPACITY_FALLBACK);
    int status = make_worker(&m, index, attempt, elsewhere);
    if (elsewhere) {
        part_avoid(m.pod_spec, elsewhere->unfit);
        part_bar(m.pod_spec, elsewhere->barred, elsewhere->barred_count);
    }
    return finish_pod(pod, spec, status, out);
}

int pod_coordinator(const struct job_view *job, const struct op_settings *settings,
                    const struct op_spec *given, int term, struct str *out, struct error *err)
{
    char name[OP_NAME_MAX];
    RM_ASSERT(term > 0, "a coordinator of term %d", term);
    struct js *spec = js_parse(job->spec, strlen(job->spec), "spec", err);
    if (!spec)
        return -1;
    struct making m = {.job = job,
                       .settings = settings,
                       .job_spec = spec,
                       .ours = "coordinator",
                       .field = "spec.coordinator.template",
                       .err = err};
    name_coordinator(job->name, job->uid, term, name);
    struct js *pod = begin_pod(&m, read_at(spec, "coordinator.template"), name);
    js_set_string(part_mutable(read_at(pod, "metadata.labels")), OP_LABEL_ROLE, "coordinator");
    label(pod, OP_LABEL_TERM, term);
    note_annotation(pod, OP_NOTE_SPEC, given->text ? given->text : "");
    return finish_pod(pod, spec, make_coordinator(&m, given, term), out);
}
