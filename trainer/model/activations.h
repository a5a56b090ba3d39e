/* The memory of one struct gpt: what the way forward keeps for the way back, and the way back's own. */
#ifndef RM_TRAINER_ACTIVATIONS_H
#define RM_TRAINER_ACTIVATIONS_H

#include <stdint.h>

#include "common/base/error.h"
#include "common/model/layout.h"
#include "trainer/model/layernorm.h"

/* N = sequences * context rows, C = width. */
struct block_activations {
    struct layernorm_stats *stats1, *stats2; /* (N) */
    float *norm1;                            /* (N, C) */
    float *qkv;                              /* (N, 3C) */
    float *log_sums;                         /* (sequences, heads, context) */
    float *mixed;                            /* (N, C) */
    float *middle;                           /* (N, C): the residual stream after attention */
    float *norm2;                            /* (N, C) */
    float *wide;                             /* (N, 4C): before GELU */
    float *gelu;                             /* (N, 4C) */
    float *out;                              /* (N, C): the residual stream after the block */
};

struct activations {
    float *embedded; /* (N, C) */
    struct block_activations block[RM_LAYERS_MAX];
    struct layernorm_stats *stats; /* (N) */
    float *norm;                   /* (N, C) */
    float *losses;                 /* (N) */
    float *logits;                 /* (head_chunk(N, V), V) */
    float *dstream;                /* (N, C): gradient of the residual stream, carried down the blocks */
    float *dnarrow;                /* (N, C) */
    float *dwide;                  /* (N, 4C); also (N, 3C) */
    float *partials;               /* (layernorm pieces of N, 2, C) */
    float **scratch;               /* (threads): attention_scratch(context) each */
    int32_t *tokens, *targets;     /* (N) */
    void *memory;
};

int activations_open(struct activations *a, const struct model_shape *shape, int sequences, int threads,
                     struct error *err);
void activations_clear(struct activations *a);

#endif
