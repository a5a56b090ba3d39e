/* The NVIDIA driver's library, found when the program runs: one program serves machines with and without
 * GPUs.
 *
 * It is looked for at RINGMASTER_CUDA_LIBRARY (a path; then nowhere else), else as libcuda.so.1 where the
 * system's loader looks, else in the folders into which device plugins and toolkits for containers mount it
 * (docs/gpu.md). Once loaded it stays so until the process ends: what it has started can't be unloaded. This
 * is the only caller of dlopen for it. */
#ifndef RM_TRAINER_CUDA_DRIVER_H
#define RM_TRAINER_CUDA_DRIVER_H

#include "common/base/error.h"
#include "common/base/limits.h"
#include "trainer/backend/cuda/driver/calls.h"

/* CUDA 13.0, as cuDriverGetVersion counts: kernels are built for nothing older. */
enum { CUDA_VERSION_LEAST = 13000 };

struct cuda_driver {
    struct cuda_calls calls; /* all are there */
    int version;             /* of CUDA that it is for: 13020 is 13.2 */
    int devices;             /* at least one */
    char path[RM_URI_MAX];   /* as it was found */
};

/* Loads and initialises it. Refused, ERR_MACHINE, with a sentence each: no library; one that lacks a call;
 * too old a driver; no GPU; a driver that can't start. */
int cuda_driver_open(struct cuda_driver **ret, struct error *err);
void cuda_driver_free(struct cuda_driver *driver);

/* As cuda_failure_set, with the driver's own words. device: NULL, or its name. */
int cuda_driver_failed(const struct cuda_driver *driver, CUresult code, const char *device, const char *doing,
                       struct error *err);

#endif
