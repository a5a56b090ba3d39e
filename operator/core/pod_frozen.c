/* What a job with checkpoint.process needs of its workers' pods: refuses a template that can't be (job.c,
 * before any pod), gives the container its rights and a place for images (pod.c). */
#include "operator/core/pod_frozen.h"

#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/wire/json.h"
#include "operator/core/pod_parts.h"
#include "operator/core/read.h"
#include "operator/core/resources.h"

#define VOLUME    "ringmaster-snapshots"
#define OLDER_KEY "/etc/ringmaster/older-key"

#define PIDS   "a restored process takes the pid that it had, which others may hold there"
#define RIGHTS "Kubernetes gives the rights that a snapshot takes to uid 0 alone"
#define FILTER "a process with a filter of system calls can't be frozen"
#define BOUND  "its pod is bounded to the rights that a snapshot takes"

enum {
    FILES_MIB = 1024,      /* the program's own files, which travel along */
    USUAL_MIB = 10 * 1024, /* where nobody says how much memory there is */
    MEBIBYTE = 1024 * 1024,
};

/* With these and no other ones all was frozen that could be, and lived again. */
static const char *const rights[] = {"CHECKPOINT_RESTORE", "SYS_PTRACE", "SETPCAP", "SETUID", "SETGID"};
enum { RIGHTS_COUNT = sizeof rights / sizeof *rights };

/* A flag that may not have one value. */
struct frozen_flag {
    const char *key;
    bool bad;
    const char *why;
};

static const struct frozen_flag pod_flags[] = {
    {"hostPID", true, PIDS},
    {"shareProcessNamespace", true, PIDS},
    {"hostUsers", false, "only the machine's own root may look at what a process maps"},
};

static int refuse_member(const char *member, const char *why, struct error *err)
{
    return err_set(err, ERR_USAGE,
                   "spec.workers.template sets %s beside checkpoint.process: CRIU, but %s; remove it", member,
                   why);
}

static int check_flags(const struct js *object, const struct frozen_flag *flag, size_t count,
                       struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        bool said;
        if (js_as_bool(js_get(object, flag[i].key), &said) && said == flag[i].bad)
            return refuse_member(flag[i].key, flag[i].why, err);
    }
    return 0;
}

static const struct frozen_flag context_flags[] = {
    {"runAsNonRoot", true, RIGHTS},
    {"privileged", true, BOUND},
    {"allowPrivilegeEscalation", true, BOUND},
};

/* A securityContext of the pod or of the container. */
static int check_context(const struct js *context, struct error *err)
{
    int64_t user;
    const char *filter = js_as_string(read_at(context, "seccompProfile.type"));
    if (check_flags(context, context_flags, sizeof context_flags / sizeof *context_flags, err) < 0)
        return -1;
    if (js_as_int(js_get(context, "runAsUser"), &user) && user != 0)
        return refuse_member("runAsUser", RIGHTS, err);
    if (filter && !strcmp(filter, "RuntimeDefault"))
        return refuse_member("seccompProfile: RuntimeDefault", FILTER, err);
    if (filter && strcmp(filter, "Unconfined") != 0)
        return refuse_member("a seccompProfile", FILTER, err);
    return 0;
}

static bool is_right(const char *name)
{
    for (size_t i = 0; i < RIGHTS_COUNT; i++)
        if (!strcmp(name, rights[i]))
            return true;
    return false;
}

/* All but those that it adds may be dropped; of these none, and there are no others to add. */
static int check_rights(const struct js *container, struct error *err)
{
    char member[64];
    const struct js *own = read_at(container, "securityContext.capabilities");
    const struct js *dropped = js_get(own, "drop"), *added = js_get(own, "add");
    for (size_t i = 0; i < js_size(dropped); i++) {
        const char *name = js_as_string(js_at(dropped, i));
        if (name && is_right(name))
            return refuse_member(name, "a snapshot takes that capability, which it drops", err);
    }
    for (size_t i = 0; i < js_size(added); i++) {
        const char *name = js_as_string(js_at(added, i));
        if (!name || is_right(name))
            continue;
        snprintf(member, sizeof member, "the capability %.40s", name);
        return refuse_member(member, BOUND, err);
    }
    return 0;
}

