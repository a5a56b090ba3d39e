#include "trainer/backend/cuda/kernels/attend.h"

#include "trainer/backend/cuda/kernels/attend_parts.cu"

enum { ATTEND_EIGHTHS = ATTEND_ROWS / 8 };

/* Sixteen queries of a warp: for each half of them what its scores have come to so far. Exponents are of
 * two. `sum` is of this thread's own scores. */
struct attend_rows {
    float most[2], sum[2];
    int32_t first;
};

/* Scores to probabilities, relative to the largest one so far, to which `mixed` is brought, too. */
DEVICE void attend_soften(struct attend_rows *rows, float s[][4], float mixed[][4], int32_t first_key,
                          float scale, int width)
{
    float most[2] = {rows->most[0], rows->most[1]}, factor[2];
    UNROLL
    for (int n = 0; n < ATTEND_EIGHTHS; n++)
        for (int i = 0; i < 4; i++) {
            const int32_t row = rows->first + THREAD % WARP / 4 + i / 2 * 8;
            const int32_t key = first_key + 8 * n + THREAD % 4 * 2 + i % 2;
            s[n][i] = key > row ? ATTEND_NOTHING : s[n][i] * scale;
            most[i / 2] = attend_larger(s[n][i], most[i / 2]);
        }
    UNROLL
    for (int i = 0; i < 2; i++) {
        most[i] = attend_row_most(most[i]);
        factor[i] = two_to(rows->most[i] - most[i]);
        rows->most[i] = most[i];
        rows->sum[i] *= factor[i];
    }
    UNROLL
    for (int n = 0; n < ATTEND_EIGHTHS; n++)
        for (int i = 0; i < 4; i++) {
            s[n][i] = two_to(s[n][i] - most[i / 2]);
            rows->sum[i / 2] += s[n][i];
        }
    UNROLL
    for (int n = 0; n < width / 8; n++)
        for (int i = 0; i < 4; i++)
            mixed[n][i] *= factor[i / 2];
}

/* One tile of keys and their values. */
DEVICE void attend_tile(struct attend_rows *rows, uint32_t q[][4], float mixed[][4], const uint32_t *keys,
                        const uint32_t *values, int32_t first_key, float scale, int width)
{
    float s[ATTEND_EIGHTHS][4];
    UNROLL
    for (int n = 0; n < ATTEND_EIGHTHS; n++)
        attend_scores(s[n], q, keys, 8 * n, width);
    attend_soften(rows, s, mixed, first_key, scale, width);
    UNROLL
    for (int n = 0; n < ATTEND_EIGHTHS; n += 2) {
        uint32_t part[4];
        attend_again(part, s[n], s[n + 1]);
        attend_spread(mixed, part, values, 8 * n, width);
    }
}

DEVICE void attend_end(const struct attend_args *a, struct attend_rows *rows, float mixed[][4],
                       int32_t sequence, int32_t head, int width)
{
    const struct attend_head to = attend_head_of(a->mixed, (int64_t)a->heads * a->size, a, sequence, head);
    float *const log_sums = a->log_sums + ((int64_t)sequence * a->heads + head) * a->length;
    UNROLL
    for (int i = 0; i < 2; i++) {
        const int32_t row = rows->first + THREAD % WARP / 4 + 8 * i;
        rows->sum[i] = attend_row_sum(rows->sum[i]);
        if (THREAD % 4 == 0 && row < a->length)
            log_sums[row] = rows->most[i] / ATTEND_LOG2E + log_of(rows->sum[i]);
    }
    attend_store(&to, mixed, rows->first, 1 / rows->sum[0], 1 / rows->sum[1], width);
}

/* A block's queries: tile `tile` of one head. */
DEVICE void attend_block(const struct attend_args *a, int32_t tile, int32_t sequence, int32_t head,
                         uint32_t *keys, uint32_t *values, int width)
{
    const int32_t key_head = head / (a->heads / a->key_heads);
    const struct attend_head q = attend_head_of(a->q, a->stride, a, sequence, head);
    const struct attend_head k = attend_head_of(a->k, a->stride, a, sequence, key_head);
    const struct attend_head v = attend_head_of(a->v, a->stride, a, sequence, key_head);
    struct attend_rows rows = {
        {ATTEND_NOTHING, ATTEND_NOTHING}, {0, 0}, tile * ATTEND_ROWS + THREAD / WARP * ATTEND_STEP};
    uint32_t left[ATTEND_WIDEST / 16][4];
    float mixed[ATTEND_WIDEST / 8][4];
    UNROLL
    for (int i = 0; i < width / 16; i++)
        attend_left(left[i], &q, rows.first, 16 * i);
    UNROLL
    for (int n = 0; n < width / 8; n++)
        mixed[n][0] = mixed[n][1] = mixed[n][2] = mixed[n][3] = 0;
    for (int32_t t = 0; t <= tile; t++) {
        BARRIER(); /* nobody reads the tiles before any more */
        attend_load(keys, &k, t * ATTEND_ROWS, width);
        attend_load(values, &v, t * ATTEND_ROWS, width);
        BARRIER();
        attend_tile(&rows, left, mixed, keys, values, t * ATTEND_ROWS, a->scale * ATTEND_LOG2E, width);
    }
    attend_end(a, &rows, mixed, sequence, head, width);
}

/* The last queries have the most keys: they come first, so that no block is left with one at the end. */
DEVICE void attend(const struct attend_args *a, uint32_t *keys, uint32_t *values, int width)
{
    const int32_t tiles = (a->length + ATTEND_ROWS - 1) / ATTEND_ROWS, heads = a->sequences * a->heads;
    for (int32_t i = BLOCK; i < tiles * heads; i += BLOCKS)
        attend_block(a, tiles - 1 - i / heads, i % heads / a->heads, i % a->heads, keys, values, width);
}

/* What KERNEL calls the arguments of each. */
#define attend_64_args  attend_args
#define attend_128_args attend_args

KERNEL(attend_64, ATTEND_THREADS)(const struct attend_args a)
{
    SHARED(uint32_t, keys, ATTEND_TILE(64));
    SHARED(uint32_t, values, ATTEND_TILE(64));
    attend(&a, keys, values, 64);
}

KERNEL(attend_128, ATTEND_THREADS)(const struct attend_args a)
{
    SHARED(uint32_t, keys, ATTEND_TILE(128));
    SHARED(uint32_t, values, ATTEND_TILE(128));
    attend(&a, keys, values, 128);
}
