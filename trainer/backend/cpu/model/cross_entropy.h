/* Softmax cross-entropy of one row of logits, fused with its gradient. */
#ifndef RM_TRAINER_CROSS_ENTROPY_H
#define RM_TRAINER_CROSS_ENTROPY_H

#include <stdint.h>

/* -log softmax(logits)[target]. The logits become their gradient times `scale` where scale is not 0, else
 * they are left as garbage. */
float cross_entropy(float *logits, int64_t n, int32_t target, float scale);

#endif
