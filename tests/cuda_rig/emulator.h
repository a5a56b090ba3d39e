/* Kernels on the CPU: their sources, compiled by the host's compiler, run as fibers in an order that a seed
 * draws.
 *
 * A file that is compiled for the emulator includes this first and then a .cu file; kernel.h's words are then
 * these (trainer/backend/cuda/kernels/kernel.h says what each means). A test launches emulated_NAME:
 *
 *     struct emulation e = {.blocks = 3, .resident = 2, .seed = 7};
 *     cr_assert(emulate(&e, &emulated_lanes_add, &args), "%s", e.wrong);
 *
 * A program that has to find kernels by name has all of them between __start_emulated_kernels and
 * __stop_emulated_kernels.
 *
 * The order is unfair, to one thread or warp for a while and then to another: only so barriers are missed.
 * It changes at each word that a real GPU may change it at: barriers, fences, warp exchanges, atomics,
 * POINT. Bounds of device memory and of SHARED arrays are the address sanitizer's. Refused with a sentence in
 * e.wrong: a barrier or an exchange that some threads of the block or warp do not come to, or come to at
 * another place; copies and matrices at odd places; copies that nobody waited for.
 *
 * A copy into shared memory spoils its place as soon as it is asked for, and is done when its thread waits:
 * who reads there too early, or still reads what was there before, sees NaNs.
 *
 * What it can't show: the memory model between blocks (here stores are seen in order), the rounding of matrix
 * units, registers, speed. */
#ifndef RM_TESTS_CUDA_EMULATOR_H
#define RM_TESTS_CUDA_EMULATOR_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* ---- for tests ---- */

enum { EMULATED_SITES_MAX = 16, EMULATED_FENCES_MAX = 256, EMULATED_THREADS_MAX = 1024 };

/* A place in a kernel's source where all threads meet. */
struct emulated_site {
    const char *file;
    int line;
};

struct emulated_kernel {
    const char *name;
    int threads;
    void (*run)(const void *args);
    size_t bytes; /* of its struct of arguments */
};

struct emulation {
    int blocks;
    int resident;                 /* blocks that run at the same time; 0: all */
    uint64_t seed;                /* of the order */
    int64_t stop;                 /* all threads end at this moment, as when a device is lost; 0: none */
    struct emulated_site without; /* this barrier is no barrier; file NULL: all are */

    /* What emulate finds: */
    struct emulated_site barrier[EMULATED_SITES_MAX]; /* that threads came to, each once */
    int barriers;
    int64_t moments;                    /* at which it could have been stopped */
    int64_t fence[EMULATED_FENCES_MAX]; /* the first of those that are fences */
    int fences;
    bool stopped;
    char wrong[300]; /* what the kernel did that it may not */
};

/* Runs a grid of the kernel to its end, or to e->stop. False where it did what it may not: e->wrong. args:
 * the kernel's struct. Floats are rounded to nearest, denormals are zero. One emulation at a time. */
bool emulate(struct emulation *e, const struct emulated_kernel *kernel, const void *args);
/* Gives the stacks back. */
void emulator_free(void);
/* Who runs kernels instead of the emulator: a GPU (emulate_on_gpu.c), where no order is drawn, nothing is
 * stopped and no barrier left out or told of. NULL: nobody. */
extern bool (*emulate_elsewhere)(struct emulation *e, const struct emulated_kernel *kernel, const void *args);

/* ---- for kernels ---- */

/* The thread under way. */
struct emulated_thread {
    int thread, block, blocks;
};
extern struct emulated_thread emulated_self;

void emulated_barrier(const char *file, int line);
void emulated_point(void);
void emulated_fence(void);
void *emulated_shared(int key, size_t bytes);
/* value of lane (own + n), its own where there is none. */
uint64_t emulated_down(const char *file, int line, uint64_t value, int n);
/* value of lane (own ^ n) */
uint64_t emulated_xor(const char *file, int line, uint64_t value, int n);
float emulated_two_to(float x);
float emulated_log_of(float x);
/* One warp's m16n8k16 product of bf16 with sums in fp32, each thread with its own parts. */
void emulated_mma_bf16(const char *file, int line, float d[4], const uint32_t a[4], const uint32_t b[2],
                       const float c[4]);
