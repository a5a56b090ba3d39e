/* What the two sides of a transfer say to each other; private to trainer/io. Little-endian. */
#ifndef RM_IO_TRANSFER_WIRE_H
#define RM_IO_TRANSFER_WIRE_H

#include <stdint.h>

#include "common/base/limits.h"

enum {
    TRANSFER_MAGIC = 0x31544d52, /* "RMT1" */
    TRANSFER_CHUNK = 256 << 10,  /* bytes; the last chunk of an array is shorter. Each: CRC-32C, bytes */
    TRANSFER_BLOCK = 64 << 10,   /* elements that are given at once to one who listens */
};

enum transfer_kind {
    TRANSFER_STATE = 1,
    TRANSFER_UPDATE = 2,
    TRANSFER_SHARE = 3,
    TRANSFER_HEAD = 4,
    TRANSFER_BLOCK_STATE = 5,
    TRANSFER_BLOCK_WORDS = 6,
};
enum transfer_status { TRANSFER_OK = 0, TRANSFER_NOT_HELD = 1 };

/* STATE: of each array the flat range, one behind the other (arrays.h). UPDATE: words of the range, then all
 * header words if first is 0. SHARE: of each array what the source has read of the checkpoint; first and
 * count are 0.
 *
 * The last three are asked for by one who listens, one after the other on one connection, while the source
 * trains. HEAD: what the state of that step is called (step -1: of whichever), with the losses of the newest
 * steps up to that one, as far as the source knows them, and with the header words of the update that led to
 * it, where that is kept. BLOCK_STATE: all arrays of the flat range, of the state of that
 * step and lineage. BLOCK_WORDS: the words of the update that led to it. Who has not come to that step yet
 * answers when it has, or when it is asked for something else. */
struct transfer_request {
    uint32_t magic, kind;
    int64_t step; /* of the state that the receiver wants to arrive at */
    uint8_t lineage[RM_HASH_BYTES];
    int64_t first, count;
};

/* Then one chunk with the exponents (tensors), for a SHARE one with its ranges, then the arrays. For a HEAD
 * one chunk of: exponents (tensors), lineage, losses (doubles, the oldest first), those of
 * their evaluations (likewise; NaN: none is known), and where header_count is
 * not 0 the update's exponents (tensors) and header words; for a block one of its bytes. NOT_HELD in answer
 * to one of the last three: `step` is what the source holds, -1: nothing now. */
struct transfer_reply {
    uint32_t status, exact;
    int64_t step, header_count;
    int32_t tensors, losses;
};

_Static_assert(sizeof(struct transfer_request) == 64, "no padding");
_Static_assert(sizeof(struct transfer_reply) == 32, "no padding");

#endif
