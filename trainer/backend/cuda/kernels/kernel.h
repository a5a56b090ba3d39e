/* The words that kernels are written in, for .cu files only.
 *
 * A kernel is C that two compilers take: nvcc for the GPU, and the host's own C compiler for the emulator of
 * the tests (tests/cuda_rig/emulator.h), which gives the same words. So: no C++, nothing of the CUDA runtime,
 * blocks and grids of one dimension, one plain struct as the argument (of a header of the file's name,
 * which C includes, too), and what needs all threads of a block or a warp only by the words below.
 *
 *     KERNEL(name, threads)(struct name_args a)   for blocks of exactly that many threads
 *     KERNEL_DENSE(name, threads, blocks)(..)     with registers for so many blocks on a processor at a time
 *     SHARED(type, name, count);       an array of the block, at a multiple of 16 bytes
 *     THREAD, BLOCK, BLOCKS            this thread's number in its block, this block's, how many blocks
 *     BARRIER();                       all threads of the block, or none
 *     FENCE();                         earlier stores are visible on the device before later ones
 *     POINT();                         nothing: here the emulator may change threads, or end all
 *     struct WIDE name { .. }          16 bytes that are read together, of memory of any other type
 *     UNROLL                           before a loop of few turns, whose arrays are to be registers
 *     ROLLED                           before a loop that is to stay one
 *     opaque(x)                        the x, an int, of which nothing is known: what follows from it is
 * worked out here, and holds no register elsewhere warp_down(x, n), _u64, _double   the x of lane + n; all 32
 * lanes, or none warp_xor(x, n)                   the x, of 32 bits, of lane ^ n; all 32 lanes, or none
 *     mma_bf16(d, a, b, c)             m16n8k16 with sums in fp32: all 32 lanes, each with its parts
 *     matrix_rows(x, at)               four 8 x 8 of 16 bits out of shared memory, as mma's parts lie: each
 *                                      lane says where one row of 16 bytes is, eight lanes a matrix
 *     matrix_columns(x, at)            the same, each matrix turned
 *     copy_16(to, from, there)         16 bytes, or zeros, to shared memory, some time until COPIES_WAIT:
 *     copy_4(to, from, there)          till then nobody may look there
 *     COPIES_WAIT();                   this thread's copies are done; others see them behind a BARRIER
 *     atomic_max(at, x)                unsigned, of 32 bits
 *     atomic_add_u64(at, x)            modulo 2^64
 *     to_fixed(x)                      int32, nearest even, saturated, 0 for NaN
 *     square_root(x)                   correctly rounded
 *     fused(x, y, z)                   x * y + z, rounded once
 *     larger(x, y)                     the one that is no NaN, where only one is
 *     two_to(x)                        2^x, to some 2 units in the last place: the one approximate word
 *     log_of(x)                        natural, to 1 unit in the last place
 *     half_of(x), half_pair(low, high) bf16, nearest even: its 16 bits, and those of two in 32
 *     bits_of(x), float_of(bits)       the same 32 bits */
#ifndef RM_TRAINER_CUDA_KERNEL_H
#define RM_TRAINER_CUDA_KERNEL_H

#include <stdint.h>

enum { WARP = 32 };

#define WIDE __attribute__((aligned(16), may_alias))

#ifdef __CUDACC__

#define KERNEL(name, threads)               extern "C" __global__ void __launch_bounds__(threads) name
#define KERNEL_DENSE(name, threads, blocks) extern "C" __global__ void __launch_bounds__(threads, blocks) name
#define DEVICE                              static __device__ __forceinline__
#define SHARED(type, name, count)           __shared__ __attribute__((aligned(16))) type name[count]

#define THREAD    ((int)threadIdx.x)
#define BLOCK     ((int)blockIdx.x)
#define BLOCKS    ((int)gridDim.x)
#define BARRIER() __syncthreads()
#define FENCE()   __threadfence()
#define UNROLL    _Pragma("unroll")
#define ROLLED    _Pragma("unroll 1")
#define POINT()   ((void)0)

#define warp_down(x, n)        __shfl_down_sync(0xffffffffu, (uint32_t)(x), (n))
#define warp_xor(x, n)         __shfl_xor_sync(0xffffffffu, (uint32_t)(x), (n))
#define warp_down_u64(x, n)    ((uint64_t)__shfl_down_sync(0xffffffffu, (unsigned long long)(x), (n)))
#define warp_down_double(x, n) __shfl_down_sync(0xffffffffu, (double)(x), (n))

#define atomic_max(at, x)     ((void)atomicMax((at), (x)))
#define atomic_add_u64(at, x) ((void)atomicAdd((unsigned long long *)(at), (unsigned long long)(x)))

#define to_fixed(x)    __float2int_rn(x) /* cvt.rni.s32.f32: saturates, and gives 0 for NaN */
#define bits_of(x)     __float_as_uint(x)
#define float_of(bits) __uint_as_float(bits)
#define square_root(x) __fsqrt_rn(x)
#define log_of(x)      logf(x)
#define larger(x, y)   fmaxf((x), (y))

DEVICE int opaque(int x)
{
    int y;
    asm volatile("mov.b32 %0, %1;" : "=r"(y) : "r"(x));
    return y;
}

DEVICE float two_to(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

DEVICE uint16_t half_of(float x)
{
    uint16_t h;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(x));
    return h;
}

DEVICE uint32_t half_pair(float low, float high)
{
    uint32_t pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

DEVICE void mma_bf16(float d[4], const uint32_t a[4], const uint32_t b[2], const float c[4])
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%10,%11,%12,%13};"
        : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]),
          "f"(c[3]));
}

DEVICE float fused(float x, float y, float z)
{
    float sum;
    asm("fma.rn.ftz.f32 %0, %1, %2, %3;" : "=f"(sum) : "f"(x), "f"(y), "f"(z));
    return sum;
}

DEVICE uint32_t shared_place(const void *at)
{
    return (uint32_t)__cvta_generic_to_shared(at);
}

DEVICE void matrix_rows(uint32_t x[4], const void *at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(shared_place(at)));
}

DEVICE void matrix_columns(uint32_t x[4], const void *at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(shared_place(at)));
}

DEVICE void copy_16(void *to, const void *from, int there)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_place(to)), "l"(from),
                 "r"(there ? 16 : 0)
                 : "memory");
}

DEVICE void copy_4(void *to, const void *from, int there)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_place(to)), "l"(from),
                 "r"(there ? 4 : 0)
                 : "memory");
}

#define COPIES_WAIT() asm volatile("cp.async.wait_all;" ::: "memory")

#endif

#endif
