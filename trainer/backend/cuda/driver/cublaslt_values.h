/* cuBLASLt's numbers that we know by name, as abi_values.h has the driver's. */
#ifndef RM_TRAINER_CUDA_CUBLASLT_VALUES_H
#define RM_TRAINER_CUDA_CUBLASLT_VALUES_H

#include "trainer/backend/cuda/driver/abi_values.h"

#define CUBLASLT_STATUSES(V)                                                                                 \
    V(CUBLAS_STATUS_SUCCESS, 0)                                                                              \
    V(CUBLAS_STATUS_NOT_INITIALIZED, 1)                                                                      \
    V(CUBLAS_STATUS_ALLOC_FAILED, 3)                                                                         \
    V(CUBLAS_STATUS_INVALID_VALUE, 7)                                                                        \
    V(CUBLAS_STATUS_ARCH_MISMATCH, 8)                                                                        \
    V(CUBLAS_STATUS_EXECUTION_FAILED, 13)                                                                    \
    V(CUBLAS_STATUS_INTERNAL_ERROR, 14)                                                                      \
    V(CUBLAS_STATUS_NOT_SUPPORTED, 15)

#define CUBLASLT_LAYOUT_ATTRIBUTES(V)                                                                        \
    V(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 5)                                                                 \
    V(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 6)

#define CUBLASLT_DESC_ATTRIBUTES(V)                                                                          \
    V(CUBLASLT_MATMUL_DESC_TRANSA, 3)                                                                        \
    V(CUBLASLT_MATMUL_DESC_TRANSB, 4)                                                                        \
    V(CUBLASLT_MATMUL_DESC_EPILOGUE, 7)                                                                      \
    V(CUBLASLT_MATMUL_DESC_BIAS_POINTER, 8)                                                                  \
    V(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, 11)                                                         \
    V(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, 12)                                                              \
    V(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, 15)                                                              \
    V(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, 26)

#define CUBLASLT_PREFERENCES(V)                                                                              \
    V(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 1)                                                           \
    V(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, 3)

#define CUBLASLT_ALGORITHM_ATTRIBUTES(V)                                                                     \
    V(CUBLASLT_ALGO_CONFIG_ID, 0)                                                                            \
    V(CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 2)                                                                    \
    V(CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, 3)

#define CUBLASLT_FLAGS(V)                                                                                    \
    V(CUDA_R_32F, 0)                                                                                         \
    V(CUDA_R_16BF, 14)                                                                                       \
    V(CUBLAS_COMPUTE_32F, 68)                                                                                \
    V(CUBLAS_OP_N, 0)                                                                                        \
    V(CUBLAS_OP_T, 1)                                                                                        \
    V(CUBLASLT_REDUCTION_SCHEME_NONE, 0)                                                                     \
    V(CUBLASLT_REDUCTION_SCHEME_INPLACE, 1)                                                                  \
    V(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, 2)                                                             \
    V(CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE, 4)                                                              \
    V(CUBLASLT_EPILOGUE_DEFAULT, 1)                                                                          \
    V(CUBLASLT_EPILOGUE_BIAS, 4)                                                                             \
    V(CUBLASLT_EPILOGUE_GELU_AUX_BIAS, 164)                                                                  \
    V(CUBLASLT_EPILOGUE_DGELU, 192)                                                                          \
    V(CUBLASLT_EPILOGUE_BGRADA, 256)

#endif
