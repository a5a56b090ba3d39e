/* Names and ranks what sources say of a machine's end, and makes one notice of several: for who listens, in
 * agent/notice and agent/core, and for the operator, which reads taints. */
#include "common/notice/notice.h"

#include <string.h>

#include "common/base/assert.h"

static const char *const cause_names[NOTICE_CAUSES] = {
    [NOTICE_CAUSE_RECLAIM] = "reclaim",
    [NOTICE_CAUSE_MAINTENANCE] = "maintenance",
    [NOTICE_CAUSE_SCALE_DOWN] = "scale-down",
    [NOTICE_CAUSE_DRAIN] = "drain",
};

static const char *const certainty_names[] = {[NOTICE_MAY] = "may", [NOTICE_WILL] = "will"};

/* Leads are the vendors': AWS spot-instance-termination-notices (2 minutes), GCE preemption (30 s) and
 * maintenance events (60 s; an hour with GPUs), Azure Scheduled Events (Preempt 30 s, the others up to 15
 * minutes); GKE's taint leaves up to an hour, the cluster autoscaler 10 minutes. */
static const struct notice_kind kinds[NOTICE_SOURCES] = {
    [NOTICE_AWS_SPOT] = {"aws-spot", NOTICE_CAUSE_RECLAIM, NOTICE_WILL, 120 * RM_S},
    [NOTICE_AWS_REBALANCE] = {"aws-rebalance", NOTICE_CAUSE_RECLAIM, NOTICE_MAY, 0},
    [NOTICE_AWS_MAINTENANCE] = {"aws-maintenance", NOTICE_CAUSE_MAINTENANCE, NOTICE_MAY, 0},
    [NOTICE_GCE_PREEMPTED] = {"gce-preempted", NOTICE_CAUSE_RECLAIM, NOTICE_WILL, 30 * RM_S},
    [NOTICE_GCE_MAINTENANCE] = {"gce-maintenance", NOTICE_CAUSE_MAINTENANCE, NOTICE_WILL, 3600 * RM_S},
    [NOTICE_AZURE] = {"azure-scheduled-event", NOTICE_CAUSE_RECLAIM, NOTICE_WILL, 900 * RM_S},
    [NOTICE_NTH_SPOT] = {"nth-spot-itn", NOTICE_CAUSE_RECLAIM, NOTICE_WILL, 120 * RM_S},
    [NOTICE_NTH_REBALANCE] = {"nth-rebalance", NOTICE_CAUSE_RECLAIM, NOTICE_MAY, 0},
    [NOTICE_NTH_ASG] = {"nth-asg-lifecycle", NOTICE_CAUSE_SCALE_DOWN, NOTICE_MAY, 0},
    [NOTICE_NTH_MAINTENANCE] = {"nth-scheduled-maintenance", NOTICE_CAUSE_MAINTENANCE, NOTICE_MAY, 0},
    [NOTICE_KARPENTER] = {"karpenter-disrupted", NOTICE_CAUSE_SCALE_DOWN, NOTICE_MAY, 0},
    [NOTICE_AUTOSCALER] = {"autoscaler-to-be-deleted", NOTICE_CAUSE_SCALE_DOWN, NOTICE_WILL, 600 * RM_S},
    [NOTICE_AUTOSCALER_CANDIDATE] = {"autoscaler-candidate", NOTICE_CAUSE_SCALE_DOWN, NOTICE_MAY, 0},
    [NOTICE_GKE] = {"gke-impending-termination", NOTICE_CAUSE_RECLAIM, NOTICE_MAY, 3600 * RM_S},
    [NOTICE_AKS] = {"aks-remediator", NOTICE_CAUSE_RECLAIM, NOTICE_WILL, 30 * RM_S},
    [NOTICE_OUT_OF_SERVICE] = {"out-of-service", NOTICE_CAUSE_MAINTENANCE, NOTICE_WILL, 0},
    [NOTICE_CORDON] = {"cordon", NOTICE_CAUSE_DRAIN, NOTICE_MAY, 0},
};

static const rm_time lead_unpromised = 1800 * RM_S;

const struct notice_kind *notice_kind(enum notice_source source)
{
    RM_ASSERT((unsigned)source < NOTICE_SOURCES, "no source of notices has the number %d", (int)source);
    return &kinds[source];
}

enum notice_source notice_source_named(const char *name)
{
    int i = 0;
    while (i < NOTICE_SOURCES && strcmp(kinds[i].name, name) != 0)
        i++;
    return (enum notice_source)i;
}

const char *notice_cause_name(enum notice_cause cause)
{
    RM_ASSERT((unsigned)cause < NOTICE_CAUSES, "no cause of notices has the number %d", (int)cause);
    return cause_names[cause];
}

enum notice_cause notice_cause_named(const char *name)
{
    int i = 0;
    while (i < NOTICE_CAUSES && strcmp(cause_names[i], name) != 0)
        i++;
    return (enum notice_cause)i;
}

const char *notice_certainty_name(enum notice_certainty certainty)
{
    RM_ASSERT((unsigned)certainty <= NOTICE_WILL, "a notice of certainty %d", (int)certainty);
    return certainty_names[certainty];
}

rm_time notice_most(enum notice_source source)
{
    rm_time lead = notice_kind(source)->lead;
    RM_ASSERT(lead >= 0, "source %d promises %lld ns", (int)source, (long long)lead);
    return 2 * (lead ? lead : lead_unpromised);
}

rm_time notice_until(enum notice_source source, int64_t at_ms, int64_t said_ms, rm_time now)
{
    int64_t most_ms = notice_most(source) / RM_MS;
    int64_t left_ms = at_ms <= said_ms ? 0 : at_ms - said_ms;
    RM_ASSERT(left_ms >= 0 && most_ms > 0, "%lld ms are left, of %lld at most", (long long)left_ms,
              (long long)most_ms);
    return now + (left_ms < most_ms ? left_ms : most_ms) * RM_MS;
}

