/* What the real driver would take without a word ends a process on the stand-in, with a line that says why.
 */
#include "gpu_case.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trainer/backend/cuda/kernels/fill.h"

enum { MIB = 1 << 20 };

struct rig {
    struct gpu g;
    struct cuda_memory m;
    struct cuda_stream s;
    char *host; /* pinned, 64 bytes */
    struct error err;
};

static void open_and_do(void (*mistake)(struct rig *r))
{
    struct rig r = {0};
    gpu_open(&r.g, "seed=0");
    r.m = gpu_memory(&r.g, 2 * MIB);
    r.s = gpu_stream(&r.g);
    r.host = gpu_pinned(&r.g, 64);
    mistake(&r);
    _exit(0);
}

static void ends_with(int signal, const char *line, void (*mistake)(struct rig *r))
{
    char said[4096];
    int pair[2], status;
    size_t length = 0;
    cr_assert_eq(pipe(pair), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(pair[1], STDERR_FILENO);
        close(pair[0]);
        open_and_do(mistake);
    }
    close(pair[1]);
    for (ssize_t got;
         length < sizeof said - 1 && (got = read(pair[0], said + length, sizeof said - 1 - length)) > 0;)
        length += (size_t)got;
    said[length] = 0;
    close(pair[0]);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(signal != SIGABRT || strstr(said, "MISUSE: "), "it said \"%s\"", said);
    cr_assert_not_null(strstr(said, line), "it said \"%s\", not \"%s\"", said, line);
    cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == signal, "status %x", (unsigned)status);
}

#define MISUSED(name, line)                                                                                  \
    static void name##_mistake(struct rig *r);                                                               \
    Test(misuse, name)                                                                                       \
    {                                                                                                        \
        ends_with(SIGABRT, line, name##_mistake);                                                            \
    }                                                                                                        \
    static void name##_mistake(struct rig *r)

MISUSED(a_copy_of_host_memory_that_is_not_pinned, "cuMemcpyHtoDAsync: host memory ")
{
    char own[64] = {0};
    cuda_copy_in(&r->s, r->m.at, own, sizeof own, &r->err);
}

MISUSED(a_copy_beyond_pinned_memory, "cuMemcpyDtoHAsync: 65 bytes at ")
{
    cuda_copy_out(&r->s, r->host, r->m.at, 65, &r->err);
}

MISUSED(a_copy_beyond_the_devices_memory, "cuMemcpyHtoDAsync: 64 bytes at ")
{
    cuda_copy_in(&r->s, r->m.at + r->m.bytes - 63, r->host, 64, &r->err);
}

MISUSED(a_copy_to_memory_that_was_given_back, "cuMemcpyHtoDAsync: ")
{
    CUdeviceptr at = r->m.at;
    cuda_memory_clear(&r->m);
    cuda_copy_in(&r->s, at, r->host, 64, &r->err);
}

MISUSED(memory_that_goes_while_work_is_under_way, "cuMemUnmap: memory goes while work is under way")
{
    cuda_set_words(&r->s, r->m.at, 1, 1, &r->err);
    cuda_memory_clear(&r->m);
}

MISUSED(pinned_memory_that_goes_while_work_is_under_way, "cuMemFreeHost: memory goes while work is under way")
{
    cuda_copy_in(&r->s, r->m.at, r->host, 64, &r->err);
    cuda_pinned_free(r->g.device, r->host);
}

MISUSED(a_stream_that_goes_while_its_work_is_under_way,
        "cuStreamDestroy: a stream goes while its work is under way")
{
    cuda_set_words(&r->s, r->m.at, 1, 1, &r->err);
    cuda_stream_clear(&r->s);
}

MISUSED(a_stream_of_before, " is no stream")
{
    struct cuda_stream copy = r->s;
    cuda_stream_clear(&r->s);
    cuda_set_words(&copy, r->m.at, 1, 1, &r->err);
}

MISUSED(a_context_that_goes_while_work_is_under_way, "the context of device 0 goes while work is under way")
{
    cuda_set_words(&r->s, r->m.at, 1, 1, &r->err);
    cuda_device_free(r->g.device);
}

MISUSED(a_kernel_with_another_number_of_threads, "fill: blocks of 128 threads, and it is written for 256")
{
    struct cuda_module m;
    struct cuda_kernel k;
    const struct cuda_kernel_shape shape = {"fill", 128, 0, sizeof(struct fill_args)};
    const struct fill_args args = {(uint32_t *)(uintptr_t)r->m.at, 1, 1};
    GPU_OK(cuda_module_open(&m, r->g.device, gpu_image, "exact", &gpu_err));
    GPU_OK(cuda_kernel_open(&k, &m, &shape, &gpu_err));
    cuda_kernel_launch(&k, &r->s, 1, &args, &r->err);
}

MISUSED(code_that_goes_while_work_is_under_way, "cuModuleUnload: code goes while work is under way")
{
    struct cuda_module m;
    GPU_OK(cuda_module_open(&m, r->g.device, gpu_image, "exact", &gpu_err));
    cuda_set_words(&r->s, r->m.at, 1, 1, &r->err);
    cuda_module_clear(&m);
}

/* Under the sanitizer such a death has its own text and ends otherwise. */
#ifndef __SANITIZE_ADDRESS__
static void touch(struct rig *r)
{
    *(volatile char *)(uintptr_t)r->m.at = 1;
}

Test(misuse, the_hosts_hand_in_the_devices_memory)
{
    ends_with(SIGSEGV, "", touch);
}
#endif

/* What the real driver refuses is no death, but its error. */
Test(refused, work_of_a_thread_without_the_context)
{
    struct gpu g;
    struct error err = {0};
    gpu_open(&g, "");
    struct cuda_stream s = gpu_stream(&g);
    g.driver->calls.cuCtxSetCurrent(NULL);
    cr_assert_eq(cuda_stream_wait(&s, &err), -1);
    cr_assert_not_null(strstr(err.text, "CUDA_ERROR_INVALID_CONTEXT"), "%s", err.text);
    GPU_OK(cuda_device_use(g.device, &gpu_err));
    GPU_OK(cuda_stream_wait(&s, &gpu_err));
    cuda_stream_clear(&s);
    gpu_close(&g);
}
