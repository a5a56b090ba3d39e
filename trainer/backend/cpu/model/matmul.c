/* Matrix products: fp32 by oneDNN's sgemm, bf16 by oneDNN's primitives, by our own loops, or widened to fp32,
 * whichever the processor has. Primitives are made once for a shape, on each thread, and kept. */
#include "trainer/backend/cpu/model/matmul.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "trainer/backend/cpu/model/bf16.h"
#include "trainer/backend/cpu/model/isa.h"
#include "trainer/backend/cpu/model/matmul_bf16.h"

static int sgemm(const struct product *p)
{
    return dnnl_sgemm(p->a.transposed ? 'T' : 'N', p->b.transposed ? 'T' : 'N', p->m, p->n, p->k, 1.0f,
                      p->a.data, p->a.stride, p->b.data, p->b.stride, p->add ? 1.0f : 0.0f, p->c,
                      p->c_stride) == dnnl_success
               ? 0
               : -1;
}

/* ---- bf16 where oneDNN has no fast product: widened piece by piece, multiplied in fp32 ---- */

enum { WIDE_M = 64, WIDE_N = 128, WIDE_K = 128 };

/* out (rows, columns) of the stored matrix, dense. */
static void widen(const struct matrix *m, int64_t row, int64_t column, int64_t rows, int64_t columns,
                  float *out)
{
    const uint16_t *from = m->data;
    for (int64_t r = 0; r < rows; r++)
        bf16_widen(out + r * columns, from + (row + r) * m->stride + column, columns);
}

/* The part [row, row + rows) x [column, column + columns) of what is meant, as a matrix of floats in out. */
static struct matrix widened(const struct matrix *m, int64_t row, int64_t column, int64_t rows,
                             int64_t columns, float *out)
{
    if (m->transposed)
        widen(m, column, row, columns, rows, out);
    else
        widen(m, row, column, rows, columns, out);
    return (struct matrix){out, m->transposed ? rows : columns, m->transposed};
}

static int64_t at_most(int64_t left, int64_t most)
{
    return left < most ? left : most;
}

static int widened_block(const struct product *p, int64_t i, int64_t j)
{
    float a[WIDE_M * WIDE_K], b[WIDE_K * WIDE_N];
    int64_t m = at_most(p->m - i, WIDE_M), n = at_most(p->n - j, WIDE_N);
    for (int64_t x = 0; x < p->k; x += WIDE_K) {
        int64_t k = at_most(p->k - x, WIDE_K);
        struct product part = {.m = m,
                               .n = n,
                               .k = k,
                               .a = widened(&p->a, i, x, m, k, a),
                               .b = widened(&p->b, x, j, k, n, b),
                               .c = p->c + i * p->c_stride + j,
                               .c_stride = p->c_stride,
                               .add = p->add || x};
        if (sgemm(&part) < 0)
            return -1;
    }
    return 0;
}

static int widened_product(const struct product *p)
{
    for (int64_t i = 0; i < p->m; i += WIDE_M)
        for (int64_t j = 0; j < p->n; j += WIDE_N)
            if (widened_block(p, i, j) < 0)
                return -1;
    return 0;
}

/* ---- what oneDNN 2 and 3 call differently ---- */

enum { OPERANDS = 3 };

#if DNNL_VERSION_MAJOR >= 3

typedef const_dnnl_memory_desc_t shape_ref;

static shape_ref shape_of(const dnnl_memory_desc_t *shape)
{
    return *shape;
}

static bool shape_init(dnnl_memory_desc_t *ret, const dnnl_dims_t size, dnnl_data_type_t type,
                       const dnnl_dims_t strides)
{
    return dnnl_memory_desc_create_with_strides(ret, 2, size, type, strides) == dnnl_success;
}

static void shape_clear(dnnl_memory_desc_t *shape)
{
    if (*shape)
        dnnl_memory_desc_destroy(*shape);
}

static dnnl_status_t append_sum(dnnl_post_ops_t to)
{
    return dnnl_post_ops_append_sum(to, 1.0f, 0, dnnl_data_type_undef);
}

static dnnl_status_t find_product(dnnl_primitive_desc_t *ret, dnnl_engine_t engine,
                                  const dnnl_memory_desc_t shapes[OPERANDS], dnnl_primitive_attr_t attributes)
{
    return dnnl_matmul_primitive_desc_create(ret, engine, shapes[0], shapes[1], NULL, shapes[2], attributes);
}

#else

typedef const dnnl_memory_desc_t *shape_ref;

static shape_ref shape_of(const dnnl_memory_desc_t *shape)
{
    return shape;
}

static bool shape_init(dnnl_memory_desc_t *ret, const dnnl_dims_t size, dnnl_data_type_t type,
                       const dnnl_dims_t strides)
{
    return dnnl_memory_desc_init_by_strides(ret, 2, size, type, strides) == dnnl_success;
}

