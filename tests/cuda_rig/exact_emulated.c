/* The kernels of the exact half, for the emulator. */
#include "tests/cuda_rig/emulator.h"

#include "trainer/backend/cuda/kernels/exact.cu"
