/* Products by cuBLASLt's stand-in: found and refused, rows and columns the right way round, the algorithm
 * that is chosen. */
#include "trainer/backend/cuda/driver/cublaslt.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_case.h"
#include "trainer/backend/cuda/driver/algorithms.h"

#define LABEL "Stand-in GPU GPU-5eed0000-0000-0000-0000-000000000000"

enum { M = 5, N = 8, K = 7, MIB = 1 << 20, WORKSPACE = 64 << 10 };

struct rig {
    struct gpu g;
    struct cuda_blas *blas;
    struct cuda_memory m;
    struct cuda_stream s;
    char *host; /* pinned, of the memory's size */
};

enum { AT_A = 0, AT_B = 4096, AT_D = 8192, AT_BIAS = 12288, AT_AUX = 16384, AT_WORKSPACE = 1 << 20 };

static void rig_open(struct rig *r, const char *script)
{
    setenv("RINGMASTER_CUBLASLT_LIBRARY", STANDIN_CUBLASLT, 1);
    setenv("RINGMASTER_STANDIN_CUBLASLT", script, 1);
    gpu_open(&r->g, "seed=0");
    r->m = gpu_memory(&r->g, 2 * MIB);
    r->s = gpu_stream(&r->g);
    r->host = gpu_pinned(&r->g, 2 * MIB);
    memset(r->host, 0, 2 * MIB);
    GPU_OK(cuda_blas_open(&r->blas, r->g.device, &gpu_err));
}

static void rig_close(struct rig *r)
{
    GPU_OK(cuda_stream_wait(&r->s, &gpu_err));
    cuda_blas_free(r->blas);
    cuda_pinned_free(r->g.device, r->host);
    cuda_stream_clear(&r->s);
    cuda_memory_clear(&r->m);
    gpu_close(&r->g);
}

static float *number(struct rig *r, int at)
{
    return (float *)(void *)(r->host + at);
}

/* Small whole numbers: each sum is exact, in whatever order. */
static void fill(struct rig *r)
{
    for (int i = 0; i < M * K; i++)
        number(r, AT_A)[i] = (float)(i * 7 % 11 - 5);
    for (int i = 0; i < K * N; i++)
        number(r, AT_B)[i] = (float)(i * 5 % 13 - 6);
    for (int i = 0; i < M * N; i++) {
        number(r, AT_D)[i] = (float)i;
        number(r, AT_AUX)[i] = (float)(i % 5 - 2) / 4;
    }
    for (int i = 0; i < N; i++)
        number(r, AT_BIAS)[i] = (float)(100 * i);
}

static void run(struct rig *r, const struct cuda_product_shape *shape)
{
    struct cuda_product p;
    const CUdeviceptr at = r->m.at;
    const struct cuda_product_operands places = {at + AT_A,    at + AT_B,   at + AT_D,
                                                 at + AT_BIAS, at + AT_AUX, at + AT_WORKSPACE};
    GPU_OK(cuda_product_open(&p, r->blas, shape, &gpu_err));
    GPU_OK(cuda_copy_in(&r->s, at, r->host, MIB, &gpu_err));
    GPU_OK(cuda_product_run(&p, &r->s, &places, &gpu_err));
    GPU_OK(cuda_stream_wait(&r->s, &gpu_err));
    GPU_OK(cuda_copy_out(&r->s, r->host, at, MIB, &gpu_err));
    cuda_product_clear(&p);
    GPU_OK(cuda_stream_wait(&r->s, &gpu_err));
}

static float term(const float *at, bool turned, int row, int column, int rows, int columns)
{
    return turned ? at[column * rows + row] : at[row * columns + column];
}

static float wanted(const struct rig *r, const struct cuda_product_shape *s, int row, int column)
{
    const float *a = (const float *)(const void *)(r->host + AT_A),
                *b = (const float *)(const void *)(r->host + AT_B);
    float sum = 0;
    for (int k = 0; k < s->k; k++)
        sum += term(a, s->a_turned, row, k, s->m, s->k) * term(b, s->b_turned, k, column, s->k, s->n);
    return sum;
}

Test(blas, products_are_row_major_whichever_way_the_matrices_lie)
{
    struct rig r;
    rig_open(&r, "");
    for (int way = 0; way < 8; way++) {
        const struct cuda_product_shape shape = {
            M, N, K, .a_turned = way & 1, .b_turned = way & 2, .add = way & 4};
        fill(&r);
        run(&r, &shape);
        for (int i = 0; i < M; i++)
            for (int j = 0; j < N; j++)
                cr_assert_eq(number(&r, AT_D)[i * N + j],
                             wanted(&r, &shape, i, j) + (float)(shape.add ? i * N + j : 0), "way %d: %d, %d",
                             way, i, j);
    }
    rig_close(&r);
}

