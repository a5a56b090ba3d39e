/* Kernels of an image, found by name and started. */
#ifndef RM_TRAINER_CUDA_DRIVER_KERNEL_H
#define RM_TRAINER_CUDA_DRIVER_KERNEL_H

#include <stddef.h>

#include "common/base/error.h"
#include "trainer/backend/cuda/driver/stream.h"

struct cuda_module {
    struct cuda_device *device;
    CUmodule handle;
};

/* image: a fat binary (images.h), of which the driver takes this GPU's code; one without it is refused. */
int cuda_module_open(struct cuda_module *m, struct cuda_device *device, const void *image, const char *name,
                     struct error *err);
void cuda_module_clear(struct cuda_module *m);

struct cuda_kernel {
    struct cuda_device *device;
    CUfunction handle;
    const char *name;
    int threads;      /* of a block */
    int shared;       /* bytes of shared memory that a launch asks for, beside the kernel's own arrays */
    size_t arguments; /* bytes of its struct */
};

/* What the program knows of a kernel; name lives as long as the kernel. */
struct cuda_kernel_shape {
    const char *name;
    int threads;
    int shared;
    size_t arguments;
};

/* Refused, as the program's mistake: one that the image has not, whose struct has another size there than
 * here, or that does not take so many threads or so much shared memory. */
int cuda_kernel_open(struct cuda_kernel *k, const struct cuda_module *m,
                     const struct cuda_kernel_shape *shape, struct error *err);
/* Blocks that one processor runs at the same time: so many times cuda_device.processors fill the GPU. */
int cuda_kernel_resident(const struct cuda_kernel *k, int *ret, struct error *err);
/* arguments: its struct, which is copied. At least one block. */
int cuda_kernel_launch(const struct cuda_kernel *k, struct cuda_stream *s, int blocks, const void *arguments,
                       struct error *err);

#endif
