/* Matrix products by cuBLASLt, found when the program runs, as the driver is.
 *
 * It is looked for at RINGMASTER_CUBLASLT_LIBRARY (a path; then nowhere else), else as libcublasLt.so.13
 * where the system's loader looks.
 *
 * Matrices here are row-major, as all of the tree's are: d (m, n) = a (m, k) * b (k, n). For the library,
 * whose are column-major, the same bytes are d' (n, m) = b' * a', so a and b change places on the way.
 *
 * Which algorithm computes a product is settled when that is opened, without timing anything: by the table
 * (algorithms.h), else it is the first of what the library proposes that sums in one order. A sum split over
 * K is allowed where its parts are kept apart in the workspace and added up afterwards, never in place (the
 * order would be chance) and never in the output's type. */
#ifndef RM_TRAINER_CUDA_CUBLASLT_H
#define RM_TRAINER_CUDA_CUBLASLT_H

#include <stdbool.h>

#include "common/base/error.h"
#include "common/base/limits.h"
#include "trainer/backend/cuda/driver/cublaslt_calls.h"
#include "trainer/backend/cuda/driver/stream.h"

struct cuda_algorithm;
struct cuda_algorithm_table {
    const struct cuda_algorithm *at;
    int count;
};

struct cuda_blas {
    struct cuda_device *device;
    struct cuda_algorithm_table table; /* what is built in, but for tests */
    struct cublaslt_calls calls;
    cublasLtHandle_t handle;
    int version; /* 130002 is 13.0.2 */
    char path[RM_URI_MAX];
};

/* Refused, ERR_MACHINE: no library, one that lacks a function, one that is not of version 13. */
int cuda_blas_open(struct cuda_blas **ret, struct cuda_device *device, struct error *err);
void cuda_blas_free(struct cuda_blas *blas);

enum cuda_epilogue {
    CUDA_PLAIN,
    CUDA_BIAS,          /* + bias (n), of d's type */
    CUDA_BIAS_GELU,     /* that goes to aux (m, n), and GELU of it to d; n is a multiple of 8 */
    CUDA_GELU_SLOPE,    /* times GELU's slope at aux (m, n) */
    CUDA_BIAS_GRADIENT, /* sums of b's columns to bias (n): b is a gradient, k its rows */
    CUDA_EPILOGUES
};

struct cuda_product_shape {
    int m, n, k;
    bool a_turned, b_turned; /* it lies there as (k, m), or (n, k) */
    bool half;               /* a and b are bf16, else fp32 */
    bool d_half;
    bool add; /* d += */
    enum cuda_epilogue epilogue;
    size_t workspace; /* bytes that it may use */
};

struct cuda_product {
    struct cuda_blas *blas;
    struct cuda_product_shape shape;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatmulAlgo_t algorithm;
};

/* Whether an algorithm of this reduction scheme gives the same bits each time. */
bool cuda_algorithm_is_exact(uint32_t scheme);

int cuda_product_open(struct cuda_product *p, struct cuda_blas *blas, const struct cuda_product_shape *shape,
                      struct error *err);
void cuda_product_clear(struct cuda_product *p);
/* Of what was chosen for so many open products, in their order: the library's version, each one's shape and
 * its algorithm's 64 bytes. Two that differ in it may differ in bits. */
void cuda_products_hash(const struct cuda_product *products, int count, uint8_t out[RM_HASH_BYTES]);

struct cuda_product_operands {
    CUdeviceptr a, b, d, bias, aux, workspace; /* bias, aux: 0 where the epilogue has none */
};

/* Into the stream; the same product from one thread at a time. */
int cuda_product_run(struct cuda_product *p, struct cuda_stream *s, const struct cuda_product_operands *at,
                     struct error *err);

#endif
