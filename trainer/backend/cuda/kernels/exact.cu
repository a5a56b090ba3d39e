/* The exact half in one compilation, with flags that leave each operation its own rounding (module.cmake). */
#include "trainer/backend/cuda/kernels/fill.cu"
#include "trainer/backend/cuda/kernels/lanes_add.cu"
#include "trainer/backend/cuda/kernels/prove.cu"
#include "trainer/backend/cuda/kernels/restore.cu"
#include "trainer/backend/cuda/kernels/sums.cu"
#include "trainer/backend/cuda/kernels/update.cu"