static void shape_clear(dnnl_memory_desc_t *shape)
{
    (void)shape;
}

static dnnl_status_t append_sum(dnnl_post_ops_t to)
{
    return dnnl_post_ops_append_sum(to, 1.0f);
}

static dnnl_status_t find_product(dnnl_primitive_desc_t *ret, dnnl_engine_t engine,
                                  const dnnl_memory_desc_t shapes[OPERANDS], dnnl_primitive_attr_t attributes)
{
    dnnl_matmul_desc_t wanted;
    dnnl_status_t status = dnnl_matmul_desc_init(&wanted, &shapes[0], &shapes[1], NULL, &shapes[2]);
    /* Here oneDNN says "unimplemented" of what is no product at all; only the next call says it of speed. */
    if (status != dnnl_success)
        return status == dnnl_unimplemented ? dnnl_invalid_arguments : status;
    return dnnl_primitive_desc_create(ret, &wanted, attributes, engine, NULL);
}

#endif

/* ---- bf16 by oneDNN's primitives: one compiled plan for each shape, kept by each thread ---- */

enum { PLANS = 1024 };

struct plan_key {
    int64_t m, n, k, a_stride, b_stride, c_stride, flags;
};

struct plan {
    struct plan_key key;        /* m 0: empty */
    dnnl_primitive_t primitive; /* NULL: oneDNN has nothing fast for it */
    dnnl_memory_t memory[OPERANDS];
    dnnl_memory_t scratch;
};

/* A thread's own, so that no lock is needed: memory objects carry the addresses of one call. */
struct plans {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    void *scratch;
    size_t scratch_size;
    struct plan plan[PLANS];
};

static _Thread_local struct plans *own_plans;
static pthread_key_t plans_key;
static pthread_once_t plans_once = PTHREAD_ONCE_INIT;
static atomic_bool widen_always;

void matmul_widen_always(bool yes)
{
    atomic_store(&widen_always, yes);
}

/* Where oneDNN would use the same instructions: it stays further from what they can do. */
bool matmul_is_own(void)
{
    return !atomic_load(&widen_always) && dnnl_get_effective_cpu_isa() == dnnl_cpu_isa_avx512_core_bf16 &&
           matmul_bf16_here();
}

static void plan_clear(struct plan *plan)
{
    for (int i = 0; i < OPERANDS; i++)
        if (plan->memory[i])
            dnnl_memory_destroy(plan->memory[i]);
    if (plan->scratch)
        dnnl_memory_destroy(plan->scratch);
    if (plan->primitive)
        dnnl_primitive_destroy(plan->primitive);
    *plan = (struct plan){0};
}

static void plans_free(void *ctx)
{
    struct plans *plans = ctx;
    for (int i = 0; i < PLANS; i++)
        plan_clear(&plans->plan[i]);
    if (plans->stream)
        dnnl_stream_destroy(plans->stream);
    if (plans->engine)
        dnnl_engine_destroy(plans->engine);
    free(plans->scratch);
    free(plans);
}

static void make_plans_key(void)
{
    pthread_key_create(&plans_key, plans_free);
}

static struct plans *plans_of_thread(void)
{
    if (own_plans)
        return own_plans;
    pthread_once(&plans_once, make_plans_key);
    struct plans *plans = calloc(1, sizeof *plans);
    if (!plans)
        return NULL;
    if (dnnl_engine_create(&plans->engine, dnnl_cpu, 0) != dnnl_success ||
        dnnl_stream_create(&plans->stream, plans->engine, dnnl_stream_default_flags) != dnnl_success ||
        pthread_setspecific(plans_key, plans) != 0) {
        plans_free(plans);
        return NULL;
    }
    return own_plans = plans;
}

static struct plan_key key_of(const struct product *p)
{
    return (struct plan_key){.m = p->m,
                             .n = p->n,
                             .k = p->k,
                             .a_stride = p->a.stride,
                             .b_stride = p->b.stride,
                             .c_stride = p->c_stride,
                             .flags = p->a.transposed | p->b.transposed << 1 | p->add << 2};
}

static size_t slot_of(const struct plan_key *key)
{
    const int64_t words[] = {key->m, key->n, key->k, key->a_stride, key->b_stride, key->c_stride, key->flags};
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        hash = (hash ^ (uint64_t)words[i]) * 0x9E3779B97F4A7C15u, hash ^= hash >> 29;
    return hash % PLANS;
}

static bool describe(dnnl_memory_desc_t *ret, int64_t rows, int64_t columns, const struct matrix *m,
                     dnnl_data_type_t type)
{
    const dnnl_dims_t size = {rows, columns};
    const dnnl_dims_t strides = {m->transposed ? 1 : m->stride, m->transposed ? m->stride : 1};
    return shape_init(ret, size, type, strides);
}

