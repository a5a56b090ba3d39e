/* The head of products of bf16 (head.h): the logits go from the product's tile, which is in the cache, into
 * exponentials of bf16, and those into their gradients in place. Nothing of theirs is in memory in fp32. */
#ifndef RM_TRAINER_HEAD_BF16_H
#define RM_TRAINER_HEAD_BF16_H

#include "trainer/backend/cpu/model/head.h"

int64_t head_bf16_scratch(int64_t rows, int64_t vocabulary);
int head_bf16_run(struct crew *crew, const struct head *h);

#endif
