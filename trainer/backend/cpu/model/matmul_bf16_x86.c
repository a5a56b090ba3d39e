/* Products of matrices in bf16 by AVX-512's dot products (vdpbf16ps): operands packed into panels that stay
 * in the caches, sums in fp32 in one order for any number of threads. */
#include "trainer/backend/cpu/model/matmul_bf16.h"

#include <immintrin.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The product is cut so that what the innermost loop reads again and again lies in the nearest cache:
 *
 *   DEEP of the inner size at a time, WIDE columns of b: these are packed, DEEP x WIDE (second-level cache);
 *   STRIP rows of a: used where they lie, or packed where pairs along k are not neighbours there;
 *   PANEL columns (first-level cache) by ROWS rows: the sums of these are 24 of the 32 registers.
 *
 * Packed is: words of two bf16 neighbours along k, sixteen rows (of a) or columns (of b) side by side. What
 * lies outside of the matrix is packed as 0. */
enum { ROWS = 8, LANES = 16, VECTORS = 3, PANEL = VECTORS * LANES };
enum { DEEP = 384, WIDE = 768, STRIP = 128, PAIRS = DEEP / 2, PAD = LANES, AHEAD = 16 };

#define WITH_BF16 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")))
#define INLINE    static inline __attribute__((always_inline)) WITH_BF16

struct workspace {
    _Alignas(64) uint32_t b[PAIRS * WIDE + WIDE / LANES * PAD];
    _Alignas(64) uint32_t a[PAIRS * STRIP + STRIP / LANES * PAD];
    _Alignas(64) float edge[ROWS * PANEL]; /* a block of c that reaches over its border */
};

static _Thread_local struct workspace *own_workspace;
static pthread_key_t workspace_key;
static pthread_once_t workspace_once = PTHREAD_ONCE_INIT;

static void make_workspace_key(void)
{
    pthread_key_create(&workspace_key, free);
}

static struct workspace *workspace_of_thread(void)
{
    if (own_workspace)
        return own_workspace;
    pthread_once(&workspace_once, make_workspace_key);
    struct workspace *w = aligned_alloc(64, sizeof *w);
    if (w && pthread_setspecific(workspace_key, w) != 0) {
        free(w);
        return NULL;
    }
    return own_workspace = w;
}

