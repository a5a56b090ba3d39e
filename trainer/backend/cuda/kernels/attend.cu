#include "trainer/backend/cuda/kernels/attend.h"

#include "trainer/backend/cuda/kernels/attend_parts.cu"

#define ATTEND_GROWTH 8 /* powers of two that probabilities may have over 1 until all are brought down */

enum { ATTEND_SIXTEENTHS = ATTEND_TILE_MOST / 16 };

/* Queries of a warp: for each half of sixteen, the score that its probabilities are relative to, and what
 * they have come to so far. `sum` is of this thread's own scores. */
struct attend_rows {
    float most[ATTEND_PARTS_MOST][2], sum[ATTEND_PARTS_MOST][2];
    int32_t first;
};

typedef float attend_scored[ATTEND_PARTS_MOST][2][4]; /* sixteen keys */

/* Keys that come after their query. */
DEVICE void attend_hide(const struct attend_rows *rows, attend_scored *s, int32_t first_key, int width,
                        int parts)
{
    const int32_t ahead = first_key + THREAD % 4 * 2 - rows->first - THREAD % WARP / 4;
    UNROLL
    for (int n = 0; n < ATTEND_TILE_ROWS(width) / 16; n++) {
        UNROLL
        for (int m = 0; m < parts; m++) {
            UNROLL
            for (int i = 0; i < 8; i++)
                if (ahead + 16 * n + i / 4 * 8 + i % 2 > 16 * m + i % 4 / 2 * 8)
                    s[n][m][i / 4][i % 4] = ATTEND_NOTHING;
        }
    }
}

DEVICE float attend_largest(attend_scored *s, int m, int half, int width)
{
    float most = ATTEND_NOTHING;
    UNROLL
    for (int n = 0; n < ATTEND_TILE_ROWS(width) / 16; n++) {
        UNROLL
        for (int i = 0; i < 4; i++)
            most = larger(s[n][m][i / 2][i % 2 + 2 * half], most);
    }
    return attend_row_most(most);
}

/* The largest score so far decides what probabilities are relative to, unless it has grown by little: then
 * nothing that has been added up has to be multiplied. Each row decides for itself. */
DEVICE void attend_settle(struct attend_rows *rows, attend_scored *s, float mixed[][ATTEND_ACROSS][4],
                          float exponent, int width, int parts)
{
    float factor[ATTEND_PARTS_MOST][2];
    int grown = 0;
    UNROLL
    for (int i = 0; i < 2 * parts; i++) {
        float *const most = &rows->most[i / 2][i % 2];
        const float largest = attend_largest(s, i / 2, i % 2, width), growth = (largest - *most) * exponent;
        const int much = growth > ATTEND_GROWTH;
        factor[i / 2][i % 2] = much ? two_to(-growth) : 1;
        *most = much ? largest : *most;
        grown |= much;
    }
    if (!grown)
        return;
    UNROLL
    for (int m = 0; m < parts; m++) {
        rows->sum[m][0] *= factor[m][0];
        rows->sum[m][1] *= factor[m][1];
        UNROLL
        for (int i = 0; i < width / 2; i++)
            mixed[m][i / 4][i % 4] *= factor[m][i % 4 / 2];
    }
}

/* Scores to probabilities, relative to what the rows say. `exponent`: a score's, of two. */
DEVICE void attend_soften(struct attend_rows *rows, attend_scored *s, int m, float exponent, int width)
{
    const float shift[2] = {-rows->most[m][0] * exponent, -rows->most[m][1] * exponent};
    UNROLL
    for (int n = 0; n < ATTEND_TILE_ROWS(width) / 16; n++) {
        UNROLL
        for (int i = 0; i < 8; i++) {
            float *const at = &s[n][m][i / 4][i % 4];
            *at = two_to(fused(*at, exponent, shift[i % 4 / 2]));
            rows->sum[m][i % 4 / 2] += *at;
        }
    }
}

/* One tile of keys and their values. */
DEVICE void attend_tile(struct attend_rows *rows, uint32_t q[][ATTEND_DEEP][4],
                        float mixed[][ATTEND_ACROSS][4], const uint32_t *pair, int32_t first_key,
                        float exponent, int width, int parts)
{
    attend_scored s[ATTEND_SIXTEENTHS];
    UNROLL
    for (int n = 0; n < ATTEND_TILE_ROWS(width) / 16; n++) {
        UNROLL
        for (int i = 0; i < 8 * parts; i++)
            s[n][i / 8][i / 4 % 2][i % 4] = 0;
        attend_scores(s[n], q, pair, 16 * n, width, parts);
    }
    if (first_key + ATTEND_TILE_ROWS(width) - 1 > rows->first)
        attend_hide(rows, s, first_key, width, parts);
    attend_settle(rows, s, mixed, exponent, width, parts);
    UNROLL
    for (int m = 0; m < parts; m++)
        attend_soften(rows, s, m, exponent, width);
    UNROLL
    for (int n = 0; n < ATTEND_TILE_ROWS(width) / 16; n++) {
        uint32_t part[ATTEND_PARTS_MOST][4];
        UNROLL
        for (int m = 0; m < parts; m++)
            attend_again(part[m], s[n][m]);
        attend_spread(mixed, part, pair + ATTEND_TILE(width), 16 * n, width, parts);
    }
}