/* A `will` before a `may`, then the nearer one. */
static bool is_more_urgent(const struct notice *a, const struct notice *b)
{
    RM_ASSERT((unsigned)a->certainty <= NOTICE_WILL && (unsigned)b->certainty <= NOTICE_WILL,
              "notices of certainty %d and %d", (int)a->certainty, (int)b->certainty);
    return a->certainty != b->certainty ? a->certainty == NOTICE_WILL : a->until < b->until;
}

/* The most urgent word of a cause; of any for NOTICE_CAUSES. */
static const struct notice *first_of(const struct notices *n, enum notice_cause cause)
{
    RM_ASSERT(n->count >= 0 && n->count <= NOTICES_MAX && (unsigned)cause <= NOTICE_CAUSES,
              "%d notices of cause %d", n->count, (int)cause);
    const struct notice *first = NULL;
    for (int i = 0; i < n->count; i++)
        if ((cause == NOTICE_CAUSES || n->at[i].cause == cause) &&
            (!first || is_more_urgent(&n->at[i], first)))
            first = &n->at[i];
    return first;
}

const struct notice *notices_first(const struct notices *n)
{
    return first_of(n, NOTICE_CAUSES);
}

static struct notice *find_notice(struct notices *n, enum notice_source source, const char *id)
{
    RM_ASSERT(n->count >= 0 && n->count <= NOTICES_MAX, "%d notices", n->count);
    for (int i = 0; i < n->count; i++)
        if (n->at[i].source == source && !strcmp(n->at[i].id, id))
            return &n->at[i];
    return NULL;
}

static void take_out(struct notices *n, struct notice *which)
{
    size_t at = (size_t)(which - n->at);
    RM_ASSERT(which >= n->at && at < (size_t)n->count, "word %zu of %d is taken out", at, n->count);
    n->count--;
    memmove(which, which + 1, ((size_t)n->count - at) * sizeof *which);
}

/* Who tells more than there is room for loses what matters least, which may be the new word itself. */
static void put_notice(struct notices *n, const struct notice *told)
{
    if (n->count == NOTICES_MAX) {
        struct notice *least = n->at;
        for (int i = 1; i < n->count; i++)
            if (is_more_urgent(least, &n->at[i]))
                least = &n->at[i];
        if (!is_more_urgent(told, least))
            return;
        take_out(n, least);
    }
    RM_ASSERT(n->count >= 0 && n->count < NOTICES_MAX, "%d notices, and one more", n->count);
    n->at[n->count++] = *told;
}

static enum notice_news news(const struct notice *before, const struct notice *after)
{
    RM_ASSERT(before->cause == after->cause, "a notice of cause %d is news of cause %d", (int)after->cause,
              (int)before->cause);
    if (before->certainty != after->certainty)
        return NOTICE_SURER;
    return after->until < before->until ? NOTICE_SOONER : NOTICE_SAME;
}

enum notice_news notices_take(struct notices *n, const struct notice *told)
{
    RM_ASSERT((unsigned)told->source < NOTICE_SOURCES && (unsigned)told->cause < NOTICE_CAUSES,
              "a notice of source %d, cause %d", (int)told->source, (int)told->cause);
    const struct notice *known = first_of(n, told->cause);
    struct notice before = known ? *known : *told;
    struct notice *same = find_notice(n, told->source, told->id);
    bool first = !known;
    if (!same) {
        put_notice(n, told);
    } else {
        same->certainty = told->certainty == NOTICE_WILL ? NOTICE_WILL : same->certainty;
        same->until = rm_earlier(same->until, told->until);
        same->startable = told->startable;
    }
    const struct notice *after = first_of(n, told->cause);
    if (!after)
        return NOTICE_SAME;
    return first ? NOTICE_NEW : news(&before, after);
}

void notices_hear(struct notices *n, const struct notices *told, bool whole)
{
    RM_ASSERT(told->count >= 0 && told->count <= NOTICES_MAX, "%d notices are heard", told->count);
    if (whole) {
        *n = *told;
        return;
    }
    for (int i = 0; i < told->count; i++)
        notices_take(n, &told->at[i]);
}

bool notices_withdraw(struct notices *n, enum notice_source source, const char *id, struct notice *ret)
{
    RM_ASSERT((unsigned)source < NOTICE_SOURCES, "source %d withdraws its notice", (int)source);
    struct notice *which = find_notice(n, source, id);
    if (!which)
        return false;
    struct notice gone = *which;
    take_out(n, which);
    if (ret)
        *ret = gone;
    return !first_of(n, gone.cause);
}

static enum notice_news time_change(rm_time was, rm_time is)
{
    if (was == is)
        return NOTICE_SAME;
    if (was == RM_NEVER || (is != RM_NEVER && is < was - NOTICE_SAME_MOMENT))
        return NOTICE_SOONER;
    return is == RM_NEVER || is > was + NOTICE_SAME_MOMENT ? NOTICE_LATER : NOTICE_SAME;
}

enum notice_news notice_change(const struct notice *was, const struct notice *is)
{
    if (!is)
        return was ? NOTICE_GONE : NOTICE_SAME;
    if (!was)
        return NOTICE_NEW;
    if (was->certainty != is->certainty)
        return is->certainty == NOTICE_WILL ? NOTICE_SURER : NOTICE_MILDER;
    if (was->cause != is->cause && !is_more_urgent(is, was))
        return NOTICE_INSTEAD;
    if (was->source != is->source || was->cause != is->cause)
        return NOTICE_NEW;
    return time_change(was->until, is->until);
}
