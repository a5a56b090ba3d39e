/* Takes a Lease, renews it, and tells when it is ours, and when that is no longer sure. */
#include "common/kube/lease.h"

#include <stdlib.h>
#include <string.h>

#include "common/kube/stamp.h"
#include "common/os/clock.h"

enum { DURATION_MOST_S = 3600, NAME_MAX_BYTES = 256, LABEL_MAX_BYTES = 64 };

static const rm_time every_default = 2 * RM_S, release_within = 2 * RM_S;

struct lease {
    struct loop *loop;
    struct loop_timer *timer;
    struct lease_options options;
    char namespace[NAME_MAX_BYTES], name[NAME_MAX_BYTES], identity[NAME_MAX_BYTES];
    char label[NAME_MAX_BYTES], value[LABEL_MAX_BYTES];
    rm_time every, renew_within;
    int duration_s; /* what we promise */
    struct kube_call *call;
    /* As it was seen last. */
    char holder[NAME_MAX_BYTES], version[64], acquired[STAMP_MAX];
    int64_t transitions;
    rm_time promised;   /* how long it holds without a change */
    rm_time changed_at; /* CLOCK_BOOTTIME of when this version was first seen */
    rm_time asked_at;   /* CLOCK_BOOTTIME of when the request under way was sent */
    rm_time renewed_at; /* the same of the last one that renewed it */
    bool leading, ended, releasing;
    void (*released)(void *ctx);
};

static void look_at_lease(struct lease *lease);

static void later(struct lease *lease)
{
    loop_timer_set(lease->timer, loop_now(lease->loop) + lease->every);
}

static void trouble(struct lease *lease, const struct kube_answer *answer)
{
    if (lease->options.trouble)
        lease->options.trouble(lease->options.ctx, answer);
}

static void learn_lease(struct lease *lease, const struct js *object)
{
    const struct js *spec = js_get(object, "spec");
    const char *holder = js_as_string(js_get(spec, "holderIdentity"));
    const char *version = js_as_string(js_get(js_get(object, "metadata"), "resourceVersion"));
    const char *acquired = js_as_string(js_get(spec, "acquireTime"));
    int64_t seconds = lease->duration_s;
    js_as_int(js_get(spec, "leaseDurationSeconds"), &seconds);
    seconds = seconds < 1 ? 1 : seconds > DURATION_MOST_S ? DURATION_MOST_S : seconds;
    lease->promised = seconds * RM_S;
    lease->transitions = 0;
    js_as_int(js_get(spec, "leaseTransitions"), &lease->transitions);
    text_copy(lease->holder, sizeof lease->holder, holder ? holder : "");
    text_copy(lease->acquired, sizeof lease->acquired, acquired ? acquired : "");
    if (version && strcmp(version, lease->version) != 0) {
        text_copy(lease->version, sizeof lease->version, version);
        lease->changed_at = clock_boot();
    }
}

static bool is_ours(const struct lease *lease)
{
    return !strcmp(lease->holder, lease->identity);
}

/* --- what is written --- */

static struct js *labels_of(const struct lease *lease)
{
    struct js *labels = js_object();
    if (lease->label[0])
        js_set_string(labels, lease->label, lease->value);
    return labels;
}

static void print_lease(const struct lease *lease, bool held, struct str *out)
{
    char now[STAMP_MAX];
    struct js *object = js_object(), *metadata = js_object(), *spec = js_object();
    stamp_print_micro(clock_wall_ms(), now);
    js_set_string(object, "apiVersion", "coordination.k8s.io/v1");
    js_set_string(object, "kind", "Lease");
    js_set_string(metadata, "namespace", lease->namespace);
    js_set_string(metadata, "name", lease->name);
    js_set(metadata, "labels", labels_of(lease));
    if (lease->version[0])
        js_set_string(metadata, "resourceVersion", lease->version);
    js_set(object, "metadata", metadata);
    js_set_string(spec, "holderIdentity", held ? lease->identity : "");
    js_set_int(spec, "leaseDurationSeconds", held ? lease->duration_s : 1);
    js_set_string(spec, "acquireTime", is_ours(lease) && lease->acquired[0] ? lease->acquired : now);
    js_set_string(spec, "renewTime", now);
    js_set_int(spec, "leaseTransitions", lease->transitions + (held && !is_ours(lease)));
    js_set(object, "spec", spec);
    js_print(object, out);
    js_free(object);
}

static void send_lease(struct lease *lease, enum kube_verb verb, bool held,
                       void (*done)(void *ctx, const struct kube_answer *answer))
{
    struct str body = str_init(4096);
    if (verb != KUBE_GET)
        print_lease(lease, held, &body);
    struct kube_request request = {.verb = verb,
                                   .resource = &kube_leases,
                                   .namespace = lease->namespace,
                                   .name = verb == KUBE_CREATE ? NULL : lease->name,
                                   .body = str_text(&body),
                                   .urgent = true,
                                   .within = held ? lease->renew_within / 2 : release_within,
                                   .done = done,
                                   .ctx = lease};
    lease->asked_at = clock_boot();
    if (kube_send(lease->options.kube, &lease->call, &request, NULL) < 0)
        later(lease);
    str_clear(&body);
}

/* --- holding it --- */

