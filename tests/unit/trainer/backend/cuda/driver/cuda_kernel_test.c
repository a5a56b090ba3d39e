/* Kernels of the tree started through the driver's calls: the bits of the CPU's loops. */
#include "gpu_case.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/backend/cpu/sums/kernels.h"
#include "trainer/backend/cuda/images.h"
#include "trainer/backend/cuda/kernels/fill.h"
#include "trainer/backend/cuda/kernels/lanes_add.h"
#include "update_case.h"

#define LABEL "Stand-in GPU GPU-5eed0000-0000-0000-0000-000000000000"

enum { MIB = 1 << 20, COUNT = 3000, PLACE = 12345 };

/* A device with some memory, of which parts are given out one behind the other. */
struct rig {
    struct gpu g;
    struct cuda_memory m;
    struct cuda_stream s;
    struct cuda_module module;
    char *host; /* pinned; a part of it for each of the device's */
    size_t used;
};

static void rig_open(struct rig *r, const char *script, const void *image)
{
    *r = (struct rig){0};
    gpu_open(&r->g, script);
    r->m = gpu_memory(&r->g, 2 * MIB);
    r->s = gpu_stream(&r->g);
    r->host = gpu_pinned(&r->g, 2 * MIB);
    GPU_OK(cuda_module_open(&r->module, r->g.device, image, "exact", &gpu_err));
}

static void rig_close(struct rig *r)
{
    GPU_OK(cuda_stream_wait(&r->s, &gpu_err));
    cuda_pinned_free(r->g.device, r->host);
    cuda_module_clear(&r->module);
    cuda_stream_clear(&r->s);
    cuda_memory_clear(&r->m);
    gpu_close(&r->g);
}

/* The same bytes on the device. */
static void *put(struct rig *r, const void *from, size_t bytes)
{
    size_t at = r->used;
    r->used += (bytes + 63) / 64 * 64;
    cr_assert_leq(r->used, 2u * MIB);
    memcpy(r->host + at, from, bytes);
    GPU_OK(cuda_copy_in(&r->s, r->m.at + at, r->host + at, bytes, &gpu_err));
    return (void *)(uintptr_t)(r->m.at + at);
}

/* What lies on the device now. */
static const void *get(struct rig *r, const void *device, size_t bytes)
{
    size_t at = (uintptr_t)device - r->m.at;
    GPU_OK(cuda_copy_out(&r->s, r->host + at, r->m.at + at, bytes, &gpu_err));
    GPU_OK(cuda_stream_wait(&r->s, &gpu_err));
    return r->host + at;
}

static void start(struct rig *r, const struct cuda_kernel_shape *shape, int blocks, const void *args)
{
    struct cuda_kernel k;
    GPU_OK(cuda_kernel_open(&k, &r->module, shape, &gpu_err));
    GPU_OK(cuda_kernel_launch(&k, &r->s, blocks, args, &gpu_err));
}

static void lanes_add_is_the_cpus(struct rig *r)
{
    static const struct cuda_kernel_shape shape = {"lanes_add", LANES_ADD_THREADS, 0,
                                                   sizeof(struct lanes_add_args)};
    float grads[COUNT];
    uint32_t words[COUNT], max = 0;
    uint64_t proof = 0;
    for (int i = 0; i < COUNT; i++) {
        grads[i] = (float)(i * 7919 % 2003 - 1001) / 7; /* the strange ones are exact_test's */
        words[i] = (uint32_t)i * 77;
    }
    struct lanes_add_args args = {
        .grads = put(r, grads, sizeof grads),
        .words = put(r, words, sizeof words),
        .max = put(r, &max, sizeof max),
        .proof = put(r, &proof, sizeof proof),
        .count = COUNT,
        .at = PLACE,
        .scale = 0x1p10f / 7,
    };
    start(r, &shape, 3, &args);
    args.count = 0; /* they were copied */
    const struct kernel_lane_args cpu = {grads, words, COUNT, args.scale, false, PLACE};
    struct kernel_lane wanted = kernel_add_fixed(kernels_best(), &cpu);
    cr_assert_eq(memcmp(get(r, args.words, sizeof words), words, sizeof words), 0);
    cr_assert_eq(memcmp(get(r, args.max, sizeof max), &wanted.max, sizeof max), 0);
    cr_assert_eq(memcmp(get(r, args.proof, sizeof proof), &wanted.proof, sizeof proof), 0);
}

