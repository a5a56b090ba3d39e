#include <stdlib.h>
#include <string.h>

#include "common/storage/object/s3.h"

/* A range is cut so that all connections have something to do, into pieces that are worth a request. */
enum { PIECE_LEAST = 8 << 20, PIECE_MOST = 64 << 20 };

struct reading {
    struct s3_store *store;
    const struct object_range *range;
    int count, at;
    int64_t offset;                                  /* in the range at `at`: what has been handed out */
    char (*key)[S3_KEY_MAX], (*tag)[OBJECT_TAG_MAX]; /* (count) */
};

static int64_t piece_of(const struct reading *r, const struct object_range *range)
{
    const int64_t unit = 1 << 20;
    int64_t piece = range->bytes / (2 * (int64_t)r->store->slots) / unit * unit;
    if (range->came)
        return range->bytes;
    if (piece > PIECE_MOST)
        return PIECE_MOST;
    return piece < PIECE_LEAST ? PIECE_LEAST : piece;
}

static bool read_next(void *ctx, struct s3_task *task)
{
    struct reading *r = ctx;
    while (r->at < r->count && r->offset >= r->range[r->at].bytes) {
        r->at++;
        r->offset = 0;
    }
    if (r->at == r->count)
        return false;
    const struct object_range *range = &r->range[r->at];
    int64_t piece = piece_of(r, range), left = range->bytes - r->offset;
    *task = (struct s3_task){.kept = task->kept,
                             .request = {.method = "GET",
                                         .key = r->key[r->at],
                                         .sink = S3_INTO,
                                         .offset = range->offset + r->offset,
                                         .bytes = piece < left ? piece : left,
                                         .into = range->into ? (char *)range->into + r->offset : NULL,
                                         .file = range->file,
                                         .at = range->at + r->offset,
                                         .came = range->came,
                                         .ctx = range->ctx,
                                         .tag = r->tag[r->at]}};
    r->offset += task->request.bytes;
    return true;
}

static int read_done(void *ctx, struct s3_store *store, struct s3_task *task, struct error *err)
{
    (void)ctx;
    return s3_is_good(task) ? 0 : s3_refused(store, task, err);
}

static int read_all(struct reading *r, struct error *err)
{
    for (int i = 0; i < r->count; i++) {
        const char *tag = r->range[i].tag ? r->range[i].tag : "";
        if (s3_key(r->store, r->range[i].name, r->key[i], err) < 0)
            return -1;
        text_copy(r->tag[i], OBJECT_TAG_MAX, tag);
    }
    return s3_run(r->store, &(struct s3_work){read_next, read_done, r}, err);
}

int s3_read(struct object_store *base, const struct object_range *range, int count, struct error *err)
{
    struct reading r = {.store = (struct s3_store *)base, .range = range, .count = count};
    size_t places = count ? (size_t)count : 1;
    int result;
    r.key = malloc(places * sizeof *r.key);
    r.tag = malloc(places * sizeof *r.tag);
    if (r.key && r.tag)
        result = read_all(&r, err);
    else
        result = err_set(err, ERR_MACHINE, "no memory to read");
    free(r.key);
    free(r.tag);
    return result;
}
