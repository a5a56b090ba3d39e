/* Large pieces cut into smaller ones that can be verified by themselves. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/prng.h"
#include "common/os/crypto.h"
#include "common/storage/checkpoint/manifest.h"
#include "common/storage/checkpoint/piece_hash.h"

static struct manifest whole, cut;

static void piece_hash(const uint8_t (*hash)[RM_HASH_BYTES], int64_t chunks, uint8_t out[RM_HASH_BYTES])
{
    if (whole.hash == MANIFEST_XXH3)
        piece_of_sums(MANIFEST_XXH3, hash, chunks, out); /* piece_hash_test.c holds it to its definition */
    else if (chunks == 1)
        memcpy(out, hash[0], RM_HASH_BYTES);
    else
        sha256_once(hash, (size_t)chunks * RM_HASH_BYTES, out);
}

static uint8_t (*make_hashes(int64_t chunks))[RM_HASH_BYTES]
{
    uint8_t(*hash)[RM_HASH_BYTES] = calloc((size_t)chunks, RM_HASH_BYTES);
    uint64_t seed = 5;
    for (int64_t i = 0; i < chunks; i++)
        for (int b = 0; b < RM_HASH_BYTES; b++)
            hash[i][b] = (uint8_t)splitmix64(&seed);
    return hash;
}

/* The pieces of `cut` follow each other, and each has the hash of its own chunks, which are the whole's. */
static void expect_same_bytes(const uint8_t (*hash)[RM_HASH_BYTES])
{
    int c = 0;
    for (int i = 0; i < whole.pieces; i++) {
        int64_t at = 0;
        for (; c < cut.pieces && at < whole.piece[i].bytes; c++) {
            uint8_t expected[RM_HASH_BYTES];
            const struct manifest_piece *piece = &cut.piece[c];
            int64_t chunks = piece_chunks(piece->bytes, PIECE_CHUNK);
            cr_assert_str_eq(piece->file, whole.piece[i].file);
            cr_assert_eq(piece->offset, whole.piece[i].offset + at);
            piece_hash(hash, chunks, expected);
            cr_assert_arr_eq(piece->sha256, expected, RM_HASH_BYTES);
            hash += chunks;
            at += piece->bytes;
        }
        cr_assert_eq(at, whole.piece[i].bytes, "piece %d", i);
    }
    cr_assert_eq(c, cut.pieces);
}

static void try_sizes_with(enum manifest_hash kind, const int64_t *bytes, int n)
{
    int64_t chunks = 0;
    memset(&whole, 0, sizeof whole);
    whole.hash = kind;
    for (int i = 0; i < n; i++) {
        struct manifest_piece *piece = &whole.piece[whole.pieces++];
        piece->bytes = bytes[i];
        snprintf(piece->file, sizeof piece->file, "file-%d", i / 2);
        piece->offset = i % 2 ? bytes[i - 1] : 0;
        chunks += piece_chunks(bytes[i], PIECE_CHUNK);
    }
    uint8_t(*hash)[RM_HASH_BYTES] = make_hashes(chunks);
    cut = whole;
    manifest_cut(&cut, (const uint8_t(*)[RM_HASH_BYTES])hash);
    cr_assert_leq(cut.pieces, MANIFEST_PIECES_MAX);
    expect_same_bytes((const uint8_t(*)[RM_HASH_BYTES])hash);
    free(hash);
}

static void try_sizes(const int64_t *bytes, int n)
{
    try_sizes_with(MANIFEST_XXH3, bytes, n);
    try_sizes_with(MANIFEST_SHA256, bytes, n);
}

Test(manifest_cut, small_ones_stay_as_they_are_but_for_their_chunks)
{
    static const int64_t bytes[] = {700, PIECE_CHUNK, 2 * PIECE_CHUNK - 1};
    try_sizes(bytes, 3);
    cr_assert_eq(cut.pieces, 3);
}

Test(manifest_cut, large_ones_become_one_for_each_chunk_and_the_last_takes_what_is_left)
{
    static const int64_t bytes[] = {2 * PIECE_CHUNK, 5 * PIECE_CHUNK + 9, 1, (int64_t)40 * PIECE_CHUNK - 4};
    try_sizes(bytes, 4);
    cr_assert_eq(cut.pieces, 2 + 5 + 1 + 39);
}

Test(manifest_cut, however_much_there_is_the_list_stays_short)
{
    int64_t bytes[MANIFEST_PIECES_WRITTEN];
    for (int i = 0; i < MANIFEST_PIECES_WRITTEN; i++)
        bytes[i] = ((int64_t)i + 1) * 300 * PIECE_CHUNK + 17 * i;
    try_sizes(bytes, MANIFEST_PIECES_WRITTEN);
    cr_assert_gt(cut.pieces, MANIFEST_PIECES_CUT / 2);
}
