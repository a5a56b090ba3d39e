/* A library that may not be there: its calls by name, a product's description, and the choice of its
 * algorithm. */
#include "trainer/backend/cuda/driver/cublaslt.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/str.h"
#include "common/os/config.h"
#include "common/os/crypto.h"
#include "trainer/backend/cuda/driver/algorithms.h"

#define LIBRARY "libcublasLt.so.13"

enum { PROPOSED = 16, MAJOR_SHIFT = 10000, MAJOR = 13, MINOR_SHIFT = 100 };

#define ENTRY(name, arguments) {#name, offsetof(struct cublaslt_calls, name)},
static const struct {
    const char *name;
    size_t at;
} entries[] = {
    CUBLASLT_CALLS(ENTRY){"cublasLtGetVersion", offsetof(struct cublaslt_calls, cublasLtGetVersion)}};

static int failed(const struct cuda_blas *blas, cublasStatus_t status, const char *doing, struct error *err)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return 0;
    err_set(err, ERR_MACHINE, "%s: cuBLASLt failed to %s: status %d", blas->device->label, doing,
            (int)status);
    return err_class(err, status == CUBLAS_STATUS_INVALID_VALUE ? CLASS_SOFTWARE : CLASS_MACHINE);
}

/* ---- the library ---- */

static int load(struct cuda_blas *blas, void **ret, struct error *err)
{
    const char *named = config_get(CONFIG_CUBLASLT_LIBRARY);
    text_copy(blas->path, sizeof blas->path, named ? named : LIBRARY);
    *ret = dlopen(blas->path, RTLD_NOW | RTLD_LOCAL);
    if (*ret)
        return 0;
    err_set(err, ERR_MACHINE,
            "no cuBLASLt: %s can't be loaded; install CUDA 13's (libcublas-13-0), name it by "
            "RINGMASTER_CUBLASLT_LIBRARY, or train with trainer.device: cpu",
            blas->path);
    err_class(err, CLASS_MACHINE);
    return named ? err_person(err) : -1;
}

static int find_calls(struct cuda_blas *blas, void *library, struct error *err)
{
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        void *found = dlsym(library, entries[i].name);
        if (!found) {
            err_set(err, ERR_MACHINE, "%s is no cuBLASLt 13: it lacks %s", blas->path, entries[i].name);
            return err_class(err, CLASS_MACHINE);
        }
        *(void **)((char *)&blas->calls + entries[i].at) = found;
    }
    blas->version = (int)blas->calls.cublasLtGetVersion();
    if (blas->version / MAJOR_SHIFT == MAJOR)
        return 0;
    err_set(err, ERR_MACHINE, "%s is cuBLASLt %d.%d, and 13 is needed: install libcublas-13-0", blas->path,
            blas->version / MAJOR_SHIFT, blas->version % MAJOR_SHIFT / MINOR_SHIFT);
    return err_class(err, CLASS_MACHINE);
}

int cuda_blas_open(struct cuda_blas **ret, struct cuda_device *device, struct error *err)
{
    void *library = NULL;
    struct cuda_blas *blas = calloc(1, sizeof *blas);
    if (!blas)
        return err_set(err, ERR_MACHINE, "no memory");
    blas->device = device;
    blas->table = cuda_algorithms_built_in();
    if (load(blas, &library, err) < 0 || find_calls(blas, library, err) < 0 ||
        failed(blas, blas->calls.cublasLtCreate(&blas->handle), "start", err) < 0) {
        free(blas);
        return -1;
    }
    *ret = blas;
    return 0;
}

void cuda_blas_free(struct cuda_blas *blas)
{
    if (blas)
        blas->calls.cublasLtDestroy(blas->handle);
    free(blas);
}

/* ---- a product ---- */

bool cuda_algorithm_is_exact(uint32_t scheme)
{
    return scheme == CUBLASLT_REDUCTION_SCHEME_NONE || scheme == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
}

static int set(struct cuda_product *p, cublasLtMatmulDescAttributes_t which, const void *from, size_t bytes,
               struct error *err)
{
    return failed(p->blas, p->blas->calls.cublasLtMatmulDescSetAttribute(p->desc, which, from, bytes),
                  "describe a product", err);
}

