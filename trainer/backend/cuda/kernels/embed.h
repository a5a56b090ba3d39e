/* Token and position embeddings both ways. Any number of blocks of EMBED_THREADS; rows are those of all
 * sequences, one after the other, `length` each. */
#ifndef RM_TRAINER_CUDA_EMBED_H
#define RM_TRAINER_CUDA_EMBED_H

#include <stdint.h>

enum { EMBED_THREADS = 256, EMBED_EACH = 8 /* rows of one token that are read together */ };

/* x[n] = wte[token n] + wpe[position of n] */
struct embed_args {
    const int32_t *tokens; // (rows)
    const float *wte;      // (vocabulary, width)
    const float *wpe;      // (length or more, width); NULL: positions are no embedding
    float *x;              // (rows, width)
    int64_t width;
    int32_t rows, length;
};

/* dwte[t] += dx of each row of token t, in order of rows. Which rows those are was worked out beforehand
 * (trainer/backend/cuda/tokens.h), so that no two blocks add to one place. */
struct embed_tokens_args {
    const int32_t *tokens; // (rows)
    const int32_t *order;  // (rows): rows of one token beside each other, each token's in rising order
    const int32_t *first;  // (*groups + 1): where in order each token's begin
    const int32_t *groups; /* how many different tokens there are */
    const float *dx;       // (rows, width)
    float *dwte;           // (vocabulary, width)
    int64_t width;
};

/* dwpe[t] = the sum of dx over the sequences' rows at position t, in order, for t < length. */
struct embed_places_args {
    const float *dx; // (sequences, length, width)
    float *dwpe;     // (length or more, width)
    int64_t width;
    int32_t sequences, length;
};

#endif
