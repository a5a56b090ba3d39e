/* Watches the Leases by which other releases of the operator say that they are there, and tells when the
 * decision of core/claims.c changes. app.c opens it, and asks it before it acts. */
#include "operator/rivals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/kube/reflector.h"
#include "common/os/clock.h"
#include "common/os/crypto.h"
#include "common/os/log.h"
#include "operator/core/claims.h"

struct rivals {
    struct rivals_options options;
    struct reflector *reflector;
    struct claims claims;
    bool listed, denied, crowded;
    int troubles; /* in a row */
    char why[CLAIMS_SENTENCE], before[OP_NAMESPACE_MAX + OP_NODE_MAX];
};

const char *rivals_label(const char *namespace, const char *lease_namespace)
{
    if (!namespace)
        return OP_AFTER_ALL;
    return strcmp(namespace, lease_namespace) ? NULL : OP_AFTER_NAMESPACE;
}

/* --- what is said --- */

static void tell_rivals(struct rivals *rivals, bool warning, const char *reason, const char *text)
{
    struct kube_note note = {.resource = &kube_leases,
                             .namespace = rivals->options.lease_namespace,
                             .name = rivals->options.lease_name,
                             .uid = rivals->claims.own.uid,
                             .warning = warning,
                             .reason = reason,
                             .action = "Leading",
                             .text = text};
    if (*note.uid)
        recorder_tell(rivals->options.recorder, &note);
}

/* Was there any? */
static bool say_news(struct rivals *rivals)
{
    struct claim other;
    bool left, any = false;
    char text[CLAIMS_SENTENCE];
    while (claims_next(&rivals->claims, &other, &left)) {
        any = true;
        if (left) {
            claims_say_left(&other, text);
            log_warn("a namespace is left out", "namespace=%s lease=%s/%s why=\"%s\"", other.namespace,
                     other.namespace, other.name, text);
            tell_rivals(rivals, true, "NamespaceLeft", text);
        } else {
            log_info("a namespace is no longer left out", "namespace=%s lease=%s/%s", other.namespace,
                     other.namespace, other.name);
        }
    }
    return any;
}

/* Once for each that goes before us. */
static void say_decision(struct rivals *rivals)
{
    const struct claim *before = claims_before_us(&rivals->claims);
    char place[sizeof rivals->before] = "";
    if (before) {
        snprintf(place, sizeof place, "%s/%s", before->namespace, before->name);
        claims_say_refused(before, rivals->why);
    } else {
        rivals->why[0] = 0;
    }
    if (!strcmp(place, rivals->before))
        return;
    text_copy(rivals->before, sizeof rivals->before, place);
    if (!before) {
        log_info("no other release is in the way any more", "lease=%s/%s", rivals->options.lease_namespace,
                 rivals->options.lease_name);
        return;
    }
    log_warn("another release acts", "lease=%s why=\"%s\"", place, rivals->why);
    tell_rivals(rivals, true, "AnotherRelease", rivals->why);
}

static void look_at_rivals(struct rivals *rivals)
{
    if (!rivals->listed || rivals->denied)
        return;
    bool left = say_news(rivals);
    say_decision(rivals);
    rivals->options.changed(rivals->options.ctx, left);
}

/* --- what is heard --- */

static void listing(void *ctx)
{
    struct rivals *rivals = ctx;
    rivals->options.metrics->relists++;
    claims_listing(&rivals->claims);
}

static void listed(void *ctx)
{
    struct rivals *rivals = ctx;
    rivals->listed = true;
    rivals->denied = false;
    rivals->troubles = 0;
    claims_listed(&rivals->claims, clock_boot());
    look_at_rivals(rivals);
}

static void lease_came(void *ctx, enum kube_change change, const struct js *lease)
{
    struct rivals *rivals = ctx;
    rivals->troubles = 0;
    if (change == KUBE_DELETED)
        claims_forget(&rivals->claims, lease, clock_boot());
    else if (!claims_see(&rivals->claims, lease, clock_boot()) && !rivals->crowded) {
        rivals->crowded = true;
        log_warn("too many leases of operators",
                 "why=\"more than %d in one namespace, or %d in all, are not "
                 "looked at\"",
                 CLAIMS_IN_NAMESPACE, CLAIMS_MAX);
    }
    look_at_rivals(rivals);
}

/* It acts as if nobody else were there: a role of an older chart is no reason to do nothing. What a list told
 * stays known, for a watch that is let in later tells only what has changed since. */
static void be_denied(struct rivals *rivals, const char *why)
{
    rivals->denied = true;
    log_warn("leases are not to be listed",
             "why=\"%s: an operator of another release that looks after the same jobs would not be seen; "
             "going on without\"",
             why);
    rivals->why[0] = rivals->before[0] = 0;
    rivals->options.changed(rivals->options.ctx, claims_left(&rivals->claims) > 0);
}

/* A watch goes on. */
static void heard(void *ctx)
{
    struct rivals *rivals = ctx;
    if (!rivals->denied || !rivals->listed)
        return;
    rivals->denied = false;
    rivals->troubles = 0;
    look_at_rivals(rivals);
}

/* Said when it begins, and again each time that the number of failures doubles. */
static void trouble(void *ctx, const struct kube_answer *answer, rm_time again_in)
{
    struct rivals *rivals = ctx;
    int n = ++rivals->troubles;
    rivals->options.metrics->watch_troubles++;
    if (answer->status == 403) {
        if (!rivals->denied)
            be_denied(rivals, answer->message);
    } else if ((n & (n - 1)) == 0) {
        log_warn("a list or watch failed", "resource=leases code=%d outcome=\"%s\" again_ms=%.0f why=\"%s\"",
                 answer->status, kube_outcome_name(answer->outcome), rm_ms(again_in), answer->message);
    }
}

/* --- from outside --- */

enum rivals_decision rivals_decision(const struct rivals *rivals)
{
    if (rivals->denied)
        return RIVALS_ACT;
    if (!rivals->listed)
        return RIVALS_UNKNOWN;
    return rivals->why[0] ? RIVALS_WAIT : RIVALS_ACT;
}

const char *rivals_why(const struct rivals *rivals)
{
    return rivals->why;
}

bool rivals_leave_out(const struct rivals *rivals, const char *namespace)
{
    return rivals && !rivals->denied && claims_of_namespace(&rivals->claims, namespace);
}

int rivals_left(const struct rivals *rivals)
{
    return rivals && !rivals->denied ? claims_left(&rivals->claims) : 0;
}

int rivals_open(struct rivals **ret, struct loop *loop, const struct rivals_options *options,
                struct error *err)
{
    struct rivals *rivals = calloc(1, sizeof *rivals);
    if (!rivals)
        return err_set(err, ERR_MACHINE, "no memory for the leases of other releases");
    rivals->options = *options;
    claims_init(&rivals->claims, options->lease_namespace, options->lease_name, !options->namespace);
    struct reflector_options wanted = {.kube = options->kube,
                                       .resource = &kube_leases,
                                       .namespace = options->namespace,
                                       .labels = OP_LABEL_LOOKS_AFTER,
                                       .seed = crypto_seed(),
                                       .listing = listing,
                                       .object = lease_came,
                                       .listed = listed,
                                       .heard = heard,
                                       .trouble = trouble,
                                       .ctx = rivals};
    if (reflector_open(&rivals->reflector, loop, &wanted, err) < 0) {
        rivals_free(rivals);
        return -1;
    }
    *ret = rivals;
    return 0;
}

void rivals_free(struct rivals *rivals)
{
    if (!rivals)
        return;
    reflector_free(rivals->reflector);
    free(rivals);
}