bool matmul_bf16_here(void)
{
    return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

static int64_t at_most(int64_t left, int64_t most)
{
    return left < most ? left : most;
}

/* ---- packing ---- */

/* An operand as the packing sees it: element (lane, k), lanes being rows of a or columns of b. */
struct source {
    const uint16_t *data;
    int64_t stride;
    bool pairs_lie_together; /* a step along k is one element, else a step along the lanes */
};

/* Where sixteen lanes go: words[pair * step + lane]. */
struct group {
    uint32_t *words;
    int64_t step;
    int lanes; /* that exist */
};

enum { GROUPS_MAX = WIDE / LANES };

/* All the lanes that are packed at once. */
struct packing {
    const struct source *from;
    int64_t lane, k, deep; /* the first lane; the part of the inner size */
    int groups;
    struct group group[GROUPS_MAX];
};

/* Turns 16 rows of 16 words each into their columns. */
INLINE void transpose(__m512i w[LANES])
{
    __m512i t[LANES];
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i += 2) {
        t[i] = _mm512_unpacklo_epi32(w[i], w[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(w[i], w[i + 1]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i += 4) {
        w[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        w[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        w[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        w[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 4; i++) {
        t[i] = _mm512_shuffle_i32x4(w[i], w[i + 4], 0x88);
        t[i + 4] = _mm512_shuffle_i32x4(w[i], w[i + 4], 0xdd);
        t[i + 8] = _mm512_shuffle_i32x4(w[i + 8], w[i + 12], 0x88);
        t[i + 12] = _mm512_shuffle_i32x4(w[i + 8], w[i + 12], 0xdd);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 8; i++) {
        w[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
        w[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
    }
}

/* Pairs lie together in a lane's row: 16 lanes x 16 pairs at a time. */
WITH_BF16 static void pack_rows(const struct packing *p, const struct group *g, int64_t lane)
{
    const uint16_t *row = p->from->data + lane * p->from->stride + p->k;
    for (int64_t k = 0; k < p->deep; k += 2 * LANES) {
        int64_t left = at_most(p->deep - k, 2 * LANES);
        const __mmask32 mask = (__mmask32)(0xFFFFFFFFu >> (2 * LANES - left));
        __m512i w[LANES];
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++) {
            _mm_prefetch(row + i * p->from->stride + k + 4 * LANES, _MM_HINT_T0);
            w[i] = i < g->lanes ? _mm512_maskz_loadu_epi16(mask, row + i * p->from->stride + k)
                                : _mm512_setzero_si512();
        }
        transpose(w);
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++)
            if (2 * i < left)
                _mm512_storeu_si512(g->words + (k / 2 + i) * g->step, w[i]);
    }
}

/* Lanes lie together: two rows become one of pairs. Row by row, because a row is a page of its own. */
WITH_BF16 static void pack_columns(const struct packing *p)
{
    int64_t stride = p->from->stride;
    for (int64_t k = 0; k < p->deep; k += 2) {
        const uint16_t *row = p->from->data + (p->k + k) * stride + p->lane;
        const __mmask16 has_high = k + 1 < p->deep ? 0xFFFF : 0;
        for (int i = 0; i < p->groups; i++, row += LANES) {
            const struct group *g = &p->group[i];
            const __mmask16 mask = (__mmask16)(0xFFFFu >> (LANES - g->lanes));
            _mm_prefetch(row + AHEAD * stride, _MM_HINT_T0);
            _mm_prefetch(row + (AHEAD + 1) * stride, _MM_HINT_T0);
            __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, row));
            __m512i high = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask & has_high, row + stride));
            _mm512_storeu_si512(g->words + k / 2 * g->step,
                                _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
        }
    }
}

static void pack(const struct packing *p)
{
    if (!p->from->pairs_lie_together) {
        pack_columns(p);
        return;
    }
    for (int i = 0; i < p->groups; i++)
        pack_rows(p, &p->group[i], p->lane + i * LANES);
}

/* ---- the innermost loop ---- */

/* c (ROWS, 16 * vectors) = or += a b over some pairs of k. */
struct block {
    int64_t pairs;
    const char *a; /* the word of row r and pair p lies at r * row_step + p * pair_step (bytes) */
    int64_t row_step;
    const uint32_t *b; /* (pairs, 16 * vectors) */
    float *c;
    int64_t c_stride;
    bool add;
};

INLINE void multiply(const struct block *m, int vectors, int64_t pair_step)
{
    __m512 sum[ROWS][VECTORS];
    const char *row[ROWS];
    const uint32_t *b = m->b;
#pragma GCC unroll 8
    for (int r = 0; r < ROWS; r++) {
        row[r] = m->a + r * m->row_step;
#pragma GCC unroll 3
        for (int v = 0; v < vectors; v++)
            sum[r][v] = m->add ? _mm512_loadu_ps(m->c + r * m->c_stride + v * LANES) : _mm512_setzero_ps();
    }
    for (int64_t pair = 0; pair < m->pairs; pair++, b += vectors * LANES) {
        __m512bh columns[VECTORS];
#pragma GCC unroll 3
        for (int v = 0; v < vectors; v++)
            columns[v] = (__m512bh)_mm512_loadu_si512(b + v * LANES);
#pragma GCC unroll 8
        for (int r = 0; r < ROWS; r++) {
            int32_t word;
            memcpy(&word, row[r] + pair * pair_step, sizeof word);
            const __m512bh x = (__m512bh)_mm512_set1_epi32(word);
#pragma GCC unroll 3
            for (int v = 0; v < vectors; v++)
                sum[r][v] = _mm512_dpbf16_ps(sum[r][v], x, columns[v]);
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < ROWS; r++) {
#pragma GCC unroll 3
        for (int v = 0; v < vectors; v++)
            _mm512_storeu_ps(m->c + r * m->c_stride + v * LANES, sum[r][v]);
    }
}

enum { IN_PLACE_STEP = sizeof(uint32_t), PACKED_STEP = LANES * sizeof(uint32_t) };

WITH_BF16 static void multiply_in_place(const struct block *m, int vectors)
{
    if (vectors == 3)
        multiply(m, 3, IN_PLACE_STEP);
    else if (vectors == 2)
        multiply(m, 2, IN_PLACE_STEP);
    else
        multiply(m, 1, IN_PLACE_STEP);
}

WITH_BF16 static void multiply_packed(const struct block *m, int vectors)
{
    if (vectors == 3)
        multiply(m, 3, PACKED_STEP);
    else if (vectors == 2)
        multiply(m, 2, PACKED_STEP);
    else
        multiply(m, 1, PACKED_STEP);
}

/* ---- the loops around it ---- */

struct work {
    const struct product *p;
    struct workspace *w;
    struct source a, b;
    int64_t k, deep;      /* the part of the inner size under way */
    int64_t column, wide; /* the packed columns */
    bool add;
};

/* Columns of the next panel where `left` remain: an even split of the last 64 is quicker than 48 + 16. */
static int vectors_of(int64_t left)
{
    int64_t vectors = (left + LANES - 1) / LANES;
    return vectors == 4 ? 2 : (int)at_most(vectors, VECTORS);
}

static int64_t pairs_of(const struct work *work)
{
    return (work->deep + 1) / 2;
}

/* Words from one packed group of rows of a to the next. */
static int64_t group_of(const struct work *work)
{
    return pairs_of(work) * LANES + PAD;
}

static void pack_b(const struct work *work)
{
    struct packing packing = {.from = &work->b, .lane = work->column, .k = work->k, .deep = work->deep};
    uint32_t *words = work->w->b;
    for (int64_t j = 0; j < work->wide;) {
        int vectors = vectors_of(work->wide - j);
        for (int v = 0; v < vectors; v++, j += LANES)
            packing.group[packing.groups++] =
                (struct group){words + v * LANES, vectors * LANES, (int)at_most(work->wide - j, LANES)};
        words += pairs_of(work) * vectors * LANES + PAD;
    }
    pack(&packing);
}

static void pack_a(const struct work *work, int64_t row, int64_t rows)
{
    struct packing packing = {.from = &work->a, .lane = row, .k = work->k, .deep = work->deep};
    for (int64_t i = 0; i < rows; i += LANES)
        packing.group[packing.groups++] =
            (struct group){work->w->a + i / LANES * group_of(work), LANES, (int)at_most(rows - i, LANES)};
    pack(&packing);
}

static void copy_block(float *to, int64_t to_stride, const float *from, int64_t from_stride, int64_t rows,
                       int64_t columns)
{
    for (int64_t r = 0; r < rows; r++)
        memcpy(to + r * to_stride, from + r * from_stride, (size_t)columns * sizeof *to);
}

/* One panel of packed columns, and whether the rows are packed, too. */
struct panel {
    const uint32_t *b;
    int64_t column, columns; /* that exist */
    int vectors;
    bool packed;
};

static void multiply_block(const struct panel *panel, const struct block *m)
{
    if (panel->packed)
        multiply_packed(m, panel->vectors);
    else
        multiply_in_place(m, panel->vectors);
}

/* A block whose last rows or columns do not exist: computed beside c. */
static void multiply_edge(const struct work *work, const struct panel *panel, const struct block *m,
                          int64_t rows)
{
    struct block beside = *m;
    beside.c = work->w->edge;
    beside.c_stride = PANEL;
    if (m->add)
        copy_block(beside.c, PANEL, m->c, m->c_stride, rows, panel->columns);
    multiply_block(panel, &beside);
    copy_block(m->c, m->c_stride, beside.c, PANEL, rows, panel->columns);
}

/* Asks for what is far away: the c of the next block, and this block's share of the a of the next strip. */
static void fetch_ahead(const struct work *work, const struct panel *panel, const struct block *m,
                        int64_t row)
{
    const float *c = m->c + ROWS * m->c_stride;
    for (int r = 0; r < ROWS; r++, c += m->c_stride)
        for (int v = 0; v < panel->vectors; v++)
            __builtin_prefetch(c + v * LANES, 1);
    if (panel->packed)
        return;
    int64_t next = row + STRIP, k = work->k;
    if (next >= work->p->m) {
        next = row % STRIP;
        k += work->deep;
    }
    int64_t bytes = work->deep * (int64_t)sizeof(uint16_t), first = panel->column - work->column;
    int64_t from = bytes * first / work->wide, to = bytes * (first + panel->columns) / work->wide;
    const char *a = (const char *)(work->a.data + next * work->a.stride + k);
    for (int r = 0; r < ROWS; r++, a += m->row_step)
        for (int64_t at = from; at < to; at += 64)
            __builtin_prefetch(a + at, 0, 2);
}

/* Rows [row, row + rows) of a by the panel. */
static void multiply_panel(const struct work *work, const struct panel *panel, int64_t row, int64_t rows)
{
    const struct product *p = work->p;
    bool whole = panel->columns == panel->vectors * LANES;
    struct block m = {.pairs = pairs_of(work), .b = panel->b, .c_stride = p->c_stride, .add = work->add};
    m.row_step = (int64_t)(panel->packed ? sizeof(uint32_t) : work->a.stride * sizeof(uint16_t));
    for (int64_t i = 0; i < rows; i += ROWS) {
        m.c = p->c + (row + i) * p->c_stride + panel->column;
        if (panel->packed)
            m.a = (const char *)(work->w->a + i / LANES * group_of(work) + i % LANES);
        else
            m.a = (const char *)(work->a.data + (row + i) * work->a.stride + work->k);
        fetch_ahead(work, panel, &m, row + i);
        if (whole && rows - i >= ROWS)
            multiply_block(panel, &m);
        else
            multiply_edge(work, panel, &m, at_most(rows - i, ROWS));
    }
}

static void multiply_strip(const struct work *work, int64_t row, int64_t rows)
{
    bool packed = !work->a.pairs_lie_together || rows % ROWS || work->deep % 2;
    struct panel panel = {.b = work->w->b, .packed = packed};
    if (packed)
        pack_a(work, row, rows);
    for (int64_t j = 0; j < work->wide; j += panel.vectors * LANES) {
        panel.vectors = vectors_of(work->wide - j);
        panel.column = work->column + j;
        panel.columns = at_most(work->wide - j, panel.vectors * LANES);
        multiply_panel(work, &panel, row, rows);
        panel.b += pairs_of(work) * panel.vectors * LANES + PAD;
    }
}

/* The largest part of the inner size: equal ones, each an even number. */
static int64_t deep_of(int64_t k)
{
    int64_t parts = (k + DEEP - 1) / DEEP;
    return ((k + parts - 1) / parts + 1) / 2 * 2;
}

int matmul_bf16(const struct product *p)
{
    struct work work = {.p = p,
                        .w = workspace_of_thread(),
                        .a = {p->a.data, p->a.stride, !p->a.transposed},
                        .b = {p->b.data, p->b.stride, p->b.transposed}};
    if (!work.w)
        return -1;
    int64_t deep = deep_of(p->k);
    for (work.column = 0; work.column < p->n; work.column += WIDE) {
        work.wide = at_most(p->n - work.column, WIDE);
        for (work.k = 0; work.k < p->k; work.k += deep) {
            work.deep = at_most(p->k - work.k, deep);
            work.add = p->add || work.k;
            pack_b(&work);
            for (int64_t row = 0; row < p->m; row += STRIP)
                multiply_strip(&work, row, at_most(p->m - row, STRIP));
        }
    }
    return 0;
}
