/* Names of frozen processes in a store, finding and removing them. Only common/storage/checkpoint uses this.
 */
#ifndef RM_STORE_FROZEN_FILES_H
#define RM_STORE_FROZEN_FILES_H

#include "common/storage/checkpoint/frozen.h"

/* All numbers, newest first; the caller frees *ret. */
int frozen_files_numbers(struct object_store *store, int64_t **ret, int *ret_count, struct error *err);

/* Removes what is ours of one, the manifest first. */
int frozen_files_remove(struct object_store *store, const char *name, struct error *err);

/* Removes those of smaller numbers that have no manifest. Trouble is no error: the next one does. */
void frozen_files_collect(struct object_store *store, int64_t number);

/* Reads pieces [first, first + count) into one run of memory of piece_bytes each, checked; damage is proven.
 */
int frozen_files_read(struct object_store *store, const char *name, const struct frozen_manifest *m,
                      int first, int count, void *into, struct error *err);

/* So many pieces are read or sent at once, and so much memory that takes. */
enum { FROZEN_AT_ONCE = 4 };
void *frozen_files_memory(const struct frozen_manifest *m, struct error *err);

#endif
