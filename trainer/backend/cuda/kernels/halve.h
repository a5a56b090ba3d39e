/* to = from, rounded to bf16: weights as products take them. Any number of blocks of HALVE_THREADS. */
#ifndef RM_TRAINER_CUDA_HALVE_H
#define RM_TRAINER_CUDA_HALVE_H

#include <stdint.h>

enum { HALVE_THREADS = 256 };

struct halve_args {
    const float *from; // (count)
    uint16_t *to;      // (count)
    int64_t count;
};

#endif
