/* Lanes that a second worker computes as well. Pure.
 *
 * Who computes lanes whose bits depend on nothing but state, samples and seed may be audited: a rank computes
 * a lane of another one beside its own, adds it to nothing, and says in its header slot what came out. Every
 * rank finds there, before a word is summed, whether that is what the lane's owner says. All of a ring have
 * the same arithmetic: programs of another one are in none.
 *
 * Where it is not, nothing is committed, and nobody is believed yet: all ranks compute that lane in the next
 * pass (`all`), its owner anew like the rest of its share. If they agree then, something passing was wrong,
 * and nothing of it is in any sum. Else a majority names who computes otherwise; two that both stand by what
 * they have are not to be told apart.
 *
 * How often: whenever a rank has room for a lane more, as it would only wait for others meanwhile; in the
 * first step after it got its state; else in turns, each rank once in so many lanes of its own that all turns
 * together cost less than 0.5 % of the lanes' time. So who has few lanes, as it is slow, has a turn seldom,
 * and who has many has one often; and each lane of each of them is looked at in some turn of another one's.
 */
#ifndef RM_TRAINER_AUDIT_H
#define RM_TRAINER_AUDIT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/lane_shares.h"
#include "common/base/limits.h"
#include "common/base/set.h"

struct audit_pass {
    int64_t step; /* that the pass is to lead to */
    struct lane_shares shares;
    int rank;
    bool fresh; /* this rank is new in its state */
    bool room;  /* a lane more of it would be done no later than what others have (pace_has_room) */
    int all;    /* lane that all compute; -1: none */
};

/* The lane that this rank is to compute beside its own in this pass; -1: none. */
int audit_lane(const struct audit_pass *pass);

/* What a header says of a lane whose owner and auditors differ. */
struct audit_found {
    int lane;
    struct worker_set differ;   /* ranks whose result is not that of most; empty: there is no majority */
    struct worker_set computed; /* who computed it */
};

/* Finds a lane of which two results differ; of several such, the lowest auditor's. False: no audit, or all
 * agree. header: the sum of all. */
bool audit_find(const uint32_t *header, int tensors, const struct lane_shares *shares,
                struct audit_found *out);

#endif
