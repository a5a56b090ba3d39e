/* Names in a checkpoint folder, and removing them. Only common/storage/checkpoint uses this. */
#ifndef RM_STORE_FILES_H
#define RM_STORE_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/limits.h"
#include "common/storage/checkpoint/checkpoint.h"
#include "common/storage/checkpoint/manifest.h"
#include "common/storage/object/object.h"

enum {
    FILES_NAME_MAX = CHECKPOINT_NAME_MAX + MANIFEST_FILE_MAX + 64,
    FILES_LOOKS = 4, /* at what does not fit, at most */
};

#define MANIFEST_NAME "manifest.json"
#define DAMAGED_NAME  "manifest.damaged.json"

/* "step-00000200/config.json" */
void files_object(char out[FILES_NAME_MAX], const char *checkpoint, const char *file);

/* What keeps the id of the upload that a file comes into being with, tried for the attempt-th time (from 0):
 * "model.safetensors.<16 digits of lineage>-of-3.0.upload". */
struct files_upload {
    const char *checkpoint, *file;
    const uint8_t *lineage; /* (RM_HASH_BYTES) */
    int parts, attempt;
};
void files_upload_name(char out[FILES_NAME_MAX], const struct files_upload *upload);

/* "step-00000200" -> 200; -1 for any other text. */
int64_t files_step(const char *name);

/* The steps of all step-* folders, newest first; the caller frees *ret. An absent folder has none. */
int files_steps(struct object_store *store, int64_t **ret, int *ret_count, struct error *err);

/* Calls `look` until it succeeds, fails by something else than ERR_DATA, or damage is proven: nothing that a
 * wire, a page in memory or a folder's remembered list has done may cost a checkpoint that lies in the store
 * as it was written. So each look after the first passes the caches (object_pass_caches), and two of those
 * that say the same, word for word (what was expected, and what was found), are the proof: ERR_DATA of
 * CLASS_OBJECT. Where no two say the same it is this machine or its way to the store that changes bytes:
 * ERR_MACHINE of CLASS_MACHINE. */
int files_look(struct object_store *store, int (*look)(void *ctx, struct error *err), void *ctx,
               struct error *err);

/* As object_head, of a file that has to be there. ERR_DATA where the listing of its folder does not show it
 * either; where it does, ERR_MACHINE of CLASS_PASSING. */
int files_head(struct object_store *store, const char *checkpoint, const char *file, struct object_info *ret,
               struct error *err);

/* A small object from memory, whole. */
int files_put(struct object_store *store, const char *name, const struct str *text, enum object_mode mode,
              struct error *err);

/* The manifest of a checkpoint. ERR_NOT_FOUND (its folder's listing does not show it either), ERR_DATA of
 * CLASS_OBJECT (proven: it doesn't hold what it must, or is of another step than the folder's name),
 * ERR_USAGE of CLASS_SOFTWARE (newer version), ERR_MACHINE. */
int files_manifest(struct object_store *store, const char *checkpoint, struct manifest *ret,
                   struct error *err);

/* Removes the files of ours in a folder, and what is half uploaded, but those that `stays` names with its
 * manifest (NULL: removes all, the manifest first). What is not ours stays. ret_removed may be NULL. */
int files_remove(struct object_store *store, const char *checkpoint, const struct manifest *stays,
                 int *ret_removed, struct error *err);

/* Removes the unfinished checkpoints (without a manifest, valid or damaged) of steps before `step`; returns
 * how many files went. */
int files_collect(struct object_store *store, int64_t step);

#endif
