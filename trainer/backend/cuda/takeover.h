/* Whether what a trainer before this one left in a GPU's memory is the state that the memfd tells of, and
 * what becomes of the pieces that it was changing when it died. Pure: it sees stamps and sums, not the
 * memory.
 *
 * Each piece must add up to what was noted when it was written, and bear the stamp of the state's step, or of
 * the next one's while an update is pending. A piece with a valid undo slot is one of these two:
 *
 *     the sum noted is that of the slot's old values    they are put back (kernels/restore.h)
 *     the sum noted is that of what lies in the state   all of it is new: it stays, and gets the stamp
 *
 * Both leave bits that somebody has added up. Anything else, and nothing of it is used. */
#ifndef RM_TRAINER_CUDA_TAKEOVER_H
#define RM_TRAINER_CUDA_TAKEOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/limits.h"

struct cuda_left_slot {
    bool valid;
    int64_t piece;
    uint64_t sum; /* of the old values in it; needed by cuda_takeover_decide alone */
    bool settled; /* decided: what lies in the state stays */
};

struct cuda_left {
    int64_t step; /* of the state */
    bool pending; /* an update to the next one waits to be finished */
    bool proven;  /* each piece's sum was noted */
    int pieces, slots;
    const int64_t *stamp;               // (pieces)
    const uint64_t *noted, *adds_up_to; // (pieces)
    struct cuda_left_slot *slot;        // (slots)
};

/* Before old values are looked at: false where the slots name no pieces, or cannot be there, with a sentence.
 */
bool cuda_takeover_slots(const struct cuda_left *left, char why[RM_WHY_MAX]);
/* False where it is not that state, with a sentence. Else slots' `settled` says what is to be done. */
bool cuda_takeover_decide(struct cuda_left *left, char why[RM_WHY_MAX]);

#endif
