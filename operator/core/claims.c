/* Which Leases of other releases are heard of, which of them still count, and what of ours they take. */
#include "operator/core/claims.h"

#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/str.h"
#include "common/wire/json.h"
#include "operator/core/read.h"

enum { PROMISED_MOST_S = 3600 };

/* What a leader promises; one that gives its Lease back says 1 s. */
static const rm_time promised_least = 15 * RM_S;

/* Of a time in which nothing was heard no more than this counts: what changed meanwhile is still to come. */
static const rm_time silence_most = 5 * RM_S;

void claims_init(struct claims *claims, const char *namespace, const char *name, bool all)
{
    *claims = (struct claims){.own.all = all, .own.created_ms = INT64_MAX};
    text_copy(claims->own.namespace, sizeof claims->own.namespace, namespace);
    text_copy(claims->own.name, sizeof claims->own.name, name);
}

/* --- what is heard --- */

static void hear_claims(struct claims *claims, rm_time now)
{
    rm_time silence = now - claims->heard_at;
    RM_ASSERT(now >= claims->heard_at, "time goes back by %lld ns", (long long)(claims->heard_at - now));
    claims->time += silence < silence_most ? silence : silence_most;
    claims->heard_at = now;
}

static bool same_place(const struct claim *a, const struct claim *b)
{
    return !strcmp(a->name, b->name) && !strcmp(a->namespace, b->namespace);
}

static bool counts(const struct claims *claims, const struct claim *claim)
{
    RM_ASSERT(claim->changed_at <= claims->time, "the claim %s/%s changes %lld ns from now", claim->namespace,
              claim->name, (long long)(claim->changed_at - claims->time));
    return !claim->gone && claims->time - claim->changed_at <= claim->promised;
}

static struct claim *find_claim(struct claims *claims, const struct claim *like)
{
    RM_ASSERT(claims->count >= 0 && claims->count <= CLAIMS_MAX, "%d claims are known", claims->count);
    for (int i = 0; i < claims->count; i++)
        if (same_place(&claims->other[i], like))
            return &claims->other[i];
    return NULL;
}

/* One more, if it can be in the place of one that counts no longer: of its own namespace, or else of another.
 */
static struct claim *place_for(struct claims *claims, const struct claim *claim)
{
    int beside = 0;
    struct claim *over = NULL;
    RM_ASSERT(claims->count >= 0 && claims->count <= CLAIMS_MAX, "%d claims are known", claims->count);
    for (int i = 0; i < claims->count; i++) {
        struct claim *other = &claims->other[i];
        bool near = !strcmp(other->namespace, claim->namespace);
        bool ended = !counts(claims, other) && !other->told;
        if (near && ended)
            return other;
        beside += near;
        over = ended ? other : over;
    }
    if (beside >= CLAIMS_IN_NAMESPACE)
        return NULL;
    if (over || claims->count == CLAIMS_MAX)
        return over;
    return &claims->other[claims->count++];
}

static void read_place(const struct js *lease, struct claim *ret)
{
    read_text(lease, "metadata.namespace", ret->namespace, sizeof ret->namespace);
    read_text(lease, "metadata.name", ret->name, sizeof ret->name);
}

/* Returns whether somebody holds it. */
static bool read_claim(const struct js *lease, struct claim *ret)
{
    int64_t seconds = 0;
    char holder[8] = "";
    const char *after = js_as_string(js_get(read_at(lease, "metadata.labels"), OP_LABEL_LOOKS_AFTER));
    *ret = (struct claim){.created_ms = INT64_MAX};
    read_place(lease, ret);
    read_text(lease, "metadata.uid", ret->uid, sizeof ret->uid);
    read_text(lease, "metadata.resourceVersion", ret->version, sizeof ret->version);
    read_instant(lease, "metadata.creationTimestamp", &ret->created_ms);
    read_int(lease, "spec.leaseDurationSeconds", 1, PROMISED_MOST_S, &seconds);
    read_text(lease, "spec.holderIdentity", holder, sizeof holder);
    ret->all = after && !strcmp(after, OP_AFTER_ALL);
    ret->promised = seconds * RM_S > promised_least ? seconds * RM_S : promised_least;
    RM_ASSERT(ret->promised >= promised_least, "the claim %s/%s counts for %lld ns", ret->namespace,
              ret->name, (long long)ret->promised);
    return *holder != 0;
}

bool claims_see(struct claims *claims, const struct js *lease, rm_time now)
{
    struct claim heard;
    bool held = read_claim(lease, &heard);
    hear_claims(claims, now);
    heard.mark = claims->mark;
    heard.changed_at = claims->time;
    if (same_place(&heard, &claims->own)) {
        heard.all = claims->own.all;
        claims->own = heard;
        return true;
    }
    struct claim *known = find_claim(claims, &heard);
    if (!known && !held)
        return true;
    if (!known && !(known = place_for(claims, &heard)))
        return false;
    if (same_place(known, &heard) && !strcmp(known->version, heard.version) && !known->gone)
        heard.changed_at = known->changed_at;
    heard.told = same_place(known, &heard) && known->told;
    *known = heard;
    RM_ASSERT(claims->count <= CLAIMS_MAX && known->changed_at <= claims->time,
              "%d claims, the newest of %lld at %lld", claims->count, (long long)known->changed_at,
              (long long)claims->time);
    return true;
}

