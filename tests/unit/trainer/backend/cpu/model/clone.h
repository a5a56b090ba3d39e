/* The kernels as one instruction set's clone computes them, so that a test can lay clones side by side. */
#ifndef RM_TESTS_MODEL_CLONE_H
#define RM_TESTS_MODEL_CLONE_H

#include <stdint.h>

enum { CLONE_ROWS = 5, CLONE_WIDTH = 83, CLONE_COUNT = CLONE_ROWS * CLONE_WIDTH };

/* Runs every kernel on in[0..2 CLONE_COUNT) and writes all that comes out to out[CLONE_OUT]; returns how
 * much. */
enum { CLONE_OUT = 20 * CLONE_COUNT };
int clone_run_v4(const float *in, float *out);
int clone_run_v3(const float *in, float *out);
int clone_run_v1(const float *in, float *out);

#endif
