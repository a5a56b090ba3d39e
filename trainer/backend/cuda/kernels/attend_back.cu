#include "trainer/backend/cuda/kernels/attend.h"

#include "trainer/backend/cuda/kernels/attend_parts.cu"

typedef float attend_sixteen[2][4]; /* columns of sixteen rows: this thread's part */

/* Scores to probabilities: e^(s scale - log_sum), as a power of two. */
DEVICE float attend_chance(float s, float exponent, float log_sum)
{
    return two_to(fused(s, exponent, log_sum * -ATTEND_LOG2E));
}

/* ---- dq, and mixed * dmixed ---- */

struct attend_queries_own {
    uint32_t q[ATTEND_PARTS_MOST][ATTEND_DEEP][4], d[ATTEND_PARTS_MOST][ATTEND_DEEP][4];
    float dq[ATTEND_PARTS_MOST][ATTEND_ACROSS][4];
    float log_sum[ATTEND_PARTS_MOST][2], drift[ATTEND_PARTS_MOST][2]; /* of this thread's rows */
    int32_t first;                                                    /* of this warp's queries */
};

/* Sixteen keys from `step` of the tile on, which begins at key `first`. */
DEVICE void attend_queries_step(const uint32_t *pair, struct attend_queries_own *own, int32_t first, int step,
                                float exponent, int width, int parts)
{
    const int32_t ahead = first + step + THREAD % 4 * 2 - own->first - THREAD % WARP / 4;
    const int edge = first + step + ATTEND_STEP - 1 > own->first;
    attend_sixteen s[ATTEND_PARTS_MOST], d[ATTEND_PARTS_MOST];
    uint32_t part[ATTEND_PARTS_MOST][4];
    UNROLL
    for (int m = 0; m < parts; m++) {
        UNROLL
        for (int i = 0; i < 8; i++) {
            s[m][i / 4][i % 4] = 0;
            d[m][i / 4][i % 4] = -own->drift[m][i % 4 / 2];
        }
    }
    attend_scores(s, own->q, pair, step, width, parts);
    attend_scores(d, own->d, pair + ATTEND_TILE(width), step, width, parts);
    if (edge) {
        UNROLL
        for (int m = 0; m < parts; m++) {
            UNROLL
            for (int i = 0; i < 8; i++)
                if (ahead + i / 4 * 8 + i % 2 > 16 * m + i % 4 / 2 * 8)
                    s[m][i / 4][i % 4] = ATTEND_NOTHING;
        }
    }
    UNROLL
    for (int m = 0; m < parts; m++) {
        UNROLL
        for (int i = 0; i < 8; i++)
            s[m][i / 4][i % 4] =
                attend_chance(s[m][i / 4][i % 4], exponent, own->log_sum[m][i % 4 / 2]) * d[m][i / 4][i % 4];
        attend_again(part[m], s[m]);
    }
    attend_spread(own->dq, part, pair, step, width, parts);
}

/* What two neighbours of two rows have, added up. */
DEVICE float attend_both(float sum, uint32_t x, uint32_t y)
{
    sum = fused(half_value((uint16_t)x), half_value((uint16_t)y), sum);
    return fused(half_value((uint16_t)(x >> 16)), half_value((uint16_t)(y >> 16)), sum);
}

/* What each row of scores' gradients is taken off. */
DEVICE void attend_drift(const struct attend_args *a, struct attend_queries_own *own, int32_t sequence,
                         int32_t head, int m, int width)
{
    const struct attend_head mixed = attend_head_of(a->mixed, (int64_t)a->heads * a->size, a, sequence, head);
    const int32_t row = own->first + 16 * m + THREAD % WARP / 4;
    float *const drift = a->drift + ((int64_t)sequence * a->heads + head) * a->length;
    float sum[2] = {0, 0};
    uint32_t part[ATTEND_DEEP][4];
    attend_left(part, &mixed, own->first + 16 * m, width);
    UNROLL
    for (int i = 0; i < width / 16; i++) {
        UNROLL
        for (int j = 0; j < 4; j++)
            sum[j % 2] = attend_both(sum[j % 2], part[i][j], own->d[m][i][j]);
    }
    UNROLL
    for (int i = 0; i < 2; i++) {
        own->drift[m][i] = attend_row_sum(sum[i]);
        if (THREAD % 4 == 0 && row + 8 * i < a->length)
            drift[row + 8 * i] = own->drift[m][i];
    }
}

