/* The loops over a piece's elements: the same bits on every x86-64, whatever instructions do the work.
 *
 * Every operation here is an integer operation or one IEEE operation with its own rounding (no fused
 * multiply-add, no approximations); sums of fp32 run over sixteen fixed columns, those of integers are exact.
 * Flush-to-zero and denormals-are-zero are set for the length of a call, so that the caller's settings don't
 * count. */
#ifndef RM_TRAINER_KERNELS_H
#define RM_TRAINER_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "trainer/exact/wide.h"

struct kernel_lane_args {
    const float *grads; // (count)
    uint32_t *words;    // (count)
    int count;
    float scale;
    bool store;  /* words = q instead of words += q */
    uint64_t at; /* place of the first element in flat order, for its weight (proof.h) */
};

/* What a lane's pass over a piece has seen. */
struct kernel_lane {
    uint32_t max;   /* largest bits of |grads| */
    uint64_t proof; /* of its integers (proof.h); 0 where words are fp32 */
};

struct kernel_sums_args {
    const uint32_t *words; // (count), count <= 2^20
    int count;
    bool floats; /* the words are fp32, else int32 */
    uint64_t at; /* as above */
};

/* The sums are of the words' values, not scaled by 2^-k. */
struct kernel_sums {
    double square;            /* of fp32 */
    struct wide square_fixed; /* of int32: exact */
    uint64_t sum;             /* of the words' bits */
    uint64_t proof;           /* of int32 (proof.h) */
};

/* One AdamW step in fp32; see update.c for where the numbers come from. */
struct kernel_adamw {
    float unit;                       /* value of one quantum: 2^-k (1 where words are fp32) */
    float clip;                       /* factor on the gradient */
    float beta1, rest1, beta2, rest2; /* rest = 1 - beta */
    float bias2;                      /* 1 / sqrt(1 - beta2^t) */
    float epsilon;
    float rate; /* learning rate / (1 - beta1^t) */
    float keep; /* 1 - learning rate * weight decay; 1 without */
};

struct kernel_adamw_args {
    const uint32_t *words;
    float *params, *m, *v; // (count) each
    int count;
};

/* Another place for what is new, that overlaps nothing else. */
struct kernel_adamw_to {
    float *params, *m, *v; // (count) each
};

/* One instruction set's loops. */
struct kernels;

/* The quickest that this CPU has. */
const struct kernels *kernels_best(void);
/* All variants, for comparing them: variant 0 runs everywhere; NULL where this CPU lacks the instructions. */
enum { KERNEL_VARIANTS = 3 };
const struct kernels *kernels_variant(int i);
const char *kernels_name(const struct kernels *k);

/* words (+)= saturated round-to-nearest-even int32 of grads * scale, 0 for NaN. */
struct kernel_lane kernel_add_fixed(const struct kernels *k, const struct kernel_lane_args *args);
/* words (+)= grads * scale as fp32. */
struct kernel_lane kernel_add_float(const struct kernels *k, const struct kernel_lane_args *args);
struct kernel_sums kernel_sums(const struct kernels *k, const struct kernel_sums_args *args);
/* proof_piece of a part of a state. */
uint64_t kernel_prove(const struct kernels *k, const float *params, const float *m, const float *v,
                      int count);
/* Works in place. */
void kernel_adamw(const struct kernels *k, const struct kernel_adamw_args *args, const struct kernel_adamw *c,
                  bool floats);
/* The same numbers to another place; those of args stay as they are. */
void kernel_adamw_to(const struct kernels *k, const struct kernel_adamw_args *args,
                     const struct kernel_adamw_to *to, const struct kernel_adamw *c, bool floats);

#endif
