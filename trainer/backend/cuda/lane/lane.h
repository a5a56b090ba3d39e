/* A lane on a GPU: forward, backward, and its gradient added to the sums of the pass, tensor by tensor as
 * each becomes known. GPT-2 with products of bf16 (docs/model.md says what that is of; here the branches of a
 * block, too, are bf16 when they are added to the stream).
 *
 * All memory is taken when it is opened; nothing here is chosen by time or by what was computed before, so
 * bits depend on shape, weights and tokens, and on the GPU and its libraries. One caller at a time, who has
 * called cuda_device_use. */
#ifndef RM_TRAINER_CUDA_LANE_H
#define RM_TRAINER_CUDA_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/model/layout.h"
#include "trainer/backend/cuda/driver/cublaslt.h"
#include "trainer/backend/cuda/driver/kernel.h"
#include "trainer/backend/cuda/needs.h"

struct cuda_lane;

struct cuda_lane_options {
    const struct model_layout *layout; /* outlives it */
    int sequences;
    const struct cuda_module *exact, *model; /* the images of those names; outlive it */
    bool graphs;         /* its work is handed over in one call, where it is the same as before: same bits */
    enum cuda_keep keep; /* for its way back: same bits, too */
};

/* Refused: a shape whose heads are wider than ATTEND_WIDEST (kernels/attend.h), or not as wide all together
 * as a multiple of 8; what the driver and cuBLASLt refuse. */
int cuda_lane_open(struct cuda_lane **ret, struct cuda_blas *blas, const struct cuda_lane_options *options,
                   struct error *err);
void cuda_lane_free(struct cuda_lane *l);

/* What cuBLASLt's algorithms were chosen to be (cublaslt.h): a part of the fingerprint. */
void cuda_lane_choice(const struct cuda_lane *l, uint8_t out[RM_HASH_BYTES]);

/* params (parameters, fp32, on the GPU): the weights of all that follows, until the next call. To be called
 * whenever their values changed. */
int cuda_lane_weights(struct cuda_lane *l, CUdeviceptr params, struct error *err);

/* Where a lane's gradient goes (kernels/lanes_add.h), all on the GPU but scale. */
struct cuda_lane_sums {
    CUdeviceptr words;  // (parameters)
    CUdeviceptr max;    // (tensors)
    CUdeviceptr proof;  /* one uint64 */
    const float *scale; // (tensors)
    bool store, floats;
};

/* tokens (sequences, context + 1), here, each within the vocabulary (asserted). Returns when it is done, with
 * the mean loss. */
int cuda_lane_run(struct cuda_lane *l, const int32_t *tokens, const struct cuda_lane_sums *sums, double *loss,
                  struct error *err);

/* tokens (context + 1), likewise: the mean loss of one sequence by itself, forward only. */
int cuda_lane_loss(struct cuda_lane *l, const int32_t *tokens, double *loss, struct error *err);

#endif
