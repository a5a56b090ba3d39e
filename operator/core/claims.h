/* Which of several releases of the operator acts where. Each leader's Lease bears OP_LABEL_LOOKS_AFTER:
 * "all", or "namespace" where it looks after the one that the Lease lies in. Releases see each other by these
 * alone:
 *
 * - Of two that look after the same (both all, or both one namespace) the one acts whose Lease is older
 *   (creationTimestamp, then namespace and name); the other waits.
 * - One that looks after all leaves a namespace to whoever looks after that alone, however young: the other
 *   way round would take a right to look out of its namespace. And so a Lease that a tenant makes up in his
 *   namespace takes the operator from that namespace at most; one that says "all" is younger than those of
 *   operators which act already.
 *
 * A claim counts while its Lease changes: no clock of another machine is believed, and little time passes
 * while nothing is heard of the server (our own Lease, renewed every 2 s, is among what is heard), so that a
 * watch which breaks makes nobody old. One that was given back counts for as long as one whose holder died:
 * the other replicas of its release come first. One that nobody held since we look counts for nothing. Pure.
 */
#ifndef RM_OPERATOR_CORE_CLAIMS_H
#define RM_OPERATOR_CORE_CLAIMS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/time.h"
#include "operator/core/names.h"

struct js;

#define OP_LABEL_LOOKS_AFTER "ringmaster.dev/looks-after"
#define OP_AFTER_ALL         "all"
#define OP_AFTER_NAMESPACE   "namespace"

enum {
    CLAIMS_MAX = 256,        /* of other releases; more are passed over */
    CLAIMS_IN_NAMESPACE = 8, /* so that no tenant's fill all the places */
    CLAIMS_SENTENCE = 1024,
};

struct claim {
    char namespace[OP_NAMESPACE_MAX], name[OP_NODE_MAX], uid[OP_UID_MAX], version[OP_VERSION_MAX];
    int64_t created_ms;
    bool all;           /* looks after all namespaces, else after its own */
    rm_time changed_at; /* `time` when this version was first heard of */
    rm_time promised;   /* how long it counts without a change */
    uint64_t mark;      /* of the last list that named it */
    bool told;          /* claims_next has told that it counts */
    bool gone;          /* and is to tell that it does no longer */
};

struct claims {
    struct claim own; /* uid "": not heard of, and then the youngest of all */
    struct claim other[CLAIMS_MAX];
    int count;
    uint64_t mark;
    rm_time heard_at; /* of the last that was heard, whatever it was */
    rm_time time;     /* that has passed with something to hear in it */
};

/* Ours is the Lease of this name; where we look after one namespace, it lies there. */
void claims_init(struct claims *claims, const char *namespace, const char *name, bool all);

/* A reflector's words about Leases with that label. false: no place for it. */
void claims_listing(struct claims *claims);
void claims_listed(struct claims *claims, rm_time now);
bool claims_see(struct claims *claims, const struct js *lease, rm_time now);
void claims_forget(struct claims *claims, const struct js *lease, rm_time now);

/* Who acts in our place; NULL: we may. */
const struct claim *claims_before_us(const struct claims *claims);
/* Of us who look after all: to whom that namespace is left; NULL: to nobody. */
const struct claim *claims_of_namespace(const struct claims *claims, const char *namespace);
int claims_left(const struct claims *claims); /* how many Leases take a namespace from us */

/* One whose namespace we leave from now on (*ret_left), or look after again; false: no news. To be called
 * until there are none after each of the words above. */
bool claims_next(struct claims *claims, struct claim *ret, bool *ret_left);

/* What a person reads of it, with what to do. */
void claims_say_refused(const struct claim *before, char out[CLAIMS_SENTENCE]);
void claims_say_left(const struct claim *other, char out[CLAIMS_SENTENCE]);

#endif
