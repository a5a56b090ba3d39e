/* A file of a checkpoint that comes into being from parts, by one writer or by several that agree on one
 * upload without speaking to each other. Only common/storage/checkpoint uses this.
 *
 * The upload's id is kept in a small object whose name everybody can work out (files_upload_name) and that is
 * only ever created, never replaced: of two writers that begin at once the later one uses the earlier one's
 * upload. An upload that is over (completed, or collected) is followed by the next attempt under the next
 * name. Parts are numbered so that no two writers share a number; those that are there with the right size
 * are not sent again. */
#ifndef RM_STORE_UPLOAD_H
#define RM_STORE_UPLOAD_H

#include "common/storage/checkpoint/files.h"
#include "common/storage/object/object.h"

/* What one writer has for the file. */
struct upload_content {
    struct object_store *store;
    struct files_upload upload; /* attempt is filled by upload_send */
    int64_t offset, bytes;      /* its place in the file */
    int number, numbers;        /* its first part number, and how many are its own */
    struct object_body body;
    uint8_t (*chunk_sha256)[RM_HASH_BYTES]; /* of each of its chunks; NULL: sums are something else */
    const uint8_t *sha256;                  /* as a piece (piece_hash.h); once it has been taken */
    bool arrived; /* set by upload_send: it sent all, and the store stands for what has arrived (sums.h) */
};

/* Durable on return, and not to be seen yet. */
int upload_send(struct upload_content *content, struct error *err);

/* Puts the parts together: `bytes` in all, or ERR_DATA. ERR_EXISTS as for OBJECT_CREATE; ERR_NOT_FOUND: there
 * is no upload under way. */
int upload_finish(struct object_store *store, const struct files_upload *upload, int64_t bytes,
                  enum object_mode mode, struct error *err);

#endif
