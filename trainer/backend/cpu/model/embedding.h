/* Token and position embeddings. tokens (sequences, length); x and dx (sequences, length, width). */
#ifndef RM_TRAINER_EMBEDDING_H
#define RM_TRAINER_EMBEDDING_H

#include <stdint.h>

struct embedding {
    const int32_t *tokens;
    int sequences, length;
    int64_t width;
};

/* x[n] = wte[token n] + wpe[position of n], for the rows [first, first + count). */
void embedding_forward(const struct embedding *e, const float *wte, const float *wpe, float *x, int64_t first,
                       int64_t count);

/* Columns [first, first + count): adds to dwte (which holds the head's share) in order of rows, and sets the
 * first `length` rows of dwpe. */
void embedding_backward(const struct embedding *e, const float *dx, float *dwte, float *dwpe, int64_t first,
                        int64_t count);

#endif
