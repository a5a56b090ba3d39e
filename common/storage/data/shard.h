/* What the files of a data folder are: text, or token shards with or without llm.c's header. Only corpus.c
 * uses this. */
#ifndef RM_DATA_SHARD_H
#define RM_DATA_SHARD_H

#include "common/storage/data/corpus.h"
#include "common/storage/data/scan.h"

/* How the first bytes of a file are got. */
struct shard_reader {
    /* Missing ones are zero: out is all zero before. */
    int (*start)(void *ctx, const struct scan_file *file, uint8_t *out, size_t size, struct error *err);
    void *ctx;
};

/* `start` for files below a folder. */
int shard_read_start(const struct scan_file *file, int folder_fd, uint8_t *out, size_t size,
                     struct error *err);

/* Finds out what CORPUS_AUTO means for these files (*ret is never CORPUS_AUTO), sets each file's `skip`, and
 * holds all of them to the format. ERR_DATA with a sentence that starts
 * with the relative path where one file is at fault. */
int shard_resolve(struct scan *scan, const struct shard_reader *reader, enum corpus_format asked,
                  enum corpus_format *ret, struct error *err);

/* Bytes of a token: 1, 2 or 4. */
int shard_token_bytes(enum corpus_format format);

#endif
