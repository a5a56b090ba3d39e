#include <stdlib.h>
#include <string.h>

#include "common/storage/checkpoint/manifest.h"
#include "common/storage/checkpoint/piece_hash.h"

/* A piece has so many chunks then. */
static int64_t chunks_each(const struct manifest *m)
{
    int64_t chunks = 0;
    for (int i = 0; i < m->pieces; i++)
        chunks += piece_chunks(m->piece[i].bytes, PIECE_CHUNK);
    return (chunks + MANIFEST_PIECES_CUT - 1) / MANIFEST_PIECES_CUT;
}

/* The last chunk of what is cut is the last one of the whole, so that both are cut into the same chunks. */
static int cut_one(enum manifest_hash hash, const struct manifest_piece *whole, int64_t each,
                   const uint8_t (*sum)[RM_HASH_BYTES], struct manifest_piece *out)
{
    int64_t chunks = piece_chunks(whole->bytes, PIECE_CHUNK);
    int n = 0;
    for (int64_t i = 0; i < chunks; i += each) {
        int64_t here = i + each < chunks ? each : chunks - i;
        int64_t end = i + here < chunks ? (i + here) * PIECE_CHUNK : whole->bytes;
        struct manifest_piece *piece = &out[n++];
        *piece = *whole;
        piece->offset = whole->offset + i * PIECE_CHUNK;
        piece->bytes = end - i * PIECE_CHUNK;
        piece_of_sums(hash, sum + i, here, piece->sha256);
    }
    return n;
}

void manifest_cut(struct manifest *m, const uint8_t (*sum)[RM_HASH_BYTES])
{
    int64_t each = chunks_each(m);
    struct manifest_piece *cut = calloc(MANIFEST_PIECES_MAX, sizeof *cut);
    int n = 0;
    if (!cut)
        return; /* as it is, it is right, too */
    for (int i = 0; i < m->pieces && m->pieces <= MANIFEST_PIECES_WRITTEN; i++) {
        n += cut_one(m->hash, &m->piece[i], each, sum, cut + n);
        sum += piece_chunks(m->piece[i].bytes, PIECE_CHUNK);
    }
    if (n)
        memcpy(m->piece, cut, (size_t)n * sizeof *cut);
    m->pieces = n ? n : m->pieces;
    free(cut);
}