Test(blas, a_bias_is_of_columns_and_what_gelu_gets_is_kept)
{
    struct rig r;
    rig_open(&r, "");
    const struct cuda_product_shape shape = {M, N, K, .epilogue = CUDA_BIAS_GELU};
    fill(&r);
    run(&r, &shape);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            const float x = wanted(&r, &shape, i, j) + (float)(100 * j);
            cr_assert_eq(number(&r, AT_AUX)[i * N + j], x);
            cr_assert_float_eq(number(&r, AT_D)[i * N + j], x > 0 ? x : 0, 0.2,
                               "far from 0 it is x or nothing");
        }
    const struct cuda_product_shape plain = {M, N, K, .epilogue = CUDA_BIAS};
    fill(&r);
    run(&r, &plain);
    cr_assert_eq(number(&r, AT_D)[2 * N + 3], wanted(&r, &plain, 2, 3) + 300);
    rig_close(&r);
}

/* Against the difference of GELU itself. */
Test(blas, gelus_slope_is_that_of_what_was_kept)
{
    struct rig r;
    rig_open(&r, "");
    const struct cuda_product_shape shape = {M, N, K, .epilogue = CUDA_GELU_SLOPE};
    fill(&r);
    run(&r, &shape);
    for (int i = 0; i < M * N; i++) {
        const double x = (i % 5 - 2) / 4.0, h = 1e-4, c = 0.7978845608;
        const double up = 0.5 * (x + h) * (1 + tanh(c * (x + h + 0.044715 * pow(x + h, 3))));
        const double down = 0.5 * (x - h) * (1 + tanh(c * (x - h + 0.044715 * pow(x - h, 3))));
        const double product = (double)wanted(&r, &shape, i / N, i % N);
        cr_assert_float_eq((double)number(&r, AT_D)[i], product * (up - down) / (2 * h),
                           1e-3 * (1 + fabs(product)));
    }
    rig_close(&r);
}

Test(blas, a_biass_gradient_is_the_sum_over_rows_of_b)
{
    struct rig r;
    rig_open(&r, "");
    const struct cuda_product_shape shape = {M, N, K, .a_turned = true, .epilogue = CUDA_BIAS_GRADIENT};
    fill(&r);
    run(&r, &shape);
    for (int j = 0; j < N; j++) {
        float sum = 0;
        for (int k = 0; k < K; k++)
            sum += number(&r, AT_B)[k * N + j];
        cr_assert_eq(number(&r, AT_BIAS)[j], sum);
    }
    cr_assert_eq(number(&r, AT_D)[N + 2], wanted(&r, &shape, 1, 2));
    rig_close(&r);
}

Test(blas, bf16_goes_in_and_comes_out_rounded_to_even)
{
    struct rig r;
    rig_open(&r, "");
    const struct cuda_product_shape shape = {1, 8, 1, .half = true, .d_half = true};
    uint16_t *a = (uint16_t *)(void *)(r.host + AT_A), *b = (uint16_t *)(void *)(r.host + AT_B);
    a[0] = 0x3f81; /* 1 + 2^-7 */
    for (int i = 0; i < 8; i++)
        b[i] = (uint16_t)(0x3f80 + i); /* 1 + i 2^-7 */
    run(&r, &shape);
    const uint16_t *d = (const uint16_t *)(const void *)(r.host + AT_D);
    cr_assert_eq(d[0], 0x3f81);
    cr_assert_eq(d[1], 0x3f82, "1 + 2^-6 + 2^-14 goes down");
    rig_close(&r);
}

/* ---- the algorithm ---- */

static float odd_sum(struct rig *r, size_t workspace)
{
    const struct cuda_product_shape shape = {M, N, K, .workspace = workspace};
    for (int i = 0; i < M * K; i++)
        number(r, AT_A)[i] = 1.0f / (float)(i + 3);
    for (int i = 0; i < K * N; i++)
        number(r, AT_B)[i] = ldexpf(1, i % 9) / 3;
    run(r, &shape);
    return number(r, AT_D)[N + 5];
}

/* In place the stand-in's bits change from run to run; neither its first proposal nor one that was not wished
 * for is taken. */