static void update_is_the_cpus(struct rig *r)
{
    static const struct cuda_kernel_shape shape = {"update", UPDATE_THREADS, 0, sizeof(struct update_args)};
    static const int sizes[] = {1, 70, 4096, 255, 513, 3};
    struct update_case c;
    update_case_init(&c, sizes, 6, false, false, 9);
    struct update_args args = update_case_args(&c, true);
    const size_t bytes = (size_t)c.count * sizeof(float);
    args.words = put(r, c.words, bytes);
    args.params = args.to_params = put(r, c.now.params, bytes);
    args.m = args.to_m = put(r, c.now.m, bytes);
    args.v = args.to_v = put(r, c.now.v, bytes);
    args.piece = put(r, c.piece, 6 * sizeof *c.piece);
    args.constants = put(r, c.constants, sizeof c.constants);
    args.slot = put(r, c.slot, CASE_BLOCKS * sizeof *c.slot);
    args.stamp = put(r, c.stamp, 6 * sizeof *c.stamp);
    args.proof = put(r, c.proof, 6 * sizeof *c.proof);
    start(r, &shape, CASE_BLOCKS, &args);
    memcpy(c.now.params, get(r, args.params, bytes), bytes);
    memcpy(c.now.m, get(r, args.m, bytes), bytes);
    memcpy(c.now.v, get(r, args.v, bytes), bytes);
    memcpy(c.proof, get(r, args.proof, 6 * sizeof *c.proof), 6 * sizeof *c.proof);
    cr_assert_eq(update_case_differs(&c.now, &c.wanted, 0, c.count), -1);
    for (int i = 0; i < 6; i++)
        cr_assert_eq(c.proof[i], case_proof(&c.wanted, &c.piece[i]), "piece %d", i);
    update_case_clear(&c);
}

Test(kernel, gradients_to_words_and_the_update_are_the_cpus_bits_for_each_order)
{
    for (int seed = 0; seed < 4; seed++) {
        struct rig r;
        char script[32];
        snprintf(script, sizeof script, "seed=%d", seed);
        rig_open(&r, script, gpu_image);
        lanes_add_is_the_cpus(&r);
        update_is_the_cpus(&r);
        rig_close(&r);
    }
}

Test(kernel, those_of_the_image_that_was_built_are_found_in_it)
{
    struct rig r;
    if (!cuda_images_count())
        cr_skip_test("built without a CUDA compiler: tools/install-packages --cuda");
    rig_open(&r, "", cuda_image(0).data);
    lanes_add_is_the_cpus(&r);
    rig_close(&r);
}

/* What a script leaves out is missed by who compares (tools/gpu-check). */
Test(kernel, one_that_is_skipped_or_empty_leaves_its_memory_as_it_was)
{
    static const struct cuda_kernel_shape shape = {"fill", FILL_THREADS, 0, sizeof(struct fill_args)};
    static const char *const scripts[] = {"seed=0,skip:fill@2", "seed=0,skip:update@1", "seed=0,empty"};
    static const uint32_t wanted[] = {1, 2, 0};
    for (int i = 0; i < 3; i++) {
        struct rig r;
        const uint32_t nothing = 0;
        rig_open(&r, scripts[i], gpu_image);
        struct fill_args args = {put(&r, &nothing, sizeof nothing), 1, 0};
        for (args.word = 1; args.word <= 2; args.word++)
            start(&r, &shape, 1, &args);
        cr_assert_eq(memcmp(get(&r, args.words, sizeof nothing), &wanted[i], sizeof nothing), 0, "%s",
                     scripts[i]);
        rig_close(&r);
    }
}

/* ---- refused ---- */

static void refused(struct rig *r, const struct cuda_kernel_shape *shape, const char *sentence)
{
    struct cuda_kernel k;
    GPU_FAILS(cuda_kernel_open(&k, &r->module, shape, &gpu_err), sentence);
}

