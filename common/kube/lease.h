/* Who of several operators acts: whoever holds a Lease (coordination.k8s.io/v1).
 *
 * A lease is judged by this machine's own clock alone, from when a change of it was seen: the times in it
 * come from other machines' clocks and are for people. The clock is CLOCK_BOOTTIME, so that a machine that
 * slept knows that it did. A holder renews every 2 s and stops acting when it could not for 10 s; others
 * take the lease over when it hasn't changed for the 15 s that it promises, so there are 5 s in which nobody
 * acts. Requests that were under way may still arrive late: every write must be harmless under two leaders.
 */
#ifndef RM_KUBE_LEASE_H
#define RM_KUBE_LEASE_H

#include <stdbool.h>

#include "common/kube/client.h"
#include "common/loop/loop.h"

struct lease_options {
    struct kube *kube;
    const char *namespace, *name; /* copied, as are the following */
    const char *identity;         /* who we are: the pod's name and something unique */
    const char *label, *value;    /* that the Lease bears, for whoever looks for such; NULL: none */
    rm_time every;                /* it is renewed or looked at so often; 0: 2 s. Holding on is given up after
                                   * 5 of it, and 7.5 are promised to the others. */
    /* We hold it now, or no longer. After `false` nothing comes any more: end the program. */
    void (*changed)(void *ctx, bool leading, const char *why);
    /* A request failed; it is tried again. NULL: nobody listens. */
    void (*trouble)(void *ctx, const struct kube_answer *answer);
    void *ctx;
};

struct lease;
int lease_open(struct lease **ret, struct loop *loop, const struct lease_options *options, struct error *err);
void lease_free(struct lease *lease);

/* Do we hold it at this instant? To be asked before each write: a machine may have slept since the last. */
bool lease_leading(const struct lease *lease);
const char *lease_holder(const struct lease *lease); /* whoever was seen to hold it; "" for nobody */

/* Gives it back, so that the next need not wait; `released` comes once it is, or after 2 s. Not leading from
 * now on, without `changed`. */
void lease_release(struct lease *lease, void (*released)(void *ctx));

#endif
