/* NCCL's functions that we call, and since when each is there. The list is given to a macro, as that of the
 * driver's (driver/calls.h): each result is an ncclResult_t, but that of calls that give text. */
#ifndef RM_TRAINER_CUDA_NCCL_CALLS_H
#define RM_TRAINER_CUDA_NCCL_CALLS_H

#include "trainer/backend/cuda/nccl/abi.h"

/* ncclCommInitRankConfig is of 2.14, the others are older. */
#define NCCL_CALLS(C)                                                                                        \
    C(ncclResult_t, ncclGetVersion, (int *version))                                                          \
    C(ncclResult_t, ncclGetUniqueId, (ncclUniqueId * id))                                                    \
    C(const char *, ncclGetErrorString, (ncclResult_t result))                                               \
    C(ncclResult_t, ncclCommInitRankConfig,                                                                  \
      (ncclComm_t * comm, int world, ncclUniqueId id, int rank, ncclConfig_t *config))                       \
    C(ncclResult_t, ncclCommGetAsyncError, (ncclComm_t comm, ncclResult_t * error))                          \
    C(ncclResult_t, ncclCommAbort, (ncclComm_t comm))                                                        \
    C(ncclResult_t, ncclAllReduce,                                                                           \
      (const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,       \
       CUstream stream))

/* NULL where the version has it not yet. */
#define NCCL_NEWER_CALLS(C)                                                                                  \
    C(ncclResult_t, ncclSetEncryption, (const ncclEncryptionConfig_t *config)) /* 2.32 */

#define NCCL_CALL_MEMBER(type, name, arguments) type(*name) arguments;

struct nccl_calls {
    NCCL_CALLS(NCCL_CALL_MEMBER)
    NCCL_NEWER_CALLS(NCCL_CALL_MEMBER)
};

#endif
