#include "trainer/backend/cuda/kernels/fill.h"

#include "trainer/backend/cuda/kernels/kernel.h"

KERNEL(fill, FILL_THREADS)(const struct fill_args a)
{
    const int64_t stride = (int64_t)BLOCKS * FILL_THREADS;
    for (int64_t i = (int64_t)BLOCK * FILL_THREADS + THREAD; i < a.count; i += stride)
        a.words[i] = a.word;
}
