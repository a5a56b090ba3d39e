/* What the kernels of attention share: tiles in shared memory, and the matrix unit's parts of them.
 *
 * A tile is ATTEND_TILE_ROWS rows of one head, pairs of bf16 as words, with zeros behind the last row and the
 * last column. Rows of it lie four words further apart than they are long: then eight rows' words are in
 * different banks. Two tiles are a pair: keys and values, or queries and what comes back to them, with two
 * numbers for each query behind. While one pair is worked on, the next one is copied.
 *
 * `width` is the head's as the kernel is made for it, `parts` how many times sixteen rows a warp owns: both
 * are numbers that the compiler knows. What is read of a tile is used for all parts, for shared memory would
 * else be slower than the matrix unit. */
#ifndef RM_TRAINER_CUDA_ATTEND_PARTS_CU
#define RM_TRAINER_CUDA_ATTEND_PARTS_CU

#include "trainer/backend/cuda/kernels/attend.h"

#include "trainer/backend/cuda/kernels/operand.cu"

#define ATTEND_WORDS(width)     ((width) / 2 + 4)
#define ATTEND_TILE_ROWS(width) (4096 / (width))
#define ATTEND_TILE(width)      (ATTEND_TILE_ROWS(width) * ATTEND_WORDS(width))
#define ATTEND_PAIR(width)      (2 * ATTEND_TILE(width) + 2 * ATTEND_TILE_ROWS(width))
#define ATTEND_LOG2E            1.4426950408889634f
#define ATTEND_NOTHING          (-3.4e38f) /* no score is smaller, and its power of two is 0 */

enum {
    ATTEND_EIGHT = 8,      /* bf16 of 16 bytes */
    ATTEND_STEP = 16,      /* rows of a product's inner size */
    ATTEND_PARTS_MOST = 2, /* of a warp */
    ATTEND_TILE_MOST = 64, /* rows */
    ATTEND_DEEP = ATTEND_WIDEST / 16,
    ATTEND_ACROSS = ATTEND_WIDEST / 8,
    ATTEND_TOGETHER = 64 /* heads whose keys and values are to stay in the GPU's cache */
};

/* One head of one sequence. */
struct attend_head {
    const uint16_t *rows;
    int64_t stride;
    int32_t length, size;
    int aligned; /* may be read by sixteen bytes */
};

DEVICE struct attend_head attend_head_of(const uint16_t *matrix, int64_t stride, const struct attend_args *a,
                                         int32_t sequence, int32_t head)
{
    struct attend_head h = {matrix + (int64_t)opaque(sequence) * a->length * stride +
                                (int64_t)opaque(head) * a->size,
                            stride, a->length, a->size, 0};
    h.aligned = h.size % ATTEND_EIGHT == 0 && h.stride % ATTEND_EIGHT == 0 && (uintptr_t)h.rows % 16 == 0;
    return h;
}

/* What a block does in its turn `i`: rows [first, first + own) of a head. Some heads come at a time, with
 * their longest rows of tiles first, so that no block is left with one of these at the end. */
struct attend_place {
    int32_t tile, head; // of all sequences' heads
};

DEVICE struct attend_place attend_place_of(int32_t i, int32_t tiles, int32_t heads)
{
    const int32_t before = i / (ATTEND_TOGETHER * tiles) * ATTEND_TOGETHER, left = heads - before;
    const int32_t together = left < ATTEND_TOGETHER ? left : ATTEND_TOGETHER;
    const struct attend_place place = {(i - before * tiles) / together,
                                       before + (i - before * tiles) % together};
    return place;
}

DEVICE int32_t attend_tiles(int32_t rows, int32_t each)
{
    return (rows + each - 1) / each;
}

/* ---- memory ---- */

struct __attribute__((may_alias)) attend_two {
    uint32_t both;
};

/* Two neighbours of a row, 0 where there are none. */
DEVICE uint32_t attend_pair(const struct attend_head *h, int32_t row, int32_t column)
{
    if (row >= h->length)
        return 0;
    const uint16_t *const at = h->rows + row * h->stride + column;
    const uint32_t low = column < h->size ? at[0] : 0, high = column + 1 < h->size ? at[1] : 0;
    return low | high << 16;
}