static bool make_attributes(dnnl_primitive_attr_t *ret, bool add)
{
    dnnl_post_ops_t sum;
    if (dnnl_primitive_attr_create(ret) != dnnl_success)
        return false;
    if (dnnl_primitive_attr_set_scratchpad_mode(*ret, dnnl_scratchpad_mode_user) == dnnl_success) {
        if (!add)
            return true;
        if (dnnl_post_ops_create(&sum) == dnnl_success) {
            bool done = append_sum(sum) == dnnl_success &&
                        dnnl_primitive_attr_set_post_ops(*ret, sum) == dnnl_success;
            dnnl_post_ops_destroy(sum);
            if (done)
                return true;
        }
    }
    dnnl_primitive_attr_destroy(*ret);
    return false;
}

/* The reference code of oneDNN is slower than going through fp32 by far. */
static bool is_fast(const_dnnl_primitive_desc_t found)
{
    const char *name = NULL;
    return dnnl_primitive_desc_query(found, dnnl_query_impl_info_str, 0, &name) == dnnl_success &&
           strncmp(name, "ref", 3) != 0;
}

static bool take_scratch(struct plans *plans, struct plan *plan, const_dnnl_primitive_desc_t found)
{
    shape_ref wanted = dnnl_primitive_desc_query_md(found, dnnl_query_scratchpad_md, 0);
    size_t size = wanted ? dnnl_memory_desc_get_size(wanted) : 0;
    if (size > plans->scratch_size) {
        free(plans->scratch);
        plans->scratch_size = 0;
        plans->scratch = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
        if (!plans->scratch)
            return false;
        plans->scratch_size = size;
    }
    return !size || dnnl_memory_create(&plan->scratch, wanted, plans->engine, NULL) == dnnl_success;
}

/* Leaves the primitive NULL where oneDNN has nothing fast; false: no memory. The two must not be mixed up,
 * because they would give other bits. */
static bool make_primitive(struct plans *plans, struct plan *plan, const dnnl_memory_desc_t shapes[OPERANDS],
                           bool add)
{
    dnnl_primitive_attr_t attributes;
    dnnl_primitive_desc_t found;
    if (!make_attributes(&attributes, add))
        return false;
    dnnl_status_t status = find_product(&found, plans->engine, shapes, attributes);
    dnnl_primitive_attr_destroy(attributes);
    if (status != dnnl_success)
        return status == dnnl_unimplemented;
    bool made = !is_fast(found) || (take_scratch(plans, plan, found) &&
                                    dnnl_primitive_create(&plan->primitive, found) == dnnl_success);
    dnnl_primitive_desc_destroy(found);
    return made;
}

static int make_plan(struct plans *plans, struct plan *plan, const struct product *p)
{
    dnnl_memory_desc_t shapes[OPERANDS] = {0};
    const struct matrix c = {.stride = p->c_stride};
    plan_clear(plan);
    bool made = describe(&shapes[0], p->m, p->k, &p->a, dnnl_bf16) &&
                describe(&shapes[1], p->k, p->n, &p->b, dnnl_bf16) &&
                describe(&shapes[2], p->m, p->n, &c, dnnl_f32) && make_primitive(plans, plan, shapes, p->add);
    for (int i = 0; made && i < OPERANDS; i++)
        made =
            dnnl_memory_create(&plan->memory[i], shape_of(&shapes[i]), plans->engine, NULL) == dnnl_success;
    for (int i = 0; i < OPERANDS; i++)
        shape_clear(&shapes[i]);
    if (made)
        plan->key = key_of(p);
    else
        plan_clear(plan);
    return made ? 0 : -1;
}

static bool aim(const struct plan *plan, const struct product *p, void *scratch)
{
    return dnnl_memory_set_data_handle(plan->memory[0], (void *)(uintptr_t)p->a.data) == dnnl_success &&
           dnnl_memory_set_data_handle(plan->memory[1], (void *)(uintptr_t)p->b.data) == dnnl_success &&
           dnnl_memory_set_data_handle(plan->memory[2], p->c) == dnnl_success &&
           (!plan->scratch || dnnl_memory_set_data_handle(plan->scratch, scratch) == dnnl_success);
}

static int run_plan(const struct plans *plans, const struct plan *plan, const struct product *p)
{
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, plan->memory[0]},
                                         {DNNL_ARG_WEIGHTS, plan->memory[1]},
                                         {DNNL_ARG_DST, plan->memory[2]},
                                         {DNNL_ARG_SCRATCHPAD, plan->scratch}};
    bool done = aim(plan, p, plans->scratch) &&
                dnnl_primitive_execute(plan->primitive, plans->stream, OPERANDS + (plan->scratch != NULL),
                                       arguments) == dnnl_success;
    return done ? 0 : -1;
}

