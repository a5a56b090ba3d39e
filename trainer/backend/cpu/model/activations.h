/* The memory of one struct gpt: what the way forward keeps for the way back, and the way back's own. */
#ifndef RM_TRAINER_ACTIVATIONS_H
#define RM_TRAINER_ACTIVATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/model/layout.h"
#include "trainer/backend/cpu/model/layernorm.h"

/* N = sequences * context rows, C = width. void: floats, or bf16 (uint16_t) with that precision.
 *
 * With recompute all blocks share one memory, but for `out`: the input of the next block. */
struct block_activations {
    struct layernorm_stats *stats1, *stats2; /* (N) */
    void *norm1;                             /* (N, C) */
    void *qkv;                               /* (N, 3C) */
    float *log_sums;                         /* (sequences, heads, context) */
    void *mixed;                             /* (N, C) */
    float *middle;                           /* (N, C): the residual stream after attention */
    void *norm2;                             /* (N, C) */
    void *wide;                              /* (N, 4C): before GELU */
    void *gelu;                              /* (N, 4C) */
    float *out;                              /* (N, C): the residual stream after the block */
};

struct activations {
    float *embedded; /* (N, C) */
    struct block_activations block[RM_LAYERS_MAX];
    struct layernorm_stats *stats; /* (N) */
    void *norm;                    /* (N, C) */
    float *losses;                 /* (N) */
    float *logits;                 /* head_scratch */
    float *dstream;                /* (N, C): gradient of the residual stream, carried down the blocks */
    uint16_t *dstream_rounded;     /* (N, C): the same in bf16; NULL in fp32 */
    float *dnarrow;                /* (N, C) */
    void *dmixed;                  /* (N, C): gradient of mixed; in fp32 the same memory as dnarrow */
    void *dwide;                   /* (N, 4C); also (N, 3C) */
    float *partials;               /* (layernorm pieces of N, 2, C) */
    float **scratch;               /* (threads): what attention and linear layers ask for, each */
    int32_t *tokens, *targets;     /* (N) */
    void *memory;
    size_t bytes;
};

struct activations_options {
    const struct model_shape *shape;
    int sequences, threads;
    bool bf16, recompute;
};

int activations_open(struct activations *a, const struct activations_options *options, struct error *err);
void activations_clear(struct activations *a);

#endif