Test(kernel, image_and_program_that_were_not_built_together_are_refused)
{
    struct rig r;
    rig_open(&r, "", gpu_image);
    refused(&r, &(struct cuda_kernel_shape){"fill", FILL_THREADS, 0, 16},
            LABEL ": the kernel fill has arguments of another size: 16 here and 24 in the image; image and "
                  "program were not "
                  "built together");
    refused(&r, &(struct cuda_kernel_shape){"fill", 1024, 0, sizeof(struct fill_args)},
            LABEL ": the kernel fill takes fewer threads: 1024 here and 256 in the image; image and program "
                  "were not built "
                  "together");
    refused(&r, &(struct cuda_kernel_shape){"nobody", 32, 0, 8},
            LABEL ": the driver refused a call, to find the kernel nobody: CUDA_ERROR_NOT_FOUND (500: as the "
                  "stand-in says); "
                  "this is a mistake of this program, please report it");
    refused(&r, &(struct cuda_kernel_shape){"fill", FILL_THREADS, 300 << 10, sizeof(struct fill_args)},
            LABEL ": the driver refused a call, to give the kernel fill 307200 bytes of shared memory: "
                  "CUDA_ERROR_INVALID_VALUE "
                  "(1: as the stand-in says); this is a mistake of this program, please report it");
    rig_close(&r);
}

Test(kernel, an_image_without_this_gpus_code_is_refused)
{
    struct gpu g;
    struct cuda_module m;
    gpu_open(&g, "fail:cuModuleLoadData@1=NO_BINARY_FOR_GPU");
    GPU_FAILS(
        cuda_module_open(&m, g.device, gpu_image, "exact", &gpu_err), LABEL
        ": the GPU can't be used, to load the kernels \"exact\": CUDA_ERROR_NO_BINARY_FOR_GPU (209: as the "
        "stand-in says); look at nvidia-smi on this machine, or train with trainer.device: cpu");
    GPU_FAILS(cuda_module_open(&m, g.device, "no image", "exact", &gpu_err), LABEL
              ": the GPU can't be used, to load the kernels \"exact\": CUDA_ERROR_INVALID_IMAGE (200: as the "
              "stand-in says); look at nvidia-smi on this machine, or train with trainer.device: cpu");
    gpu_close(&g);
}

Test(kernel, as_many_blocks_are_resident_as_the_driver_says)
{
    struct rig r;
    struct cuda_kernel k;
    const struct cuda_kernel_shape shape = {"fill", FILL_THREADS, 100 << 10, sizeof(struct fill_args)};
    int blocks = 0;
    rig_open(&r, "", gpu_image);
    GPU_OK(cuda_kernel_open(&k, &r.module, &shape, &gpu_err));
    GPU_OK(cuda_kernel_resident(&k, &blocks, &gpu_err));
    cr_assert_eq(blocks, 2048 / FILL_THREADS);
    rig_close(&r);
}

/* The kernel's error is nobody's but of whoever calls next, and of all after that. */
Test(kernel, one_that_fails_is_told_by_a_later_call)
{
    struct rig r;
    struct error err = {0};
    rig_open(&r, "seed=0,lost:kernel@2=ILLEGAL_ADDRESS", gpu_image);
    lanes_add_is_the_cpus(&r);
    static const struct cuda_kernel_shape shape = {"fill", FILL_THREADS, 0, sizeof(struct fill_args)};
    const struct fill_args args = {(uint32_t *)(uintptr_t)r.m.at, 10, 1};
    start(&r, &shape, 1, &args);
    GPU_FAILS(cuda_stream_wait(&r.s, &gpu_err),
              LABEL ": the GPU stopped this process's work, to finish its work: CUDA_ERROR_ILLEGAL_ADDRESS "
                    "(700: as the stand-in "
                    "says); another process takes its place");
    cr_assert_eq(cuda_device_trouble(r.g.device), CUDA_CRASHED);
    cr_assert_eq(cuda_copy_out(&r.s, r.host, r.m.at, 4, &err), -1);
    gpu_close(&r.g);
}

/* What waits looks elsewhere meanwhile, as with a collective whose peer is dead. */
Test(kernel, one_that_hangs_is_never_done)
{
    static struct rig r; /* nobody can give it back */
    struct error err = {0};
    rig_open(&r, "hang:kernel@1", gpu_image);
    static const struct cuda_kernel_shape shape = {"fill", FILL_THREADS, 0, sizeof(struct fill_args)};
    const struct fill_args args = {(uint32_t *)(uintptr_t)r.m.at, 10, 1};
    start(&r, &shape, 1, &args);
    for (int i = 0; i < 20; i++)
        cr_assert_eq(cuda_stream_done(&r.s, &err), 0);
}
