#include "trainer/backend/cuda/kernels/attend.h"

#include "trainer/backend/cuda/kernels/attend_parts.cu"

/* ---- mixed * dmixed: what each row of scores' gradients is taken off ---- */

#define attend_drift_args attend_args

/* A warp a row of one head. */
KERNEL(attend_drift, ATTEND_THREADS)(const struct attend_args a)
{
    const int64_t all = (int64_t)a.sequences * a.heads * a.length;
    for (int64_t first = (int64_t)BLOCK * (ATTEND_THREADS / WARP); first < all;
         first += (int64_t)BLOCKS * (ATTEND_THREADS / WARP)) {
        const int64_t i = first + THREAD / WARP, head = i / a.length % a.heads;
        const int64_t row = i / a.length / a.heads * a.length + i % a.length;
        const int64_t at = row * a.heads * a.size + head * a.size;
        float sum = 0;
        for (int32_t j = THREAD % WARP; i < all && j < a.size; j += WARP)
            sum += half_value(a.mixed[at + j]) * half_value(a.dmixed[at + j]);
        for (int n = WARP / 2; n > 0; n /= 2)
            sum += float_of(warp_xor(bits_of(sum), n));
        if (i < all && THREAD % WARP == 0)
            a.drift[i] = sum;
    }
}

/* ---- scores once more ---- */

/* p = e^(s scale - log_sum), 0 where the key comes after the query; then s = its gradient. */
DEVICE void attend_slope(const struct attend_args *a, float *p, float *s, float d, int visible, float log_sum,
                         float drift)
{
    *p = visible ? two_to((*s * a->scale - log_sum) * ATTEND_LOG2E) : 0;
    *s = *p * (d - drift) * a->scale;
}

/* ---- dk and dv ---- */

/* A block's memory: a tile of queries, of dmixed, and what belongs to each query. */
struct attend_keys_shared {
    uint32_t *q, *d;
    float *log_sums, *drift;
};

struct attend_keys_own {
    uint32_t k[ATTEND_WIDEST / 16][4], v[ATTEND_WIDEST / 16][4];
    float dk[ATTEND_WIDEST / 8][4], dv[ATTEND_WIDEST / 8][4];
    int32_t first; /* of this warp's sixteen keys */
};

/* Sixteen queries from `step` of the tile on, which begins at query `first`. */
DEVICE void attend_keys_step(const struct attend_args *a, const struct attend_keys_shared *m,
                             struct attend_keys_own *own, int32_t first, int step, int width)
{
    float s[2][4], d[2][4], p[2][4];
    uint32_t part[4];
    UNROLL
    for (int n = 0; n < 2; n++) {
        attend_scores(s[n], own->k, m->q, step + 8 * n, width);
        attend_scores(d[n], own->v, m->d, step + 8 * n, width);
        UNROLL
        for (int i = 0; i < 4; i++) {
            const int at = step + 8 * n + THREAD % 4 * 2 + i % 2;
            const int32_t key = own->first + THREAD % WARP / 4 + i / 2 * 8, query = first + at;
            attend_slope(a, &p[n][i], &s[n][i], d[n][i], key <= query && query < a->length, m->log_sums[at],
                         m->drift[at]);
        }
    }
    attend_again(part, p[0], p[1]);
    attend_spread(own->dv, part, m->d, step, width);
    attend_again(part, s[0], s[1]);
    attend_spread(own->dk, part, m->q, step, width);
}

DEVICE void attend_keys_load(const struct attend_args *a, const struct attend_keys_shared *m, int32_t first,
                             int32_t sequence, int32_t head, int width)
{
    const struct attend_head q = attend_head_of(a->q, a->stride, a, sequence, head);
    const struct attend_head d = attend_head_of(a->dmixed, (int64_t)a->heads * a->size, a, sequence, head);
    const int64_t at = ((int64_t)sequence * a->heads + head) * a->length + first;
    attend_load(m->q, &q, first, width);
    attend_load(m->d, &d, first, width);
    if (THREAD < ATTEND_ROWS) {
        m->log_sums[THREAD] = first + THREAD < a->length ? a->log_sums[at + THREAD] : 0;
        m->drift[THREAD] = first + THREAD < a->length ? a->drift[at + THREAD] : 0;
    }
}

