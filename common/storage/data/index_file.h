/* Where the index of a data folder lies: in it, as `.ringmaster-index` (a hidden name, which is no data), or
 * beside it, as NAME.ringmaster-index, where the folder can't be written to. */
#ifndef RM_DATA_INDEX_FILE_H
#define RM_DATA_INDEX_FILE_H

#include "common/storage/data/index.h"

enum { DATA_INDEX_PLACES = 2 };

/* The path at a place, in the order in which they are looked at; "" where it would be too long, or the folder
 * is the root. */
void data_index_path(const char *folder, int place, char out[RM_URI_MAX]);

/* ERR_NOT_FOUND: nothing is there. ERR_DATA: what is there is no sound index (data_index_read). *ret needs
 * data_index_clear in any case. */
int data_index_load(struct data_index *ret, const char *path, struct error *err);

/* Into the folder, or beside it where the folder can't be written to; whole or not at all, on the disk when
 * it returns. Two may do so at once, and who reads meanwhile has the one before. ret_path: where. */
int data_index_save(const struct data_index *index, const char *folder, char ret_path[RM_URI_MAX],
                    struct error *err);

#endif
