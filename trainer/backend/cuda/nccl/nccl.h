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

enum { NCCL_VERSION_TEXT = 16, NCCL_KEY_TEXT = 80 /* a job's has 64 digits */ };

struct nccl {
    struct nccl_calls calls;
    int version;             /* 22809 is 2.28.9 */
    char key[NCCL_KEY_TEXT]; /* "": none, or the version takes none, or can't use it */
    bool keyless;            /* one is tried without it */
    char path[RM_URI_MAX];
};

/* key: text of 32 characters or more, which closes its sockets to strangers where the version can (2.32).
 * Refused, ERR_MACHINE, with a sentence each: no library; one that lacks a call; 2.28.3 to 2.28.8, which
 * crash where a communicator is made after an aborted one. */
int nccl_open(struct nccl **ret, const char *key, struct error *err);
void nccl_free(struct nccl *nccl);

/* "2.28.9" */
void nccl_version_text(int version, char out[NCCL_VERSION_TEXT]);
/* After a communicator was made, or was not, by this result. A library that was built without TLS, as
 * NVIDIA's own 2.32.3, takes the key and then can make none ("invalid usage", which it says of other things,
 * too): the key is taken back, and where the next one is made without it that was why: its sockets are open
 * to who reaches them, as those of older versions. Where it is not made, the key is there again. Returns what
 * to say, NULL: nothing. */
const char *nccl_tried(struct nccl *nccl, ncclResult_t result);
/* The library's own words. */
int nccl_failed(const struct nccl *nccl, ncclResult_t result, const char *doing, struct error *err);

#endif
