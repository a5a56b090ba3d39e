/* One more token of a text that is being written, at the cost of one row: keys and values of the tokens
 * before it are those that the last pass left in the activations. */
#ifndef RM_TRAINER_GPT_STEP_H
#define RM_TRAINER_GPT_STEP_H

#include "trainer/backend/cpu/model/gpt.h"

/* Whether g keeps what is asked for here: in fp32, without activations that are computed again. */
bool gpt_can_step(const struct gpt *g);

/* Logits that follow the first `length` (2 to context) tokens: logits (vocabulary). The last call on g must
 * have been gpt_next_logits or this with the first length - 1 of the same tokens and the same params; nothing
 * checks that. As gpt_next_logits within rounding: a product of one row has its own order of additions, the
 * same for any number of threads and on every processor. */
void gpt_step_logits(struct gpt *g, const float *params, const int32_t *tokens, int length, float *logits);

#endif
