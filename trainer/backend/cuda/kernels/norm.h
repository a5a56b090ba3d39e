/* Normalised rows: layer norm, or RMS norm (`rms`: no mean is taken off), with what is added to the residual
 * stream before, and the way back. Any number of blocks of NORM_THREADS, whose number changes no bit. */
#ifndef RM_TRAINER_CUDA_NORM_H
#define RM_TRAINER_CUDA_NORM_H

#include <stdint.h>

enum { NORM_THREADS = 256, NORM_ROWS = 32 /* of one share of the gradients of weight and bias */ };

struct norm_stats {
    float mean, scale; /* scale = 1 / sqrt(variance + epsilon); of RMS norm the mean is 0 */
};

/* x = stream (+ add + add_bias), to = (x - mean) scale weight + bias */
struct norm_rows_args {
    const float *stream;      // (rows, width)
    const void *add;          // (rows, width) operands; NULL: nothing is added
    const float *add_bias;    // (width), goes with add; NULL: none
    float *to_stream;         // (rows, width): x; may be stream; not touched where nothing is added
    const float *weight;      // (width)
    const float *bias;        // (width); NULL: none
    void *to;                 // (rows, width) operands
    struct norm_stats *stats; // (rows)
    int64_t width;
    int32_t rows;
    int32_t half, rms; /* half: operands are bf16, else fp32 */
    float epsilon;
};

/* dstream += the gradient of x, by stats and x of the way forward. */
struct norm_back_args {
    const void *dy;                 // (rows, width) operands: gradient of `to`
    const float *x;                 // (rows, width)
    const struct norm_stats *stats; // (rows)
    const float *weight;            // (width)
    float *dstream;                 // (rows, width)
    uint16_t *rounded;              // (rows, width): dstream in bf16; NULL: nobody needs it
    float *partial;                 // (rows / NORM_ROWS, up; 2, width): gradients of weight and bias
    int64_t width;
    int32_t rows;
    int32_t half, rms;
    int32_t store; /* dstream = instead of += */
};

#endif
