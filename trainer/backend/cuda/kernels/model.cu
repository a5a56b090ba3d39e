/* The model's kernels in one compilation. Each operation is rounded by itself here, too: such loops wait for
 * memory, and so the emulator's arithmetic is theirs, but for two_to, log_of and the matrix unit. */
#include "trainer/backend/cuda/kernels/attend.cu"
#include "trainer/backend/cuda/kernels/attend_back.cu"
#include "trainer/backend/cuda/kernels/classify.cu"
#include "trainer/backend/cuda/kernels/columns.cu"
#include "trainer/backend/cuda/kernels/embed.cu"
#include "trainer/backend/cuda/kernels/gelu.cu"
#include "trainer/backend/cuda/kernels/halve.cu"
#include "trainer/backend/cuda/kernels/norm.cu"
