#include "operator/core/pod_frozen.h"

#include <string.h>

#include "common/wire/json.h"
#include "operator/core/read.h"

#define PIDS   "a restored process takes the pid that it had, which others may hold there"
#define RIGHTS "Kubernetes gives the rights that a snapshot takes to uid 0 alone"
#define FILTER "the runtime's filter refuses clone3, by which a process gets its pid again"

/* A flag that may not have one value. */
struct frozen_flag {
    const char *path;
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

static int check_flags(const struct js *pod_spec, struct error *err)
{
    for (size_t i = 0; i < sizeof pod_flags / sizeof *pod_flags; i++) {
        bool said;
        if (js_as_bool(read_at(pod_spec, pod_flags[i].path), &said) && said == pod_flags[i].bad)
            return refuse_member(pod_flags[i].path, pod_flags[i].why, err);
    }
    return 0;
}

/* A securityContext of the pod or of the container. */
static int check_context(const struct js *context, struct error *err)
{
    bool never_root;
    int64_t user;
    const char *filter = js_as_string(read_at(context, "seccompProfile.type"));
    if (js_as_bool(js_get(context, "runAsNonRoot"), &never_root) && never_root)
        return refuse_member("runAsNonRoot", RIGHTS, err);
    if (js_as_int(js_get(context, "runAsUser"), &user) && user != 0)
        return refuse_member("runAsUser", RIGHTS, err);
    if (filter && !strcmp(filter, "RuntimeDefault"))
        return refuse_member("seccompProfile: RuntimeDefault", FILTER, err);
    return 0;
}

/* Of all capabilities but those that it adds a container may be rid; of one of these it may not. */
static int check_dropped(const struct js *container, struct error *err)
{
    static const char *const needed[] = {"CHECKPOINT_RESTORE", "SYS_PTRACE", "SETPCAP", "SETUID", "SETGID"};
    const struct js *dropped = read_at(container, "securityContext.capabilities.drop");
    for (size_t i = 0; i < js_size(dropped); i++)
        for (size_t k = 0; k < sizeof needed / sizeof *needed; k++) {
            const char *name = js_as_string(js_at(dropped, i));
            if (name && !strcmp(name, needed[k]))
                return refuse_member(needed[k], "a snapshot takes that capability, which it drops", err);
        }
    return 0;
}

int pod_frozen_refuse(const struct js *pod_spec, struct error *err)
{
    const struct js *containers = js_get(pod_spec, "containers");
    if (check_flags(pod_spec, err) < 0 || check_context(js_get(pod_spec, "securityContext"), err) < 0)
        return -1;
    for (size_t i = 0; i < js_size(containers); i++) {
        const struct js *container = js_at(containers, i);
        const char *name = js_as_string(js_get(container, "name"));
        if (!name || strcmp(name, "trainer") != 0)
            continue; /* one beside it is nobody's who is frozen */
        if (check_context(js_get(container, "securityContext"), err) < 0 || check_dropped(container, err) < 0)
            return -1;
    }
    return 0;
}
