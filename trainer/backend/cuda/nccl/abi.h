/* What we use of NCCL's interface, declared here: a build needs no nccl.h.
 *
 * By nccl.h of 2.32.3; what is here has been the same since the version in which each call came (calls.h). */
#ifndef RM_TRAINER_CUDA_NCCL_ABI_H
#define RM_TRAINER_CUDA_NCCL_ABI_H

#include <limits.h>
#include <stddef.h>

#include "trainer/backend/cuda/driver/abi.h"

typedef struct ncclComm *ncclComm_t;

enum { NCCL_UNIQUE_ID_BYTES = 128 };
typedef struct {
    char internal[NCCL_UNIQUE_ID_BYTES]; /* holds an open listener's address: a secret */
} ncclUniqueId;

typedef int ncclResult_t;
enum {
    NCCL_SUCCESS = 0,
    NCCL_SYSTEM_ERROR = 2,
    NCCL_INVALID_ARGUMENT = 4,
    NCCL_INVALID_USAGE = 5,
    NCCL_REMOTE_ERROR = 6,
    NCCL_IN_PROGRESS = 7,
};

typedef int ncclDataType_t;
typedef int ncclRedOp_t;
enum { NCCL_UINT32 = 3, NCCL_SUM = 0 };

/* The fields of 2.27. Each version copies as many bytes as it knows of it, and takes its own defaults for
 * what is newer than `version`, so one struct serves all. */
typedef struct {
    size_t size;
    unsigned int magic, version;
    int blocking, cga_cluster_size, ctas_min, ctas_max;
    const char *net_name;
    int split_share, traffic_class;
    const char *comm_name;
    int collnet_enable, cta_policy, shrink_share, nvls_ctas;
} ncclConfig_t;

enum { NCCL_MAGIC = (int)0xcafebeef, NCCL_CONFIG_VERSION = 22700, NCCL_UNSET = INT_MIN };

/* A key for its TCP sockets, since 2.32: the whole process's, given before its first communicator. */
typedef struct {
    size_t size;
    unsigned int magic, version;
    int mode;
    const char *psk; /* text, 32 characters or more */
} ncclEncryptionConfig_t;

enum { NCCL_ENCRYPTION_NONE = 0, NCCL_ENCRYPTION_PSK = 1, NCCL_PSK_LEAST = 32 };

#endif