static void written(void *ctx, const struct kube_answer *answer)
{
    struct lease *lease = ctx;
    lease->call = NULL;
    if (answer->outcome != KUBE_OK) {
        /* Somebody else wrote: what there is now must be seen before the next write. */
        if (answer->outcome == KUBE_CONFLICT || answer->outcome == KUBE_EXISTS ||
            answer->outcome == KUBE_NOT_FOUND)
            lease->version[0] = 0;
        trouble(lease, answer);
        later(lease);
        return;
    }
    learn_lease(lease, answer->object);
    later(lease);
    /* From when it was asked: the server may have let others wait from then on. */
    lease->renewed_at = lease->asked_at;
    if (lease->leading || !is_ours(lease))
        return;
    lease->leading = true;
    lease->options.changed(lease->options.ctx, true, "the lease is ours");
}

static void seen(void *ctx, const struct kube_answer *answer)
{
    struct lease *lease = ctx;
    lease->call = NULL;
    if (answer->outcome == KUBE_NOT_FOUND) {
        lease->version[0] = lease->holder[0] = 0;
        send_lease(lease, KUBE_CREATE, true, written);
        return;
    }
    if (answer->outcome != KUBE_OK) {
        trouble(lease, answer);
        later(lease);
        return;
    }
    learn_lease(lease, answer->object);
    if (!lease->holder[0] || is_ours(lease) || clock_boot() - lease->changed_at > lease->promised)
        send_lease(lease, KUBE_UPDATE, true, written);
    else
        later(lease);
}

static void end_lease(struct lease *lease, const char *why)
{
    lease->leading = false;
    lease->ended = true;
    kube_cancel(lease->call);
    lease->call = NULL;
    loop_timer_set(lease->timer, RM_NEVER);
    lease->options.changed(lease->options.ctx, false, why);
}

static void look_at_lease(struct lease *lease)
{
    if (lease->leading && lease->version[0])
        send_lease(lease, KUBE_UPDATE, true, written);
    else
        send_lease(lease, KUBE_GET, true, seen);
}

static void released(struct lease *lease)
{
    kube_cancel(lease->call);
    lease->call = NULL;
    loop_timer_set(lease->timer, RM_NEVER);
    void (*callback)(void *ctx) = lease->released;
    lease->released = NULL;
    if (callback)
        callback(lease->options.ctx);
}

static void timer_fired(void *ctx)
{
    struct lease *lease = ctx;
    if (lease->releasing) {
        released(lease);
        return;
    }
    if (lease->leading && !lease_leading(lease)) {
        end_lease(lease, "the lease could not be renewed in time");
        return;
    }
    /* Seen in the hands of another while we thought it ours: a machine that slept, say. */
    if (lease->leading && !is_ours(lease)) {
        end_lease(lease, "another took the lease over");
        return;
    }
    if (lease->call) /* one that hangs: its own limit ends it; only the time is watched here */
        later(lease);
    else
        look_at_lease(lease);
}

bool lease_leading(const struct lease *lease)
{
    return lease->leading && !lease->releasing && clock_boot() - lease->renewed_at < lease->renew_within;
}

const char *lease_holder(const struct lease *lease)
{
    return lease->holder;
}

static void given_back(void *ctx, const struct kube_answer *answer);

/* What is there now, after a write of another version than the one that we know: mostly our own last renewal,
 * whose answer was not waited for. */
static void seen_giving_back(void *ctx, const struct kube_answer *answer)
{
    struct lease *lease = ctx;
    lease->call = NULL;
    if (answer->outcome == KUBE_OK)
        learn_lease(lease, answer->object);
    if (answer->outcome == KUBE_OK && is_ours(lease))
        send_lease(lease, KUBE_UPDATE, false, given_back);
    else
        released(lease);
}

/* Until release_within is over (timer_fired): then the others wait as long as it promises. */
static void given_back(void *ctx, const struct kube_answer *answer)
{
    struct lease *lease = ctx;
    lease->call = NULL;
    if (answer->outcome == KUBE_CONFLICT)
        send_lease(lease, KUBE_GET, false, seen_giving_back);
    else
        released(lease);
}

void lease_release(struct lease *lease, void (*callback)(void *ctx))
{
    bool held = lease_leading(lease);
    kube_cancel(lease->call);
    lease->call = NULL;
    lease->releasing = true;
    lease->released = callback;
    loop_timer_set(lease->timer, loop_now(lease->loop) + (held ? release_within : 0));
    if (held)
        send_lease(lease, KUBE_UPDATE, false, given_back);
}

int lease_open(struct lease **ret, struct loop *loop, const struct lease_options *options, struct error *err)
{
    struct lease *lease = calloc(1, sizeof *lease);
    if (!lease)
        return err_set(err, ERR_MACHINE, "no memory for a lease");
    lease->loop = loop;
    lease->options = *options;
    lease->every = options->every ? options->every : every_default;
    lease->renew_within = 5 * lease->every;
    lease->duration_s = (int)((lease->every * 15 / 2 + RM_S - 1) / RM_S);
    lease->promised = lease->duration_s * RM_S;
    text_copy(lease->namespace, sizeof lease->namespace, options->namespace);
    text_copy(lease->name, sizeof lease->name, options->name);
    text_copy(lease->identity, sizeof lease->identity, options->identity);
    text_copy(lease->label, sizeof lease->label, options->label ? options->label : "");
    text_copy(lease->value, sizeof lease->value, options->value ? options->value : "");
    if (loop_timer_open(&lease->timer, loop, timer_fired, lease, err) < 0) {
        lease_free(lease);
        return -1;
    }
    loop_timer_set(lease->timer, loop_now(loop));
    *ret = lease;
    return 0;
}

void lease_free(struct lease *lease)
{
    if (!lease)
        return;
    kube_cancel(lease->call);
    loop_timer_free(lease->timer);
    free(lease);
}
