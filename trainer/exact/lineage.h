/* What history a state has, as a hash: "the same step" is not "the same bits". */
#ifndef RM_TRAINER_LINEAGE_H
#define RM_TRAINER_LINEAGE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/limits.h"

/* lineage(0): of the fields that a resume compares (job_spec_write_compared), the data's content hash and the
 * initial weights (params, `count` fp32 in flat order). */
void lineage_first(const char *compared, size_t compared_length, const uint8_t data[RM_HASH_BYTES],
                   const float *params, int64_t count, uint8_t out[RM_HASH_BYTES]);

/* What a step adds. */
struct lineage_step {
    int64_t step; /* s + 1 */
    int tensors;
    const uint64_t *sums; // (tensors) sum of each tensor's reduced words
    const int32_t *k;     // (tensors) used for them
    double norm, clip;
};

/* lineage(s+1) from lineage(s); in and out may be the same memory. */
void lineage_next(const uint8_t in[RM_HASH_BYTES], const struct lineage_step *add,
                  uint8_t out[RM_HASH_BYTES]);

#endif
