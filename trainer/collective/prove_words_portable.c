#include "trainer/collective/prove_words.h"

#include "trainer/exact/proof.h"

uint64_t prove_words(uint64_t at, const uint32_t *words, int64_t count)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += proof_word(at + (uint64_t)i, words[i]);
    return sum;
}
