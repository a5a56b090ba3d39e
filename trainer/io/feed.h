/* Data that lies in an object store, as the trainer sees it: chunks that its agent fetches, mapped.
 *
 * The agent is asked over a socket (common/storage/data/feed_wire.h) and has what belongs to stores:
 * credentials, connections, the cache. feed_source gives the corpus what it reads through. One feed serves
 * one thread at a time; feed_stop is for any. */
#ifndef RM_IO_FEED_H
#define RM_IO_FEED_H

#include <stdatomic.h>

#include "common/storage/data/corpus.h"
#include "common/storage/data/listing.h"

struct feed;

struct feed_options {
    int fd;                  /* the socket; the caller's */
    const atomic_int *abort; /* non-zero: reads under way are given up */
    atomic_llong *pulse;     /* grows while a read waits: the agent is at it, and says so where it gives up */
};

/* Waits for the listing. */
int feed_open(struct feed **ret, const struct feed_options *options, struct error *err);
void feed_free(struct feed *feed); /* NULL is fine */
/* Reads under way and all later ones fail with ERR_ABORTED. NULL is fine. */
void feed_stop(struct feed *feed);

const struct listing *feed_listing(const struct feed *feed);
struct corpus_source feed_source(struct feed *feed);

#endif
