/* The regular files below a folder, in byte order of their relative paths (see corpus.h for what is left
 * out). Only corpus.c uses this. */
#ifndef RM_DATA_SCAN_H
#define RM_DATA_SCAN_H

#include <stdint.h>
#include <time.h>

#include "common/base/error.h"

struct scan_file {
    char *name; /* relative path, '/' between its parts; any bytes but NUL */
    int64_t size;
    int64_t skip; /* bytes in front of the first token; set by shard.c */
    struct timespec modified;
    uint64_t inode;
};

struct scan {
    int64_t count, room;
    struct scan_file *file;
};

/* *out is empty (all zero) before. On failure it still has to be cleared. Sentences start with the relative
 * path where there is one. */
int scan_folder(struct scan *out, int folder_fd, struct error *err);
/* One more file, behind those there are; it was modified at no time. */
int scan_add(struct scan *out, const char *name, int64_t size, struct error *err);
void scan_clear(struct scan *scan);

#endif
