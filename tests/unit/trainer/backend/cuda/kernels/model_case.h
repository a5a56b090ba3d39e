/* What the tests of the model's kernels have in common: numbers, operands of either kind, runs in ten orders
 * and with barriers left out. */
#ifndef RM_TESTS_MODEL_CASE_H
#define RM_TESTS_MODEL_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/cuda_rig/kernels.h"

/* A kernel's launch, and the memory that it changes. */
enum { MODEL_OUTS_MAX = 4 };
struct model_run {
    const struct emulated_kernel *kernel;
    const void *args;
    int blocks;
    bool blocks_any; /* other numbers of blocks give the same bits: they are tried, too */
    struct {
        void *at;
        size_t bytes;
    } out[MODEL_OUTS_MAX];
};

/* Runs it in so many orders, each time on what the outs hold now; the bytes must be the same each time, and
 * no barrier be met beyond `barriers`. Leaves the outs as they are then. */
enum { MODEL_ORDERS = 10 };
void model_run_some(const struct model_run *run, int barriers, int orders);
void model_run_orders(const struct model_run *run, int barriers); /* in ten */
/* Each barrier left out: in some order the outs differ. Leaves them as the kernel makes them. */
void model_run_planted(const struct model_run *run);

/* In [-size, size). */
float *model_floats(int64_t count, double size, uint64_t seed);
/* The same as operands: bf16 where half, else fp32. */
void *model_operands(int64_t count, double size, int half, uint64_t seed);
void *model_empty(int64_t count, size_t size); /* each byte 0xff */
double model_operand(const void *operands, int64_t i, int half);
double model_half(uint16_t bits);

/* |got - wanted| <= absolute + relative * |wanted|, or both are NaN. */
void model_near(double got, double wanted, double relative, double absolute, const char *what, int64_t i);
/* The tolerance of one rounding to an operand: 2^-8 of bf16, and `exact` of fp32. */
double model_rounding(int half, double exact);

#endif
