/* A GPU's memory: taken, found short, lost with the device, and outliving its maker. */
#include "gpu_case.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/os/shelf.h"

enum { WORDS = 1000, MIB = 1 << 20 };

#define LABEL "Stand-in GPU GPU-5eed0000-0000-0000-0000-000000000000"

Test(memory, what_is_written_is_read_again)
{
    struct gpu g;
    gpu_open(&g, "seed=3");
    struct cuda_memory m = gpu_memory(&g, 5 * MIB);
    struct cuda_stream s = gpu_stream(&g);
    uint32_t *from = gpu_pinned(&g, sizeof *from * WORDS), *to = gpu_pinned(&g, sizeof *to * WORDS);
    cr_assert_eq(m.bytes, 6u * MIB, "rounded up to the driver's unit");
    for (uint32_t i = 0; i < WORDS; i++)
        from[i] = i * i;
    GPU_OK(cuda_copy_in(&s, m.at, from, sizeof *from * WORDS, &gpu_err));
    GPU_OK(cuda_copy(&s, m.at + 3 * MIB, m.at, sizeof *from * WORDS, &gpu_err));
    GPU_OK(cuda_set_words(&s, m.at + 3 * MIB, 7, 2, &gpu_err));
    GPU_OK(cuda_copy_out(&s, to, m.at + 3 * MIB, sizeof *to * WORDS, &gpu_err));
    GPU_OK(cuda_stream_wait(&s, &gpu_err));
    for (uint32_t i = 0; i < WORDS; i++)
        cr_assert_eq(to[i], i < 2 ? 7 : i * i);
    cuda_pinned_free(g.device, from);
    cuda_pinned_free(g.device, to);
    cuda_stream_clear(&s);
    cuda_memory_clear(&m);
    gpu_close(&g);
}

Test(memory, what_is_taken_is_free_again_when_it_is_given_back)
{
    struct gpu g;
    size_t before, with, after;
    gpu_open(&g, "memory=1G,taken=256M");
    GPU_OK(cuda_device_free_bytes(g.device, &before, &gpu_err));
    cr_assert_lt(before, (size_t)768 * MIB);
    struct cuda_memory m = gpu_memory(&g, 100 * MIB);
    GPU_OK(cuda_device_free_bytes(g.device, &with, &gpu_err));
    cuda_memory_clear(&m);
    GPU_OK(cuda_device_free_bytes(g.device, &after, &gpu_err));
    cr_assert_eq(before - with, (size_t)100 * MIB);
    cr_assert_eq(before, after);
    gpu_close(&g);
}

Test(memory, too_little_says_for_what_and_leaves_the_gpu_usable)
{
    struct gpu g;
    struct cuda_memory m;
    gpu_open(&g, "memory=64M");
    GPU_FAILS(
        cuda_memory_open(&m, g.device, 100 * MIB, "the weights", &gpu_err), LABEL
        ": the GPU's memory is full, to take 100 MiB for the weights: CUDA_ERROR_OUT_OF_MEMORY (2: as the "
        "stand-in "
        "says); fewer sequences a lane (trainer.batch.laneSequences) or trainer.recompute: true take less");
    cr_assert_eq(cuda_device_trouble(g.device), CUDA_SHORT);
    cuda_memory_clear(&m);
    m = gpu_memory(&g, 10 * MIB);
    cuda_memory_clear(&m);
    gpu_close(&g);
}

/* Each call on the way to an address fails in turn: all that was taken is given back. */
Test(memory, half_opened_is_given_back)
{
    struct gpu g;
    gpu_open(&g, "fail:cuMemAddressReserve@1=OUT_OF_MEMORY,fail:cuMemMap@1=INVALID_VALUE,fail:cuMemSetAccess@"
                 "1=INVALID_VALUE");
    size_t before, after;
    GPU_OK(cuda_device_free_bytes(g.device, &before, &gpu_err));
    for (int i = 0; i < 3; i++) {
        struct cuda_memory m;
        struct error err = {0};
        cr_assert_eq(cuda_memory_open(&m, g.device, MIB, "a test", &err), -1, "%d", i);
        cuda_memory_clear(&m);
        GPU_OK(cuda_device_free_bytes(g.device, &after, &gpu_err));
        cr_assert_eq(before, after, "%d", i);
    }
    struct cuda_memory m = gpu_memory(&g, MIB);
    cuda_memory_clear(&m);
    gpu_close(&g);
}

Test(memory, the_hosts_may_be_short_too)
{
    struct gpu g;
    void *at;
    gpu_open(&g, "fail:cuMemHostAlloc@1=OUT_OF_MEMORY");
    GPU_FAILS(cuda_pinned_open(&at, g.device, 3 * MIB, "a snapshot", &gpu_err),
              "this machine has no 3 MiB of its own memory that could be locked for a snapshot: give the "
              "container more "
              "memory, or look at ulimit -l");
    cr_assert_eq(cuda_device_trouble(g.device), CUDA_FINE, "the GPU's is not");
    gpu_close(&g);
}

