/* A lane's gradient of one tensor into the words of the pass: kernel_add_fixed and kernel_add_float of the
 * CPU's sums. Any number of blocks of LANES_ADD_THREADS. */
#ifndef RM_TRAINER_CUDA_LANES_ADD_H
#define RM_TRAINER_CUDA_LANES_ADD_H

#include <stdint.h>

enum { LANES_ADD_THREADS = 256, LANES_ADD_EACH = 4 /* elements of a thread in a turn */ };

struct lanes_add_args {
    const float *grads; // (count)
    uint32_t *words;    // (count)
    uint32_t *max;   /* grows to the largest bits of |grads|: whoever launches the first part sets it to 0 */
    uint64_t *proof; /* grows by the sum of weight(place) * q (proof.cu); not touched where words are fp32 */
    int64_t count;
    uint64_t at; /* the first one's place in flat order */
    float scale;
    int32_t store;  /* words = q instead of words += q */
    int32_t floats; /* words are fp32 (reduction: fast), else int32 */
};

#endif
