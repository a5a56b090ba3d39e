#include "trainer/collective/prove_words.h"

#include "trainer/exact/proof.h"

uint64_t prove_words(uint64_t at, const uint32_t *words, int64_t count)
{
    return proof_words(at, words, count);
}
