/* The GPU's memory as others read and write it: by way of a locked window. */
#include <string.h>

#include "trainer/backend/cuda/gpu/gpu_parts.h"

static struct gpu_far *far_of(struct memory *m)
{
    return (struct gpu_far *)(void *)m;
}

static size_t part_of(size_t left)
{
    return left < GPU_WINDOW ? left : GPU_WINDOW;
}

static int read_part(struct gpu_far *f, char *to, CUdeviceptr from, size_t bytes, struct error *err)
{
    if (cuda_copy_out(&f->stream, f->window, from, bytes, err) < 0 || cuda_stream_wait(&f->stream, err) < 0)
        return -1;
    memcpy(to, f->window, bytes);
    return 0;
}

static int write_part(struct gpu_far *f, CUdeviceptr to, const char *from, size_t bytes, struct error *err)
{
    memcpy(f->window, from, bytes);
    return cuda_copy_in(&f->stream, to, f->window, bytes, err) < 0 ? -1 : cuda_stream_wait(&f->stream, err);
}

static int far_read(struct memory *m, void *to, struct far from, size_t bytes, struct error *err)
{
    struct gpu_far *f = far_of(m);
    pthread_mutex_lock(&f->lock);
    int result = cuda_device_use(f->device, err);
    for (size_t done = 0; result == 0 && done < bytes; done += part_of(bytes - done))
        result = read_part(f, (char *)to + done, from.at + done, part_of(bytes - done), err);
    pthread_mutex_unlock(&f->lock);
    return result;
}

static int far_write(struct memory *m, struct far to, const void *from, size_t bytes, struct error *err)
{
    struct gpu_far *f = far_of(m);
    pthread_mutex_lock(&f->lock);
    int result = cuda_device_use(f->device, err);
    for (size_t done = 0; result == 0 && done < bytes; done += part_of(bytes - done))
        result = write_part(f, to.at + done, (const char *)from + done, part_of(bytes - done), err);
    pthread_mutex_unlock(&f->lock);
    return result;
}

static void *far_near(struct memory *m, struct far at)
{
    (void)m;
    (void)at;
    return NULL;
}

int gpu_far_open(struct gpu_far *f, struct cuda_device *device, struct error *err)
{
    static const struct memory_ops ops = {far_read, far_write, far_near};
    f->base.ops = &ops;
    f->device = device;
    pthread_mutex_init(&f->lock, NULL);
    if (cuda_stream_open(&f->stream, device, false, err) < 0)
        return -1;
    return cuda_pinned_open(&f->window, device, GPU_WINDOW, "copies from and to the GPU", err);
}

void gpu_far_clear(struct gpu_far *f)
{
    if (!f->device)
        return;
    if (f->window)
        cuda_pinned_free(f->device, f->window);
    cuda_stream_clear(&f->stream);
    pthread_mutex_destroy(&f->lock);
}
