/* NCCL's library, found when the program runs.
 *
 * It is looked for at RINGMASTER_NCCL_LIBRARY (a path; then nowhere else), else as libnccl.so.2 where the
 * system's loader looks. Once loaded it stays until the process ends. This is the only caller of dlopen for
 * it. */
#ifndef RM_TRAINER_CUDA_NCCL_H
#define RM_TRAINER_CUDA_NCCL_H

#include <stdbool.h>

#include "common/base/error.h"
#include "common/base/limits.h"
#include "trainer/backend/cuda/nccl/calls.h"

enum { NCCL_VERSION_TEXT = 16 };

struct nccl {
    struct nccl_calls calls;
    int version; /* 22809 is 2.28.9 */
    char path[RM_URI_MAX];
};

/* key: text of 32 characters or more, which closes its sockets to strangers where the version can (2.32).
 * Refused, ERR_MACHINE, with a sentence each: no library; one that lacks a call; 2.28.3 to 2.28.8, which
 * crash where a communicator is made after an aborted one. */
int nccl_open(struct nccl **ret, const char *key, struct error *err);
void nccl_free(struct nccl *nccl);

/* "2.28.9" */
void nccl_version_text(int version, char out[NCCL_VERSION_TEXT]);
/* After a communicator was not made, by this result: whether that was for the key alone, which the library
 * takes and then can't use, being built without TLS (as NVIDIA's own 2.32.3 is). If so the key is taken back:
 * the next communicator is made with sockets that are open to who reaches them, as those of older versions.
 */
bool nccl_lacks_tls(const struct nccl *nccl, ncclResult_t result);
/* The library's own words. */
int nccl_failed(const struct nccl *nccl, ncclResult_t result, const char *doing, struct error *err);

#endif