DEVICE void attend_queries_begin(const struct attend_args *a, struct attend_queries_own *own,
                                 int32_t sequence, int32_t head, int width, int parts)
{
    const struct attend_head q = attend_head_of(a->q, a->stride, a, sequence, head);
    const struct attend_head d = attend_head_of(a->dmixed, (int64_t)a->heads * a->size, a, sequence, head);
    const float *const log_sums = a->log_sums + ((int64_t)sequence * a->heads + head) * a->length;
    attend_left_all(own->q, &q, own->first, width, parts);
    attend_left_all(own->d, &d, own->first, width, parts);
    attend_clear(own->dq, width, parts);
    UNROLL
    for (int m = 0; m < parts; m++) {
        UNROLL
        for (int i = 0; i < 2; i++) {
            const int32_t row = own->first + 16 * m + THREAD % WARP / 4 + 8 * i;
            own->log_sum[m][i] = row < a->length ? log_sums[row] : 0;
        }
        attend_drift(a, own, sequence, head, m, width);
    }
}

DEVICE void attend_queries_block(const struct attend_args *a, struct attend_pairs *pairs, int32_t tile,
                                 int32_t sequence, int32_t head, int width, int parts)
{
    const int32_t key_head = head / (a->heads / a->key_heads), own_rows = parts * ATTEND_ROWS;
    const int32_t end = (tile + 1) * own_rows < a->length ? (tile + 1) * own_rows : a->length;
    struct attend_queries_own own;
    own.first = tile * own_rows + THREAD / WARP * parts * 16;
    attend_fetch(a, pairs, 0, sequence, key_head, width);
    attend_queries_begin(a, &own, sequence, head, width, parts);
    for (int32_t key = 0; key < end; key += ATTEND_TILE_ROWS(width)) {
        const uint32_t *const pair = attend_take(pairs, width);
        const int32_t next = key + ATTEND_TILE_ROWS(width), seen = own.first + 16 * parts - key;
        COPIES_WAIT();
        BARRIER(); /* the pair is there, and nobody reads the one before any more */
        if (next < end)
            attend_fetch(a, pairs, next, sequence, key_head, width);
        ROLLED
        for (int step = 0; step < ATTEND_TILE_ROWS(width) && step < seen; step += ATTEND_STEP)
            attend_queries_step(pair, &own, key, step, a->scale * ATTEND_LOG2E, width, parts);
    }
    const struct attend_head dq = attend_head_of(a->dq, a->stride, a, sequence, head);
    UNROLL
    for (int m = 0; m < parts; m++)
        attend_store(&dq, own.dq[m], own.first + 16 * m, a->scale, a->scale, width);
}

/* The last queries have the most keys. */
DEVICE void attend_queries(const struct attend_args *a, uint32_t *memory, int width, int parts)
{
    const int32_t tiles = attend_tiles(a->length, parts * ATTEND_ROWS), heads = a->sequences * a->heads;
    struct attend_pairs pairs = {memory, 0};
    for (int32_t i = BLOCK; i < tiles * heads; i += BLOCKS) {
        const struct attend_place at = attend_place_of(i, tiles, heads);
        attend_queries_block(a, &pairs, tiles - 1 - at.tile, at.head / a->heads, at.head % a->heads, width,
                             parts);
    }
}

#define attend_queries_64_args  attend_args
#define attend_queries_128_args attend_args

KERNEL(attend_queries_64, ATTEND_THREADS)(const struct attend_args a)
{
    SHARED(uint32_t, memory, 2 * ATTEND_PAIR(64));
    attend_queries(&a, memory, 64, ATTEND_QUERIES_PARTS(64));
}

