#include "common/os/sha256_many.h"

#include <string.h>

#include "common/os/crypto.h"

void sha256_one_by_one(const struct sha256_text *text, int texts)
{
    for (int i = 0; i < texts; i++)
        sha256_once(text[i].bytes, text[i].count, text[i].hash);
}

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

enum { BLOCK = 64, LENGTH_BYTES = 8, GROUPS = 16, SHA_BIT = 29 };

/* FIPS 180-4, 4.2.2; four to a group of rounds. */
static const uint32_t rounds[4 * GROUPS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

/* A running hash as the unit wants it: A, B, E, F and C, D, G, H. */
struct lane {
    __m128i abef, cdgh;
};

#define SHA_CODE __attribute__((target("sha,sse4.1,ssse3")))

static const uint32_t first_abef[4] = {0x9b05688c, 0x510e527f, 0xbb67ae85, 0x6a09e667};
static const uint32_t first_cdgh[4] = {0x5be0cd19, 0x1f83d9ab, 0xa54ff53a, 0x3c6ef372};

SHA_CODE static inline struct lane lane_begin(void)
{
    return (struct lane){_mm_loadu_si128((const __m128i *)first_abef),
                         _mm_loadu_si128((const __m128i *)first_cdgh)};
}

/* Words 4g to 4g + 3 of a block's schedule, from the sixteen before them (FIPS 180-4, 6.2.2). */
SHA_CODE static inline __m128i next_words(const __m128i *w, int g)
{
    __m128i far = _mm_sha256msg1_epu32(w[g & 3], w[(g + 1) & 3]);
    __m128i near = _mm_alignr_epi8(w[(g + 3) & 3], w[(g + 2) & 3], 4);
    return _mm_sha256msg2_epu32(_mm_add_epi32(far, near), w[(g + 3) & 3]);
}

SHA_CODE static inline void four_rounds(struct lane *l, __m128i words, __m128i constants)
{
    __m128i sum = _mm_add_epi32(words, constants);
    l->cdgh = _mm_sha256rnds2_epu32(l->cdgh, l->abef, sum);
    l->abef = _mm_sha256rnds2_epu32(l->abef, l->cdgh, _mm_shuffle_epi32(sum, 0x0e));
}

SHA_CODE static inline __m128i load_words(const uint8_t *at)
{
    const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    return _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)at), big_endian);
}

SHA_CODE static inline __m128i load_constants(int g)
{
    return _mm_loadu_si128((const __m128i *)(rounds + 4 * g));
}

/* One block of each text; the loops are unrolled, so that both chains fill each other's pauses. */
SHA_CODE static inline void two_blocks(struct lane *x, const uint8_t *at_x, struct lane *y,
                                       const uint8_t *at_y)
{
    struct lane was_x = *x, was_y = *y;
    __m128i wx[4], wy[4];
#pragma GCC unroll 16
    for (int g = 0; g < GROUPS; g++) {
        wx[g & 3] = g < 4 ? load_words(at_x + 16 * g) : next_words(wx, g);
        wy[g & 3] = g < 4 ? load_words(at_y + 16 * g) : next_words(wy, g);
        four_rounds(x, wx[g & 3], load_constants(g));
        four_rounds(y, wy[g & 3], load_constants(g));
    }
    x->abef = _mm_add_epi32(x->abef, was_x.abef);
    x->cdgh = _mm_add_epi32(x->cdgh, was_x.cdgh);
    y->abef = _mm_add_epi32(y->abef, was_y.abef);
    y->cdgh = _mm_add_epi32(y->cdgh, was_y.cdgh);
}

SHA_CODE static inline void one_block(struct lane *x, const uint8_t *at)
{
    struct lane was = *x;
    __m128i w[4];
#pragma GCC unroll 16
    for (int g = 0; g < GROUPS; g++) {
        w[g & 3] = g < 4 ? load_words(at + 16 * g) : next_words(w, g);
        four_rounds(x, w[g & 3], load_constants(g));
    }
    x->abef = _mm_add_epi32(x->abef, was.abef);
    x->cdgh = _mm_add_epi32(x->cdgh, was.cdgh);
}

static void put_big_endian(uint8_t *to, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        to[i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
}

/* What is left of a text behind `done` bytes, which are whole blocks, and the padding. */
SHA_CODE static void lane_end(struct lane *l, const struct sha256_text *text, size_t done)
{
    const uint8_t *at = (const uint8_t *)text->bytes + done;
    uint8_t last[2 * BLOCK] = {0};
    size_t left = text->count - done;
    for (; left >= BLOCK; left -= BLOCK, at += BLOCK)
        one_block(l, at);
    if (left)
        memcpy(last, at, left);
    last[left] = 0x80;
    size_t blocks = left + 1 + LENGTH_BYTES > BLOCK ? 2 : 1;
    put_big_endian(last + blocks * BLOCK - LENGTH_BYTES, (uint64_t)text->count * 8, LENGTH_BYTES);
    for (size_t i = 0; i < blocks; i++)
        one_block(l, last + i * BLOCK);

    uint32_t abef[4], cdgh[4];
    _mm_storeu_si128((__m128i *)abef, l->abef);
    _mm_storeu_si128((__m128i *)cdgh, l->cdgh);
    const uint32_t words[RM_HASH_BYTES / 4] = {abef[3], abef[2], cdgh[3], cdgh[2],
                                               abef[1], abef[0], cdgh[1], cdgh[0]};
    for (int i = 0; i < RM_HASH_BYTES / 4; i++)
        put_big_endian(text->hash + 4 * i, words[i], 4);
}

SHA_CODE static void hash_two(const struct sha256_text *x, const struct sha256_text *y)
{
    struct lane in_x = lane_begin(), in_y = lane_begin();
    size_t shared = (x->count < y->count ? x->count : y->count) / BLOCK * BLOCK;
    const uint8_t *at_x = x->bytes, *at_y = y->bytes;
    for (size_t at = 0; at < shared; at += BLOCK)
        two_blocks(&in_x, at_x + at, &in_y, at_y + at);
    lane_end(&in_x, x, shared);
    lane_end(&in_y, y, shared);
}

bool sha256_has_pairs(void)
{
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> SHA_BIT & 1) &&
           __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("ssse3");
}

void sha256_many(const struct sha256_text *text, int texts)
{
    int i = 0;
    if (texts > 1 && sha256_has_pairs())
        for (; i + 1 < texts; i += 2)
            hash_two(&text[i], &text[i + 1]);
    sha256_one_by_one(text + i, texts - i);
}

#else

bool sha256_has_pairs(void)
{
    return false;
}

void sha256_many(const struct sha256_text *text, int texts)
{
    sha256_one_by_one(text, texts);
}

#endif
