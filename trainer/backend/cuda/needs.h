/* What a trainer will take of a GPU's memory, purpose by purpose, before it takes any: a pure function of
 * what is trained. All of it is taken at start, so whoever begins a step has the memory for it.
 *
 *     shape.keep = cuda_needs_keep(&shape, recompute, free);
 *     cuda_needs_make(&needs, &shape);
 *     if (cuda_needs_check(&needs, &shape, &room, err) < 0) ...      "... needs 20.1 GiB ... would fit"
 *     cuda_needs_report(&needs, &out);                               a line a purpose, for the log
 *
 * Activations are those of docs/model.md in bf16 with the residual stream in fp32 (or all in fp32), as a lane
 * keeps them (lane/lane_parts.h): whoever adds a buffer there adds it here, and a test compares both. */
#ifndef RM_TRAINER_CUDA_NEEDS_H
#define RM_TRAINER_CUDA_NEEDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/model/layout.h"

struct str;

enum cuda_purpose {
    CUDA_NEEDS_STATE,       /* weights and two moments in fp32, stamps and sums of their pieces */
    CUDA_NEEDS_WORDS,       /* two buffers of gradients in whole numbers */
    CUDA_NEEDS_UNDO,        /* old values of pieces that an update is changing, and its tables */
    CUDA_NEEDS_HALF,        /* the weights once more in bf16, for products */
    CUDA_NEEDS_GRADIENT,    /* of two tensors at a time, in fp32: they become words at once */
    CUDA_NEEDS_ACTIVATIONS, /* what a lane keeps for its way back */
    CUDA_NEEDS_LOGITS,      /* a lane's, over the whole vocabulary */
    CUDA_NEEDS_WORKSPACE,   /* of matrix products: one for each stream that computes */
    CUDA_NEEDS_RESERVE,     /* code, graphs, and what the driver takes for itself */
    CUDA_PURPOSES
};

/* What a lane keeps of the way forward for its way back; the rest is computed again there, in memory that all
 * blocks share. Bits are the same. */
enum cuda_keep {
    CUDA_KEEP_ALL,
    CUDA_KEEP_PRODUCTS, /* what products and attention made: norms' and GELU's results come again, which costs
                           the time of reading and writing them */
    CUDA_KEEP_INPUTS    /* of each block what came into it: all of it comes again but its last product */
};

struct cuda_needs_shape {
    const struct model_layout *layout;
    int lane_sequences;
    int slots; /* blocks of an update that are under way at the same time */
    bool fp32; /* trainer.precision */
    enum cuda_keep keep;
};

struct cuda_needs {
    int64_t bytes[CUDA_PURPOSES];
    int64_t total;
    int64_t spared; /* that keeping all would take beside */
    enum cuda_keep keep;
};

void cuda_needs_make(struct cuda_needs *out, const struct cuda_needs_shape *shape);
const char *cuda_purpose_text(enum cuda_purpose purpose);

/* What a job with `trainer.recompute` as it is keeps where so much is free: with it as much as fits, but
 * never all; whatever shape->keep says. Workers may differ in it. */
enum cuda_keep cuda_needs_keep(const struct cuda_needs_shape *shape, bool recompute, int64_t free);

/* A GPU's memory as it is found at start. */
struct cuda_room {
    const char *device; /* "NVIDIA H200 GPU-8f2c.." */
    int64_t free, total;
};

/* 0 where it fits. Else the sentence: how much is needed and for what most of it, how much is free and
 * whether others hold the rest, and what would fit: recompute, fewer sequences a lane, or nothing that a
 * setting changes. */
int cuda_needs_check(const struct cuda_needs *needs, const struct cuda_needs_shape *shape,
                     const struct cuda_room *room, struct error *err);

/* A line for each purpose that takes anything, and the sum; with what is computed again, and spared by it. */
void cuda_needs_report(const struct cuda_needs *needs, struct str *out);

#endif
