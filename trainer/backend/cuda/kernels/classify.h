/* Softmax cross-entropy of rows of logits, with its gradient in their place. Any number of blocks of
 * CLASSIFY_THREADS. */
#ifndef RM_TRAINER_CUDA_CLASSIFY_H
#define RM_TRAINER_CUDA_CLASSIFY_H

#include <stdint.h>

/* So many that few rows are under way: a row that was read for its sum is still near when its gradient takes
 * its place (100 KB of bf16 each; an H100 has 50 MB of L2). */
enum { CLASSIFY_THREADS = 512 };

/* losses[r] = -log softmax(logits[r])[target r]; then logits[r] = scale (softmax - 1 at the target), and 0
 * from vocabulary to stride: what a product over the whole stride may read. scale 0: logits stay. */
struct classify_args {
    void *logits;           // (rows, vocabulary) operands, rows `stride` apart
    const int32_t *targets; // (rows)
    float *losses;          // (rows)
    int64_t vocabulary, stride;
    int32_t rows;
    int32_t half; /* logits are bf16, else fp32 */
    float scale;
};

#endif
