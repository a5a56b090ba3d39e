/* The agent's side of data in an object store: chunks that the trainer asks for
 * (common/storage/data/feed_wire.h), fetched several at a time into the local cache, on a thread of its own.
 *
 * A store that is away, busy or refuses a key is asked again for DATA_AWAY_MAX; training waits as long and
 * the log says so. After that the trainer is told ERR_MACHINE, and whose
 * fault it is: the coordinator decides by that whether all wait or this worker is left out. Data that is gone
 * or has changed is ERR_DATA at once. A cache that can't be written costs speed only. */
#ifndef RM_AGENT_DATA_FEED_H
#define RM_AGENT_DATA_FEED_H

#include "common/base/time.h"
#include "common/job/spec.h"

struct data_feed;

#define DATA_AWAY_MAX (600 * RM_S)

/* Nothing is done yet. NULL in *ret where the job's data is in a folder. spec lives longer. */
int data_feed_open(struct data_feed **ret, const struct job_spec *spec, struct error *err);
void data_feed_free(struct data_feed *feed); /* NULL is fine */

/* A trainer starts: *ret_fd is its end of a new socket, to be closed here once it has it; -1 with NULL. What
 * its predecessor asked for is given up. */
int data_feed_start(struct data_feed *feed, int *ret_fd, struct error *err);

#endif
