/* Which algorithm computes which product, where somebody has measured it: a table that is part of the
 * program, so that all who have the same program, GPU and library choose alike. Pure.
 *
 * An entry counts for one architecture, one number of processors and one version of cuBLASLt, for whose next
 * version its bytes mean nothing. What the table lacks, or the library does not take, is chosen from what the
 * library proposes (cublaslt.h). What was chosen goes into the fingerprint (cuda_products_hash). */
#ifndef RM_TRAINER_CUDA_ALGORITHMS_H
#define RM_TRAINER_CUDA_ALGORITHMS_H

#include "trainer/backend/cuda/driver/cublaslt.h"

struct cuda_algorithm_kind {
    int architecture; /* compute capability times ten: 90 */
    int processors;
    int version; /* of cuBLASLt: 130002 */
};

struct cuda_algorithm {
    struct cuda_algorithm_kind kind;
    struct cuda_product_shape shape; /* its workspace does not count */
    cublasLtMatmulAlgo_t algorithm;
};

/* What is built in. */
struct cuda_algorithm_table cuda_algorithms_built_in(void);

/* The first entry for both; NULL: there is none. */
const cublasLtMatmulAlgo_t *cuda_algorithm_find(struct cuda_algorithm_table table,
                                                const struct cuda_algorithm_kind *kind,
                                                const struct cuda_product_shape *shape);

#endif
