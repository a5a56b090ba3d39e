/* words = word, `count` of them. Any number of blocks of FILL_THREADS. */
#ifndef RM_TRAINER_CUDA_FILL_H
#define RM_TRAINER_CUDA_FILL_H

#include <stdint.h>

enum { FILL_THREADS = 256 };

struct fill_args {
    uint32_t *words; // (count)
    int64_t count;
    uint32_t word;
};

#endif