static void go(struct claim *claim)
{
    claim->gone = true;
    claim->uid[0] = 0;
    claim->created_ms = INT64_MAX;
}

void claims_forget(struct claims *claims, const struct js *lease, rm_time now)
{
    struct claim heard = {0};
    read_place(lease, &heard);
    hear_claims(claims, now);
    struct claim *known = same_place(&heard, &claims->own) ? &claims->own : find_claim(claims, &heard);
    if (known)
        go(known);
}

void claims_listing(struct claims *claims)
{
    claims->mark++;
}

void claims_listed(struct claims *claims, rm_time now)
{
    RM_ASSERT(claims->count >= 0 && claims->count <= CLAIMS_MAX, "%d claims are listed", claims->count);
    hear_claims(claims, now);
    for (int i = 0; i < claims->count; i++)
        if (claims->other[i].mark != claims->mark)
            go(&claims->other[i]);
    if (claims->own.mark != claims->mark)
        go(&claims->own);
}

/* --- what follows --- */

static bool is_before(const struct claim *a, const struct claim *b)
{
    if (a->created_ms != b->created_ms)
        return a->created_ms < b->created_ms;
    int order = strcmp(a->namespace, b->namespace);
    return (order ? order : strcmp(a->name, b->name)) < 0;
}

/* Do both look after the same? One namespace is that of us both: no other is listed then. */
static bool is_rival(const struct claims *claims, const struct claim *claim)
{
    return claim->all == claims->own.all && (claim->all || !strcmp(claim->namespace, claims->own.namespace));
}

const struct claim *claims_before_us(const struct claims *claims)
{
    const struct claim *first = &claims->own;
    for (int i = 0; i < claims->count; i++) {
        const struct claim *claim = &claims->other[i];
        if (is_rival(claims, claim) && counts(claims, claim) && is_before(claim, first))
            first = claim;
    }
    RM_ASSERT(first == &claims->own || is_before(first, &claims->own), "the claim %s/%s is behind ours",
              first->namespace, first->name);
    return first == &claims->own ? NULL : first;
}

/* Takes it a namespace from us? */
static bool takes(const struct claims *claims, const struct claim *claim)
{
    return claims->own.all && !claim->all && counts(claims, claim);
}

const struct claim *claims_of_namespace(const struct claims *claims, const char *namespace)
{
    RM_ASSERT(claims->count >= 0 && claims->count <= CLAIMS_MAX, "%d claims are known", claims->count);
    for (int i = 0; i < claims->count; i++)
        if (takes(claims, &claims->other[i]) && !strcmp(claims->other[i].namespace, namespace))
            return &claims->other[i];
    return NULL;
}

int claims_left(const struct claims *claims)
{
    int count = 0;
    for (int i = 0; i < claims->count; i++)
        count += takes(claims, &claims->other[i]);
    RM_ASSERT(count <= claims->count, "%d of %d claims are of a namespace", count, claims->count);
    return count;
}

bool claims_next(struct claims *claims, struct claim *ret, bool *ret_left)
{
    RM_ASSERT(claims->count >= 0 && claims->count <= CLAIMS_MAX, "%d claims are known", claims->count);
    for (int i = 0; i < claims->count; i++) {
        struct claim *claim = &claims->other[i];
        bool left = takes(claims, claim);
        if (left == claim->told)
            continue;
        claim->told = left;
        *ret_left = left;
        *ret = *claim;
        return true;
    }
    return false;
}

void claims_say_refused(const struct claim *before, char out[CLAIMS_SENTENCE])
{
    snprintf(
        out, CLAIMS_SENTENCE,
        "another release of the operator looks after %s%s, by the Lease %s/%s, which is older than ours: "
        "this one waits, and takes over when that one has been away for %lld s. Uninstall one of the two%s",
        before->all ? "all namespaces" : "the namespace ", before->all ? "" : before->namespace,
        before->namespace, before->name, (long long)(before->promised / RM_S),
        before->all ? ", or install this one for a namespace of its own (--set namespace=NAME)" : "");
}

void claims_say_left(const struct claim *other, char out[CLAIMS_SENTENCE])
{
    snprintf(
        out, CLAIMS_SENTENCE,
        "another release of the operator looks after the namespace %s alone, by the Lease %s/%s: this one "
        "leaves its TrainingJobs to that one until it has been away for %lld s. Uninstall that one if "
        "this one is to look after them",
        other->namespace, other->namespace, other->name, (long long)(other->promised / RM_S));
}
