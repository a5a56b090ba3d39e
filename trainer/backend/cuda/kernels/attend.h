/* Causal attention of bf16 both ways, by the matrix unit: scores are never in memory, sums have one order,
 * and nothing is added by atomics. Blocks of ATTEND_THREADS, any number of them.
 *
 *     attend_64, attend_128                    mixed and log_sums, for heads up to that width
 *     attend_queries_64, attend_queries_128    dq, and drift for the keys
 *     attend_keys_64, attend_keys_128          dk and dv, after the queries
 *
 * A block owns ATTEND_ROWS rows of a head times ATTEND_PARTS, ATTEND_QUERIES_PARTS or ATTEND_KEYS_PARTS of
 * the kernel's width, or several such one after the other. Scores are worked out twice on the way back, so
 * that whoever adds to a place is one block. Several heads may share one head of keys and values: heads
 * h / (heads / key_heads). Scores, softmax and sums are fp32; probabilities, and gradients of scores before
 * they are scaled, are rounded to bf16 before they are multiplied. */
#ifndef RM_TRAINER_CUDA_ATTEND_H
#define RM_TRAINER_CUDA_ATTEND_H

#include <stdint.h>

enum { ATTEND_THREADS = 128, ATTEND_ROWS = 64, ATTEND_WIDEST = 128 };

/* More parts read less of shared memory, and take more registers. */
#define ATTEND_PARTS(width)         ((width) == 64 ? 2 : 1)
#define ATTEND_KEYS_PARTS(width)    1
#define ATTEND_QUERIES_PARTS(width) ((width) == 64 ? 2 : 1)

/* Rows are those of all sequences, one after the other; in each, heads lie beside each other. q, k and v (dq,
 * dk and dv) may be parts of one matrix. Where size and stride are multiples of 8 and all three begin at
 * multiples of 16 bytes, 16 bytes are read at a time. */
struct attend_args {
    const uint16_t *q, *k, *v; // (rows, heads or key_heads * size), rows `stride` apart
    uint16_t *mixed;           // (rows, heads * size)
    float *log_sums;           // (sequences, heads, length): log of each row's sum of exponentials
    const uint16_t *dmixed;    // (rows, heads * size)
    float *drift;              // (sequences, heads, length): sums of mixed * dmixed
    uint16_t *dq, *dk, *dv;    // as q, k, v
    int64_t stride;
    int32_t sequences, length, heads, key_heads, size;
    float scale; /* of scores: 1 / sqrt(size) */
};

#endif