/* Ours and the library's, whose a is our b. */
static int describe(struct cuda_product *p, struct error *err)
{
    static const uint32_t epilogues[CUDA_EPILOGUES] = {
        [CUDA_PLAIN] = CUBLASLT_EPILOGUE_DEFAULT,           [CUDA_BIAS] = CUBLASLT_EPILOGUE_BIAS,
        [CUDA_BIAS_GELU] = CUBLASLT_EPILOGUE_GELU_AUX_BIAS, [CUDA_GELU_SLOPE] = CUBLASLT_EPILOGUE_DGELU,
        [CUDA_BIAS_GRADIENT] = CUBLASLT_EPILOGUE_BGRADA,
    };
    const struct cuda_product_shape *s = &p->shape;
    const int32_t turn_a = s->b_turned ? CUBLAS_OP_T : CUBLAS_OP_N,
                  turn_b = s->a_turned ? CUBLAS_OP_T : CUBLAS_OP_N;
    const int32_t processors = p->blas->device->processors;
    const int64_t leading = s->n;
    if (failed(p->blas, p->blas->calls.cublasLtMatmulDescCreate(&p->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F),
               "describe a product", err) < 0)
        return -1;
    if (set(p, CUBLASLT_MATMUL_DESC_TRANSA, &turn_a, sizeof turn_a, err) < 0 ||
        set(p, CUBLASLT_MATMUL_DESC_TRANSB, &turn_b, sizeof turn_b, err) < 0 ||
        set(p, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogues[s->epilogue], sizeof *epilogues, err) < 0 ||
        set(p, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, &processors, sizeof processors, err) < 0)
        return -1;
    if (s->epilogue == CUDA_BIAS_GELU || s->epilogue == CUDA_GELU_SLOPE)
        return set(p, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &leading, sizeof leading, err);
    return 0;
}

/* A row-major (rows, columns) as the library sees it: columns become rows. */
static int lay_out(struct cuda_product *p, cublasLtMatrixLayout_t *ret, bool half, int rows, int columns,
                   struct error *err)
{
    return failed(p->blas,
                  p->blas->calls.cublasLtMatrixLayoutCreate(ret, half ? CUDA_R_16BF : CUDA_R_32F,
                                                            (uint64_t)columns, (uint64_t)rows, columns),
                  "describe a matrix", err);
}

static int lay_out_all(struct cuda_product *p, struct error *err)
{
    const struct cuda_product_shape *s = &p->shape;
    if (lay_out(p, &p->a, s->half, s->a_turned ? s->k : s->m, s->a_turned ? s->m : s->k, err) < 0 ||
        lay_out(p, &p->b, s->half, s->b_turned ? s->n : s->k, s->b_turned ? s->k : s->n, err) < 0)
        return -1;
    return lay_out(p, &p->d, s->d_half, s->m, s->n, err);
}

/* What the library proposes, in its order; -1 where it can't. */
static int proposals(struct cuda_product *p, cublasLtMatmulHeuristicResult_t result[PROPOSED],
                     struct error *err)
{
    const struct cublaslt_calls *lt = &p->blas->calls;
    const uint64_t most = p->shape.workspace;
    const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    cublasLtMatmulPreference_t wish = NULL;
    int found = 0;
    if (failed(p->blas, lt->cublasLtMatmulPreferenceCreate(&wish), "choose an algorithm", err) < 0)
        return -1;
    cublasStatus_t status = lt->cublasLtMatmulPreferenceSetAttribute(
        wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = lt->cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                                          &schemes, sizeof schemes);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = lt->cublasLtMatmulAlgoGetHeuristic(p->blas->handle, p->desc, p->b, p->a, p->d, p->d, wish,
                                                    PROPOSED, result, &found);
    lt->cublasLtMatmulPreferenceDestroy(wish);
    return failed(p->blas, status, "choose an algorithm", err) < 0 ? -1 : found;
}

/* A mask may be taken for a wish: each one's scheme is looked at as well. */
static bool is_allowed(const struct cuda_product *p, const cublasLtMatmulHeuristicResult_t *r)
{
    uint32_t scheme = 0;
    size_t written = 0;
    return r->state == CUBLAS_STATUS_SUCCESS && r->workspaceSize <= p->shape.workspace &&
           p->blas->calls.cublasLtMatmulAlgoConfigGetAttribute(
               &r->algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &scheme, sizeof scheme, &written) ==
               CUBLAS_STATUS_SUCCESS &&
           cuda_algorithm_is_exact(scheme);
}

