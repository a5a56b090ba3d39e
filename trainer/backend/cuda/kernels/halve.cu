#include "trainer/backend/cuda/kernels/halve.h"

#include "trainer/backend/cuda/kernels/kernel.h"

KERNEL(halve, HALVE_THREADS)(const struct halve_args a)
{
    const int64_t stride = (int64_t)BLOCKS * HALVE_THREADS;
    for (int64_t i = (int64_t)BLOCK * HALVE_THREADS + THREAD; i < a.count; i += stride)
        a.to[i] = half_of(a.from[i]);
}
