/* Reads all data of a folder over and over while a training goes on, slowly and at a low priority,
 * and compares each chunk with what it was at the start. So what a start did not read
 * (identify.h, times), and what has changed since then with its time set back, or on its own in a disk or a
 * memory, is found by who trains on it. A pass over n chunks takes n times `pause` at least. */
#ifndef RM_DATA_SCRUB_H
#define RM_DATA_SCRUB_H

#include "common/base/time.h"
#include "common/storage/data/corpus.h"

struct scrub;

struct scrub_options {
    const struct corpus *corpus; /* of a folder; outlives the scrub */
    /* Hashes of all chunks; taken over, also on failure. Empty: they are made in the first pass, at whose end
     * their root must be that of `root`. */
    struct data_index *index;
    uint8_t root[RM_HASH_BYTES];
    double from;   /* 0 to 1: the place in the data at which it begins, another one for each who reads it */
    rm_time pause; /* behind each chunk, or as much longer as makes it a small share of a processor */
};

/* Starts its thread. ERR_MACHINE. */
int scrub_open(struct scrub **ret, const struct scrub_options *options, struct error *err);
void scrub_free(struct scrub *scrub); /* does not wait for a whole chunk */

/* True, with *err (ERR_DATA, this machine's fault): data are not what they were. Any thread. */
bool scrub_found(struct scrub *scrub, struct error *err);

#endif
