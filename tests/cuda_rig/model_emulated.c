/* The model's kernels, for the emulator. */
#include "tests/cuda_rig/emulator.h"

#include "trainer/backend/cuda/kernels/model.cu"