/* One tile of keys, for all heads that have them, one after the other. */
DEVICE void attend_keys_block(const struct attend_args *a, const struct attend_keys_shared *m, int32_t tile,
                              int32_t sequence, int32_t key_head, int width)
{
    const struct attend_head k = attend_head_of(a->k, a->stride, a, sequence, key_head);
    const struct attend_head v = attend_head_of(a->v, a->stride, a, sequence, key_head);
    const struct attend_head dk = attend_head_of(a->dk, a->stride, a, sequence, key_head);
    const struct attend_head dv = attend_head_of(a->dv, a->stride, a, sequence, key_head);
    const int32_t group = a->heads / a->key_heads, tiles = (a->length + ATTEND_ROWS - 1) / ATTEND_ROWS;
    struct attend_keys_own own;
    own.first = tile * ATTEND_ROWS + THREAD / WARP * ATTEND_STEP;
    UNROLL
    for (int i = 0; i < width / 16; i++) {
        attend_left(own.k[i], &k, own.first, 16 * i);
        attend_left(own.v[i], &v, own.first, 16 * i);
    }
    UNROLL
    for (int n = 0; n < width / 8; n++)
        for (int i = 0; i < 4; i++)
            own.dk[n][i] = own.dv[n][i] = 0;
    for (int32_t i = 0; i < group * (tiles - tile); i++) {
        const int32_t first = (tile + i % (tiles - tile)) * ATTEND_ROWS;
        BARRIER(); /* nobody reads the tiles before any more */
        attend_keys_load(a, m, first, sequence, key_head * group + i / (tiles - tile), width);
        BARRIER();
        for (int step = 0; step < ATTEND_ROWS; step += ATTEND_STEP)
            attend_keys_step(a, m, &own, first, step, width);
    }
    attend_store(&dk, own.dk, own.first, 1, 1, width);
    attend_store(&dv, own.dv, own.first, 1, 1, width);
}

/* The first keys have the most queries: they come first. */
DEVICE void attend_keys(const struct attend_args *a, const struct attend_keys_shared *m, int width)
{
    const int32_t tiles = (a->length + ATTEND_ROWS - 1) / ATTEND_ROWS, heads = a->sequences * a->key_heads;
    for (int32_t i = BLOCK; i < tiles * heads; i += BLOCKS)
        attend_keys_block(a, m, i / heads, i % heads / a->key_heads, i % a->key_heads, width);
}

#define attend_keys_64_args  attend_args
#define attend_keys_128_args attend_args

KERNEL(attend_keys_64, ATTEND_THREADS)(const struct attend_args a)
{
    SHARED(uint32_t, q, ATTEND_TILE(64));
    SHARED(uint32_t, d, ATTEND_TILE(64));
    SHARED(float, log_sums, ATTEND_ROWS);
    SHARED(float, drift, ATTEND_ROWS);
    const struct attend_keys_shared m = {q, d, log_sums, drift};
    attend_keys(&a, &m, 64);
}

KERNEL(attend_keys_128, ATTEND_THREADS)(const struct attend_args a)
{
    SHARED(uint32_t, q, ATTEND_TILE(128));
    SHARED(uint32_t, d, ATTEND_TILE(128));
    SHARED(float, log_sums, ATTEND_ROWS);
    SHARED(float, drift, ATTEND_ROWS);
    const struct attend_keys_shared m = {q, d, log_sums, drift};
    attend_keys(&a, &m, 128);
}

/* ---- dq ---- */

struct attend_queries_own {
    uint32_t q[ATTEND_WIDEST / 16][4], d[ATTEND_WIDEST / 16][4];
    float dq[ATTEND_WIDEST / 8][4];
    float log_sum[2], drift[2]; /* of the two rows of which this thread has parts */
    int32_t first;              /* of this warp's sixteen queries */
};

