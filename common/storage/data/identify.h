/* What a job's data are, in one hash: two workers, or a run and its checkpoint, have the same data where it
 * is the same. docs/file-formats.md says of which bytes it is made.
 *
 * Of a folder the content is read, or an index (index.h) is believed where a file has the size, the time and
 * the inode that the index says: `times`. */
#ifndef RM_DATA_IDENTIFY_H
#define RM_DATA_IDENTIFY_H

#include "common/storage/data/corpus.h"

enum identity_kind {
    IDENTITY_TREE,  /* the root over all chunks (tree.h) */
    IDENTITY_CHAIN, /* one SHA-256 over all bytes, one behind the other: as older checkpoints have it */
};

struct identify_options {
    enum identity_kind kind;
    bool times; /* see above; of a tree alone */
    int shares; /* with times: so many read a part each of what is believed, all of them everything; 0: nobody
                 */
    int share;  /* which one, from 0 */
    bool anew;  /* nothing is compared with an index that is there: it is to be another one */
    int threads;            /* that read and hash, 1 at least; more than a few are not taken */
    const char *cache;      /* with times: where hashes are kept that no index has; NULL: nowhere */
    int64_t cache_bytes;    /* its bound */
    struct data_index *ret; /* NULL, or empty: gets all chunks of a tree; the caller's to clear */
    void (*moved)(void *ctx, int64_t bytes); /* NULL, or: so many more were read; one call at a time */
    void *ctx;
};

/* What a checkpoint remembers of the data. */
struct corpus_identity {
    int64_t files, bytes;
    uint8_t sha256[RM_HASH_BYTES];
};

/* Where content is read, each of its tokens is held against the vocabulary. ERR_DATA, for a person to set
 * right: a file that can't be read or has changed since the corpus was opened; with times an index that is no
 * sound one; without, a chunk that is not what an index says of a file that looks as it did when the index
 * was made. An index that is not sound is passed over without `times`. */
int corpus_identify(const struct corpus *corpus, const struct identify_options *options,
                    struct corpus_identity *ret, struct error *err);

#endif
