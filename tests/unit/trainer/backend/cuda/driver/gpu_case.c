#include "gpu_case.h"

#include <criterion/criterion.h>
#include <stdlib.h>

const char gpu_image[] = "an image for stand-ins";

void gpu_script(const char *script)
{
    if (on_gpu())
        return;
    setenv("RINGMASTER_CUDA_LIBRARY", STANDIN, 1);
    setenv("RINGMASTER_STANDIN_CUDA", script, 1);
}

void gpu_blas_at(const char *path)
{
    if (!on_gpu())
        setenv("RINGMASTER_CUBLASLT_LIBRARY", path, 1);
}

void gpu_open(struct gpu *g, const char *script)
{
    gpu_script(script);
    GPU_OK(cuda_driver_open(&g->driver, &gpu_err));
    GPU_OK(cuda_device_open(&g->device, g->driver, NULL, &gpu_err));
}

void gpu_close(struct gpu *g)
{
    cuda_device_free(g->device);
    cuda_driver_free(g->driver);
}

void *gpu_pinned(struct gpu *g, size_t bytes)
{
    void *at = NULL;
    GPU_OK(cuda_pinned_open(&at, g->device, bytes, "a test", &gpu_err));
    return at;
}

struct cuda_memory gpu_memory(struct gpu *g, size_t bytes)
{
    struct cuda_memory m;
    GPU_OK(cuda_memory_open(&m, g->device, bytes, "a test", &gpu_err));
    return m;
}

struct cuda_stream gpu_stream(struct gpu *g)
{
    struct cuda_stream s;
    GPU_OK(cuda_stream_open(&s, g->device, false, &gpu_err));
    return s;
}

struct cuda_event gpu_event(struct gpu *g)
{
    struct cuda_event e;
    GPU_OK(cuda_event_open(&e, g->device, true, &gpu_err));
    return e;
}
