/* The listing of training data in an object store: made once, kept beside the checkpoints for the job's life
 * (data-<16 digits of its hash>.json below checkpoint.uri), found again by its hash. */
#ifndef RM_STORE_DATA_LISTING_H
#define RM_STORE_DATA_LISTING_H

#include "common/storage/data/listing.h"
#include "common/storage/object/object.h"

/* What lies below the data's URI now; nothing is read but names, sizes and tags. *ret is for listing_clear in
 * any case. */
int data_listing_scan(struct object_store *data, struct listing *ret, struct error *err);

/* Keeps it, and names it. There already is fine: the name is the content's. */
int data_listing_keep(struct object_store *checkpoints, const struct listing *listing,
                      uint8_t ret_sha256[RM_HASH_BYTES], struct error *err);

/* The one with this hash; ret_text (with room for LISTING_TEXT_MAX) may be NULL. ERR_NOT_FOUND: it is not
 * kept there. ERR_DATA: it is damaged. *ret is for listing_clear in any case. */
int data_listing_fetch(struct object_store *checkpoints, const uint8_t sha256[RM_HASH_BYTES],
                       struct listing *ret, struct str *ret_text, struct error *err);

/* Deletes all that are kept there but the one with this hash; NULL: all. */
int data_listing_remove(struct object_store *checkpoints, const uint8_t *but_sha256, struct error *err);

#endif