/* Sixteen keys from `step` of the tile on, which begins at key `first`. */
DEVICE void attend_queries_step(const struct attend_args *a, const uint32_t *keys, const uint32_t *values,
                                struct attend_queries_own *own, int32_t first, int step, int width)
{
    float s[2][4], d[2][4], p;
    uint32_t part[4];
    UNROLL
    for (int n = 0; n < 2; n++) {
        attend_scores(s[n], own->q, keys, step + 8 * n, width);
        attend_scores(d[n], own->d, values, step + 8 * n, width);
        UNROLL
        for (int i = 0; i < 4; i++) {
            const int32_t key = first + step + 8 * n + THREAD % 4 * 2 + i % 2;
            const int32_t query = own->first + THREAD % WARP / 4 + i / 2 * 8;
            attend_slope(a, &p, &s[n][i], d[n][i], key <= query && query < a->length, own->log_sum[i / 2],
                         own->drift[i / 2]);
        }
    }
    attend_again(part, s[0], s[1]);
    attend_spread(own->dq, part, keys, step, width);
}

DEVICE void attend_queries_begin(const struct attend_args *a, struct attend_queries_own *own,
                                 int32_t sequence, int32_t head, int width)
{
    const struct attend_head q = attend_head_of(a->q, a->stride, a, sequence, head);
    const struct attend_head d = attend_head_of(a->dmixed, (int64_t)a->heads * a->size, a, sequence, head);
    const int64_t at = ((int64_t)sequence * a->heads + head) * a->length;
    UNROLL
    for (int i = 0; i < width / 16; i++) {
        attend_left(own->q[i], &q, own->first, 16 * i);
        attend_left(own->d[i], &d, own->first, 16 * i);
    }
    UNROLL
    for (int i = 0; i < 2; i++) {
        const int32_t row = own->first + THREAD % WARP / 4 + 8 * i;
        own->log_sum[i] = row < a->length ? a->log_sums[at + row] : 0;
        own->drift[i] = row < a->length ? a->drift[at + row] : 0;
    }
    UNROLL
    for (int n = 0; n < width / 8; n++)
        own->dq[n][0] = own->dq[n][1] = own->dq[n][2] = own->dq[n][3] = 0;
}

DEVICE void attend_queries_block(const struct attend_args *a, uint32_t *keys, uint32_t *values, int32_t tile,
                                 int32_t sequence, int32_t head, int width)
{
    const int32_t key_head = head / (a->heads / a->key_heads);
    const struct attend_head k = attend_head_of(a->k, a->stride, a, sequence, key_head);
    const struct attend_head v = attend_head_of(a->v, a->stride, a, sequence, key_head);
    const struct attend_head dq = attend_head_of(a->dq, a->stride, a, sequence, head);
    struct attend_queries_own own;
    own.first = tile * ATTEND_ROWS + THREAD / WARP * ATTEND_STEP;
    attend_queries_begin(a, &own, sequence, head, width);
    for (int32_t t = 0; t <= tile; t++) {
        BARRIER(); /* nobody reads the tiles before any more */
        attend_load(keys, &k, t * ATTEND_ROWS, width);
        attend_load(values, &v, t * ATTEND_ROWS, width);
        BARRIER();
        for (int step = 0; step < ATTEND_ROWS; step += ATTEND_STEP)
            attend_queries_step(a, keys, values, &own, t * ATTEND_ROWS, step, width);
    }
    attend_store(&dq, own.dq, own.first, 1, 1, width);
}

DEVICE void attend_queries(const struct attend_args *a, uint32_t *keys, uint32_t *values, int width)
{
    const int32_t tiles = (a->length + ATTEND_ROWS - 1) / ATTEND_ROWS, heads = a->sequences * a->heads;
    for (int32_t i = BLOCK; i < tiles * heads; i += BLOCKS)
        attend_queries_block(a, keys, values, tiles - 1 - i / heads, i % heads / a->heads, i % a->heads,
                             width);
}

#define attend_queries_64_args  attend_args
#define attend_queries_128_args attend_args

KERNEL(attend_queries_64, ATTEND_THREADS)(const struct attend_args a)
{
    SHARED(uint32_t, keys, ATTEND_TILE(64));
    SHARED(uint32_t, values, ATTEND_TILE(64));
    attend_queries(&a, keys, values, 64);
}

KERNEL(attend_queries_128, ATTEND_THREADS)(const struct attend_args a)
{
    SHARED(uint32_t, keys, ATTEND_TILE(128));
    SHARED(uint32_t, values, ATTEND_TILE(128));
    attend_queries(&a, keys, values, 128);
}
