/* Products of bf16 operands by AVX-512's instruction for pairs of them (vdpbf16ps). For matmul.c only.
 *
 * An element of c is one chain of additions over k, two at a time in ascending order, whatever the tile that
 * it lies in and the thread that computes it: its bits depend on its row of a, its column of b and k alone.
 */
#ifndef RM_TRAINER_MATMUL_BF16_H
#define RM_TRAINER_MATMUL_BF16_H

#include "trainer/backend/cpu/model/matmul.h"

/* This processor has the instructions, and they are not switched off. */
bool matmul_bf16_here(void);

/* On the calling thread, which keeps some memory for it. -1: there is none. */
int matmul_bf16(const struct product *p);

#endif
