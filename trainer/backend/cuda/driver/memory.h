/* Memory of a GPU, and memory of the host that a GPU reaches by itself.
 *
 * A GPU's memory is taken once, at start, in a few large pieces (needs.h), by the driver's virtual memory
 * calls: so a descriptor of it keeps its contents for as long as anybody holds that, or a mapping. Addresses
 * of it are numbers: only kernels and copies may follow them. */
#ifndef RM_TRAINER_CUDA_MEMORY_H
#define RM_TRAINER_CUDA_MEMORY_H

#include <stddef.h>

#include "common/base/error.h"
#include "trainer/backend/cuda/driver/device.h"

struct cuda_memory {
    struct cuda_device *device;
    CUdeviceptr at;
    size_t bytes; /* a multiple of the device's granularity, at least what was asked for */
    CUmemGenericAllocationHandle handle;
    int mapped; /* how far it was opened */
};

/* Contents are undefined. for_what: "the weights", for the sentence where there is no room. */
int cuda_memory_open(struct cuda_memory *m, struct cuda_device *device, size_t bytes, const char *for_what,
                     struct error *err);
/* The memory that a descriptor stands for, with what lies in it; bytes as its maker's m->bytes. The
 * descriptor stays the caller's. */
int cuda_memory_import(struct cuda_memory *m, struct cuda_device *device, int fd, size_t bytes,
                       struct error *err);
/* A descriptor of it, the caller's: may go to other processes, without CUDA, too. */
int cuda_memory_export(struct cuda_memory *m, int *ret_fd, struct error *err);
/* Also of one that is all zero, or half open. No work may be under way in it. */
void cuda_memory_clear(struct cuda_memory *m);

/* Host memory that asynchronous copies need: locked, aligned to pages. */
int cuda_pinned_open(void **ret, struct cuda_device *device, size_t bytes, const char *for_what,
                     struct error *err);
void cuda_pinned_free(struct cuda_device *device, void *at);

#endif
