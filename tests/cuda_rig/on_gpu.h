/* Tests on a real GPU: RINGMASTER_TEST_GPU (anything) has those of the kernels, of a lane and of the backend
 * take the driver and cuBLASLt that a program finds, and the code that was built in, instead of the emulator
 * and the stand-ins. tools/gpu-check runs them so. What is by script, or looks into the emulator, is skipped
 * there. */
#ifndef RM_TESTS_ON_GPU_H
#define RM_TESTS_ON_GPU_H

#include <stdbool.h>

/* Whether that is wanted. */
bool on_gpu(void);
/* The code of that name ("exact"); "an image for stand-ins", which only they take, unless it is wanted, or
 * where the build had no CUDA compiler. */
const void *on_gpu_image(const char *name);

#endif
