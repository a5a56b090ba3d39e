/* The header words: what ranks say to each other in each pass, before any word of a gradient moves. Pure.
 *
 * Each slot is written by one rank and zero in the others, so the sum over all ranks is a gather:
 *
 *     per lane: loss (bits of fp32), max |g| per tensor (bits of fp32: NaN and Inf win),
 *               checksum of its words (64 bits, proof.h), tokens learned
 *     per rank: flags with the layout's version, 64 bits of its state's lineage, microseconds a lane,
 *               64 bits of its state's sum, and of an audited lane (audit.h) number + 1, checksum, loss
 *     at last:  two sums over all of it, of each rank's own words: as they are linear, those of the sum
 *               of all, where no bit of it changed
 *
 * Ranks with another layout do not get as far: its change raises MSG_PROTOCOL (header_test.c holds both). */
#ifndef RM_TRAINER_HEADER_H
#define RM_TRAINER_HEADER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/limits.h"
#include "common/base/set.h"

enum {
    HEADER_VERSION = 4,
    LANES_STOP = 1,                        /* stop after this step */
    LANES_SAVE = 2,                        /* snapshot after this step (timed checkpoints) */
    LANES_HOLDS = 4,                       /* this rank holds the state whole */
    LANES_READY = 8,                       /* this rank's second transport is ready */
    LANES_SURE = 16,                       /* it has looked: its state has the bits that it wrote */
    LANES_FRESH = 32,                      /* it received its state since headers agreed last */
    LANES_ANY = LANES_STOP | LANES_SAVE,   /* true where some present rank says so */
    LANES_ALL = LANES_HOLDS | LANES_READY, /* true where every present rank does */
    LANES_OWN = LANES_SURE | LANES_FRESH,  /* of that rank alone */
    LANES_FLAGS = LANES_ANY | LANES_ALL | LANES_OWN,
};

struct header_lane {
    float loss;
    uint64_t proof;
    uint32_t tokens;
};

struct header_rank {
    uint32_t flags; /* LANES_FLAGS */
    uint8_t lineage[8];
    uint32_t lane_us;
    uint64_t state_sum;
    int audited; /* -1: none */
    uint64_t audited_proof;
    float audited_loss;
};

/* Words of the header for that many tensors and lanes. */
int64_t header_count(int tensors, int lanes);
/* Index of a lane's loss; its maxima follow, one per tensor. */
int64_t header_lane_at(int tensors, int lane);
/* All of a lane but its maxima. */
void header_lane_write(uint32_t *header, int tensors, int lane, const struct header_lane *said);
struct header_lane header_lane_read(const uint32_t *header, int tensors, int lane);
/* Index of a rank's words. */
int64_t header_rank_at(int tensors, int lanes, int rank);
/* The last that a rank writes: it sums up all of it. */
void header_rank_write(uint32_t *header, int tensors, int lanes, int rank, const struct header_rank *said);
/* False where no such rank has written. */
bool header_rank_read(const uint32_t *header, int tensors, int lanes, int rank, struct header_rank *out);
/* Is the sum of all ranks' headers what they said? */
bool header_proven(const uint32_t *header, int tensors, int lanes);
/* The sum of all lanes' checksums: that of the words' sum (proof.h), where the pass fits. */
uint64_t header_words_proof(const uint32_t *header, int tensors, int lanes);
/* Of ranks whose states are of one history: those whose bits are not those of most. Who has just received its
 * state (LANES_FRESH) counts with who gave it, so not at all; where all have, all count. All are odd where no
 * group has more votes than each other one, or a single vote is not LANES_SURE: then nobody can tell whose
 * are right. Empty where all have the same, or the histories differ already. */
struct worker_set header_odd_states(const uint32_t *header, int tensors, int lanes);
/* Do all present ranks say LANES_SURE? Then it is no use that they look again. */
bool header_all_sure(const uint32_t *header, int tensors, int lanes);
/* Are two ranks' states of one history, and their headers of one layout? Both have written. */
bool header_ranks_agree(const uint32_t *header, int tensors, int lanes, int a, int b);

#endif