static int bf16_product(const struct product *p)
{
    if (atomic_load(&widen_always))
        return widened_product(p);
    if (matmul_is_own())
        return matmul_bf16(p);
    const struct plan_key key = key_of(p);
    struct plans *plans = plans_of_thread();
    if (!plans)
        return -1;
    struct plan *plan = &plans->plan[slot_of(&key)];
    if (memcmp(&plan->key, &key, sizeof key) != 0 && make_plan(plans, plan, p) < 0)
        return -1;
    return plan->primitive ? run_plan(plans, plan, p) : widened_product(p);
}

int matmul(const struct product *p)
{
    static _Thread_local bool alone; /* a thread of ours must not start a team of OpenMP's */
    if (!alone) {
        omp_set_num_threads(1);
        alone = true;
    }
    return p->bf16 ? bf16_product(p) : sgemm(p);
}

enum { ISA_ANY = 0 }; /* dnnl_cpu_isa_all in oneDNN 2, dnnl_cpu_isa_default in 3 */

static const struct isa {
    const char *name;
    dnnl_cpu_isa_t isa;
} isas[] = {
    {"Auto", (dnnl_cpu_isa_t)ISA_ANY},
    {"SSE41", dnnl_cpu_isa_sse41},
    {"AVX", dnnl_cpu_isa_avx},
    {"AVX2", dnnl_cpu_isa_avx2},
    {"AVX512_CORE", dnnl_cpu_isa_avx512_core},
    {"AVX512_CORE_BF16", dnnl_cpu_isa_avx512_core_bf16},
    {"AVX512_CORE_AMX", dnnl_cpu_isa_avx512_core_amx},
};

static pthread_mutex_t isa_lock = PTHREAD_MUTEX_INITIALIZER;
static const struct isa *isa_chosen;

static int choose_isa(const struct isa *wanted, struct error *err)
{
    if (isa_chosen == wanted)
        return 0;
    if (isa_chosen)
        return err_set(err, ERR_USAGE, "instruction set %s is asked for, but this process uses %s already",
                       wanted->name, isa_chosen->name);
    if (dnnl_set_max_cpu_isa(wanted->isa) != dnnl_success)
        return err_set(err, ERR_MACHINE, "oneDNN does not take instruction set %s", wanted->name);
    isa_chosen = wanted;
    if (wanted->isa != (dnnl_cpu_isa_t)ISA_ANY && (dnnl_get_effective_cpu_isa() & wanted->isa) != wanted->isa)
        return err_set(err, ERR_USAGE, "trainer.isa is %s, which this CPU does not have", wanted->name);
    return 0;
}

int matmul_use_isa(const char *name, struct error *err)
{
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
        if (strcasecmp(isas[i].name, name) != 0)
            continue;
        pthread_mutex_lock(&isa_lock);
        int rc = choose_isa(&isas[i], err);
        pthread_mutex_unlock(&isa_lock);
        return rc;
    }
    return err_set(err, ERR_USAGE,
                   "trainer.isa %s is not known: Auto, SSE41, AVX, AVX2, AVX512_CORE, AVX512_CORE_BF16 or "
                   "AVX512_CORE_AMX",
                   name);
}

const char *matmul_isa(void)
{
    switch ((int)dnnl_get_effective_cpu_isa()) {
    case dnnl_cpu_isa_sse41:
        return "sse41";
    case dnnl_cpu_isa_avx:
        return "avx";
    case dnnl_cpu_isa_avx2:
        return "avx2";
    case dnnl_cpu_isa_avx2_vnni:
        return "avx2_vnni";
    case dnnl_cpu_isa_avx512_core:
        return "avx512_core";
    case dnnl_cpu_isa_avx512_core_vnni:
        return "avx512_core_vnni";
    case dnnl_cpu_isa_avx512_core_bf16:
        return "avx512_core_bf16";
    case dnnl_cpu_isa_avx512_core_amx:
        return "avx512_core_amx";
#if DNNL_VERSION_MAJOR >= 3
    case dnnl_cpu_isa_avx2_vnni_2:
        return "avx2_vnni_2";
    case dnnl_cpu_isa_avx512_core_fp16:
        return "avx512_core_fp16";
    case dnnl_cpu_isa_avx512_core_amx_fp16:
        return "avx512_core_amx_fp16";
#endif
    default:
        return "baseline";
    }
}

const char *matmul_library(void)
{
    static char text[32];
    const dnnl_version_t *v = dnnl_version();
    pthread_mutex_lock(&isa_lock);
    snprintf(text, sizeof text, "oneDNN %d.%d.%d", v->major, v->minor, v->patch);
    pthread_mutex_unlock(&isa_lock);
    return text;
}
