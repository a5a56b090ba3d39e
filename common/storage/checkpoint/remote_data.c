#include "common/storage/checkpoint/remote_data.h"

#include <stdlib.h>
#include <string.h>

#include "common/storage/checkpoint/data_listing.h"
#include "common/storage/checkpoint/place.h"

enum {
    HEAD_BYTES = 16,         /* of each shard, read at once */
    HEADS_AT_ONCE = 512,     /* ranges of one call */
    WINDOW_BYTES = 32 << 20, /* read at a time where all is read */
};

struct remote_data {
    struct object_store *store;
    struct listing listing;
    uint8_t (*head)[HEAD_BYTES]; /* (files); NULL: not read yet */
    uint8_t *window;             /* bytes of one file */
    int64_t window_file, window_from, window_bytes;
};

int remote_data_open(struct remote_data **ret, const struct job_spec *spec, struct error *err)
{
    struct remote_data *d = calloc(1, sizeof *d);
    if (!d)
        return err_set(err, ERR_MACHINE, "no memory for the data's listing");
    if (place_open_data(&d->store, spec, NULL, err) < 0 ||
        data_listing_scan(d->store, &d->listing, err) < 0) {
        remote_data_free(d);
        return -1;
    }
    *ret = d;
    return 0;
}

void remote_data_free(struct remote_data *d)
{
    if (!d)
        return;
    object_free(d->store);
    listing_clear(&d->listing);
    free(d->head);
    free(d->window);
    free(d);
}

struct arrival_amount remote_data_amount(const struct remote_data *d)
{
    struct arrival_amount amount = {.files = d->listing.count};
    for (int64_t i = 0; i < d->listing.count; i++)
        amount.bytes += d->listing.file[i].bytes;
    return amount;
}

int remote_data_take_kept(struct remote_data *d, struct object_store *checkpoints,
                          const uint8_t sha256[RM_HASH_BYTES], struct error *err)
{
    struct listing kept;
    int status = data_listing_fetch(checkpoints, sha256, &kept, NULL, err);
    if (status == 0 && listing_compare(&kept, &d->listing, err) < 0)
        status = err_wrap(err, "data %s", object_uri(d->store));
    if (status < 0) {
        listing_clear(&kept);
        return -1;
    }
    listing_clear(&d->listing);
    d->listing = kept;
    return 0;
}

int remote_data_keep(struct remote_data *d, struct object_store *checkpoints, const struct corpus *corpus,
                     uint8_t ret_sha256[RM_HASH_BYTES], struct error *err)
{
    d->listing.width = corpus_width(corpus);
    for (int64_t i = 0; i < d->listing.count; i++)
        d->listing.file[i].skip = corpus_skip(corpus, i);
    return data_listing_keep(checkpoints, &d->listing, ret_sha256, err);
}

int remote_data_keep_only(struct object_store *checkpoints, const char *listing, struct error *err)
{
    uint8_t sha256[RM_HASH_BYTES];
    bool kept = hex_decode(listing, sha256, sizeof sha256);
    return data_listing_remove(checkpoints, kept ? sha256 : NULL, err);
}

/* ---- reading ---- */

static bool is_shard(const char *name)
{
    size_t length = strlen(name);
    return length >= 4 && !strcmp(name + length - 4, ".bin");
}

static int read_some_heads(struct remote_data *d, int64_t *at, struct error *err)
{
    struct object_range *range = calloc(HEADS_AT_ONCE, sizeof *range);
    int count = 0;
    if (!range)
        return err_set(err, ERR_MACHINE, "no memory for the data's headers");
    for (; *at < d->listing.count && count < HEADS_AT_ONCE; ++*at) {
        const struct listing_file *file = &d->listing.file[*at];
        if (!is_shard(file->name) || !file->bytes)
            continue;
        range[count++] = (struct object_range){.name = file->name,
                                               .bytes = file->bytes < HEAD_BYTES ? file->bytes : HEAD_BYTES,
                                               .into = d->head[*at],
                                               .tag = file->tag};
    }
    int status = count ? object_read(d->store, range, count, err) : 0;
    free(range);
    return status;
}

static int read_heads(struct remote_data *d, struct error *err)
{
    if (d->head)
        return 0;
    d->head = calloc((size_t)d->listing.count + 1, sizeof *d->head);
    if (!d->head)
        return err_set(err, ERR_MACHINE, "no memory for the data's headers");
    for (int64_t at = 0; at < d->listing.count;)
        if (read_some_heads(d, &at, err) < 0)
            return -1;
    return 0;
}

static int fill_window(struct remote_data *d, int64_t i, int64_t from, struct error *err)
{
    const struct listing_file *file = &d->listing.file[i];
    int64_t left = file->bytes - from;
    if (!d->window && !(d->window = malloc(WINDOW_BYTES)))
        return err_set(err, ERR_MACHINE, "no memory to read data");
    d->window_bytes = 0;
    struct object_range range = {.name = file->name,
                                 .offset = from,
                                 .bytes = left < WINDOW_BYTES ? left : WINDOW_BYTES,
                                 .into = d->window,
                                 .tag = file->tag};
    if (object_read(d->store, &range, 1, err) < 0)
        return -1;
    d->window_file = i;
    d->window_from = from;
    d->window_bytes = range.bytes;
    return 0;
}

static int read_bytes(void *ctx, int64_t i, int64_t from, uint8_t *out, int64_t count, struct error *err)
{
    struct remote_data *d = ctx;
    if (from + count <= HEAD_BYTES && is_shard(d->listing.file[i].name)) {
        if (read_heads(d, err) < 0)
            return -1;
        memcpy(out, d->head[i] + from, (size_t)count);
        return 0;
    }
    while (count > 0) {
        bool here = d->window_bytes && d->window_file == i && from >= d->window_from &&
                    from < d->window_from + d->window_bytes;
        if (!here && fill_window(d, i, from, err) < 0)
            return -1;
        int64_t at = from - d->window_from, left = d->window_bytes - at, some = left < count ? left : count;
        memcpy(out, d->window + at, (size_t)some);
        out += some;
        from += some;
        count -= some;
    }
    return 0;
}

struct corpus_source remote_data_source(struct remote_data *d)
{
    return (struct corpus_source){.listing = &d->listing, .read = read_bytes, .ctx = d};
}