/* Four 8 x 8 matrices: lane 8 i + r says where row r of matrix i is. */
void emulated_matrix(const char *file, int line, uint32_t x[4], const void *at, bool turned);
/* Spoils what is to be there; the bytes, or zeros, come when this thread waits. */
void emulated_copy(const char *file, int line, void *to, const void *from, int bytes, bool there);
void emulated_copies_wait(void);

#define KERNEL(name, threads_)                                                                               \
    static void name##_thread(const struct name##_args a);                                                   \
    static void name##_run(const void *args)                                                                 \
    {                                                                                                        \
        name##_thread(*(const struct name##_args *)args);                                                    \
    }                                                                                                        \
    extern const struct emulated_kernel emulated_##name;                                                     \
    const struct emulated_kernel emulated_##name = {#name, threads_, name##_run,                             \
                                                    sizeof(struct name##_args)};                             \
    static const struct emulated_kernel *const name##_listed                                                 \
        __attribute__((used, section("emulated_kernels"))) = &emulated_##name;                               \
    static void name##_thread
#define KERNEL_DENSE(name, threads, blocks) KERNEL(name, threads)
#define DEVICE                              static inline
#define SHARED(type, name, count)           type *const name = emulated_shared(__COUNTER__, sizeof(type) * (count))

#define THREAD    (emulated_self.thread)
#define BLOCK     (emulated_self.block)
#define BLOCKS    (emulated_self.blocks)
#define BARRIER() emulated_barrier(__FILE__, __LINE__)
#define FENCE()   emulated_fence()
#define UNROLL
#define ROLLED
#define POINT()   emulated_point()
#define opaque(x) (x)

#define warp_down(x, n)     ((uint32_t)emulated_down(__FILE__, __LINE__, (uint32_t)(x), (n)))
#define warp_xor(x, n)      ((uint32_t)emulated_xor(__FILE__, __LINE__, (uint32_t)(x), (n)))
#define warp_down_u64(x, n) emulated_down(__FILE__, __LINE__, (uint64_t)(x), (n))
#define warp_down_double(x, n)                                                                               \
    emulated_double(emulated_down(__FILE__, __LINE__, emulated_double_bits(x), (n)))
#define mma_bf16(d, a, b, c)     emulated_mma_bf16(__FILE__, __LINE__, (d), (a), (b), (c))
#define matrix_rows(x, at)       emulated_matrix(__FILE__, __LINE__, (x), (at), false)
#define matrix_columns(x, at)    emulated_matrix(__FILE__, __LINE__, (x), (at), true)
#define copy_16(to, from, there) emulated_copy(__FILE__, __LINE__, (to), (from), 16, (there))
#define copy_4(to, from, there)  emulated_copy(__FILE__, __LINE__, (to), (from), 4, (there))
#define COPIES_WAIT()            emulated_copies_wait()

static inline double emulated_double(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint64_t emulated_double_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline void atomic_max(uint32_t *at, uint32_t x)
{
    emulated_point();
    *at = *at > x ? *at : x;
    emulated_point();
}

static inline void atomic_add_u64(uint64_t *at, uint64_t x)
{
    emulated_point();
    *at += x;
    emulated_point();
}

static inline uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* As PTX has cvt.rni.s32.f32: nearest even, saturated, 0 for NaN. */
static inline int32_t to_fixed(float x)
{
    if (x != x)
        return 0;
    if (x >= 0x1p31f)
        return INT32_MAX;
    if (x < -0x1p31f)
        return INT32_MIN;
    return (int32_t)__builtin_rintf(x);
}

#define square_root(x) __builtin_sqrtf(x)
#define fused(x, y, z) __builtin_fmaf((x), (y), (z))
#define two_to(x)      emulated_two_to(x)
#define log_of(x)      emulated_log_of(x)

static inline float larger(float x, float y)
{
    return x > y || y != y ? x : y;
}

/* As PTX has cvt.rn.bf16.f32: any NaN becomes one. */
static inline uint16_t half_of(float x)
{
    const uint32_t bits = bits_of(x);
    return x != x ? 0x7fff : (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

static inline uint32_t half_pair(float low, float high)
{
    return (uint32_t)half_of(low) | (uint32_t)half_of(high) << 16;
}

#endif