DEVICE void attend_end(const struct attend_args *a, struct attend_rows *rows, float mixed[][ATTEND_ACROSS][4],
                       int32_t sequence, int32_t head, int width, int parts)
{
    const struct attend_head to = attend_head_of(a->mixed, (int64_t)a->heads * a->size, a, sequence, head);
    float *const log_sums = a->log_sums + ((int64_t)sequence * a->heads + head) * a->length;
    UNROLL
    for (int m = 0; m < parts; m++) {
        UNROLL
        for (int i = 0; i < 2; i++) {
            const int32_t row = rows->first + 16 * m + THREAD % WARP / 4 + 8 * i;
            rows->sum[m][i] = attend_row_sum(rows->sum[m][i]);
            if (THREAD % 4 == 0 && row < a->length)
                log_sums[row] = rows->most[m][i] * a->scale + log_of(rows->sum[m][i]);
        }
        attend_store(&to, mixed[m], rows->first + 16 * m, 1 / rows->sum[m][0], 1 / rows->sum[m][1], width);
    }
}

/* A block's queries: tile `tile` of one head. */
DEVICE void attend_block(const struct attend_args *a, struct attend_pairs *m, int32_t tile, int32_t sequence,
                         int32_t head, int width, int parts)
{
    const int32_t key_head = head / (a->heads / a->key_heads), own = parts * ATTEND_ROWS;
    const struct attend_head q = attend_head_of(a->q, a->stride, a, sequence, head);
    const int32_t end = (tile + 1) * own < a->length ? (tile + 1) * own : a->length;
    struct attend_rows rows = {{{ATTEND_NOTHING, ATTEND_NOTHING}, {ATTEND_NOTHING, ATTEND_NOTHING}},
                               {{0, 0}, {0, 0}},
                               tile * own + THREAD / WARP * parts * 16};
    uint32_t left[ATTEND_PARTS_MOST][ATTEND_DEEP][4];
    float mixed[ATTEND_PARTS_MOST][ATTEND_ACROSS][4];
    attend_fetch(a, m, 0, sequence, key_head, width);
    attend_left_all(left, &q, rows.first, width, parts);
    attend_clear(mixed, width, parts);
    for (int32_t key = 0; key < end; key += ATTEND_TILE_ROWS(width)) {
        const uint32_t *const pair = attend_take(m, width);
        COPIES_WAIT();
        BARRIER(); /* the pair is there, and nobody reads the one before any more */
        if (key + ATTEND_TILE_ROWS(width) < end)
            attend_fetch(a, m, key + ATTEND_TILE_ROWS(width), sequence, key_head, width);
        if (key < rows.first + 16 * parts)
            attend_tile(&rows, left, mixed, pair, key, a->scale * ATTEND_LOG2E, width, parts);
    }
    attend_end(a, &rows, mixed, sequence, head, width, parts);
}

/* The last queries have the most keys. */
DEVICE void attend(const struct attend_args *a, uint32_t *memory, int width, int parts)
{
    const int32_t tiles = attend_tiles(a->length, parts * ATTEND_ROWS), heads = a->sequences * a->heads;
    struct attend_pairs m = {memory, 0};
    for (int32_t i = BLOCK; i < tiles * heads; i += BLOCKS) {
        const struct attend_place at = attend_place_of(i, tiles, heads);
        attend_block(a, &m, tiles - 1 - at.tile, at.head / a->heads, at.head % a->heads, width, parts);
    }
}

/* What KERNEL calls the arguments of each. */
#define attend_64_args  attend_args
#define attend_128_args attend_args

KERNEL(attend_64, ATTEND_THREADS)(const struct attend_args a)
{
    SHARED(uint32_t, memory, 2 * ATTEND_PAIR(64));
    attend(&a, memory, 64, ATTEND_PARTS(64));
}

KERNEL(attend_128, ATTEND_THREADS)(const struct attend_args a)
{
    SHARED(uint32_t, memory, 2 * ATTEND_PAIR(128));
    attend(&a, memory, 128, ATTEND_PARTS(128));
}
