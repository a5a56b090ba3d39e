/* GPT-2 on the CPU, in fp32 or with products of bf16: one lane forward and backward, loss alone, and logits
 * for generation.
 *
 * Bits depend on shape, weights, tokens and the instruction set only: never on the number of threads, on
 * which worker asks, or on what was computed before. Every product is cut into pieces fixed by its shape,
 * each computed by one thread; partial sums are added in index order; no float atomics.
 *
 * Parameters and gradients are flat (common/model/layout.h). One struct gpt serves one caller at a time. */
#ifndef RM_TRAINER_GPT_H
#define RM_TRAINER_GPT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/model/layout.h"
#include "common/os/pool.h"

struct gpt;

/* GPT_BF16: weights and activations are rounded to bf16 where they enter a product; sums, norms, softmax,
 * loss, the residual stream and the gradients of weights are fp32, and so are the weights themselves. */
enum gpt_precision { GPT_FP32, GPT_BF16 };
/* "fp32" or "bf16"; -1 for other words. */
int gpt_precision_read(const char *word, enum gpt_precision *ret);

struct gpt_options {
    int sequences;   /* of shape->context tokens that one call handles at most (a lane's) */
    const char *isa; /* "Auto" or the name of an instruction set by force (matmul_use_isa) */
    enum gpt_precision precision;
    bool recompute; /* keep each block's input only and run its way forward again: same bits, less memory */
};

/* Memory for activations, and for the weights in bf16, is taken here. */
int gpt_open(struct gpt **ret, const struct model_layout *layout, const struct gpt_options *options,
             struct pool *pool, struct error *err);
void gpt_free(struct gpt *g);

/* What gpt_open took, in bytes. */
size_t gpt_memory(const struct gpt *g);

/* Must be called whenever the values in params changed (once a step), and before the first pass: rounds the
 * weights to bf16. In fp32 nothing is kept between calls: packed weights were measured to gain nothing over
 * oneDNN's own packing of each tile. */
void gpt_weights_changed(struct gpt *g, const float *params);

/* One lane: tokens (sequences, context + 1); gradient of the lane's mean loss into grads (flat, all
 * elements overwritten) and the loss itself into *loss. stop: checked between the pieces of each
 * product (a millisecond or so); where it is non-zero the call returns early with ERR_ABORTED and grads are
 * undefined. NULL: never. A token outside the vocabulary is ERR_DATA. */
int gpt_lane(struct gpt *g, const float *params, const int32_t *tokens, float *grads, float *loss,
             const atomic_int *stop, struct error *err);

/* Mean loss of each of n sequences, forward only. tokens (n, context + 1), losses (n). They go through one by
 * one, so that a sequence's loss does not depend on who else is with it. */
int gpt_losses(struct gpt *g, const float *params, const int32_t *tokens, int n, float *losses,
               const atomic_int *stop, struct error *err);

/* Logits that follow the first `length` (<= context) tokens of one sequence: logits (vocabulary). */
void gpt_next_logits(struct gpt *g, const float *params, const int32_t *tokens, int length, float *logits);

/* GPT-2's initial weights from a seed: normal(0, 0.02), residual projections / sqrt(2 * layers), biases 0,
 * norms 1. Counter-based: element i of tensor t is a pure function of (seed, t's name, i). */
void gpt_init_weights(const struct model_layout *layout, uint64_t seed, float *params);

/* Everything that decides bits, as text: numerics id (hash of numeric sources, compiler, flags), precision,
 * instruction set in use, CPU model and cache sizes, oneDNN version. RM_FINGERPRINT_MAX bytes. */
void gpt_fingerprint(const char *isa, enum gpt_precision precision, char out[RM_FINGERPRINT_MAX]);

#endif
