/* A stand-in GPU for the tests of this folder, or two. */
#ifndef RM_TEST_GPU_CASE_H
#define RM_TEST_GPU_CASE_H

#include "tests/cuda_rig/on_gpu.h"
#include "trainer/backend/cuda/driver/kernel.h"
#include "trainer/backend/cuda/driver/memory.h"
#include "trainer/backend/cuda/driver/stream.h"

struct gpu {
    struct cuda_driver *driver;
    struct cuda_device *device;
};

/* What the stand-in plays (tests/cuda_rig/standin_driver/script.c); before it is opened. On a real GPU
 * (tests/cuda_rig/on_gpu.h) nothing is played, and both libraries are the machine's.
 */
void gpu_script(const char *script);
void gpu_blas_at(const char *path);
/* For a test that is nothing without its script. */
#define GPU_BY_SCRIPT()                                                                                      \
    do {                                                                                                     \
        if (on_gpu())                                                                                        \
            cr_skip("a real GPU plays no script");                                                           \
    } while (0)
void gpu_open(struct gpu *g, const char *script);
void gpu_close(struct gpu *g);

/* Each opened, or the test fails. */
void *gpu_pinned(struct gpu *g, size_t bytes);
struct cuda_memory gpu_memory(struct gpu *g, size_t bytes);
struct cuda_stream gpu_stream(struct gpu *g);
struct cuda_event gpu_event(struct gpu *g);
/* An image that stand-ins take, with all kernels. */
extern const char gpu_image[];

/* The call succeeded, or its sentence is shown. */
#define GPU_OK(call)                                                                                         \
    do {                                                                                                     \
        struct error gpu_err = {0};                                                                          \
        cr_assert_eq((call), 0, "%s: %s", #call, gpu_err.text);                                              \
    } while (0)
/* The call fails with a machine's error and exactly this sentence. */
#define GPU_FAILS(call, sentence)                                                                            \
    do {                                                                                                     \
        struct error gpu_err = {0};                                                                          \
        cr_assert_eq((call), -1, "%s succeeded", #call);                                                     \
        cr_assert_str_eq(gpu_err.text, sentence);                                                            \
        cr_assert_eq(error_exit_code(gpu_err.code), EXIT_MACHINE);                                           \
    } while (0)

#endif
