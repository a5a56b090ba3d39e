/* Other releases of the operator, as their leaders' Leases tell (core/claims.h): a watch on Leases from when
 * our own is ours. It decides who acts, and says so where people look: in the log, and as an Event on our
 * Lease.
 *
 * Where Leases are not to be listed (a role of an older chart) everybody acts as if nobody else were there.
 */
#ifndef RM_OPERATOR_RIVALS_H
#define RM_OPERATOR_RIVALS_H

#include <stdbool.h>

#include "common/kube/recorder.h"
#include "common/loop/loop.h"
#include "operator/metrics.h"

struct rivals_options {
    struct kube *kube;
    struct recorder *recorder;
    struct metrics *metrics;
    const char *namespace;                    /* that we look after; NULL: all */
    const char *lease_namespace, *lease_name; /* ours; all three must stay */
    /* The decision may be another; `left`: a namespace is left out that was not, or no longer. Not to free
     * them from. */
    void (*changed)(void *ctx, bool left);
    void *ctx;
};

/* What our Lease is labelled with; NULL where it lies outside of the one namespace that we look after: then
 * no other release there sees it, and we look for none. */
const char *rivals_label(const char *namespace, const char *lease_namespace);

struct rivals;
int rivals_open(struct rivals **ret, struct loop *loop, const struct rivals_options *options,
                struct error *err);
void rivals_free(struct rivals *rivals);

enum rivals_decision {
    RIVALS_UNKNOWN, /* the list has not come yet */
    RIVALS_ACT,
    RIVALS_WAIT, /* another release acts in our place: rivals_why */
};
enum rivals_decision rivals_decision(const struct rivals *rivals);
const char *rivals_why(const struct rivals *rivals); /* "" unless we wait */

/* Is this namespace left to another release? NULL leaves none. */
bool rivals_leave_out(const struct rivals *rivals, const char *namespace);
int rivals_left(const struct rivals *rivals); /* how many are */

#endif
