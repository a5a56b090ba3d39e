#include "trainer/backend/cuda/tokens.h"

#include <string.h>

enum { DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS };

/* Rows of `from` by one digit of their tokens; those of the same digit stay in their order. */
static void sort_by_digit(int32_t *to, const int32_t *from, const int32_t *tokens, int32_t rows, int shift)
{
    int32_t at[DIGITS + 1] = {0};
    for (int32_t i = 0; i < rows; i++)
        at[1 + (tokens[from[i]] >> shift) % DIGITS]++;
    for (int d = 0; d < DIGITS; d++)
        at[d + 1] += at[d];
    for (int32_t i = 0; i < rows; i++)
        to[at[(tokens[from[i]] >> shift) % DIGITS]++] = from[i];
}

void cuda_tokens_group(struct cuda_token_groups *g, const int32_t *tokens, int32_t rows, int32_t vocabulary,
                       int32_t *scratch)
{
    for (int32_t i = 0; i < rows; i++)
        g->order[i] = i;
    for (int shift = 0; shift < 31 && (vocabulary - 1) >> shift; shift += DIGIT_BITS) {
        sort_by_digit(scratch, g->order, tokens, rows, shift);
        memcpy(g->order, scratch, (size_t)rows * sizeof *scratch);
    }
    g->groups = 0;
    for (int32_t i = 0; i < rows; i++)
        if (!i || tokens[g->order[i]] != tokens[g->order[i - 1]])
            g->first[g->groups++] = i;
    g->first[g->groups] = rows;
}
