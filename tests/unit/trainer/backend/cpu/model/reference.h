/* GPT-2's loss in double precision, written as slowly and obviously as possible: the yardstick of the kernels
 * and, by finite differences, of their gradients. */
#ifndef RM_TESTS_MODEL_REFERENCE_H
#define RM_TESTS_MODEL_REFERENCE_H

#include <stdint.h>

#include "common/model/layout.h"

/* Mean loss of one sequence: tokens (length + 1). params flat, as doubles. */
double reference_loss(const struct model_layout *layout, const double *params, const int32_t *tokens,
                      int length);

/* Logits (length, vocabulary) of one sequence, into the caller's memory. */
void reference_logits(const struct model_layout *layout, const double *params, const int32_t *tokens,
                      int length, double *logits);

double reference_gelu(double x);

#endif
