/* Reading shares of a checkpoint: their pieces straight to where they belong, hashed as they come. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/os/crypto.h"
#include "common/os/fault.h"
#include "common/store/checkpoint.h"
#include "common/store/files.h"
#include "common/store/safetensors.h"
#include "common/store/share.h"
#include "common/store/verify.h"

/* A folder's files are read by so many threads: copying out of the caches and hashing is what takes time. */
enum { READERS_LOCAL = 4 };

/* One piece under way. */
struct part {
    int piece; /* in the manifest */
    int file;  /* index of its file */
    int runs;
    struct share_run run[SHARE_RUNS_MAX];
    char *head;          /* (bytes of the runs that are not of the state), what came for them */
    struct sha256 *hash; /* of a piece that comes in one run; else it is hashed when it is there */
    bool good;
};

struct file {
    char name[FILES_NAME_MAX];
    char tag[OBJECT_TAG_MAX]; /* of the content: it must not change on the way */
};

struct sharing {
    const struct checkpoint_share *share;
    const struct manifest *manifest;
    char checkpoint[CHECKPOINT_NAME_MAX];
    int parts, files;
    struct part *part;          // (parts)
    struct file *file;          // (files)
    struct object_range *range; // (SHARE_RUNS_MAX * parts) for one call
};

static bool is_wanted(const struct checkpoint_share *share, const struct manifest *m, int piece)
{
    return share->shares >> share_of_piece(m, piece, share->parts) & 1;
}

static char *place_of(const struct sharing *s, const struct part *p, int r)
{
    float *const array[SHARE_ARRAYS] = {s->share->params, s->share->m, s->share->v};
    const struct share_run *run = &p->run[r];
    return run->array < 0 ? p->head : (char *)(array[run->array] + run->first);
}

/* --- what is to be read --- */

static int open_file(struct sharing *s, int piece, struct error *err)
{
    const struct manifest *m = s->manifest;
    struct file *file = &s->file[s->files++];
    const struct manifest_piece *last = &m->piece[verify_next_file(m, piece) - 1];
    struct object_info info;
    struct error why = {0};
    files_object(file->name, s->checkpoint, last->file);
    if (object_head(s->share->store, file->name, &info, &why) < 0)
        return err_set(err, why.code == ERR_NOT_FOUND ? ERR_DATA : why.code, "%s: %s", last->file,
                       why.code == ERR_NOT_FOUND ? "it is missing" : why.text);
    if (info.bytes != last->offset + last->bytes)
        return err_set(err, ERR_DATA, "%s: it has %lld bytes instead of %lld", last->file,
                       (long long)info.bytes, (long long)(last->offset + last->bytes));
    text_copy(file->tag, sizeof file->tag, info.tag);
    return 0;
}

static int add_part(struct sharing *s, int piece, struct error *err)
{
    struct part *p = &s->part[s->parts++];
    *p = (struct part){.piece = piece, .file = s->files - 1};
    p->runs = share_runs(s->manifest, s->share->layout, piece, p->run, err);
    if (p->runs < 0)
        return -1;
    if (p->run[0].array < 0 && !(p->head = malloc((size_t)p->run[0].bytes)))
        return err_set(err, ERR_MACHINE, "out of memory");
    return 0;
}

static int plan(struct sharing *s, struct error *err)
{
    const struct manifest *m = s->manifest;
    int opened = -1; /* first piece of the newest file */
    for (int i = 0, first = 0; i < m->pieces; i++) {
        if (i == verify_next_file(m, first))
            first = i;
        if (!is_wanted(s->share, m, i))
            continue;
        if (opened != first && open_file(s, first, err) < 0)
            return -1;
        opened = first;
        if (add_part(s, i, err) < 0)
            return -1;
    }
    return 0;
}

/* --- reading --- */

static void came(void *ctx, const void *bytes, size_t count)
{
    sha256_add(ctx, bytes, count);
}

static bool is_stopped(const struct sharing *s)
{
    return s->share->stop && atomic_load_explicit(s->share->stop, memory_order_relaxed);
}

/* The ranges of the parts that are not good yet, `from` to `to`; returns how many. */
static int fill_ranges(const struct sharing *s, int from, int to, struct object_range *range)
{
    int n = 0;
    for (int i = from; i < to; i++) {
        struct part *p = &s->part[i];
        if (p->good)
            continue;
        sha256_free(p->hash);
        p->hash = p->runs == 1 ? sha256_open() : NULL;
        for (int r = 0; r < p->runs; r++)
            range[n++] = (struct object_range){.name = s->file[p->file].name,
                                               .offset = p->run[r].offset,
                                               .bytes = p->run[r].bytes,
                                               .into = place_of(s, p, r),
                                               .came = p->hash ? came : NULL,
                                               .ctx = p->hash,
                                               .tag = s->file[p->file].tag};
    }
    return n;
}

static int check_header(const struct sharing *s, const struct part *p, struct error *err)
{
    const struct share_run *run = &p->run[0];
    struct str header = str_init(SAFETENSORS_HEADER_MAX);
    share_header(s->manifest, s->share->layout, p->piece, &header);
    bool same = !header.length || !memcmp(header.data + run->offset, p->head, (size_t)run->bytes);
    str_clear(&header);
    return same ? 0
                : err_set(err, ERR_DATA, "%s: its header is not that of this model and part",
                          s->manifest->piece[p->piece].file);
}

