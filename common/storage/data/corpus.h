/* Training data: all regular files below a folder as one stream of tokens, cut into samples.
 *
 * The stream is the files' tokens, one file behind the other, in byte order of their paths relative to the
 * folder. Names with a leading dot, symbolic links and everything that is neither a regular file nor a folder
 * are left out, at every depth; the folder itself may be a link. In text a token is a byte; in token shards
 * (NAME.bin) it is a little-endian number of 2 or 4 bytes. A shard may begin with llm.c's header (256 int32:
 * magic, version, number of tokens), which is known by its magic and is no part of the stream. With T the
 * context,
 *     N = floor((tokens - 1) / T) samples;  sample i = the T + 1 tokens from i * T
 * and the last floor(hold_out * N) samples are held out for evaluation: training samples are [0, training),
 * held-out ones [training, samples).
 *
 * Files are read with pread, not through a map: a file that is cut short under us is then an error with its
 * name instead of a SIGBUS, and a corpus of a million small files needs no million maps. Every file opened
 * must still have the size and the modification time that it had when the corpus was opened. A few files
 * stay open between reads. Files of a store come through a source (struct corpus_source), which has a listing
 * for a folder; the stream is the same for the same files. One corpus serves one caller at a time. A
 * checkpoint folder must not lie within the data folder: its files would become data. */
#ifndef RM_DATA_CORPUS_H
#define RM_DATA_CORPUS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/limits.h"
#include "common/storage/data/index.h"

struct corpus;
struct listing;

/* Files that lie elsewhere than in a folder of this machine: what they are called, and how to read them. */
struct corpus_source {
    const struct listing *listing; /* the caller's; outlives the corpus */
    /* Bytes of file i that are there for certain; blocks until they have come. */
    int (*read)(void *ctx, int64_t i, int64_t from, uint8_t *out, int64_t count, struct error *err);
    /* The same bytes will be read soon. NULL: nobody wants to know. */
    void (*want)(void *ctx, int64_t i, int64_t from, int64_t count);
    void *ctx;
};

/* The values are those of common/job/spec.h's enum job_data_format. */
enum corpus_format {
    CORPUS_TEXT,
    CORPUS_TOKENS16,
    CORPUS_TOKENS32,
    CORPUS_AUTO, /* Text where no file is a shard; else what the shards' headers say, which all must have */
};

struct corpus_options {
    const char *uri; /* file:///folder or a plain path; with a source: for sentences only */
    const struct corpus_source *source; /* NULL: a folder. Its struct is copied */
    enum corpus_format format;
    bool bytes_alone; /* of a folder, whatever its files are: nothing is held against a format */
    int context;      /* T >= 1 */
    int vocabulary;   /* a token that is not below it is an error where it is met; text: 256 or more */
    double hold_out;  /* 0 <= hold_out < 1 */
};

/* Lists the files and reads their sizes and headers (no content). Absent or unreadable folder, files that are
 * not of the format, no data, less than one sample: ERR_DATA with a sentence. */
int corpus_open(struct corpus **ret, const struct corpus_options *options, struct error *err);
void corpus_free(struct corpus *corpus);

enum corpus_format corpus_format(const struct corpus *corpus); /* never CORPUS_AUTO */
int64_t corpus_files(const struct corpus *corpus);
int64_t corpus_bytes(const struct corpus *corpus); /* of all files */
int64_t corpus_tokens(const struct corpus *corpus);
int64_t corpus_samples(const struct corpus *corpus);  /* N */
int64_t corpus_training(const struct corpus *corpus); /* samples that are trained on */
int64_t corpus_held_out(const struct corpus *corpus); /* N - training */

/* ERR_DATA where the training samples don't fill one batch, or there are fewer held-out samples than one
 * evaluation reads (sequences; 0: no evaluation). */
int corpus_check(const struct corpus *corpus, int64_t batch, int64_t sequences, struct error *err);

/* Sample i of [0, samples) into tokens (context + 1). ERR_DATA where a file is gone or has changed, or a
 * token is not in the vocabulary. */
int corpus_read(struct corpus *corpus, int64_t i, int32_t *tokens, struct error *err);

/* Sample i will be read soon: tells the source, where there is one. */
void corpus_want(const struct corpus *corpus, int64_t i);

/* Bytes in front of the first token of file i. */
int64_t corpus_skip(const struct corpus *corpus, int64_t i);
int corpus_width(const struct corpus *corpus); /* bytes of a token */

/* File i as it was found; its name is the corpus's. */
struct index_entry corpus_file(const struct corpus *corpus, int64_t i);
/* The folder's path; NULL where the files come from a source. */
const char *corpus_folder(const struct corpus *corpus);
uint64_t corpus_device(const struct corpus *corpus); /* that the folder lies on */

/* Bytes of file i as they lie there, its header included. Of a folder any number of threads may read at once
 * beside the corpus's caller, each by a descriptor of its own; else the caller alone. Errors as corpus_read.
 */
int corpus_read_bytes(const struct corpus *corpus, int64_t i, int64_t from, uint8_t *out, int64_t count,
                      struct error *err);
/* The same, for who looks at all data beside others who use some of it: what the system does not remember yet
 * it does not remember afterwards, and what it does stays. */
int corpus_read_aside(const struct corpus *corpus, int64_t i, int64_t from, uint8_t *out, int64_t count,
                      struct error *err);
/* Holds the tokens in these bytes of file i against the vocabulary: whole ones, as of any even place. */
int corpus_check_bytes(const struct corpus *corpus, int64_t i, int64_t from, const uint8_t *bytes,
                       int64_t count, struct error *err);

#endif
