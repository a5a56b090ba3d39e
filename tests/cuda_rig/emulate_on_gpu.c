/* The tables of the emulator's tests on a GPU: linked into such a test, and asked for (on_gpu.h), this runs
 * each kernel that the test gives to the emulator.
 *
 * A test's arguments point into its own memory. So each launch copies what they point to into the GPU's, and
 * all of it back: blocks of the heap, which are known because malloc, calloc and free are wrapped, and of the
 * test's stack a little behind the place. Before and behind each block lie bytes that must stay what they
 * are: nobody else sees a kernel there that writes beside its memory.
 *
 * Not here: schedules, moments, barriers left out. The driver's own order is the order. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda_rig/emulator.h"
#include "tests/cuda_rig/on_gpu.h"
#include "trainer/backend/cuda/driver/kernel.h"
#include "trainer/backend/cuda/driver/memory.h"

enum {
    BLOCKS_MOST = 4096,
    POINTERS_MOST = 32,
    ARGUMENTS_MOST = 256,
    ON_STACK = 1024,
    GUARD = 256,
    ALIGNED = 16
};
enum { ARENA = 96 << 20, GUARD_BYTE = 0xa5 };

/* ---- the test's memory ---- */

struct block {
    char *at;
    size_t bytes;
    bool stack;
};

static struct block heap[BLOCKS_MOST];
static int heap_blocks;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void __real_free(void *at);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void __wrap_free(void *at);

static void forget(const void *at)
{
    for (int i = 0; i < heap_blocks; i++)
        if (heap[i].at == at) {
            heap[i] = heap[--heap_blocks];
            return;
        }
}

static void *noted(void *at, size_t bytes)
{
    if (!at || !emulate_elsewhere)
        return at;
    forget(at);
    if (heap_blocks == BLOCKS_MOST)
        abort();
    heap[heap_blocks++] = (struct block){at, bytes, false};
    return at;
}

void *__wrap_malloc(size_t bytes)
{
    return noted(__real_malloc(bytes), bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return noted(__real_calloc(count, bytes), count * bytes);
}

void __wrap_free(void *at)
{
    forget(at);
    __real_free(at);
}

/* What arguments point to of this thread's stack: from the first such place on, until a little behind the
 * last one. One block, for its variables lie beside each other. */
static struct block on_stack(const char *arguments, size_t bytes)
{
    pthread_attr_t attributes;
    void *begin;
    size_t size;
    char *first = NULL, *last = NULL, *at;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &begin, &size);
    pthread_attr_destroy(&attributes);
    char *const end = (char *)begin + size;
    for (size_t i = 0; i + sizeof at <= bytes; i += sizeof at) {
        memcpy(&at, arguments + i, sizeof at);
        if (at < (char *)begin || at >= end)
            continue;
        first = !first || at < first ? at : first;
        last = !last || at > last ? at : last;
    }
    if (!first)
        return (struct block){NULL, 0, true};
    first -= (uintptr_t)first % ALIGNED;
    return (struct block){first, (size_t)((end - last < ON_STACK ? end : last + ON_STACK) - first), true};
}

static bool is_in(const struct block *b, const char *at)
{
    return b->at && at >= b->at && at <= b->at + b->bytes;
}

/* What an argument points into; no bytes: it is no address, but a number. */
static struct block block_of(const struct block *stack, char *at)
{
    for (int i = 0; i < heap_blocks; i++)
        if (is_in(&heap[i], at))
            return heap[i];
    return is_in(stack, at) ? *stack : (struct block){NULL, 0, false};
}

/* Between a test's variables lies what the address sanitizer guards: there each byte becomes what it is. */
__attribute__((no_sanitize("address"))) static void copy_stack(volatile char *to, const volatile char *from,
                                                               size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = from[i];
}

static void copy_block(const struct block *b, char *to, const char *from)
{
    if (b->stack)
        copy_stack(to, from, b->bytes);
    else
        memcpy(to, from, b->bytes);
}

/* ---- its copy on the GPU ---- */

struct placed {
    struct block here;
    size_t at; /* in the arena */
};

static struct {
    struct cuda_driver *driver;
    struct cuda_device *device;
    struct cuda_module exact, model;
    struct cuda_memory memory;
    struct cuda_stream stream;
    char *pinned; // (ARENA)
    struct placed placed[POINTERS_MOST];
    int blocks;
    size_t used;
} gpu;

