#include "trainer/backend/cuda/kernels/embed.h"

#include "trainer/backend/cuda/kernels/kernel.h"

KERNEL(embed, EMBED_THREADS)(const struct embed_args a)
{
    for (int32_t n = BLOCK; n < a.rows; n += BLOCKS) {
        const float *const token = a.wte + a.tokens[n] * a.width;
        const float *const place = a.wpe ? a.wpe + n % a.length * a.width : 0;
        for (int64_t j = THREAD; j < a.width; j += EMBED_THREADS)
            a.x[n * a.width + j] = place ? token[j] + place[j] : token[j];
    }
}

/* sum plus the rows order[i..end) of column j, EMBED_EACH at most; all are read before one is added. */
DEVICE float embed_add_some(const struct embed_tokens_args *a, float sum, int32_t i, int32_t end, int64_t j)
{
    float x[EMBED_EACH];
    UNROLL
    for (int k = 0; k < EMBED_EACH; k++)
        x[k] = i + k < end ? a->dx[a->order[i + k] * a->width + j] : 0;
    UNROLL
    for (int k = 0; k < EMBED_EACH; k++)
        sum = i + k < end ? sum + x[k] : sum;
    return sum;
}

KERNEL(embed_tokens, EMBED_THREADS)(const struct embed_tokens_args a)
{
    for (int32_t g = BLOCK; g < *a.groups; g += BLOCKS) {
        const int32_t first = a.first[g], end = a.first[g + 1];
        float *const row = a.dwte + a.tokens[a.order[first]] * a.width;
        for (int64_t j = THREAD; j < a.width; j += EMBED_THREADS) {
            float sum = row[j];
            for (int32_t i = first; i < end; i += EMBED_EACH)
                sum = embed_add_some(&a, sum, i, end, j);
            row[j] = sum;
        }
    }
}

KERNEL(embed_places, EMBED_THREADS)(const struct embed_places_args a)
{
    for (int32_t t = BLOCK; t < a.length; t += BLOCKS)
        for (int64_t j = THREAD; j < a.width; j += EMBED_THREADS) {
            float sum = 0;
            for (int32_t b = 0; b < a.sequences; b++)
                sum += a.dx[((int64_t)b * a.length + t) * a.width + j];
            a.dwpe[t * a.width + j] = sum;
        }
}
