/* cuBLASLt's functions that we call. */
#ifndef RM_TRAINER_CUDA_CUBLASLT_CALLS_H
#define RM_TRAINER_CUDA_CUBLASLT_CALLS_H

#include "trainer/backend/cuda/driver/cublaslt_abi.h"

/* The calls that make and end each kind of descriptor. */
#define CUBLASLT_CALLS_OF_DESCRIPTORS(C)                                                                     \
    C(cublasLtMatmulDescCreate,                                                                              \
      (cublasLtMatmulDesc_t * desc, cublasComputeType_t compute, cudaDataType_t scale))                      \
    C(cublasLtMatmulDescDestroy, (cublasLtMatmulDesc_t desc))                                                \
    C(cublasLtMatmulDescSetAttribute,                                                                        \
      (cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t which, const void *from, size_t bytes))     \
    C(cublasLtMatrixLayoutCreate, (cublasLtMatrixLayout_t * layout, cudaDataType type, uint64_t rows,        \
                                   uint64_t columns, int64_t leading))                                       \
    C(cublasLtMatrixLayoutDestroy, (cublasLtMatrixLayout_t layout))                                          \
    C(cublasLtMatmulPreferenceCreate, (cublasLtMatmulPreference_t * preference))                             \
    C(cublasLtMatmulPreferenceDestroy, (cublasLtMatmulPreference_t preference))                              \
    C(cublasLtMatmulPreferenceSetAttribute,                                                                  \
      (cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t which, const void *from,  \
       size_t bytes))

#define CUBLASLT_CALLS(C)                                                                                    \
    C(cublasLtCreate, (cublasLtHandle_t * handle))                                                           \
    C(cublasLtDestroy, (cublasLtHandle_t handle))                                                            \
    CUBLASLT_CALLS_OF_DESCRIPTORS(C)                                                                         \
    C(cublasLtMatmulAlgoGetHeuristic,                                                                        \
      (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,                         \
       cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,                         \
       cublasLtMatmulPreference_t preference, int asked, cublasLtMatmulHeuristicResult_t results[],          \
       int *found))                                                                                          \
    C(cublasLtMatmulAlgoCheck,                                                                               \
      (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,                         \
       cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,                         \
       const cublasLtMatmulAlgo_t *algorithm, cublasLtMatmulHeuristicResult_t *result))                      \
    C(cublasLtMatmulAlgoConfigGetAttribute,                                                                  \
      (const cublasLtMatmulAlgo_t *algorithm, cublasLtMatmulAlgoConfigAttributes_t which, void *to,          \
       size_t bytes, size_t *written))                                                                       \
    C(cublasLtMatmul,                                                                                        \
      (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *a,                 \
       cublasLtMatrixLayout_t a_layout, const void *b, cublasLtMatrixLayout_t b_layout, const void *beta,    \
       const void *c, cublasLtMatrixLayout_t c_layout, void *d, cublasLtMatrixLayout_t d_layout,             \
       const cublasLtMatmulAlgo_t *algorithm, void *workspace, size_t bytes, cudaStream_t stream))

#define CUBLASLT_CALL_MEMBER(name, arguments) cublasStatus_t(*name) arguments;

struct cublaslt_calls {
    CUBLASLT_CALLS(CUBLASLT_CALL_MEMBER)
    size_t (*cublasLtGetVersion)(void);
};

#endif
