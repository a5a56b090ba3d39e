/* The index of a data folder: of each file the size, the time of its last change and the inode that it had
 * when it was read, and the hashes of its chunks (tree.h). docs/file-formats.md is the specification of the
 * bytes. No I/O: index_file.h has it. */
#ifndef RM_DATA_INDEX_H
#define RM_DATA_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/limits.h"
#include "common/base/str.h"

enum {
    DATA_INDEX_VERSION = 1,
    DATA_INDEX_BYTES_MAX = 1 << 30, /* of an index; one of 10 TB in large files has 20 MB */
    DATA_INDEX_NAME_MAX = 4096,     /* bytes of a name, with a NUL */
};

/* A file as it was seen. What is compared of it stands in docs/job-file.md, as does what that can't see. */
struct index_entry {
    char *name; /* relative to the folder, as in scan.h */
    int64_t bytes;
    int64_t seconds; /* of its last change, and the nanoseconds of that second */
    int32_t nanoseconds;
    uint64_t inode;
    int64_t first; /* its first chunk in `chunk` */
};

struct data_index {
    int64_t count, room; /* files, in byte order of their names */
    struct index_entry *file;
    int64_t chunks, chunk_room;
    uint8_t (*chunk)[RM_HASH_BYTES]; /* (chunks) */
};

/* *index is empty (all zero) before the first file; files come in order. The name is copied, `first` set, the
 * hashes are zero. */
int data_index_add(struct data_index *index, const struct index_entry *file, struct error *err);
void data_index_clear(struct data_index *index);

/* The file of that name; NULL: there is none. */
const struct index_entry *data_index_find(const struct data_index *index, const char *name);
bool data_index_same(const struct index_entry *a, const struct index_entry *b); /* size, time and inode */
/* Whether these two entries of indexes have the same chunks, of files of one size. */
bool data_index_agrees(const struct data_index *a, const struct index_entry *in_a, const struct data_index *b,
                       const struct index_entry *in_b);
/* Of how many files that look the same in both they say other things. */
int64_t data_index_differences(const struct data_index *a, const struct data_index *b);
void data_index_root(const struct data_index *index, int width, uint8_t out[RM_HASH_BYTES]);

/* out: with room for DATA_INDEX_BYTES_MAX. ERR_DATA where it is longer. */
int data_index_write(const struct data_index *index, struct str *out, struct error *err);
/* *ret needs data_index_clear in any case. ERR_DATA where the bytes are no index, cut or changed, or of a
 * newer release; the sentence starts with `what`. */
int data_index_read(struct data_index *ret, const void *bytes, size_t length, const char *what,
                    struct error *err);

#endif
