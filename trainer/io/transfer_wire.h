/* What the two sides of a transfer say to each other; private to trainer/io. Little-endian. */
#ifndef RM_IO_TRANSFER_WIRE_H
#define RM_IO_TRANSFER_WIRE_H

#include <stdint.h>

#include "common/base/limits.h"

enum {
    TRANSFER_MAGIC = 0x31544d52, /* "RMT1" */
    TRANSFER_CHUNK = 256 << 10,  /* bytes; the last chunk of an array is shorter. Each: CRC-32C, bytes */
};

enum transfer_kind { TRANSFER_STATE = 1, TRANSFER_UPDATE = 2, TRANSFER_SHARE = 3 };
enum transfer_status { TRANSFER_OK = 0, TRANSFER_NOT_HELD = 1 };

/* STATE: params, m, v of the flat range. UPDATE: words of the range, then all header words if first is 0.
 * SHARE: of each array what the source has read of the checkpoint; first and count are 0. */
struct transfer_request {
    uint32_t magic, kind;
    int64_t step; /* of the state that the receiver wants to arrive at */
    uint8_t lineage[RM_HASH_BYTES];
    int64_t first, count;
};

/* Then one chunk with the exponents (tensors), for a SHARE one with its ranges, then the arrays. */
struct transfer_reply {
    uint32_t status, exact;
    int64_t step, header_count;
    int32_t tensors, unused;
};

_Static_assert(sizeof(struct transfer_request) == 64, "no padding");
_Static_assert(sizeof(struct transfer_reply) == 32, "no padding");

#endif
