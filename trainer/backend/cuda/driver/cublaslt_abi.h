/* What we need of cuBLASLt's binary interface, declared by ourselves as abi.h does for the driver;
 * cuda_abi_test.c compares it with cublasLt.h where one is found. Matrices are column-major there. */
#ifndef RM_TRAINER_CUDA_CUBLASLT_ABI_H
#define RM_TRAINER_CUDA_CUBLASLT_ABI_H

#include <stddef.h>
#include <stdint.h>

#include "trainer/backend/cuda/driver/cublaslt_values.h"

typedef enum { CUBLASLT_STATUSES(CUDA_VALUE) } cublasStatus_t;
typedef enum { CUBLASLT_LAYOUT_ATTRIBUTES(CUDA_VALUE) } cublasLtMatrixLayoutAttribute_t;
typedef enum { CUBLASLT_DESC_ATTRIBUTES(CUDA_VALUE) } cublasLtMatmulDescAttributes_t;
typedef enum { CUBLASLT_PREFERENCES(CUDA_VALUE) } cublasLtMatmulPreferenceAttributes_t;
typedef enum { CUBLASLT_ALGORITHM_ATTRIBUTES(CUDA_VALUE) } cublasLtMatmulAlgoConfigAttributes_t;
enum { CUBLASLT_FLAGS(CUDA_VALUE) };

/* Those of which we use one or two values. */
typedef unsigned int cudaDataType_t, cublasComputeType_t;
typedef cudaDataType_t cudaDataType;

typedef struct cublasLtContext *cublasLtHandle_t;
typedef struct cublaslt_desc *cublasLtMatmulDesc_t;
typedef struct cublaslt_layout *cublasLtMatrixLayout_t;
typedef struct cublaslt_preference *cublasLtMatmulPreference_t;
typedef struct CUstream_st *cudaStream_t;

/* May be kept and used again, by the same version of the library. */
typedef struct {
    uint64_t data[8];
} cublasLtMatmulAlgo_t;

typedef struct {
    cublasLtMatmulAlgo_t algo;
    size_t workspaceSize;
    cublasStatus_t state;
    float wavesCount;
    int reserved[4];
} cublasLtMatmulHeuristicResult_t;

#endif
