#include "trainer/model/matmul.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include <pthread.h>
#include <stdio.h>
#include <strings.h>

/* A tile's operands stay in the cache of one core (128 rows and 384 columns of the inner sizes of GPT-2), and
 * a tile is big enough to pay for its call. Measured: within 3 % of the uncut product. */
enum {
    TILE_ROWS = 128,
    TILE_COLUMNS = 384,
    TILE_SIDE_MIN = 32,
    TILES_WANTED = 8,
};
static const double tile_work_min = 1e6, tile_work_max = 256e6; /* multiply-adds */

int matmul(const struct product *p)
{
    static _Thread_local bool alone; /* a thread of ours must not start a team of OpenMP's */
    if (!alone) {
        omp_set_num_threads(1);
        alone = true;
    }
    return dnnl_sgemm(p->a.transposed ? 'T' : 'N', p->b.transposed ? 'T' : 'N', p->m, p->n, p->k, 1.0f,
                      p->a.data, p->a.stride, p->b.data, p->b.stride, p->add ? 1.0f : 0.0f, p->c,
                      p->c_stride) == dnnl_success
               ? 0
               : -1;
}

static int64_t count_of(int64_t total, int64_t size)
{
    return (total + size - 1) / size;
}

static void halve_larger_side(struct tiling *t)
{
    if (t->columns >= 2 * t->rows)
        t->columns = (t->columns / 2 + 15) / 16 * 16;
    else
        t->rows = (t->rows / 2 + 15) / 16 * 16;
}

struct tiling matmul_tiling(const struct product *p)
{
    struct tiling t = {.rows = p->m < TILE_ROWS ? p->m : TILE_ROWS,
                       .columns = p->n < TILE_COLUMNS ? p->n : TILE_COLUMNS};
    for (;;) {
        double work = (double)t.rows * (double)t.columns * (double)p->k;
        int64_t tiles = count_of(p->m, t.rows) * count_of(p->n, t.columns);
        bool small = t.rows < 2 * TILE_SIDE_MIN && t.columns < 2 * TILE_SIDE_MIN;
        bool fits = work <= tile_work_max && (tiles >= TILES_WANTED || work < 2 * tile_work_min);
        if (small || fits)
            break;
        halve_larger_side(&t);
    }
    t.across = (int)count_of(p->n, t.columns);
    t.tiles = (int)count_of(p->m, t.rows) * t.across;
    return t;
}

static const float *moved(const struct matrix *m, int64_t row, int64_t column)
{
    return m->transposed ? m->data + column * m->stride + row : m->data + row * m->stride + column;
}

struct product matmul_tile(const struct product *p, const struct tiling *t, int i, int64_t *ret_row,
                           int64_t *ret_column)
{
    int64_t row = i / t->across * t->rows, column = i % t->across * t->columns;
    struct product tile = *p;
    tile.m = p->m - row < t->rows ? p->m - row : t->rows;
    tile.n = p->n - column < t->columns ? p->n - column : t->columns;
    tile.a.data = moved(&p->a, row, 0);
    tile.b.data = moved(&p->b, 0, column);
    tile.c = p->c + row * p->c_stride + column;
    *ret_row = row;
    *ret_column = column;
    return tile;
}

static const struct isa {
    const char *name;
    dnnl_cpu_isa_t isa;
} isas[] = {
    {"Auto", dnnl_cpu_isa_all},
    {"SSE41", dnnl_cpu_isa_sse41},
    {"AVX", dnnl_cpu_isa_avx},
    {"AVX2", dnnl_cpu_isa_avx2},
    {"AVX512_CORE", dnnl_cpu_isa_avx512_core},
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
    if (wanted->isa != dnnl_cpu_isa_all && (dnnl_get_effective_cpu_isa() & wanted->isa) != wanted->isa)
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
    return err_set(err, ERR_USAGE, "trainer.isa %s is not known: Auto, SSE41, AVX, AVX2 or AVX512_CORE",
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
