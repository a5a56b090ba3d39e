/* Causal self-attention. The probabilities are not kept: each row's log of its sum of exponentials is, and
 * the way back computes them again from it. One piece of work is one head of one sequence. */
#ifndef RM_TRAINER_ATTENTION_H
#define RM_TRAINER_ATTENTION_H

#include "trainer/backend/cpu/model/crew.h"

struct attention {
    int sequences, heads, length; /* B, H, T */
    int64_t width;                /* C = H * head size */
    const void *qkv;              /* (B, T, 3C): query, key, value; floats, or bf16 for attention_bf16_* */
    void *mixed;                  /* (B, T, C), of the same kind */
    float *log_sums;              /* (B, H, T) */
};

/* Floats of scratch memory that each thread needs. */
int64_t attention_scratch(int length);

/* Fills mixed and log_sums. */
int attention_forward(struct crew *crew, const struct attention *a);

/* dmixed (B, T, C) -> dqkv (B, T, 3C), all of it overwritten. */
int attention_backward(struct crew *crew, const struct attention *a, const float *dmixed, float *dqkv);

/* The same with products of bf16: scores, softmax and sums are fp32, probabilities are rounded to bf16 before
 * they are multiplied. dmixed and dqkv are bf16. size: of a head. */
int64_t attention_bf16_scratch(int length, int64_t size);
int attention_bf16_forward(struct crew *crew, const struct attention *a);
int attention_bf16_backward(struct crew *crew, const struct attention *a, const uint16_t *dmixed,
                            uint16_t *dqkv);

enum { ATTENTION_BLOCK = 64 }; /* rows of scores at a time: what lies behind their diagonal is not computed */

/* Rows, for bf16 and the tests: scores[0..n) -> probabilities of softmax(scale * scores), zeros up to `end`;
 * returns the log of the sum of exponentials. */
float attention_softmax(float *scores, int64_t n, int64_t end, float scale);

/* scores[0..n) -> probabilities; d[0..n), their gradients, -> gradients of the products of query and key.
 * Zeros up to `end` in both. drift: the row's mixed * dmixed. */
void attention_softmax_backward(float *scores, float *d, int64_t n, int64_t end, float scale, float log_sum,
                                float drift);

#endif
