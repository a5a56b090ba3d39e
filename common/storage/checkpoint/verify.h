/* Reading a checkpoint's files against the hashes in its manifest. Only common/storage/checkpoint uses this.
 */
#ifndef RM_STORE_VERIFY_H
#define RM_STORE_VERIFY_H

#include "common/base/error.h"
#include "common/model/layout.h"
#include "common/storage/checkpoint/manifest.h"
#include "common/storage/object/object.h"

struct verify_file {
    struct object_store *store;
    const char *checkpoint; /* "step-00000200" */
    const struct manifest *manifest;
    int first; /* its first piece in the manifest, of which all must have been checked before */
    const struct model_layout *layout;
    float *state; /* (3, parameters): where the values go; NULL: they are only checked */
    /* Gets all bytes in order, before the hash of their piece is known to be right; NULL: nobody wants them.
     */
    int (*copy)(void *ctx, const void *bytes, int64_t count, struct error *err);
    void *ctx;
    /* Gets the sum of each chunk (piece_hash.h) of the file's pieces, in order; NULL: nobody wants them. */
    uint8_t (*sum)[RM_HASH_BYTES];
};

/* Reads one file from its first to its last byte. Other bytes than the hashes say, another header than the
 * layout gives, another length, or no file: ERR_DATA of CLASS_OBJECT, for it has been read again past all
 * caches (files_look); with `copy` it is read once, and nothing is said about whose fault it is.
 * model.safetensors: the hash of its data section goes to weights_sha256 unless that is NULL. */
int verify_file(const struct verify_file *file, uint8_t *weights_sha256, struct error *err);

/* All files of a checkpoint, and the manifest's weightsSha256. state may be NULL. */
int verify_all(struct object_store *store, const char *checkpoint, const struct manifest *manifest,
               float *state, struct error *err);

/* ERR_DATA: the hash found is not the one expected. */
int verify_damaged(const struct manifest_piece *piece, const uint8_t found[RM_HASH_BYTES], struct error *err);

/* The first piece of the file after the one that starts at piece i. */
int verify_next_file(const struct manifest *manifest, int i);

#endif
