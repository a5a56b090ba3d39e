/* Names in a checkpoint folder, and removing them. Only common/store uses this. */
#ifndef RM_STORE_FILES_H
#define RM_STORE_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/limits.h"
#include "common/store/checkpoint.h"
#include "common/store/manifest.h"

enum { PART_NAME_MAX = MANIFEST_FILE_MAX + 32 };

#define MANIFEST_NAME "manifest.json"
#define DAMAGED_NAME  "manifest.damaged.json"

/* The path of a checkpoint's folder (name) or of the folder that holds them all (name NULL). */
int files_path(char out[RM_URI_MAX], const char *uri, const char *name, struct error *err);

/* What a file is called until the checkpoint is published: "model.safetensors.<16 digits of lineage>.part".
 */
void files_part_name(char out[PART_NAME_MAX], const char *file, const uint8_t lineage[RM_HASH_BYTES]);

/* "step-00000200" -> 200; -1 for any other text. */
int64_t files_step(const char *name);

/* The steps of all step-* folders, newest first; the caller frees *ret. An absent folder has none. */
int files_steps(const char *uri, int64_t **ret, int *ret_count, struct error *err);

/* The manifest of a held folder. ERR_NOT_FOUND, ERR_DATA (it doesn't hold what it must, or is of another step
 * than the folder's name), ERR_USAGE (newer version), ERR_MACHINE. */
int files_manifest(int folder_fd, const char *name, struct manifest *ret, struct error *err);

/* Removes the files of ours in a folder but those that `stays` names with its manifest (NULL: removes all,
 * the manifest first). What is not ours stays. */
int files_remove(int folder_fd, const struct manifest *stays, struct error *err);

/* Removes one checkpoint folder, unless somebody works in it (ERR_EXISTS). Absent is fine. unfinished: only
 * where no manifest, valid or damaged, is in it. A folder with files that aren't ours is left with them. */
int files_remove_folder(const char *uri, const char *name, bool unfinished, struct error *err);

/* Removes the folders of unfinished checkpoints of steps before `step` in which nobody works. */
void files_collect(const char *uri, int64_t step);

#endif