Test(blas, only_algorithms_with_one_order_are_chosen)
{
    struct rig r;
    rig_open(&r, "mask-ignored");
    const float split = odd_sum(&r, WORKSPACE), whole = odd_sum(&r, 0);
    for (int i = 0; i < 10; i++) {
        cr_assert_eq(odd_sum(&r, WORKSPACE), split);
        cr_assert_eq(odd_sum(&r, 0), whole);
    }
    struct cuda_product p;
    const struct cuda_product_shape shape = {M, N, K, .workspace = WORKSPACE};
    GPU_OK(cuda_product_open(&p, r.blas, &shape, &gpu_err));
    cr_assert_eq(p.algorithm.data[0], 1, "the first that is allowed");
    cuda_product_clear(&p);
    rig_close(&r);
}

/* The stand-in's GPU, by its number of processors, and the library's version. */
static struct cuda_algorithm entry_of(const struct rig *r, const struct cuda_product_shape *shape,
                                      uint64_t which)
{
    const struct cuda_device *d = r->g.device;
    return (struct cuda_algorithm){
        {10 * d->major + d->minor, d->processors, r->blas->version}, *shape, {{which}}};
}

/* Which of the stand-in's algorithms is chosen where the table has this entry. */
static uint64_t chosen(struct rig *r, const struct cuda_algorithm *entry,
                       const struct cuda_product_shape *shape)
{
    struct cuda_product p;
    r->blas->table = (struct cuda_algorithm_table){entry, 1};
    GPU_OK(cuda_product_open(&p, r->blas, shape, &gpu_err));
    const uint64_t which = p.algorithm.data[0];
    cuda_product_clear(&p);
    return which;
}

enum { IN_PLACE, SPLIT, WHOLE, NO_ALGORITHM };

Test(blas, the_tables_algorithm_is_taken_where_it_is_for_this_product_gpu_and_library)
{
    struct rig r;
    rig_open(&r, "");
    const struct cuda_product_shape shape = {M, N, K, .workspace = WORKSPACE};
    struct cuda_algorithm entry = entry_of(&r, &shape, WHOLE);
    cr_assert_eq(chosen(&r, &entry, &shape), WHOLE);
    struct cuda_product_shape others[9];
    for (int i = 0; i < 9; i++)
        others[i] = shape;
    others[0].m++, others[1].n++, others[2].k++;
    others[3].a_turned = others[4].b_turned = others[5].half = others[6].d_half = others[7].add = true;
    others[8].epilogue = CUDA_BIAS;
    for (int i = 0; i < 9; i++)
        cr_assert_eq(chosen(&r, &entry, &others[i]), SPLIT, "shape %d", i);
    entry.kind.architecture++;
    cr_assert_eq(chosen(&r, &entry, &shape), SPLIT);
    entry = entry_of(&r, &shape, WHOLE), entry.kind.processors++;
    cr_assert_eq(chosen(&r, &entry, &shape), SPLIT);
    entry = entry_of(&r, &shape, WHOLE), entry.kind.version++;
    cr_assert_eq(chosen(&r, &entry, &shape), SPLIT);
    rig_close(&r);
}

/* One that sums in place, one that the library does not know, one whose workspace is too large. */
Test(blas, a_table_can_not_choose_what_may_not_be_chosen)
{
    struct rig r;
    rig_open(&r, "");
    const struct cuda_product_shape shape = {M, N, K, .workspace = WORKSPACE},
                                    none = {.m = M, .n = N, .k = K};
    struct cuda_algorithm entry = entry_of(&r, &shape, IN_PLACE);
    cr_assert_eq(chosen(&r, &entry, &shape), SPLIT);
    entry = entry_of(&r, &shape, NO_ALGORITHM);
    cr_assert_eq(chosen(&r, &entry, &shape), SPLIT);
    entry = entry_of(&r, &shape, SPLIT);
    cr_assert_eq(chosen(&r, &entry, &none), WHOLE);
    rig_close(&r);
}

static void hash_of(struct rig *r, const struct cuda_product_shape *shape, uint8_t out[RM_HASH_BYTES])
{
    struct cuda_product p;
    GPU_OK(cuda_product_open(&p, r->blas, shape, &gpu_err));
    cuda_products_hash(&p, 1, out);
    cuda_product_clear(&p);
}

