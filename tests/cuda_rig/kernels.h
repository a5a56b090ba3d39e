/* The emulated kernels (exact_emulated.c, model_emulated.c); their arguments are
 * trainer/backend/cuda/kernels/NAME.h. */
#ifndef RM_TESTS_CUDA_KERNELS_H
#define RM_TESTS_CUDA_KERNELS_H

#include "tests/cuda_rig/emulator.h"

extern const struct emulated_kernel emulated_fill, emulated_lanes_add, emulated_prove, emulated_restore,
    emulated_sums, emulated_update;

extern const struct emulated_kernel emulated_attend_64, emulated_attend_128, emulated_attend_keys_64,
    emulated_attend_keys_128, emulated_attend_queries_64, emulated_attend_queries_128;
extern const struct emulated_kernel emulated_classify, emulated_columns, emulated_embed,
    emulated_embed_places, emulated_embed_tokens, emulated_gelu, emulated_gelu_back, emulated_halve,
    emulated_norm_rows, emulated_norm_back;

#endif
