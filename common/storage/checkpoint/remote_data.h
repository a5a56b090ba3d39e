/* Training data in an object store, before a job starts: which files it is, and whether they are still those
 * that the job began with. */
#ifndef RM_STORE_REMOTE_DATA_H
#define RM_STORE_REMOTE_DATA_H

#include <stdbool.h>

#include "common/job/spec.h"
#include "common/storage/data/arrival.h"
#include "common/storage/data/corpus.h"
#include "common/storage/data/listing.h"
#include "common/storage/object/object.h"

struct remote_data;

/* Lists what is there now. */
int remote_data_open(struct remote_data **ret, const struct job_spec *spec, struct error *err);
void remote_data_free(struct remote_data *data); /* NULL is fine */
/* How much lies there. */
struct arrival_amount remote_data_amount(const struct remote_data *data);

/* Takes the listing kept beside the checkpoints under this hash, after comparing it with what is there now:
 * ERR_DATA names the file that is gone or has changed. ERR_NOT_FOUND: there is none; that of now stays. */
int remote_data_take_kept(struct remote_data *data, struct object_store *checkpoints,
                          const uint8_t sha256[RM_HASH_BYTES], struct error *err);
/* Keeps the listing there, with what the corpus has found out about it. */
int remote_data_keep(struct remote_data *data, struct object_store *checkpoints, const struct corpus *corpus,
                     uint8_t ret_sha256[RM_HASH_BYTES], struct error *err);

/* Deletes the listings that are kept there but the one with this hash in hex; "": all of them. */
int remote_data_keep_only(struct object_store *checkpoints, const char *listing, struct error *err);

/* Reads from the store, without a cache: for headers, and for hashing all of it once. */
struct corpus_source remote_data_source(struct remote_data *data);

#endif
