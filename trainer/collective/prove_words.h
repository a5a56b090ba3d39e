/* The sum of proof_word (trainer/exact/proof.h) over neighbours, as fast as this processor can: it is worked
 * out in a reduce, as they arrive. */
#ifndef RM_COLLECTIVE_PROVE_WORDS_H
#define RM_COLLECTIVE_PROVE_WORDS_H

#include <stdint.h>

/* at: place of the first of them. No alignment is asked for. */
uint64_t prove_words(uint64_t at, const uint32_t *words, int64_t count);

#endif
