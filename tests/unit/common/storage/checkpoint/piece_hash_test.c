#include "common/storage/checkpoint/piece_hash.h"

#include <criterion/criterion.h>
#include <string.h>

#include "common/os/crypto.h"
#include "common/os/xxh3.h"

enum { MOST = 4 * PIECE_CHUNK, HEADER = 1000, CHUNKS_MOST = 4 };

static uint8_t bytes[MOST];

static const int64_t sizes[] = {
    1, HEADER + 1, PIECE_CHUNK, 2 * PIECE_CHUNK - 1, 2 * PIECE_CHUNK, 3 * PIECE_CHUNK + 7, MOST};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void make_bytes(void)
{
    crypto_random(bytes, 4096);
    for (size_t done = 4096; done < MOST; done *= 2)
        memcpy(bytes + done, bytes, done);
    for (int64_t at = 0; at < MOST; at += 1 << 20)
        bytes[at] = (uint8_t)(at >> 20);
}

/* The definition, as it is written down. */
static void by_definition(enum manifest_hash kind, int64_t size, uint8_t out[RM_HASH_BYTES])
{
    uint8_t hash[CHUNKS_MOST][RM_HASH_BYTES], list[CHUNKS_MOST][XXH3_BYTES];
    int64_t chunks = size / PIECE_CHUNK > 1 ? size / PIECE_CHUNK : 1;
    for (int64_t i = 0; i < chunks; i++) {
        int64_t end = i + 1 < chunks ? (i + 1) * PIECE_CHUNK : size;
        sha256_once(bytes + i * PIECE_CHUNK, (size_t)(end - i * PIECE_CHUNK), hash[i]);
        xxh3_once(bytes + i * PIECE_CHUNK, (size_t)(end - i * PIECE_CHUNK), list[i]);
    }
    if (kind == MANIFEST_XXH3)
        sha256_once(list, (size_t)chunks * XXH3_BYTES, out);
    else if (chunks == 1)
        memcpy(out, hash[0], RM_HASH_BYTES);
    else
        sha256_once(hash, (size_t)chunks * RM_HASH_BYTES, out);
}

static const enum manifest_hash kinds[] = {MANIFEST_XXH3, MANIFEST_SHA256};

static struct object_body body_of(int64_t size)
{
    struct object_body body = {.runs = 1, .run = {{bytes, (size_t)size}}};
    if (size <= HEADER)
        return body;
    size_t rest = (size_t)size - HEADER, half = rest / 2;
    body.runs = 3;
    body.run[0].count = HEADER;
    body.run[1].bytes = bytes + HEADER;
    body.run[1].count = half;
    body.run[2].bytes = bytes + HEADER + half;
    body.run[2].count = rest - half;
    return body;
}

Test(piece_hash, a_body_of_several_runs_has_the_hash_of_the_definition)
{
    make_bytes();
    for (int i = 0; i < 2 * SIZES; i++) {
        uint8_t expected[RM_HASH_BYTES], is[RM_HASH_BYTES], sum[CHUNKS_MOST][RM_HASH_BYTES];
        int64_t size = sizes[i / 2];
        struct object_body body = body_of(size);
        by_definition(kinds[i % 2], size, expected);
        piece_hash_body(kinds[i % 2], &body, size, sum, is);
        cr_assert_arr_eq(is, expected, sizeof is, "%lld bytes", (long long)size);
    }
}

/* step 0: as it is wanted. */
static void stream(int64_t size, enum manifest_hash kind, int64_t step, uint8_t out[RM_HASH_BYTES])
{
    struct piece_stream *s = piece_stream_open(size, kind);
    for (int64_t at = 0; at < size;) {
        int64_t count = step ? step : piece_stream_wants(s);
        cr_assert(count > 0 && (step || kind == MANIFEST_WHOLE || count <= PIECE_WANTS_MOST));
        count = count < size - at ? count : size - at;
        piece_stream_add(s, bytes + at, count);
        at += count;
    }
    piece_stream_finish(s, out);
}

Test(piece_hash, it_does_not_matter_how_the_bytes_come)
{
    static const int64_t steps[] = {0, (1 << 20) + 3, PIECE_CHUNK - 1, MOST};
    make_bytes();
    for (int i = 0; i < 2 * SIZES; i++)
        for (size_t j = 0; j < sizeof steps / sizeof *steps; j++) {
            uint8_t expected[RM_HASH_BYTES], is[RM_HASH_BYTES];
            int64_t size = sizes[i / 2];
            by_definition(kinds[i % 2], size, expected);
            stream(size, kinds[i % 2], steps[j], is);
            cr_assert_arr_eq(is, expected, sizeof is, "%lld bytes by %lld", (long long)size,
                             (long long)steps[j]);
        }
}

Test(piece_hash, pieces_of_version_1_have_one_hash_of_all_their_bytes)
{
    uint8_t expected[RM_HASH_BYTES], is[RM_HASH_BYTES];
    make_bytes();
    sha256_once(bytes, MOST, expected);
    stream(MOST, MANIFEST_WHOLE, PIECE_CHUNK, is);
    cr_assert_arr_eq(is, expected, sizeof is);
}

Test(piece_hash, one_that_is_given_up_leaves_nothing_behind)
{
    make_bytes();
    for (int i = 0; i < 2; i++) {
        struct piece_stream *s = piece_stream_open(MOST, kinds[i]);
        piece_stream_add(s, bytes, PIECE_CHUNK + 1);
        piece_stream_free(s);
        piece_sum_free(piece_sum_open(kinds[i]));
    }
    piece_sum_free(NULL);
    piece_stream_free(NULL);
}
