/* Softmax and cross-entropy of rows whose logits are never in memory all at once: they come in parts of some
 * columns, each of which leaves its exponentials in bf16, and its largest logit and its sum for every row.
 *
 *     soft_part      for every part, in any order
 *     soft_gather    when all parts are done: losses, and a factor for every row of every part
 *     soft_scale     a part's exponentials become the gradient of its logits
 *
 * The sums are in fp32 and made of exponentials that are not rounded. Parts are gathered in index order. */
#ifndef RM_TRAINER_SOFT_BLOCKS_H
#define RM_TRAINER_SOFT_BLOCKS_H

#include <stdint.h>

/* logits (rows, columns), dense -> top (rows), sum (rows) of e^(logit - top), and these to e (rows, columns)
 * in bf16, row to row `stride`; e NULL: not kept. */
void soft_part(const float *logits, int64_t rows, int64_t columns, float *top, float *sum, uint16_t *e,
               int64_t stride);

struct soft {
    int64_t rows, parts;
    float *top;         /* (parts, rows): becomes what a part's exponentials must be multiplied with */
    float *sum;         /* (parts, rows) */
    const float *aimed; /* (rows): the target's logit */
    float *losses;      /* (rows): set */
    float *at_target;   /* (rows): set to the gradient of the target's logit */
    float scale;        /* of the gradients */
};

/* For the rows [first, first + count). */
void soft_gather(const struct soft *s, int64_t first, int64_t count);

/* Some parts side by side. */
struct soft_block {
    uint16_t *e; /* (rows, columns), row to row `stride` */
    int64_t rows, columns, stride;
    int64_t part;        /* columns of a part; the last one may have fewer */
    const float *factor; /* (parts, rows) */
};

/* e *= factor */
void soft_scale(const struct soft_block *b);

#endif
