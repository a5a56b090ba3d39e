/* manifest.json: what a checkpoint is, and the hash of every byte of it. Written last; a folder without one
 * is no checkpoint. docs/file-formats.md describes the JSON. Plain data: nothing to free. */
#ifndef RM_STORE_MANIFEST_H
#define RM_STORE_MANIFEST_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/limits.h"
#include "common/base/str.h"
#include "common/model/layout.h"
#include "common/storage/checkpoint/manifest_hash.h"

enum {
    MANIFEST_VERSION = 4,
    MANIFEST_FILE_MAX = 56,       /* a file's name, with its NUL */
    MANIFEST_COMPARED_MAX = 8192, /* the compared fields as JSON, with its NUL */
    MANIFEST_TEXTS = 4,           /* config.json and what says what tokens mean */
    MANIFEST_PIECES_WRITTEN = 2 * RM_WORKERS_MAX + MANIFEST_TEXTS, /* and a slice of both kinds each */
    MANIFEST_TOKENIZER_MAX = 24 << 20,                             /* bytes of a tokenizer.json */
    MANIFEST_PIECES_CUT = 512, /* about so many they are cut into (manifest_cut) */
    MANIFEST_PIECES_MAX = MANIFEST_PIECES_WRITTEN + MANIFEST_PIECES_CUT,
    MANIFEST_TEXT_MAX = 1 << 20,
};

const char *manifest_hash_word(enum manifest_hash hash); /* "xxh3", "sha256" */

/* A range of one file of the checkpoint and its hash. The pieces of a file follow each other from 0 to its
 * end. */
struct manifest_piece {
    char file[MANIFEST_FILE_MAX]; /* "model.safetensors" */
    int64_t offset, bytes;
    uint8_t sha256[RM_HASH_BYTES]; /* of its bytes, or of their sums: as `hash` says */
};

/* common/storage/data's corpus_identity */
struct manifest_data {
    int64_t files, bytes; /* -1: not known to the writer */
    uint8_t sha256[RM_HASH_BYTES];
};

struct manifest {
    int version; /* 0: the newest, which all have that are written */
    enum manifest_hash hash;
    int64_t step;
    uint8_t lineage[RM_HASH_BYTES];
    struct model_shape shape;
    int tensors;
    int k[RM_TENSORS_MAX];                /* exponent of each tensor, in layout order */
    char compared[MANIFEST_COMPARED_MAX]; /* job_spec_write_compared's canonical JSON */
    struct manifest_data data;
    char fingerprint[RM_FINGERPRINT_MAX];
    bool exact;
    uint64_t term, generation;
    char job[64];
    bool has_weights;                      /* the next one is known: of final/, and before version 4 */
    uint8_t weights_sha256[RM_HASH_BYTES]; /* of the data section of model.safetensors */
    int pieces;
    struct manifest_piece piece[MANIFEST_PIECES_MAX]; /* sorted by file, then offset */
};

void manifest_write(const struct manifest *manifest, struct str *out);

/* Strict: unknown, missing or impossible fields, a flipped bit anywhere (the text holds a hash of itself),
 * pieces that don't tile the files that a checkpoint of this shape has: ERR_DATA with a sentence that starts
 * with `what`. A newer version is ERR_USAGE: that is no damage, and must not be treated as such. */
int manifest_read(struct manifest *ret, const char *text, size_t length, const char *what, struct error *err);

/* Sorts the pieces, and checks that they are all there: model.safetensors, config.json and one set of
 * optimizer files, each covered without gaps or overlaps, with the sizes that the shape gives; and beside
 * them no file but those of folder_texts.h. */
int manifest_check_pieces(struct manifest *manifest, struct error *err);

/* Cuts large pieces into smaller ones, at the borders of chunks (piece_hash.h), so that any number of readers
 * can verify shares of about the same size. sum: of all chunks of all pieces, in order. */
void manifest_cut(struct manifest *manifest, const uint8_t (*sum)[RM_HASH_BYTES]);

/* The number of optimizer files (the parts that the checkpoint was written in). */
int manifest_parts(const struct manifest *manifest);
int64_t manifest_bytes(const struct manifest *manifest); /* of all files but manifest.json */

/* Name of part (from 0) of parts: "optimizer-00001-of-00003-<16 digits of lineage>.safetensors". Files of one
 * name hold the same bytes, whoever wrote them, so that writing one again can't harm. lineage NULL: without
 * it, as they were called once; such checkpoints are read, too. */
void manifest_optimizer_name(char out[MANIFEST_FILE_MAX], int part, int parts, const uint8_t *lineage);

#endif
