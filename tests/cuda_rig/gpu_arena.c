#include "tests/cuda_rig/gpu_arena.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/os/clock.h"
#include "common/os/shelf.h"
#include "tests/cuda_rig/on_gpu.h"
#include "trainer/backend/cuda/driver/kernel.h"
#include "trainer/backend/cuda/driver/memory.h"
#include "trainer/backend/cuda/driver/stream.h"
#include "trainer/backend/cuda/kernels/fill.h"

enum { PATTERN = 0x5eed1e55, WINDOW = 16 << 20, LAUNCHES = 64 };

struct arena_gpu {
    struct cuda_driver *driver;
    struct cuda_device *device;
    struct cuda_stream stream;
    struct cuda_memory memory;
};

static int open_gpu(struct arena_gpu *g, struct error *err)
{
    if (cuda_driver_open(&g->driver, err) < 0 || cuda_device_open(&g->device, g->driver, NULL, err) < 0 ||
        cuda_device_use(g->device, err) < 0)
        return -1;
    return cuda_stream_open(&g->stream, g->device, false, err);
}

static void close_gpu(struct arena_gpu *g)
{
    cuda_memory_clear(&g->memory);
    cuda_stream_clear(&g->stream);
    cuda_device_free(g->device);
    cuda_driver_free(g->driver);
}

/* Kernels over the second half; more of them than end before a signal comes. */
static int write_on(struct arena_gpu *g, size_t bytes, struct error *err)
{
    static const struct cuda_kernel_shape shape = {"fill", FILL_THREADS, 0, sizeof(struct fill_args)};
    const struct fill_args args = {(uint32_t *)(uintptr_t)(g->memory.at + bytes / 2),
                                   (int64_t)(bytes / 2 / sizeof(uint32_t)), 7};
    struct cuda_module module = {0};
    struct cuda_kernel kernel;
    if (cuda_module_open(&module, g->device, on_gpu_image("exact"), "exact", err) < 0 ||
        cuda_kernel_open(&kernel, &module, &shape, err) < 0)
        return -1;
    for (int i = 0; i < LAUNCHES; i++)
        if (cuda_kernel_launch(&kernel, &g->stream, g->device->processors, &args, err) < 0)
            return -1;
    return 0;
}

/* The maker: never returns but by an error. */
static int make_arena(const struct shelf *shelf, int ready, size_t bytes, bool inside, struct error *err)
{
    struct arena_gpu g = {0};
    int fd;
    if (open_gpu(&g, err) < 0 || cuda_memory_open(&g.memory, g.device, bytes, "an arena", err) < 0 ||
        cuda_set_words(&g.stream, g.memory.at, PATTERN, bytes / 2 / sizeof(uint32_t), err) < 0 ||
        cuda_stream_wait(&g.stream, err) < 0 || cuda_memory_export(&g.memory, &fd, err) < 0 ||
        (inside && write_on(&g, bytes, err) < 0) || shelf_lay(shelf, fd, &bytes, sizeof bytes, err) < 0)
        return -1;
    close(ready);
    if (inside)
        cuda_stream_wait(&g.stream, err);
    for (;;)
        pause();
}

static int count_others(struct arena_gpu *g, size_t bytes, size_t *ret, struct error *err)
{
    uint32_t *window;
    if (cuda_pinned_open((void **)&window, g->device, WINDOW, "a window", err) < 0)
        return -1;
    int result = 0;
    *ret = 0;
    for (size_t at = 0; at < bytes / 2 && result == 0; at += WINDOW) {
        const size_t part = bytes / 2 - at < WINDOW ? bytes / 2 - at : WINDOW;
        result = cuda_copy_out(&g->stream, window, g->memory.at + at, part, err);
        if (result == 0)
            result = cuda_stream_wait(&g->stream, err);
        for (size_t i = 0; i < part / sizeof *window && result == 0; i++)
            *ret += window[i] != PATTERN;
    }
    cuda_pinned_free(g->device, window);
    return result;
}

static int take_over(const char *when, int fd, size_t bytes, struct error *err)
{
    struct arena_gpu g = {0};
    size_t others;
    if (open_gpu(&g, err) < 0)
        return -1;
    const rm_time begun = clock_now();
    if (cuda_memory_import(&g.memory, g.device, fd, bytes, err) < 0 ||
        count_others(&g, bytes, &others, err) < 0)
        return -1;
    printf("%s.otherWords\t%zu\n%s.ms\t%.3f\n", when, others, when, rm_ms(clock_now() - begun));
    close_gpu(&g);
    return 0;
}

/* It has laid the memory there, or has ended. */
static void wait_for_maker(int ready)
{
    char byte;
    while (read(ready, &byte, 1) < 0 && errno == EINTR)
        ;
}

/* The maker's end, and then what it left. The descriptor is this process's alone by then. */
static int kill_maker(bool inside, size_t bytes, int *ret_fd, struct error *err)
{
    struct shelf shelf;
    int ready[2], status;
    size_t note;
    if (shelf_open(&shelf, err) < 0)
        return -1;
    if (pipe2(ready, O_CLOEXEC) < 0)
        return err_set(err, ERR_MACHINE, "no pipe: %s", strerror(errno));
    const pid_t maker = fork();
    if (maker == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ready[0]);
        make_arena(&shelf, ready[1], bytes, inside, err);
        fprintf(stderr, "%s\n", err->text);
        _exit(1);
    }
    close(ready[1]);
    if (maker > 0) {
        wait_for_maker(ready[0]);
        kill(maker, SIGKILL);
        waitpid(maker, &status, 0);
    }
    close(ready[0]);
    const bool there = shelf_look(&shelf, ret_fd, &note, sizeof note) && note == bytes;
    shelf_clear(&shelf);
    return there ? 0 : err_set(err, ERR_MACHINE, "the maker of the memory ended before it had it");
}

int gpu_arena(size_t bytes, struct error *err)
{
    int between, inside;
    if (kill_maker(false, bytes, &between, err) < 0 || kill_maker(true, bytes, &inside, err) < 0)
        return -1;
    printf("bytes\t%zu\n", bytes / 2);
    const int result =
        take_over("between", between, bytes, err) < 0 ? -1 : take_over("inside", inside, bytes, err);
    close(between);
    close(inside);
    return result;
}
