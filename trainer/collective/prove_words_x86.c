/* Eight at a time where there is AVX2. */
#include "trainer/collective/prove_words.h"

#include <immintrin.h>

#include "trainer/exact/proof.h"

__attribute__((target("avx2"))) static uint64_t by_eights(uint64_t at, const uint32_t *words, int64_t count)
{
    const __m256i one = _mm256_set1_epi32(1), next = _mm256_set1_epi32((int)(8 * PROOF_FACTOR));
    __m256i even = _mm256_setzero_si256(), odd = even;
    uint32_t start[8];
    uint64_t part[4];
    int64_t i = 0;
    for (uint32_t j = 0; j < 8; j++)
        start[j] = ((uint32_t)at + j) * PROOF_FACTOR;
    __m256i ramp = _mm256_loadu_si256((const __m256i *)start);
    for (; i + 8 <= count; i += 8) {
        __m256i q = _mm256_loadu_si256((const __m256i *)(words + i));
        __m256i weight = _mm256_or_si256(_mm256_srli_epi32(ramp, 2), one);
        ramp = _mm256_add_epi32(ramp, next);
        even = _mm256_add_epi64(even, _mm256_mul_epi32(q, weight));
        odd =
            _mm256_add_epi64(odd, _mm256_mul_epi32(_mm256_srli_epi64(q, 32), _mm256_srli_epi64(weight, 32)));
    }
    _mm256_storeu_si256((__m256i *)part, _mm256_add_epi64(even, odd));
    return part[0] + part[1] + part[2] + part[3] + proof_words(at + (uint64_t)i, words + i, count - i);
}

uint64_t prove_words(uint64_t at, const uint32_t *words, int64_t count)
{
    return __builtin_cpu_supports("avx2") ? by_eights(at, words, count) : proof_words(at, words, count);
}