Test(blas, the_hash_of_a_choice_is_the_same_each_time_and_another_for_another_choice)
{
    struct rig r;
    rig_open(&r, "");
    const struct cuda_product_shape split = {M, N, K, .workspace = WORKSPACE},
                                    whole = {.m = M, .n = N, .k = K}, other = {.m = M, .n = N, .k = K + 1};
    uint8_t first[RM_HASH_BYTES], again[RM_HASH_BYTES];
    hash_of(&r, &split, first);
    hash_of(&r, &split, again);
    cr_assert(!memcmp(first, again, sizeof first));
    hash_of(&r, &whole, again);
    cr_assert(memcmp(first, again, sizeof first), "another algorithm");
    memcpy(first, again, sizeof first);
    hash_of(&r, &other, again);
    cr_assert(memcmp(first, again, sizeof first), "another shape");
    r.blas->version++;
    hash_of(&r, &whole, again);
    cr_assert(memcmp(first, again, sizeof first), "another version");
    rig_close(&r);
}

Test(blas, schemes_with_one_order)
{
    cr_assert(cuda_algorithm_is_exact(CUBLASLT_REDUCTION_SCHEME_NONE));
    cr_assert(cuda_algorithm_is_exact(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
    cr_assert_not(cuda_algorithm_is_exact(CUBLASLT_REDUCTION_SCHEME_INPLACE));
    cr_assert_not(cuda_algorithm_is_exact(CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE));
    cr_assert_not(cuda_algorithm_is_exact(8));
}

Test(blas, where_no_algorithm_is_allowed_that_is_said)
{
    struct rig r;
    struct cuda_product p;
    const struct cuda_product_shape shape = {M, N, K, .workspace = WORKSPACE};
    rig_open(&r, "inplace-only");
    GPU_FAILS(cuda_product_open(&p, r.blas, &shape, &gpu_err),
              LABEL ": cuBLASLt 130002 has no algorithm for a product of 5 x 8 x 7 that gives the same bits "
                    "each time (of 1 "
                    "that it has)");
    rig_close(&r);
}

Test(blas, a_product_is_part_of_a_graph)
{
    struct rig r;
    struct cuda_graph graph;
    struct cuda_product p;
    rig_open(&r, "");
    const struct cuda_product_shape shape = {.m = M, .n = N, .k = K};
    const struct cuda_product_operands places = {r.m.at + AT_A, r.m.at + AT_B, r.m.at + AT_D, 0, 0, 0};
    GPU_OK(cuda_product_open(&p, r.blas, &shape, &gpu_err));
    fill(&r);
    GPU_OK(cuda_graph_begin(&r.s, &gpu_err));
    GPU_OK(cuda_copy_in(&r.s, r.m.at, r.host, MIB, &gpu_err));
    GPU_OK(cuda_product_run(&p, &r.s, &places, &gpu_err));
    GPU_OK(cuda_copy_out(&r.s, r.host + AT_D, r.m.at + AT_D, M * N * sizeof(float), &gpu_err));
    GPU_OK(cuda_graph_end(&graph, &r.s, &gpu_err));
    for (int turn = 1; turn < 4; turn++) {
        number(&r, AT_A)[0] = (float)turn;
        GPU_OK(cuda_graph_launch(&graph, &r.s, &gpu_err));
        GPU_OK(cuda_stream_wait(&r.s, &gpu_err));
        cr_assert_eq(number(&r, AT_D)[3], wanted(&r, &shape, 0, 3));
    }
    cuda_graph_clear(&graph);
    cuda_product_clear(&p);
    rig_close(&r);
}

/* ---- refused ---- */

static void refused(const char *library, const char *script, const char *sentence)
{
    struct gpu g;
    struct cuda_blas *blas;
    setenv("RINGMASTER_CUBLASLT_LIBRARY", library, 1);
    setenv("RINGMASTER_STANDIN_CUBLASLT", script, 1);
    gpu_open(&g, "");
    GPU_FAILS(cuda_blas_open(&blas, g.device, &gpu_err), sentence);
    gpu_close(&g);
}

Test(blas, without_a_library_says_what_to_install)
{
    refused("/nowhere/libcublasLt.so.13", "",
            "no cuBLASLt: /nowhere/libcublasLt.so.13 can't be loaded; install CUDA 13's (libcublas-13-0), "
            "name it "
            "by RINGMASTER_CUBLASLT_LIBRARY, or train with trainer.device: cpu");
}

Test(blas, of_another_version_is_refused)
{
    refused(STANDIN_CUBLASLT, "version=120400",
            STANDIN_CUBLASLT " is cuBLASLt 12.4, and 13 is needed: install libcublas-13-0");
}

Test(blas, a_library_that_is_none_is_refused)
{
    refused(STANDIN_STUB, "", STANDIN_STUB " is no cuBLASLt 13: it lacks cublasLtCreate");
}