KERNEL(attend_queries_128, ATTEND_THREADS)(const struct attend_args a)
{
    SHARED(uint32_t, memory, 2 * ATTEND_PAIR(128));
    attend_queries(&a, memory, 128, ATTEND_QUERIES_PARTS(128));
}

/* ---- dk and dv ---- */

struct attend_keys_own {
    uint32_t k[ATTEND_PARTS_MOST][ATTEND_DEEP][4], v[ATTEND_PARTS_MOST][ATTEND_DEEP][4];
    float dk[ATTEND_PARTS_MOST][ATTEND_ACROSS][4], dv[ATTEND_PARTS_MOST][ATTEND_ACROSS][4];
    int32_t first; /* of this warp's keys */
};

/* Sixteen queries from `step` of the tile on, which begins at query `first`. Keys are rows here, and queries
 * columns. */
DEVICE void attend_keys_step(const uint32_t *pair, struct attend_keys_own *own, int32_t first, int step,
                             float exponent, int width, int parts)
{
    const uint32_t *const log_sums = pair + 2 * ATTEND_TILE(width), *const drift =
                                                                        log_sums + ATTEND_TILE_ROWS(width);
    const int column = step + THREAD % 4 * 2;
    const int32_t ahead = own->first + THREAD % WARP / 4 - first - column;
    const int edge = own->first + 16 * parts - 1 > first + step;
    attend_sixteen s[ATTEND_PARTS_MOST], d[ATTEND_PARTS_MOST];
    uint32_t part[ATTEND_PARTS_MOST][4];
    UNROLL
    for (int m = 0; m < parts; m++) {
        UNROLL
        for (int i = 0; i < 8; i++) {
            s[m][i / 4][i % 4] = 0;
            d[m][i / 4][i % 4] = -float_of(drift[column + i / 4 * 8 + i % 2]);
        }
    }
    attend_scores(s, own->k, pair, step, width, parts);
    attend_scores(d, own->v, pair + ATTEND_TILE(width), step, width, parts);
    if (edge) {
        UNROLL
        for (int m = 0; m < parts; m++) {
            UNROLL
            for (int i = 0; i < 8; i++)
                if (ahead + 16 * m + i % 4 / 2 * 8 > i / 4 * 8 + i % 2)
                    s[m][i / 4][i % 4] = ATTEND_NOTHING;
        }
    }
    UNROLL
    for (int m = 0; m < parts; m++) {
        UNROLL
        for (int i = 0; i < 8; i++) {
            float *const at = &s[m][i / 4][i % 4];
            *at = attend_chance(*at, exponent, float_of(log_sums[column + i / 4 * 8 + i % 2]));
            d[m][i / 4][i % 4] *= *at;
        }
        attend_again(part[m], s[m]);
    }
    attend_spread(own->dv, part, pair + ATTEND_TILE(width), step, width, parts);
    UNROLL
    for (int m = 0; m < parts; m++)
        attend_again(part[m], d[m]);
    attend_spread(own->dk, part, pair, step, width, parts);
}

/* Queries and dmixed from query `first` on; behind the last query all is zero, and adds nothing to any key.
 */
DEVICE void attend_keys_fetch(const struct attend_args *a, const struct attend_pairs *m, int32_t first,
                              int32_t sequence, int32_t head, int width)
{
    const struct attend_head q = attend_head_of(a->q, a->stride, a, sequence, head);
    const struct attend_head d = attend_head_of(a->dmixed, (int64_t)a->heads * a->size, a, sequence, head);
    const int thread = opaque(THREAD);
    const int64_t at = ((int64_t)sequence * a->heads + head) * a->length + first + thread;
    uint32_t *const pair = attend_next(m, width), *const numbers = pair + 2 * ATTEND_TILE(width) + thread;
    attend_load(pair, &q, first, width);
    attend_load(pair + ATTEND_TILE(width), &d, first, width);
    if (thread < ATTEND_TILE_ROWS(width)) {
        copy_4(numbers, a->log_sums + at, first + thread < a->length);
        copy_4(numbers + ATTEND_TILE_ROWS(width), a->drift + at, first + thread < a->length);
    }
}

