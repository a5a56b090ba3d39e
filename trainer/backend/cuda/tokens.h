/* Which rows of a lane have the same token: what embed_tokens (kernels/embed.h) adds up. Pure. */
#ifndef RM_TRAINER_CUDA_TOKENS_H
#define RM_TRAINER_CUDA_TOKENS_H

#include <stdint.h>

struct cuda_token_groups {
    int32_t *order; // (rows): rows of one token beside each other, each token's in rising order
    int32_t *first; // (rows + 1): where in order each group begins, and behind the last one its end
    int32_t groups;
};

/* tokens (rows), each in [0, vocabulary). scratch (rows) is used on the way. In time that is linear in rows.
 */
void cuda_tokens_group(struct cuda_token_groups *g, const int32_t *tokens, int32_t rows, int32_t vocabulary,
                       int32_t *scratch);

#endif
