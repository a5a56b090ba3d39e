#include "trainer/backend/cuda/driver/algorithms.h"

#include <stddef.h>

/* No GPU has been measured yet. */
struct cuda_algorithm_table cuda_algorithms_built_in(void)
{
    return (struct cuda_algorithm_table){NULL, 0};
}

static bool same_kind(const struct cuda_algorithm_kind *a, const struct cuda_algorithm_kind *b)
{
    return a->architecture == b->architecture && a->processors == b->processors && a->version == b->version;
}

static bool same_shape(const struct cuda_product_shape *a, const struct cuda_product_shape *b)
{
    return a->m == b->m && a->n == b->n && a->k == b->k && a->a_turned == b->a_turned &&
           a->b_turned == b->b_turned && a->half == b->half && a->d_half == b->d_half && a->add == b->add &&
           a->epilogue == b->epilogue;
}

const cublasLtMatmulAlgo_t *cuda_algorithm_find(struct cuda_algorithm_table table,
                                                const struct cuda_algorithm_kind *kind,
                                                const struct cuda_product_shape *shape)
{
    for (int i = 0; i < table.count; i++)
        if (same_kind(&table.at[i].kind, kind) && same_shape(&table.at[i].shape, shape))
            return &table.at[i].algorithm;
    return NULL;
}