static int check_part(const struct sharing *s, struct part *p, struct error *err)
{
    const struct manifest_piece *piece = &s->manifest->piece[p->piece];
    uint8_t hash[RM_HASH_BYTES];
    if (!p->hash) {
        p->hash = sha256_open();
        for (int r = 0; r < p->runs; r++)
            sha256_add(p->hash, place_of(s, p, r), (size_t)p->run[r].bytes);
    }
    sha256_finish(p->hash, hash);
    p->hash = NULL;
    if (!crypto_equal(hash, piece->sha256, RM_HASH_BYTES))
        return err_set(err, ERR_DATA,
                       "%s: its content is damaged: bytes %lld to %lld don't have the hash of the manifest",
                       piece->file, (long long)piece->offset, (long long)(piece->offset + piece->bytes - 1));
    if (p->run[0].array < 0 && check_header(s, p, err) < 0)
        return -1;
    p->good = true;
    return 0;
}

/* All parts are looked at, so that the next try reads no good one again. */
static int check_parts(const struct sharing *s, int from, int to, struct error *err)
{
    int result = 0;
    for (int i = from; i < to; i++)
        if (!s->part[i].good && check_part(s, &s->part[i], result ? NULL : err) < 0)
            result = -1;
    return result;
}

static int read_parts(const struct sharing *s, int from, int to, struct error *err)
{
    struct object_range *range = s->range + (ptrdiff_t)SHARE_RUNS_MAX * from;
    int n = fill_ranges(s, from, to, range);
    if (n && object_read(s->share->store, range, n, err) < 0)
        return -1;
    return check_parts(s, from, to, err);
}

/* A folder's: each thread takes the next part. */
struct reader {
    const struct sharing *s;
    atomic_int *next;
    pthread_t thread;
    bool threaded;
    int result;
    struct error err;
};

static void *reader_main(void *arg)
{
    struct reader *r = arg;
    int i;
    while (r->result == 0 && (i = atomic_fetch_add(r->next, 1)) < r->s->parts)
        r->result = is_stopped(r->s) ? err_set(&r->err, ERR_ABORTED, "given up")
                                     : read_parts(r->s, i, i + 1, &r->err);
    if (r->result < 0)
        atomic_store(r->next, r->s->parts);
    return NULL;
}

static int read_local(const struct sharing *s, struct error *err)
{
    struct reader reader[READERS_LOCAL] = {0};
    atomic_int next = 0;
    int result = 0;
    for (int i = 0; i < READERS_LOCAL; i++)
        reader[i] = (struct reader){.s = s, .next = &next};
    for (int i = 1; i < READERS_LOCAL && i < s->parts; i++)
        reader[i].threaded = !pthread_create(&reader[i].thread, NULL, reader_main, &reader[i]);
    reader_main(&reader[0]);
    for (int i = 0; i < READERS_LOCAL; i++) {
        if (reader[i].threaded)
            pthread_join(reader[i].thread, NULL);
        if (reader[i].result < 0 && result == 0)
            result = err_set(err, reader[i].err.code, "%s", reader[i].err.text);
    }
    return result;
}

/* What a wire has done may not cost a checkpoint: what is not right is read again, some times. */
static int read_far(const struct sharing *s, struct error *err)
{
    struct error why = {0};
    for (int tries = FILES_LOOKS; tries > 0; tries--) {
        if (read_parts(s, 0, s->parts, &why) == 0)
            return 0;
        if (is_stopped(s))
            return err_set(err, ERR_ABORTED, "given up");
        if (why.code != ERR_DATA)
            break;
    }
    return err_set(err, why.code == ERR_NOT_FOUND ? ERR_DATA : why.code, "%s", why.text);
}

static int read_share(struct sharing *s, struct error *err)
{
    size_t pieces = (size_t)s->manifest->pieces;
    s->part = calloc(pieces, sizeof *s->part);
    s->file = calloc(pieces, sizeof *s->file);
    s->range = calloc(pieces * SHARE_RUNS_MAX, sizeof *s->range);
    if (!s->part || !s->file || !s->range)
        return err_set(err, ERR_MACHINE, "out of memory");
    if (plan(s, err) < 0)
        return -1;
    FAULT("share-planned");
    return object_is_local(s->share->store) ? read_local(s, err) : read_far(s, err);
}

static void sharing_clear(struct sharing *s)
{
    for (int i = 0; i < s->parts; i++) {
        free(s->part[i].head);
        sha256_free(s->part[i].hash);
    }
    free(s->part);
    free(s->file);
    free(s->range);
}

int share_read(const struct checkpoint_share *share, const char *checkpoint, const struct manifest *manifest,
               struct error *err)
{
    struct sharing *s = calloc(1, sizeof *s);
    struct error why = {0};
    if (!s)
        return err_set(err, ERR_MACHINE, "out of memory");
    s->share = share;
    s->manifest = manifest;
    text_copy(s->checkpoint, sizeof s->checkpoint, checkpoint);
    int result = read_share(s, &why);
    if (result < 0 && is_stopped(s))
        why.code = ERR_ABORTED; /* whatever it says */
    sharing_clear(s);
    free(s);
    return result < 0 ? err_set(err, why.code, "%s", why.text) : 0;
}