/* The table's, where it has one that this library takes for this product. */
static bool choose_from_table(struct cuda_product *p)
{
    const struct cuda_device *device = p->blas->device;
    const struct cuda_algorithm_kind kind = {10 * device->major + device->minor, device->processors,
                                             p->blas->version};
    const cublasLtMatmulAlgo_t *known = cuda_algorithm_find(p->blas->table, &kind, &p->shape);
    cublasLtMatmulHeuristicResult_t result = {.algo = {{0}}};
    if (!known || p->blas->calls.cublasLtMatmulAlgoCheck(p->blas->handle, p->desc, p->b, p->a, p->d, p->d,
                                                         known, &result) != CUBLAS_STATUS_SUCCESS)
        return false;
    result.algo = *known;
    if (!is_allowed(p, &result))
        return false;
    p->algorithm = *known;
    return true;
}

static int choose(struct cuda_product *p, struct error *err)
{
    cublasLtMatmulHeuristicResult_t result[PROPOSED];
    const struct cuda_product_shape *s = &p->shape;
    if (choose_from_table(p))
        return 0;
    int found = proposals(p, result, err);
    if (found < 0)
        return -1;
    for (int i = 0; i < found; i++)
        if (is_allowed(p, &result[i])) {
            p->algorithm = result[i].algo;
            return 0;
        }
    err_set(err, ERR_MACHINE,
            "%s: cuBLASLt %d has no algorithm for a product of %d x %d x %d that gives the same bits each "
            "time (of %d that "
            "it has)",
            p->blas->device->label, p->blas->version, s->m, s->n, s->k, found);
    return err_class(err, CLASS_MACHINE);
}

int cuda_product_open(struct cuda_product *p, struct cuda_blas *blas, const struct cuda_product_shape *shape,
                      struct error *err)
{
    *p = (struct cuda_product){.blas = blas, .shape = *shape};
    if (describe(p, err) < 0 || lay_out_all(p, err) < 0 || choose(p, err) < 0) {
        cuda_product_clear(p);
        return -1;
    }
    return 0;
}

void cuda_product_clear(struct cuda_product *p)
{
    cublasLtMatrixLayout_t layouts[] = {p->a, p->b, p->d};
    for (int i = 0; i < 3; i++)
        if (layouts[i])
            p->blas->calls.cublasLtMatrixLayoutDestroy(layouts[i]);
    if (p->desc)
        p->blas->calls.cublasLtMatmulDescDestroy(p->desc);
    memset(p, 0, sizeof *p);
}

void cuda_products_hash(const struct cuda_product *products, int count, uint8_t out[RM_HASH_BYTES])
{
    struct sha256 *h = sha256_open();
    for (int i = 0; i < count; i++) {
        const struct cuda_product *p = &products[i];
        const struct cuda_product_shape *s = &p->shape;
        const int32_t said[] = {p->blas->version, s->m,    s->n,      s->k,   s->a_turned,
                                s->b_turned,      s->half, s->d_half, s->add, (int32_t)s->epilogue};
        sha256_add(h, said, sizeof said);
        sha256_add(h, &p->algorithm, sizeof p->algorithm);
    }
    sha256_finish(h, out);
}

int cuda_product_run(struct cuda_product *p, struct cuda_stream *s, const struct cuda_product_operands *at,
                     struct error *err)
{
    const float one = 1, beta = p->shape.add ? 1 : 0;
    void *bias = (void *)(uintptr_t)at->bias, *aux = (void *)(uintptr_t)at->aux,
         *d = (void *)(uintptr_t)at->d;
    if (bias && set(p, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias, err) < 0)
        return -1;
    if (aux && set(p, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &aux, sizeof aux, err) < 0)
        return -1;
    cublasStatus_t status = p->blas->calls.cublasLtMatmul(
        p->blas->handle, p->desc, &one, (const void *)(uintptr_t)at->b, p->b, (const void *)(uintptr_t)at->a,
        p->a, &beta, d, p->d, d, p->d, &p->algorithm, (void *)(uintptr_t)at->workspace, p->shape.workspace,
        s->handle);
    return failed(p->blas, status, "start a product", err);
}
