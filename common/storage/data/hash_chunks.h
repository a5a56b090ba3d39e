/* The hashes of a corpus's chunks, worked out by a few threads. Only identify.c uses this. */
#ifndef RM_DATA_HASH_CHUNKS_H
#define RM_DATA_HASH_CHUNKS_H

#include "common/storage/data/identify.h"

/* Fills in the chunks that are not to be skipped. index: the corpus's files, in its order. Of several that
 * can't be had the first is told. */
int hash_chunks(const struct corpus *corpus, const struct identify_options *options, const bool *skip,
                struct data_index *index, struct error *err);

#endif
