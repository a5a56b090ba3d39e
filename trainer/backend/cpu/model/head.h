/* The tied language-model head with its loss. Logits are never kept for all rows where they are large: rows
 * go through in chunks fixed by the shape, and each chunk's logits turn into their gradient in place. */
#ifndef RM_TRAINER_HEAD_H
#define RM_TRAINER_HEAD_H

#include "trainer/backend/cpu/model/crew.h"

struct head {
    int64_t rows, width, vocabulary;
    bool bf16;              /* x and wte are bf16, and the logits' gradient is rounded to it */
    const void *x;          /* (rows, width) */
    const void *wte;        /* (vocabulary, width) */
    const int32_t *targets; /* (rows) */
    float *losses;          /* (rows): set */
    float *logits;          /* scratch: head_scratch floats */
    float *dx;              /* (rows, width): gradient of the mean of the losses; NULL: losses alone */
    float *dwte;            /* (vocabulary, width), overwritten; NULL with dx */
};

/* Floats of the scratch memory for all rows. In bf16 each thread's own (crew.h) has MATMUL_TILE more. */
int64_t head_scratch(int64_t rows, int64_t vocabulary, bool bf16);

int head_run(struct crew *crew, const struct head *h);

/* logits (vocabulary) of the row `row` of x. */
int head_logits(struct crew *crew, const struct head *h, int64_t row, float *logits);

#endif