/* ---- threads ---- */

struct reader {
    struct gpu *g;
    CUdeviceptr from;
    uint32_t *to; // (WORDS)
    int done;
};

/* As one that sends a state to a peer: a stream of its own, the device's context made its own first. */
static void *read_there(void *arg)
{
    struct reader *r = arg;
    struct cuda_stream s = {0};
    if (cuda_device_use(r->g->device, NULL) == 0 && cuda_stream_open(&s, r->g->device, true, NULL) == 0 &&
        cuda_copy_out(&s, r->to, r->from, sizeof *r->to * WORDS, NULL) == 0)
        r->done = cuda_stream_wait(&s, NULL) == 0;
    cuda_stream_clear(&s);
    return NULL;
}

Test(memory, other_threads_read_while_work_goes_on)
{
    struct gpu g;
    pthread_t thread;
    gpu_open(&g, "seed=1");
    struct cuda_memory m = gpu_memory(&g, 2 * MIB);
    struct cuda_stream s = gpu_stream(&g);
    struct reader r = {&g, m.at, gpu_pinned(&g, sizeof *r.to * WORDS), 0};
    GPU_OK(cuda_set_words(&s, m.at, 11, WORDS, &gpu_err));
    GPU_OK(cuda_stream_wait(&s, &gpu_err));
    cr_assert_eq(pthread_create(&thread, NULL, read_there, &r), 0);
    for (int i = 0; i < 50; i++)
        GPU_OK(cuda_set_words(&s, m.at + MIB, 12, WORDS, &gpu_err));
    GPU_OK(cuda_stream_wait(&s, &gpu_err));
    pthread_join(thread, NULL);
    cr_assert(r.done);
    for (int i = 0; i < WORDS; i++)
        cr_assert_eq(r.to[i], 11);
    cuda_pinned_free(g.device, r.to);
    cuda_stream_clear(&s);
    cuda_memory_clear(&m);
    gpu_close(&g);
}

/* ---- it outlives its maker ---- */

/* Writes, exports, and lives until it is killed: with work under way that nobody has waited for. */
static void make_and_wait(const struct shelf *shelf, int ready)
{
    struct gpu g;
    int fd;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    gpu_open(&g, "seed=0");
    struct cuda_memory m = gpu_memory(&g, 3 * MIB);
    struct cuda_stream s = gpu_stream(&g);
    GPU_OK(cuda_set_words(&s, m.at, 0x12345678, WORDS, &gpu_err));
    GPU_OK(cuda_stream_wait(&s, &gpu_err));
    GPU_OK(cuda_set_words(&s, m.at + MIB, 9, WORDS, &gpu_err));
    GPU_OK(cuda_memory_export(&m, &fd, &gpu_err));
    GPU_OK(shelf_lay(shelf, fd, "x", 1, &gpu_err));
    close(ready);
    for (;;)
        pause();
}

Test(memory, its_descriptor_keeps_what_a_killed_process_wrote)
{
    struct shelf shelf;
    int ready[2], status, fd;
    char byte;
    GPU_OK(shelf_open(&shelf, &gpu_err));
    cr_assert_eq(pipe2(ready, O_CLOEXEC), 0);
    pid_t maker = fork();
    if (maker == 0)
        make_and_wait(&shelf, ready[1]);
    close(ready[1]);
    cr_assert_eq(read(ready[0], &byte, 1), 0);
    cr_assert(shelf_look(&shelf, &fd, &byte, 1));
    shelf_clear(&shelf);
    kill(maker, SIGKILL);
    cr_assert_eq(waitpid(maker, &status, 0), maker);
    cr_assert(WIFSIGNALED(status));

    struct gpu g;
    struct cuda_memory m;
    gpu_open(&g, "");
    GPU_OK(cuda_memory_import(&m, g.device, fd, 4 * MIB, &gpu_err));
    close(fd);
    struct cuda_stream s = gpu_stream(&g);
    uint32_t *to = gpu_pinned(&g, sizeof *to * WORDS);
    GPU_OK(cuda_copy_out(&s, to, m.at, sizeof *to * WORDS, &gpu_err));
    GPU_OK(cuda_stream_wait(&s, &gpu_err));
    for (int i = 0; i < WORDS; i++)
        cr_assert_eq(to[i], 0x12345678);
    cuda_pinned_free(g.device, to);
    cuda_stream_clear(&s);
    cuda_memory_clear(&m);
    gpu_close(&g);
    close(ready[0]);
}

Test(memory, a_descriptor_of_something_else_is_refused)
{
    struct gpu g;
    struct cuda_memory m;
    struct error err = {0};
    int pair[2];
    cr_assert_eq(pipe(pair), 0);
    gpu_open(&g, "");
    cr_assert_eq(cuda_memory_import(&m, g.device, pair[0], 2 * MIB, &err), -1);
    cr_assert_not_null(strstr(err.text, "to take over memory that another process has left"), "%s", err.text);
    cuda_memory_clear(&m);
    gpu_close(&g);
}
