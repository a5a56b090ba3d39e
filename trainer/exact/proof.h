/* Sums by which a step's words and a state's bits can be compared without being sent. Pure.
 *
 * Of words: the sum of weight(position) * word modulo 2^64, the words taken as signed. It is linear, so the
 * sums of all lanes add up to that of the reduced words, where nothing overflowed (the pass fits). A weight
 * is odd and has 30 bits: one wrong bit always shows, a pair of equal ones unless their weights coincide.
 *
 * Of a state: the bits of its elements as numbers, one sum a piece (trainer/state), and the sum of those. */
#ifndef RM_TRAINER_PROOF_H
#define RM_TRAINER_PROOF_H

#include <stdint.h>
#include <string.h>

#define PROOF_FACTOR 0x9e3779b1u

/* The weight of the element at that place in flat order. */
static inline uint32_t proof_weight(uint64_t at)
{
    return ((uint32_t)at * PROOF_FACTOR >> 2) | 1;
}

static inline uint64_t proof_word(uint64_t at, uint32_t word)
{
    return (uint64_t)((int64_t)(int32_t)word * (int64_t)proof_weight(at));
}

/* The sum of neighbours, the first of them at that place. */
static inline uint64_t proof_words(uint64_t at, const uint32_t *words, int64_t count)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += proof_word(at + (uint64_t)i, words[i]);
    return sum;
}

/* Two neighbours at a time, each in one half of 64 bits: so a vector is loaded whole, and none of its halves
 * has to be spread out first. */
static inline __attribute__((always_inline)) uint64_t proof_array(const float *values, int count)
{
    uint64_t low = 0, high = 0, two;
    uint32_t last = 0;
    for (int i = 0; i < count / 2; i++) {
        memcpy(&two, values + 2 * i, sizeof two);
        low += two & UINT32_MAX;
        high += two >> 32;
    }
    if (count % 2)
        memcpy(&last, values + count - 1, sizeof last);
    return low + high + last;
}

/* What went to another of the three arrays counts otherwise. */
static inline __attribute__((always_inline)) uint64_t proof_piece(const float *params, const float *m,
                                                                  const float *v, int count)
{
    return proof_array(params, count) + 0x9e3779b97f4a7c15u * proof_array(m, count) +
           0xc2b2ae3d27d4eb4fu * proof_array(v, count);
}

#endif
