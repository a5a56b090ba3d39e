#include "trainer/backend/cuda/kernels/sums.h"

#include "trainer/backend/cuda/kernels/kernel.h"
#include "trainer/backend/cuda/kernels/proof.cu"

enum { SUMS_PIECES = SUMS_THREADS / SUMS_COLUMNS /* of a block at a time */ };

/* Into *s, exactly: squares of 32 bits are below 2^62. */
DEVICE void sums_add_wide(struct sums_of_piece *s, uint64_t high, uint64_t low)
{
    s->square_low += low;
    s->square_high += high + (s->square_low < low);
}

DEVICE void sums_add_word(struct sums_of_piece *s, uint32_t word, uint64_t at, int floats)
{
    const int64_t fixed = floats ? 0 : (int32_t)word;
    const double x = floats ? (double)float_of(word) : 0;
    s->square += x * x;
    s->sum += word;
    sums_add_wide(s, 0, (uint64_t)(fixed * fixed));
    s->proof += proof_of_word(at, (uint32_t)fixed);
}

DEVICE struct sums_of_piece sums_column(const struct sums_args *a, const struct cuda_piece *p, int column)
{
    struct sums_of_piece s = {0, 0, 0, 0, 0};
    for (int i = column; i < p->count; i += SUMS_COLUMNS)
        sums_add_word(&s, a->words[p->first + i], (uint64_t)(p->first + i), a->floats);
    return s;
}

/* Columns are added in the CPU's order: j and j + 8, then j and j + 4 ... The halves of a warp are two
 * pieces; what comes over from the other half stays in columns that nobody reads any more. */
DEVICE void sums_add_columns(struct sums_of_piece *s)
{
    for (int n = SUMS_COLUMNS / 2; n > 0; n /= 2) {
        const uint64_t high = warp_down_u64(s->square_high, n), low = warp_down_u64(s->square_low, n);
        s->square += warp_down_double(s->square, n);
        s->sum += warp_down_u64(s->sum, n);
        s->proof += warp_down_u64(s->proof, n);
        sums_add_wide(s, high, low);
    }
}

KERNEL(sums, SUMS_THREADS)(const struct sums_args a)
{
    const int column = THREAD % SUMS_COLUMNS;
    const int rounds = (a.pieces + BLOCKS * SUMS_PIECES - 1) / (BLOCKS * SUMS_PIECES);
    for (int round = 0; round < rounds; round++) {
        const int i = (round * BLOCKS + BLOCK) * SUMS_PIECES + THREAD / SUMS_COLUMNS;
        const struct cuda_piece none = {0, 0, 0}, p = i < a.pieces ? a.piece[i] : none;
        struct sums_of_piece s = sums_column(&a, &p, column);
        sums_add_columns(&s);
        if (column == 0 && i < a.pieces)
            a.to[i] = s;
    }
}