DEVICE void attend_load_pairs(uint32_t *tile, const struct attend_head *h, int32_t first, int width)
{
    ROLLED
    for (int i = THREAD; i < ATTEND_TILE_ROWS(width) * width / 2; i += ATTEND_THREADS) {
        const int row = i / (width / 2), word = i % (width / 2);
        tile[row * ATTEND_WORDS(width) + word] = attend_pair(h, first + row, 2 * word);
    }
}

/* Rows from `first` on, by all threads of the block, there once each has waited and met the others. */
DEVICE void attend_load(uint32_t *tile, const struct attend_head *h, int32_t first, int width)
{
    const int eights = width / ATTEND_EIGHT, apart = ATTEND_THREADS / eights;
    const int thread = opaque(THREAD);
    const int32_t row = first + thread / eights, column = thread % eights * ATTEND_EIGHT;
    uint32_t *const to = tile + thread / eights * ATTEND_WORDS(width) + column / 2;
    const uint16_t *from = h->rows + row * h->stride + column;
    if (!h->aligned) {
        attend_load_pairs(tile, h, first, width);
        return;
    }
    UNROLL
    for (int i = 0; i < ATTEND_TILE_ROWS(width) / apart; i++) {
        copy_16(to + i * apart * ATTEND_WORDS(width), from, row + i * apart < h->length && column < h->size);
        from += apart * h->stride;
    }
}

/* A block's memory: two pairs of tiles. `turn` says which pair comes next. */
struct attend_pairs {
    uint32_t *memory;
    int turn;
};

/* The pair that is asked for now. */
DEVICE uint32_t *attend_next(const struct attend_pairs *m, int width)
{
    return m->memory + m->turn * ATTEND_PAIR(width);
}

/* The pair that was asked for last, and the other one's turn. */
DEVICE const uint32_t *attend_take(struct attend_pairs *m, int width)
{
    m->turn = 1 - m->turn;
    return m->memory + (1 - m->turn) * ATTEND_PAIR(width);
}

/* Keys and, behind them, values from key `first` on. */
DEVICE void attend_fetch(const struct attend_args *a, const struct attend_pairs *m, int32_t first,
                         int32_t sequence, int32_t key_head, int width)
{
    const struct attend_head k = attend_head_of(a->k, a->stride, a, sequence, key_head);
    const struct attend_head v = attend_head_of(a->v, a->stride, a, sequence, key_head);
    attend_load(attend_next(m, width), &k, first, width);
    attend_load(attend_next(m, width) + ATTEND_TILE(width), &v, first, width);
}

/* This thread's parts of left sides of 16 rows, from memory: rows from `first` on, `width` columns. */
DEVICE void attend_left(uint32_t left[][4], const struct attend_head *h, int32_t first, int width)
{
    const int thread = opaque(THREAD);
    const int32_t row = first + thread % WARP / 4, column = thread % 4 * 2;
    const uint16_t *const at = h->rows + row * h->stride + column;
    if (h->aligned) {
        UNROLL
        for (int i = 0; i < width / 4; i++) {
            const int lower = i % 2 * 8, right = i / 2 * 8;
            const int there = row + lower < h->length && column + right < h->size;
            left[i / 4][i % 4] =
                there ? ((const struct attend_two *)(at + lower * h->stride + right))->both : 0;
        }
        return;
    }
    UNROLL
    for (int i = 0; i < width / 4; i++)
        left[i / 4][i % 4] = attend_pair(h, row + i % 2 * 8, column + i / 2 * 8);
}

/* All that a warp owns. */
DEVICE void attend_left_all(uint32_t left[][ATTEND_DEEP][4], const struct attend_head *h, int32_t first,
                            int width, int parts)
{
    UNROLL
    for (int m = 0; m < parts; m++)
        attend_left(left[m], h, first + 16 * m, width);
}

