/* Causal self-attention. The probabilities are not kept: each row's log of its sum of exponentials is, and
 * the way back computes them again from it. One piece of work is one head of one sequence. */
#ifndef RM_TRAINER_ATTENTION_H
#define RM_TRAINER_ATTENTION_H

#include "trainer/model/crew.h"

struct attention {
    int sequences, heads, length; /* B, H, T */
    int64_t width;                /* C = H * head size */
    const float *qkv;             /* (B, T, 3C): query, key, value */
    float *mixed;                 /* (B, T, C) */
    float *log_sums;              /* (B, H, T) */
};

/* Floats of scratch memory that each thread needs. */
int64_t attention_scratch(int length);

/* Fills mixed and log_sums. */
int attention_forward(struct crew *crew, const struct attention *a);

/* dmixed (B, T, C) -> dqkv (B, T, 3C), all of it overwritten. */
int attention_backward(struct crew *crew, const struct attention *a, const float *dmixed, float *dqkv);

/* Rows, for the tests: scores[0..n) -> probabilities of softmax(scale * scores), zeros up to `end`; returns
 * the log of the sum of exponentials. */
float attention_softmax(float *scores, int64_t n, int64_t end, float scale);

#endif