static int open_gpu(struct error *err)
{
    void *pinned;
    if (gpu.pinned)
        return cuda_device_use(gpu.device, err);
    if (cuda_driver_open(&gpu.driver, err) < 0 || cuda_device_open(&gpu.device, gpu.driver, NULL, err) < 0 ||
        cuda_module_open(&gpu.exact, gpu.device, on_gpu_image("exact"), "exact", err) < 0 ||
        cuda_module_open(&gpu.model, gpu.device, on_gpu_image("model"), "model", err) < 0 ||
        cuda_memory_open(&gpu.memory, gpu.device, ARENA, "a test", err) < 0 ||
        cuda_stream_open(&gpu.stream, gpu.device, false, err) < 0 ||
        cuda_pinned_open(&pinned, gpu.device, ARENA, "a test", err) < 0)
        return -1;
    gpu.pinned = pinned;
    return 0;
}

static const struct placed *place_block(struct block b)
{
    for (int i = 0; i < gpu.blocks; i++)
        if (gpu.placed[i].here.at == b.at)
            return &gpu.placed[i];
    struct placed *p = &gpu.placed[gpu.blocks++];
    *p = (struct placed){b, gpu.used};
    const size_t end = gpu.used + (b.bytes + GUARD - 1) / GUARD * GUARD + GUARD;
    if (gpu.blocks > POINTERS_MOST || end > ARENA)
        abort();
    memset(gpu.pinned + gpu.used, GUARD_BYTE, end - gpu.used);
    copy_block(&b, gpu.pinned + p->at, b.at);
    gpu.used = end;
    return p;
}

/* The arguments as the GPU is to have them. */
static void place_all(char *arguments, size_t bytes)
{
    const struct block stack = on_stack(arguments, bytes);
    gpu.blocks = 0;
    gpu.used = GUARD;
    memset(gpu.pinned, GUARD_BYTE, GUARD);
    for (size_t i = 0; i + sizeof(char *) <= bytes; i += sizeof(char *)) {
        char *at;
        memcpy(&at, arguments + i, sizeof at);
        const struct block b = block_of(&stack, at);
        if (!b.at)
            continue;
        const struct placed *p = place_block(b);
        const CUdeviceptr there = gpu.memory.at + p->at + (CUdeviceptr)(at - b.at);
        memcpy(arguments + i, &there, sizeof there);
    }
}

/* False where something beside the blocks was written. */
static bool take_back(struct emulation *e, const char *name)
{
    size_t guard = 0;
    for (int i = 0; i <= gpu.blocks; i++) {
        const size_t end = i < gpu.blocks ? gpu.placed[i].at : gpu.used;
        for (; guard < end; guard++)
            if ((unsigned char)gpu.pinned[guard] != GUARD_BYTE) {
                snprintf(e->wrong, sizeof e->wrong,
                         "%s wrote where it has no memory, between its blocks %d and %d", name, i, i + 1);
                return false;
            }
        if (i == gpu.blocks)
            break;
        copy_block(&gpu.placed[i].here, gpu.placed[i].here.at, gpu.pinned + end);
        guard = end + gpu.placed[i].here.bytes;
    }
    return true;
}

/* The code that it is in. */
static const struct cuda_module *module_of(const char *name)
{
    static const char *const exact[] = {"fill", "lanes_add", "prove", "restore", "sums", "update"};
    for (size_t i = 0; i < sizeof exact / sizeof *exact; i++)
        if (!strcmp(exact[i], name))
            return &gpu.exact;
    return &gpu.model;
}

static int run_kernel(const struct emulation *e, const struct emulated_kernel *kernel, char *arguments,
                      struct error *err)
{
    const struct cuda_kernel_shape shape = {kernel->name, kernel->threads, 0, kernel->bytes};
    struct cuda_kernel k;
    if (cuda_kernel_open(&k, module_of(kernel->name), &shape, err) < 0 ||
        cuda_copy_in(&gpu.stream, gpu.memory.at, gpu.pinned, gpu.used, err) < 0 ||
        cuda_kernel_launch(&k, &gpu.stream, e->blocks, arguments, err) < 0 ||
        cuda_copy_out(&gpu.stream, gpu.pinned, gpu.memory.at, gpu.used, err) < 0)
        return -1;
    return cuda_stream_wait(&gpu.stream, err);
}

static bool emulate_on_gpu(struct emulation *e, const struct emulated_kernel *kernel, const void *args)
{
    char arguments[ARGUMENTS_MOST];
    struct error err = {0};
    e->barriers = e->fences = 0;
    e->moments = 0;
    e->stopped = false;
    e->wrong[0] = 0;
    if (kernel->bytes > sizeof arguments)
        abort();
    memcpy(arguments, args, kernel->bytes);
    if (open_gpu(&err) == 0) {
        place_all(arguments, kernel->bytes);
        if (run_kernel(e, kernel, arguments, &err) == 0)
            return take_back(e, kernel->name);
    }
    snprintf(e->wrong, sizeof e->wrong, "%s: %s", kernel->name, err.text);
    return false;
}

__attribute__((constructor)) static void wanted(void)
{
    if (on_gpu())
        emulate_elsewhere = emulate_on_gpu;
}