/* All queries of one head, from the first one on that sees any of the block's keys. */
DEVICE void attend_keys_head(const struct attend_args *a, struct attend_pairs *m, struct attend_keys_own *own,
                             int32_t first, int32_t sequence, int32_t head, int width, int parts)
{
    attend_keys_fetch(a, m, first, sequence, head, width);
    for (int32_t query = first; query < a->length; query += ATTEND_TILE_ROWS(width)) {
        const uint32_t *const pair = attend_take(m, width);
        const int32_t next = query + ATTEND_TILE_ROWS(width), hidden = own->first - query;
        COPIES_WAIT();
        BARRIER(); /* the pair is there, and nobody reads the one before any more */
        if (next < a->length)
            attend_keys_fetch(a, m, next, sequence, head, width);
        ROLLED
        for (int step = hidden > 0 ? hidden : 0; step < ATTEND_TILE_ROWS(width); step += ATTEND_STEP)
            attend_keys_step(pair, own, query, step, a->scale * ATTEND_LOG2E, width, parts);
    }
}

/* One tile of keys, for all heads that have them, one after the other. */
DEVICE void attend_keys_block(const struct attend_args *a, struct attend_pairs *m, int32_t tile,
                              int32_t sequence, int32_t key_head, int width, int parts)
{
    const struct attend_head k = attend_head_of(a->k, a->stride, a, sequence, key_head);
    const struct attend_head v = attend_head_of(a->v, a->stride, a, sequence, key_head);
    const int32_t group = a->heads / a->key_heads, first = tile * parts * ATTEND_ROWS;
    struct attend_keys_own own;
    own.first = first + THREAD / WARP * parts * 16;
    attend_left_all(own.k, &k, own.first, width, parts);
    attend_left_all(own.v, &v, own.first, width, parts);
    attend_clear(own.dk, width, parts);
    attend_clear(own.dv, width, parts);
    for (int32_t i = 0; i < group; i++)
        attend_keys_head(a, m, &own, first, sequence, key_head * group + i, width, parts);
    const struct attend_head dk = attend_head_of(a->dk, a->stride, a, sequence, key_head);
    const struct attend_head dv = attend_head_of(a->dv, a->stride, a, sequence, key_head);
    UNROLL
    for (int i = 0; i < parts; i++) {
        attend_store(&dk, own.dk[i], own.first + 16 * i, a->scale, a->scale, width);
        attend_store(&dv, own.dv[i], own.first + 16 * i, 1, 1, width);
    }
}

/* The first keys have the most queries. */
DEVICE void attend_keys(const struct attend_args *a, uint32_t *memory, int width, int parts)
{
    const int32_t tiles = attend_tiles(a->length, parts * ATTEND_ROWS), heads = a->sequences * a->key_heads;
    struct attend_pairs m = {memory, 0};
    for (int32_t i = BLOCK; i < tiles * heads; i += BLOCKS) {
        const struct attend_place at = attend_place_of(i, tiles, heads);
        attend_keys_block(a, &m, at.tile, at.head / a->key_heads, at.head % a->key_heads, width, parts);
    }
}

#define attend_keys_64_args  attend_args
#define attend_keys_128_args attend_args

KERNEL_DENSE(attend_keys_64, ATTEND_THREADS, 3)(const struct attend_args a)
{
    SHARED(uint32_t, memory, 2 * ATTEND_PAIR(64));
    attend_keys(&a, memory, 64, ATTEND_KEYS_PARTS(64));
}

KERNEL(attend_keys_128, ATTEND_THREADS)(const struct attend_args a)
{
    SHARED(uint32_t, memory, 2 * ATTEND_PAIR(128));
    attend_keys(&a, memory, 128, ATTEND_KEYS_PARTS(128));
}
