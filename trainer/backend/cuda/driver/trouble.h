/* What a driver's error means for a trainer: a pure table, and the sentence. */
#ifndef RM_TRAINER_CUDA_TROUBLE_H
#define RM_TRAINER_CUDA_TROUBLE_H

#include "common/base/error.h"
#include "trainer/backend/cuda/driver/abi.h"

/* In the order of how much is lost. */
enum cuda_trouble {
    CUDA_FINE,
    CUDA_MISUSED,  /* we asked for what may not be asked for: a mistake of the program */
    CUDA_SHORT,    /* no memory */
    CUDA_UNUSABLE, /* no GPU that could be used, or no code for it: the process never began */
    CUDA_CRASHED, /* a kernel did what it may not, and its context is gone: this process can't use the GPU any
                     more. Its memory holds what was written, and a descriptor of it keeps that for the next
                     one */
    CUDA_SICK,    /* the device or its memory failed (ECC, a bus, a reset, nobody knows what): what its memory
                     holds is not to be trusted, whoever reads it */
    CUDA_TROUBLES
};

enum cuda_trouble cuda_trouble_of(CUresult code);
/* "the GPU failed" */
const char *cuda_trouble_text(enum cuda_trouble trouble);

struct cuda_failure {
    CUresult code;
    const char *name, *text; /* what the driver calls it and says of it; NULL: it does not know it */
    const char *doing;       /* "start the kernel update" */
    const char *device;      /* "NVIDIA H200 GPU-1b2c..."; NULL: none is open */
};

/* Sets *err (ERR_MACHINE: exit code 4) to who failed at what, the driver's name and words for it, and what to
 * do; returns -1. A program's mistake is CLASS_SOFTWARE, one that another process may not have (crashed,
 * sick) CLASS_DEVICE, all else CLASS_MACHINE. */
int cuda_failure_set(struct error *err, const struct cuda_failure *failure);

#endif
