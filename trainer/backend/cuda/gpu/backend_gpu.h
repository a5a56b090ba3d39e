/* The C model on one NVIDIA GPU behind the table of who computes (trainer/backend/backend.h): its state lies
 * in the GPU's memory, far from this process, and dies with it.
 *
 * Words, norm, update and lineage have the bits of the CPU's for the same gradients; the gradients are the
 * GPU's own (docs/gpu.md). */
#ifndef RM_BACKEND_GPU_H
#define RM_BACKEND_GPU_H

#include "trainer/backend/backend.h"

struct str;

/* Opens as engine_open_backend says (trainer/engine/engine.h). Refused, with a sentence each. ERR_USAGE: a
 * precision other than bf16, a shape that kernels are not made for. ERR_MACHINE: a program that was built
 * without kernels, no driver, no GPU, no cuBLASLt, or one of these that can't be used; too little memory. */
int backend_gpu_open(struct backend **ret, const struct backend_options *options, struct error *err);

/* What it will take, whether there is a GPU here or not: of this machine's memory, and of the GPU's. */
struct backend_needs backend_gpu_needs(const struct backend_options *options);
int64_t backend_gpu_bytes(const struct backend_options *options);

/* What it computes on, for the log: "NVIDIA H200 GPU-8f2c..., cuBLASLt 13.0.2". */
const char *backend_gpu_name(const struct backend *b);
/* What it has taken of the GPU's memory, a line a purpose (needs.h). */
void backend_gpu_report(const struct backend *b, struct str *out);

/* Tests and benches give kernels from elsewhere than this program, or want no graphs. */
struct backend_gpu_parts {
    const void *exact, *model; /* the images of those names (images.h) */
    bool graphs;
};
int backend_gpu_open_with(struct backend **ret, const struct backend_options *options,
                          const struct backend_gpu_parts *parts, struct error *err);

#endif
