/* What the kernels of attention share: tiles in shared memory, and the matrix unit's parts of them.
 *
 * A tile is ATTEND_ROWS rows of one head, pairs of bf16 as words, with zeros behind the last row and the last
 * column. `width` is the head's as the kernel is made for it, and a number that the compiler knows. Rows of a
 * tile lie four words further apart than they are long: then eight rows' words are in different banks. */
#ifndef RM_TRAINER_CUDA_ATTEND_PARTS_CU
#define RM_TRAINER_CUDA_ATTEND_PARTS_CU

#include "trainer/backend/cuda/kernels/attend.h"

#include "trainer/backend/cuda/kernels/operand.cu"

#define ATTEND_WORDS(width) ((width) / 2 + 4)
#define ATTEND_TILE(width)  (ATTEND_ROWS * ATTEND_WORDS(width))
#define ATTEND_LOG2E        1.4426950408889634f
#define ATTEND_NOTHING      (-3.4e38f) /* no score is smaller, and its power of two is 0 */

enum { ATTEND_EIGHT = 8 /* bf16 of 16 bytes */, ATTEND_STEP = 16 /* rows of a product's inner size */ };

/* One head of one sequence. */
struct attend_head {
    const uint16_t *rows;
    int64_t stride;
    int32_t length, size;
};

DEVICE struct attend_head attend_head_of(const uint16_t *matrix, int64_t stride, const struct attend_args *a,
                                         int32_t sequence, int32_t head)
{
    const struct attend_head h = {matrix + (int64_t)sequence * a->length * stride + (int64_t)head * a->size,
                                  stride, a->length, a->size};
    return h;
}

/* Two neighbours of a row, 0 where there are none. */
DEVICE uint32_t attend_pair(const struct attend_head *h, int32_t row, int32_t column)
{
    if (row >= h->length)
        return 0;
    const uint16_t *const at = h->rows + row * h->stride + column;
    const uint32_t low = column < h->size ? at[0] : 0, high = column + 1 < h->size ? at[1] : 0;
    return low | high << 16;
}

struct WIDE attend_eight {
    uint32_t word[4];
};

DEVICE int attend_aligned(const struct attend_head *h)
{
    return h->size % ATTEND_EIGHT == 0 && h->stride % ATTEND_EIGHT == 0 && (uintptr_t)h->rows % 16 == 0;
}

/* Rows from `first` on, by all threads of the block. */
DEVICE void attend_load(uint32_t *tile, const struct attend_head *h, int32_t first, int width)
{
    const int eights = width / ATTEND_EIGHT, aligned = attend_aligned(h);
    for (int i = THREAD; i < ATTEND_ROWS * eights; i += ATTEND_THREADS) {
        const int32_t row = first + i / eights, column = i % eights * ATTEND_EIGHT;
        uint32_t *const to = tile + i / eights * ATTEND_WORDS(width) + column / 2;
        struct attend_eight x = {{0, 0, 0, 0}};
        if (aligned && row < h->length && column < h->size)
            x = *(const struct attend_eight *)(h->rows + row * h->stride + column);
        UNROLL
        for (int j = 0; j < 4; j++)
            to[j] = aligned ? x.word[j] : attend_pair(h, row, column + 2 * j);
    }
}

/* This thread's part of a 16-row left side, from memory: rows from `first` on, columns from `column` on. */
DEVICE void attend_left(uint32_t part[4], const struct attend_head *h, int32_t first, int32_t column)
{
    const int32_t row = first + THREAD % WARP / 4, at = column + THREAD % 4 * 2;
    part[0] = attend_pair(h, row, at);
    part[1] = attend_pair(h, row + 8, at);
    part[2] = attend_pair(h, row, at + 8);
    part[3] = attend_pair(h, row + 8, at + 8);
}

/* Sixteen columns of eight rows of a tile, as the right side of a product over columns. */
DEVICE void attend_turned(uint32_t part[2], const uint32_t *tile, int row, int column, int width)
{
    const uint32_t *const at =
        tile + (row + THREAD % WARP / 4) * ATTEND_WORDS(width) + column / 2 + THREAD % 4;
    part[0] = at[0];
    part[1] = at[4];
}

/* Eight columns of sixteen rows of a tile, as the right side of a product over rows. */
DEVICE void attend_right(uint32_t part[2], const uint32_t *tile, int row, int column, int width)
{
    const int words = ATTEND_WORDS(width), shift = THREAD % WARP / 4 % 2 * 16;
    const uint32_t *const at = tile + (row + THREAD % 4 * 2) * words + (column + THREAD % WARP / 4) / 2;
    UNROLL
    for (int i = 0; i < 2; i++) {
        const uint32_t upper = at[8 * i * words], lower = at[(8 * i + 1) * words];
        part[i] = (upper >> shift & 0xffffu) | lower >> shift << 16;
    }
}

/* A product's results, 16 by 16 in two halves, as the left side of the next product. */
DEVICE void attend_again(uint32_t part[4], const float left[4], const float right[4])
{
    part[0] = half_pair(left[0], left[1]);
    part[1] = half_pair(left[2], left[3]);
    part[2] = half_pair(right[0], right[1]);
    part[3] = half_pair(right[2], right[3]);
}

/* sum (16, width) += part (16, 16) * rows [row, row + 16) of the tile */
DEVICE void attend_spread(float sum[][4], const uint32_t part[4], const uint32_t *tile, int row, int width)
{
    UNROLL
    for (int n = 0; n < width / 8; n++) {
        uint32_t right[2];
        attend_right(right, tile, row, 8 * n, width);
        mma_bf16(sum[n], part, right, sum[n]);
    }
}

/* to (16, 8) = left (16, width) * rows [row, row + 8) of the tile, turned */
DEVICE void attend_scores(float to[4], uint32_t left[][4], const uint32_t *tile, int row, int width)
{
    to[0] = to[1] = to[2] = to[3] = 0;
    UNROLL
    for (int k = 0; k < width / 16; k++) {
        uint32_t right[2];
        attend_turned(right, tile, row, 16 * k, width);
        mma_bf16(to, left[k], right, to);
    }
}

/* This thread's part of 16 rows from `first` on, times a factor for each half of them. */
DEVICE void attend_store(const struct attend_head *h, float sum[][4], int32_t first, float upper, float lower,
                         int width)
{
    uint16_t *const rows = (uint16_t *)h->rows;
    UNROLL
    for (int n = 0; n < width / 8; n++)
        for (int i = 0; i < 4; i++) {
            const int32_t row = first + THREAD % WARP / 4 + i / 2 * 8;
            const int32_t column = 8 * n + THREAD % 4 * 2 + i % 2;
            if (row < h->length && column < h->size)
                rows[row * h->stride + column] = half_of(sum[n][i] * (i < 2 ? upper : lower));
        }
}

/* Four lanes have a row. */
DEVICE float attend_row_sum(float x)
{
    x += float_of(warp_xor(bits_of(x), 1));
    return x + float_of(warp_xor(bits_of(x), 2));
}

DEVICE float attend_larger(float a, float b)
{
    return a > b ? a : b;
}

DEVICE float attend_row_most(float x)
{
    x = attend_larger(float_of(warp_xor(bits_of(x), 1)), x);
    return attend_larger(float_of(warp_xor(bits_of(x), 2)), x);
}

#endif