int pod_frozen_refuse(const struct js *pod_spec, struct error *err)
{
    const struct js *containers = js_get(pod_spec, "containers");
    if (check_flags(pod_spec, pod_flags, sizeof pod_flags / sizeof *pod_flags, err) < 0 ||
        check_context(js_get(pod_spec, "securityContext"), err) < 0)
        return -1;
    for (size_t i = 0; i < js_size(containers); i++) {
        const struct js *container = js_at(containers, i);
        const char *name = js_as_string(js_get(container, "name"));
        if (!name || strcmp(name, "trainer") != 0)
            continue; /* one beside it is nobody's who is frozen */
        if (check_context(js_get(container, "securityContext"), err) < 0 || check_rights(container, err) < 0)
            return -1;
    }
    return 0;
}

static struct js *object_in(struct js *object, const char *key)
{
    struct js *made = js_object();
    js_set(object, key, made);
    return made;
}

void pod_frozen_rights(struct js *container)
{
    if (!js_get(container, "securityContext"))
        object_in(container, "securityContext");
    struct js *context = part_mutable(js_get(container, "securityContext"));
    struct js *own = object_in(context, "capabilities"), *drop = js_array(), *add = js_array();
    struct js *profile = object_in(context, "seccompProfile");
    js_set_bool(context, "allowPrivilegeEscalation", false);
    js_set_bool(context, "runAsNonRoot", false); /* of the pod it is still said */
    js_set_int(context, "runAsUser", 0);
    if (!js_get(context, "runAsGroup"))
        js_set_int(context, "runAsGroup", 0);
    js_push_string(drop, "ALL");
    js_set(own, "drop", drop);
    for (size_t i = 0; i < RIGHTS_COUNT; i++)
        js_push_string(add, rights[i]);
    js_set(own, "add", add);
    js_set_string(profile, "type", "Unconfined");
}

/* An image holds what is in memory, which is no more than the container may use. */
static int64_t room_mib(const struct js *container)
{
    int64_t milli;
    const char *limit = js_as_string(read_at(container, "resources.limits.memory"));
    if (!limit || !quantity_parse(limit, &milli))
        return USUAL_MIB;
    RM_ASSERT(milli >= 0, "a limit of %lld", (long long)milli);
    return milli / 1000 / MEBIBYTE + 1 + FILES_MIB;
}

static void place_images(struct js *pod_spec, struct js *container)
{
    char limit[32], bytes[32];
    int64_t mib = room_mib(container);
    snprintf(limit, sizeof limit, "%lldMi", (long long)mib);
    snprintf(bytes, sizeof bytes, "%lld", (long long)mib * MEBIBYTE);
    part_scratch(pod_spec, container, VOLUME, POD_SNAPSHOTS, limit, NULL);
    part_variable(container, "RINGMASTER_POD_IMAGES", POD_SNAPSHOTS);
    if (!part_has_volume(pod_spec, VOLUME))
        return; /* the template's own volume, which is as large as it is */
    part_variable(container, "RINGMASTER_POD_IMAGES_BYTES", bytes);
    part_disk(container, mib);
}

/* By its digest, or nobody knows what will be there another time. */
static void tell_image(struct js *container)
{
    const char *image = js_as_string(js_get(container, "image"));
    if (image && strstr(image, "@sha256:"))
        part_variable(container, "RINGMASTER_POD_IMAGE", image);
}

void pod_frozen_place(struct js *pod_spec, struct js *container, const char *older)
{
    place_images(pod_spec, container);
    tell_image(container);
    if (!older)
        return;
    part_secret(pod_spec, container,
                &(struct part_secret){.volume = "ringmaster-older-key", .secret = older, .path = OLDER_KEY});
    part_variable(container, "RINGMASTER_POD_OLDER_KEY", OLDER_KEY "/key");
}
