/* The shares of one checkpoint from trainer to trainer: all members of a ring load it, each agent has read
 * and verified one share, and here they exchange them.
 *
 * A member gives its share to the others of its generation as soon as it has it, and until its state changes;
 * who asks before is kept waiting, for as long as the member lives. One that does not give (it has gone, or
 * it does another thing by now) costs its share only: the receiver is told which are missing and has its own
 * agent read them. */
#ifndef RM_IO_TRANSFER_SHARE_H
#define RM_IO_TRANSFER_SHARE_H

#include "common/base/set.h"
#include "common/model/arrays.h"
#include "trainer/io/transfer.h"

struct transfer_share {
    struct ring_generation generation;
    struct state_point point; /* of the checkpoint */
    bool exact;
    struct model_range range[STATE_ARRAYS_MAX]; /* what the share has of each array */
    struct state_arrays arrays;                 /* where it lies */
};

/* From now on this share is given. On the thread that owns the state. */
void transfer_share_give(struct transfer_source *source, const struct transfer_share *share);
/* The same bytes lie elsewhere now. */
void transfer_share_move(struct transfer_source *source, const struct state_arrays *arrays);

/* Fills `to` with the shares of want->source[i] for all i that are in `wanted`; *ret_missing: those
 * that did not come. have: what of each array is there already. Where the shares that came don't fit together
 * and with `have` to a whole state of want's exponents `k`, all count as missing. waiting_for (may be NULL):
 * the worker whose share is waited for, as in a ring; pulse grows meanwhile. Fails (ERR_ABORTED, ERR_MACHINE)
 * only where nobody else is to blame. */
struct transfer_gather {
    const struct transfer_want *want; /* step and lineage are the checkpoint's; source[i] gives share i */
    struct state_arrays to;
    const struct state_point *point;
    struct worker_set wanted;
    const struct model_range *have; // (to.arrays)
    atomic_llong *pulse;
    atomic_int *waiting_for;
};
int transfer_share_gather(const struct transfer_gather *gather, struct worker_set *ret_missing,
                          struct error *err);

#endif
