/* manifest.json of process-00000012/: a program's frozen processes, as files that CRIU wrote, in one object
 * that is cut into pieces. Written last; a folder without one is nothing. docs/file-formats.md describes the
 * JSON. Plain data: nothing to free, but large: on the heap.
 *
 * Such files are code: whoever restores them runs what they say. So each piece has a SHA-256 whatever the job
 * says of hashes, and the manifest is sealed by a key that follows from the job's (frozen_key): who may write
 * to the store and does not know it can't make one that is restored. */
#ifndef RM_STORE_FROZEN_MANIFEST_H
#define RM_STORE_FROZEN_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/limits.h"
#include "common/base/str.h"

enum {
    FROZEN_VERSION = 1,
    FROZEN_FILE_MAX = 64, /* a file's name, with its NUL */
    FROZEN_FILES_MAX = 8192,
    FROZEN_PIECES_MAX = 2048,
    FROZEN_PIECE_LEAST = 16 << 20, /* bytes of each but the last, which takes what is left */
    FROZEN_OBJECT_MAX = 32,
    FROZEN_FEATURES_MAX = 1024,
    FROZEN_TEXT_MAX = 2 << 20,
};
static const int64_t FROZEN_BYTES_MAX = INT64_C(1) << 40;

struct frozen_file {
    char name[FROZEN_FILE_MAX];
    int64_t bytes;
};

/* What was there when it was made, and what of it has to be there again. */
struct frozen_ground {
    char image[160];                    /* the container's, with its digest; "": not known */
    char machine[16];                   /* "x86_64" */
    char features[FROZEN_FEATURES_MAX]; /* of the processor, that programs choose code by; with spaces */
    char kernel[96];                    /* told, not held to anything */
    int criu;                           /* 40101: 4.1.1 */
};

struct frozen_manifest {
    int64_t number;
    char job[64];
    struct frozen_ground ground;
    char object[FROZEN_OBJECT_MAX]; /* the files one behind the other, beside the manifest */
    int64_t bytes, piece_bytes;     /* of it; of each of its pieces but the last */
    int files, pieces;
    struct frozen_file file[FROZEN_FILES_MAX];
    uint8_t piece_sha256[FROZEN_PIECES_MAX][RM_HASH_BYTES];
    uint8_t sha256[RM_HASH_BYTES], seal[RM_HASH_BYTES]; /* set by reading; by writing, in the text alone */
};

/* Follows from the job's key, and is for this alone. */
void frozen_key(const void *job_key, size_t length, uint8_t out[RM_HASH_BYTES]);

/* key: of frozen_key. */
void frozen_manifest_write(const struct frozen_manifest *m, const uint8_t key[RM_HASH_BYTES],
                           struct str *out);

/* Strict: what is read, written again, is the same text, and has the hash that it names; else ERR_DATA with a
 * sentence that starts with `what`. A newer version is ERR_USAGE. Says nothing of whose it is. */
int frozen_manifest_read(struct frozen_manifest *ret, const char *text, size_t length, const char *what,
                         struct error *err);

/* Is one that was read sealed by this key? */
bool frozen_is_sealed_by(const struct frozen_manifest *m, const uint8_t key[RM_HASH_BYTES]);

/* How large the pieces of so many bytes are: they are FROZEN_PIECES_MAX at most. */
int64_t frozen_piece_bytes(int64_t bytes);
int frozen_pieces(int64_t bytes, int64_t piece_bytes);
int64_t frozen_piece_length(const struct frozen_manifest *m, int piece);

/* ERR_MACHINE with a sentence where what was frozen there can't live here: another image (where both are
 * known), another kind of machine, a processor that lacks something, an older CRIU. Pure. */
int frozen_refuse_ground(const struct frozen_ground *there, const struct frozen_ground *here,
                         struct error *err);

#endif
