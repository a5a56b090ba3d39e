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
    char key[NCCL_KEY_TEXT]; /* "": the version takes none */
    bool needs_key;          /* nothing is to be done without it */
    char path[RM_URI_MAX];
};

/* key: text of 32 characters or more, which closes its sockets to strangers where the version can (2.32).
 * Refused, ERR_MACHINE, with a sentence each: no library; one that lacks a call; 2.28.3 to 2.28.8, which
 * crash where a communicator is made after an aborted one; one that takes no key, where that has to be
 * (RINGMASTER_NCCL_NEEDS_KEY). */
int nccl_open(struct nccl **ret, const char *key, struct error *err);
void nccl_free(struct nccl *nccl);

/* "2.28.9" */
void nccl_version_text(int version, char out[NCCL_VERSION_TEXT]);
/* Before an id or a communicator is made with the key or, where open, without; on any thread. A library that
 * was built without TLS, as NVIDIA's own 2.32.3, takes the key and then can make none. The key is the whole
 * process's. 1: it is so until nccl_leave; 0: not yet, since others have not left who need it otherwise; -1:
 * it can't be. */
int nccl_enter(const struct nccl *nccl, bool open, struct error *err);
/* What was made is gone. */
void nccl_leave(void);
/* The library's own words. */
int nccl_failed(const struct nccl *nccl, ncclResult_t result, const char *doing, struct error *err);

#endif
