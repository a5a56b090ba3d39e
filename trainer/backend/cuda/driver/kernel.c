#include "trainer/backend/cuda/driver/kernel.h"

#include <stdio.h>
#include <string.h>

enum { SHARED_WITHOUT_ASKING = 48 << 10 };

static const struct cuda_calls *calls(const struct cuda_device *d)
{
    return &d->driver->calls;
}

int cuda_module_open(struct cuda_module *m, struct cuda_device *device, const void *image, const char *name,
                     struct error *err)
{
    char doing[120];
    *m = (struct cuda_module){0};
    snprintf(doing, sizeof doing, "load the kernels \"%s\"", name);
    if (cuda_check(device, calls(device)->cuModuleLoadData(&m->handle, image), doing, err) < 0)
        return -1;
    m->device = device;
    return 0;
}

void cuda_module_clear(struct cuda_module *m)
{
    if (m->device)
        calls(m->device)->cuModuleUnload(m->handle);
    memset(m, 0, sizeof *m);
}

static int refuse_kernel(const struct cuda_kernel *k, struct error *err, const char *what, long here,
                         long there)
{
    err_set(err, ERR_MACHINE,
            "%s: the kernel %s %s: %ld here and %ld in the image; image and program were not built together",
            k->device->label, k->name, what, here, there);
    return err_class(err, CLASS_SOFTWARE);
}

static int check_arguments(const struct cuda_kernel *k, struct error *err)
{
    size_t offset = 0, bytes = 0;
    if (cuda_check(k->device, calls(k->device)->cuFuncGetParamInfo(k->handle, 0, &offset, &bytes),
                   "ask for a kernel's arguments", err) < 0)
        return -1;
    return bytes == k->arguments
               ? 0
               : refuse_kernel(k, err, "has arguments of another size", (long)k->arguments, (long)bytes);
}

static int check_threads(const struct cuda_kernel *k, struct error *err)
{
    int most = 0;
    if (cuda_check(
            k->device,
            calls(k->device)->cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, k->handle),
            "ask for a kernel's threads", err) < 0)
        return -1;
    return k->threads <= most ? 0 : refuse_kernel(k, err, "takes fewer threads", k->threads, most);
}

static int ask_for_shared(const struct cuda_kernel *k, struct error *err)
{
    char doing[120];
    if (k->shared <= SHARED_WITHOUT_ASKING)
        return 0;
    snprintf(doing, sizeof doing, "give the kernel %s %d bytes of shared memory", k->name, k->shared);
    return cuda_check(k->device,
                      calls(k->device)->cuFuncSetAttribute(
                          k->handle, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, k->shared),
                      doing, err);
}

int cuda_kernel_open(struct cuda_kernel *k, const struct cuda_module *m,
                     const struct cuda_kernel_shape *shape, struct error *err)
{
    char doing[120];
    *k = (struct cuda_kernel){m->device, NULL, shape->name, shape->threads, shape->shared, shape->arguments};
    snprintf(doing, sizeof doing, "find the kernel %s", k->name);
    if (cuda_check(k->device, calls(k->device)->cuModuleGetFunction(&k->handle, m->handle, k->name), doing,
                   err) < 0)
        return -1;
    if (check_arguments(k, err) < 0 || check_threads(k, err) < 0)
        return -1;
    return ask_for_shared(k, err);
}

int cuda_kernel_resident(const struct cuda_kernel *k, int *ret, struct error *err)
{
    return cuda_check(k->device,
                      calls(k->device)->cuOccupancyMaxActiveBlocksPerMultiprocessor(
                          ret, k->handle, k->threads, (size_t)k->shared),
                      "ask how many blocks run at a time", err);
}

int cuda_kernel_launch(const struct cuda_kernel *k, struct cuda_stream *s, int blocks, const void *arguments,
                       struct error *err)
{
    char doing[120];
    void *params[] = {(void *)(uintptr_t)arguments};
    CUresult code = calls(k->device)->cuLaunchKernel(k->handle, (unsigned)blocks, 1, 1, (unsigned)k->threads,
                                                     1, 1, (unsigned)k->shared, s->handle, params, NULL);
    if (code == CUDA_SUCCESS)
        return 0; /* in the path of every step: no sentence is made for nothing */
    snprintf(doing, sizeof doing, "start the kernel %s", k->name);
    return cuda_check(k->device, code, doing, err);
}
