#include "trainer/collective/stream_copy.h"

#include <emmintrin.h>
#include <stdint.h>
#include <string.h>

void stream_copy(void *to, const void *from, size_t bytes)
{
    size_t head = (size_t)(-(uintptr_t)to & 15), at;
    head = head < bytes ? head : bytes;
    memcpy(to, from, head);
    for (at = head; at + 64 <= bytes; at += 64) {
        const __m128i *in = (const __m128i *)(const void *)((const char *)from + at);
        __m128i *out = (__m128i *)(void *)((char *)to + at);
        __m128i a = _mm_loadu_si128(in), b = _mm_loadu_si128(in + 1), c = _mm_loadu_si128(in + 2),
                d = _mm_loadu_si128(in + 3);
        _mm_stream_si128(out, a);
        _mm_stream_si128(out + 1, b);
        _mm_stream_si128(out + 2, c);
        _mm_stream_si128(out + 3, d);
    }
    memcpy((char *)to + at, (const char *)from + at, bytes - at);
    _mm_sfence(); /* such writes keep no order with others */
}
