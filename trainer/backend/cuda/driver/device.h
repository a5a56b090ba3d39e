/* One GPU, opened: which one, what it is, and its context.
 *
 * A context is current for a thread, so each thread that calls anything of this folder begins with
 * cuda_device_use. Functions may then be called from any thread, a stream's from one at a time. */
#ifndef RM_TRAINER_CUDA_DEVICE_H
#define RM_TRAINER_CUDA_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "trainer/backend/cuda/driver/driver.h"
#include "trainer/backend/cuda/driver/trouble.h"

enum { CUDA_UUID_TEXT = 41 /* "GPU-" and 36 characters, with its NUL */ };

struct cuda_device {
    const struct cuda_driver *driver;
    CUdevice number; /* among those that this process sees */
    CUcontext context;
    char name[96];                     /* "NVIDIA H200" */
    char uuid[CUDA_UUID_TEXT];         /* "GPU-8f2c..": the same in every process and after a restart */
    char label[160];                   /* both, for sentences */
    int major, minor;                  /* compute capability */
    int processors;                    /* SMs */
    int shared_most;                   /* bytes of shared memory that a block may ask for */
    size_t bytes;                      /* of its memory */
    size_t granularity;                /* memory comes in multiples of this */
    int priority_least, priority_most; /* of streams: the most urgent one is the smaller number */
    atomic_int trouble;                /* the worst that was seen: enum cuda_trouble */
    void (*sick)(void *ctx); /* called at each CUDA_SICK, on whichever thread sees it; NULL: nobody. Set
                                before anything is begun */
    void *sick_ctx;
};

/* Capabilities that our kernels' code is for: 8.0 and all newer 8.x, 9.0, 10.0 and all newer 10.x. */
bool cuda_capability_is_built(int major, int minor);

/* wanted: NULL or "" takes the first one; a number as this process counts them ("0"); a UUID or the beginning
 * of one
 * ("GPU-8f2c"). Refused, ERR_MACHINE, with a sentence: one that is not there, or more than one; a GPU that we
 * have no code for; one that lends its memory in no form that can outlive a process; one that others have for
 * themselves. */
int cuda_device_open(struct cuda_device **ret, const struct cuda_driver *driver, const char *wanted,
                     struct error *err);
void cuda_device_free(struct cuda_device *device);

/* Makes its context that of this thread. */
int cuda_device_use(const struct cuda_device *device, struct error *err);
/* Bytes that nobody has yet, our own context's share already taken. */
int cuda_device_free_bytes(struct cuda_device *device, size_t *ret, struct error *err);

/* The worst that any call has said since it was opened. From CUDA_CRASHED on no call succeeds any more, and
 * from CUDA_SICK on nothing that lies in its memory may be used. */
enum cuda_trouble cuda_device_trouble(const struct cuda_device *device);

/* 0 where the call succeeded; else notes the trouble, sets *err to the sentence ("to " and `doing`) and
 * returns -1. */
int cuda_check(struct cuda_device *device, CUresult code, const char *doing, struct error *err);

#endif