/* This thread's part of 16 rows from `first` on, times a factor for each half of them. */
DEVICE void attend_store(const struct attend_head *h, float sum[][4], int32_t first, float upper, float lower,
                         int width)
{
    const int thread = opaque(THREAD);
    const int32_t row = first + thread % WARP / 4, column = thread % 4 * 2;
    uint16_t *const at = (uint16_t *)h->rows + row * h->stride + column;
    UNROLL
    for (int i = 0; i < width / 4; i++) {
        const int down = i % 2 * 8, right = i / 2 * 8;
        const float factor = i % 2 ? lower : upper, *const two = &sum[i / 2][i % 2 * 2];
        if (row + down >= h->length || column + right >= h->size)
            continue;
        if (h->aligned)
            ((struct attend_two *)(at + down * h->stride + right))->both =
                half_pair(two[0] * factor, two[1] * factor);
        else
            at[down * h->stride + right] = half_of(two[0] * factor);
        if (!h->aligned && column + right + 1 < h->size)
            at[down * h->stride + right + 1] = half_of(two[1] * factor);
    }
}

/* ---- products ---- */

DEVICE void attend_clear(float sum[][ATTEND_ACROSS][4], int width, int parts)
{
    UNROLL
    for (int m = 0; m < parts; m++) {
        UNROLL
        for (int n = 0; n < width / 8; n++)
            sum[m][n][0] = sum[m][n][1] = sum[m][n][2] = sum[m][n][3] = 0;
    }
}

/* Sixteen columns of sixteen rows of a tile, as two right sides of products over columns. */
DEVICE void attend_turned(uint32_t part[4], const uint32_t *tile, int row, int column, int width)
{
    const int lane = THREAD % WARP;
    matrix_rows(part, tile + (row + lane / 16 * 8 + lane % 8) * ATTEND_WORDS(width) + column / 2 +
                          lane / 8 % 2 * 4);
}

/* The same, as two right sides of products over rows. */
DEVICE void attend_right(uint32_t part[4], const uint32_t *tile, int row, int column, int width)
{
    const int lane = THREAD % WARP;
    matrix_columns(part, tile + (row + lane % 16) * ATTEND_WORDS(width) + column / 2 + lane / 16 * 4);
}

/* A product's results, 16 by 16 in two halves, as the left side of the next product. */
DEVICE void attend_again(uint32_t part[4], float halves[2][4])
{
    part[0] = half_pair(halves[0][0], halves[0][1]);
    part[1] = half_pair(halves[0][2], halves[0][3]);
    part[2] = half_pair(halves[1][0], halves[1][1]);
    part[3] = half_pair(halves[1][2], halves[1][3]);
}

/* sum (16, width) += part (16, 16) * rows [row, row + 16) of the tile, for each part */
DEVICE void attend_spread(float sum[][ATTEND_ACROSS][4], uint32_t part[][4], const uint32_t *tile, int row,
                          int width, int parts)
{
    UNROLL
    for (int n = 0; n < width / 8; n += 2) {
        uint32_t right[4];
        attend_right(right, tile, row, 8 * n, width);
        UNROLL
        for (int m = 0; m < parts; m++) {
            mma_bf16(sum[m][n], part[m], right, sum[m][n]);
            mma_bf16(sum[m][n + 1], part[m], right + 2, sum[m][n + 1]);
        }
    }
}

/* to (16, 16) += left (16, width) * rows [row, row + 16) of the tile, turned; for each part */
DEVICE void attend_scores(float to[][2][4], uint32_t left[][ATTEND_DEEP][4], const uint32_t *tile, int row,
                          int width, int parts)
{
    UNROLL
    for (int k = 0; k < width / 16; k++) {
        uint32_t right[4];
        attend_turned(right, tile, row, 16 * k, width);
        UNROLL
        for (int m = 0; m < parts; m++) {
            mma_bf16(to[m][0], left[m][k], right, to[m][0]);
            mma_bf16(to[m][1], left[m][k], right + 2, to[m][1]);
        }
    }
}

/* Four lanes have a row. */
DEVICE float attend_row_sum(float x)
{
    x += float_of(warp_xor(bits_of(x), 1));
    return x + float_of(warp_xor(bits_of(x), 2));
}

DEVICE float attend_row_most(float x)
{
    x = larger(float_of(warp_xor(bits_of(x), 1)), x);
    return larger(float_of(warp_xor(bits_of(x), 2)), x);
}

#endif
