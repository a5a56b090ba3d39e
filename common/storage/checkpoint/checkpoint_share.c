/* Reading shares of a checkpoint: their pieces straight to where they belong, hashed as they come. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/os/crypto.h"
#include "common/os/fault.h"
#include "common/storage/checkpoint/checkpoint.h"
#include "common/storage/checkpoint/files.h"
#include "common/storage/checkpoint/piece_hash.h"
#include "common/storage/checkpoint/safetensors.h"
#include "common/storage/checkpoint/share.h"
#include "common/storage/checkpoint/verify.h"

enum {
    READERS_LOCAL = 4,   /* a folder's files: copying out of the caches and hashing is what takes time */
    CHUNKS_AT_ONCE = 256 /* of a bucket, in one call: what is kept of each request stays small */
};

/* One chunk of a piece (piece_hash.h): the least that is read, and hashed by itself. */
struct chunk {
    int piece; /* in the manifest */
    int file;  /* index of its file */
    int runs;
    struct share_run run[SHARE_RUNS_MAX];
    char *head;                /* (bytes of the run that is not of the state), what came for it */
    struct piece_sum *running; /* of one that comes in one run; else it is hashed when it is there */
    uint8_t sum[RM_HASH_BYTES];
    bool read; /* and hashed */
};

struct file {
    int piece; /* its first one in the manifest */
    char name[FILES_NAME_MAX];
    char tag[OBJECT_TAG_MAX]; /* of the content: it must not change on the way */
};

struct sharing {
    const struct checkpoint_share *share;
    const struct manifest *manifest;
    char checkpoint[CHECKPOINT_NAME_MAX];
    int chunks, files;
    struct chunk *chunk;        // (chunks) in the manifest's order
    struct file *file;          // (files)
    struct object_range *range; // (SHARE_RUNS_MAX * chunks) for one call
};

static bool is_wanted(const struct checkpoint_share *share, const struct manifest *m, int piece)
{
    return set_has(share->shares, share_of_piece(m, piece, share->parts));
}

static char *place_of(const struct sharing *s, const struct chunk *p, int r)
{
    const struct share_run *run = &p->run[r];
    return run->array < 0 ? p->head : (char *)(s->share->array[run->array] + run->first);
}

/* --- what is to be read --- */

static void name_file(struct sharing *s, int piece)
{
    struct file *file = &s->file[s->files++];
    file->piece = piece;
    files_object(file->name, s->checkpoint, s->manifest->piece[piece].file);
}

/* Before each look at what lies in it: it may have been replaced meanwhile. */
static int look_at_file(const struct sharing *s, struct file *file, struct error *err)
{
    const struct manifest *m = s->manifest;
    const struct manifest_piece *last = &m->piece[verify_next_file(m, file->piece) - 1];
    struct object_info info;
    if (files_head(s->share->store, s->checkpoint, last->file, &info, err) < 0)
        return err_wrap(err, "%s", last->file);
    if (info.bytes != last->offset + last->bytes)
        return err_set(err, ERR_DATA, "%s: it has %lld bytes instead of %lld", last->file,
                       (long long)info.bytes, (long long)(last->offset + last->bytes));
    text_copy(file->tag, sizeof file->tag, info.tag);
    return 0;
}

static int add_chunk(struct sharing *s, int piece, int64_t offset, int64_t bytes, struct error *err)
{
    struct chunk *p = &s->chunk[s->chunks++];
    *p = (struct chunk){.piece = piece, .file = s->files - 1};
    p->runs = share_runs(s->manifest, s->share->layout, piece, offset, bytes, p->run, err);
    if (p->runs < 0)
        return -1;
    if (p->run[0].array < 0 && !(p->head = malloc((size_t)p->run[0].bytes)))
        return err_set(err, ERR_MACHINE, "out of memory");
    return 0;
}

static int64_t chunks_of(const struct manifest *m, int piece)
{
    return piece_chunks(m->piece[piece].bytes, piece_chunk(m->hash));
}

static int add_piece(struct sharing *s, int piece, struct error *err)
{
    const struct manifest *m = s->manifest;
    int64_t at = m->piece[piece].offset, n = chunks_of(m, piece);
    for (int64_t i = 0; i < n; i++) {
        int64_t bytes = piece_chunk_bytes(m->piece[piece].bytes, piece_chunk(m->hash), i);
        if (add_chunk(s, piece, at, bytes, err) < 0)
            return -1;
        at += bytes;
    }
    return 0;
}

static int add_wanted(struct sharing *s, struct error *err)
{
    const struct manifest *m = s->manifest;
    int opened = -1; /* first piece of the newest file */
    for (int i = 0, first = 0; i < m->pieces; i++) {
        if (i == verify_next_file(m, first))
            first = i;
        if (!is_wanted(s->share, m, i))
            continue;
        if (opened != first)
            name_file(s, first);
        opened = first;
        if (add_piece(s, i, err) < 0)
            return -1;
    }
    return 0;
}

/* --- reading --- */

static void came(void *ctx, const void *bytes, size_t count)
{
    piece_sum_add(ctx, bytes, count);
}

static bool is_stopped(const struct sharing *s)
{
    return s->share->stop && atomic_load_explicit(s->share->stop, memory_order_relaxed);
}

/* The ranges of the chunks `from` to `to` that are still to be read; returns how many. */
static int fill_ranges(const struct sharing *s, int from, int to, struct object_range *range)
{
    int n = 0;
    for (int i = from; i < to; i++) {
        struct chunk *p = &s->chunk[i];
        if (p->read)
            continue;
        piece_sum_free(p->running);
        p->running = p->runs == 1 ? piece_sum_open(s->manifest->hash) : NULL;
        for (int r = 0; r < p->runs; r++)
            range[n++] = (struct object_range){.name = s->file[p->file].name,
                                               .offset = p->run[r].offset,
                                               .bytes = p->run[r].bytes,
                                               .into = place_of(s, p, r),
                                               .came = p->running ? came : NULL,
                                               .ctx = p->running,
                                               .tag = s->file[p->file].tag};
    }
    return n;
}

static void finish_chunk(const struct sharing *s, struct chunk *p)
{
    if (!p->running) {
        p->running = piece_sum_open(s->manifest->hash);
        for (int r = 0; r < p->runs; r++)
            piece_sum_add(p->running, place_of(s, p, r), (size_t)p->run[r].bytes);
    }
    piece_sum_finish(p->running, p->sum);
    p->running = NULL;
    p->read = true;
}

static int read_chunks(const struct sharing *s, int from, int to, struct error *err)
{
    struct object_range *range = s->range + (ptrdiff_t)SHARE_RUNS_MAX * from;
    int n = fill_ranges(s, from, to, range);
    if (n && object_read(s->share->store, range, n, err) < 0)
        return -1;
    for (int i = from; i < to; i++)
        if (!s->chunk[i].read)
            finish_chunk(s, &s->chunk[i]);
    return 0;
}

/* A folder's: each thread takes the next chunk. */
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
    while (r->result == 0 && (i = atomic_fetch_add(r->next, 1)) < r->s->chunks)
        r->result = is_stopped(r->s) ? err_set(&r->err, ERR_ABORTED, "given up")
                                     : read_chunks(r->s, i, i + 1, &r->err);
    if (r->result < 0)
        atomic_store(r->next, r->s->chunks);
    return NULL;
}

static int read_local(const struct sharing *s, struct error *err)
{
    struct reader reader[READERS_LOCAL] = {0};
    atomic_int next = 0;
    int result = 0;
    for (int i = 0; i < READERS_LOCAL; i++)
        reader[i] = (struct reader){.s = s, .next = &next};
    for (int i = 1; i < READERS_LOCAL && i < s->chunks; i++)
        reader[i].threaded = !pthread_create(&reader[i].thread, NULL, reader_main, &reader[i]);
    reader_main(&reader[0]);
    for (int i = 0; i < READERS_LOCAL; i++) {
        if (reader[i].threaded)
            pthread_join(reader[i].thread, NULL);
        if (reader[i].result < 0 && result == 0)
            result = err_from(err, &reader[i].err, "%s", reader[i].err.text);
    }
    return result;
}

static int read_far(const struct sharing *s, struct error *err)
{
    for (int i = 0; i < s->chunks; i += CHUNKS_AT_ONCE) {
        int to = i + CHUNKS_AT_ONCE < s->chunks ? i + CHUNKS_AT_ONCE : s->chunks;
        if (is_stopped(s))
            return err_set(err, ERR_ABORTED, "given up");
        if (read_chunks(s, i, to, err) < 0)
            return -1;
    }
    return 0;
}

/* --- verifying --- */

static int check_header(const struct sharing *s, const struct chunk *p, struct error *err)
{
    const struct share_run *run = &p->run[0];
    struct str header = str_init(SAFETENSORS_HEADER_MAX);
    if (run->array >= 0)
        return 0;
    share_header(s->manifest, s->share->layout, p->piece, &header);
    bool same = !header.length || !memcmp(header.data + run->offset, p->head, (size_t)run->bytes);
    str_clear(&header);
    return same ? 0
                : err_set(err, ERR_DATA, "%s: its header is not that of this model and part",
                          s->manifest->piece[p->piece].file);
}

static int damaged(const struct manifest_piece *piece, const uint8_t *found, struct error *err)
{
    struct error why = {0};
    verify_damaged(piece, found, &why);
    return err_from(err, &why, "%s: %s", piece->file, why.text);
}

/* The chunks from `first` on are a whole piece's. */
static int check_piece(const struct sharing *s, int first, int chunks, struct error *err)
{
    const struct manifest_piece *piece = &s->manifest->piece[s->chunk[first].piece];
    uint8_t hash[RM_HASH_BYTES], (*sum)[RM_HASH_BYTES] = malloc((size_t)chunks * RM_HASH_BYTES);
    if (!sum)
        return err_set(err, ERR_MACHINE, "out of memory");
    for (int i = 0; i < chunks; i++)
        memcpy(sum[i], s->chunk[first + i].sum, RM_HASH_BYTES);
    piece_of_sums(s->manifest->hash, (const uint8_t(*)[RM_HASH_BYTES])sum, chunks, hash);
    free(sum);
    if (!crypto_equal(hash, piece->sha256, RM_HASH_BYTES))
        return damaged(piece, hash, err);
    for (int i = 0; i < chunks; i++)
        if (check_header(s, &s->chunk[first + i], err) < 0)
            return -1;
    return 0;
}

/* All pieces are looked at, so that the next try reads no good one again. */
static int check_pieces(const struct sharing *s, struct error *err)
{
    int result = 0;
    for (int i = 0; i < s->chunks;) {
        int n = (int)chunks_of(s->manifest, s->chunk[i].piece);
        if (check_piece(s, i, n, result ? NULL : err) < 0) {
            result = -1;
            for (int c = i; c < i + n; c++)
                s->chunk[c].read = false;
        }
        i += n;
    }
    return result;
}

/* What is right stays; what is not is read again (files_look). */
static int read_once(void *ctx, struct error *err)
{
    struct sharing *s = ctx;
    bool local = object_is_local(s->share->store);
    struct error why = {0};
    int result = 0;
    for (int i = 0; i < s->files && result == 0; i++)
        result = look_at_file(s, &s->file[i], &why);
    if (result == 0)
        result = local ? read_local(s, &why) : read_far(s, &why);
    if (result == 0)
        result = check_pieces(s, &why);
    if (result < 0 && is_stopped(s))
        why.code = ERR_ABORTED; /* whatever it says */
    if (result < 0 && why.code == ERR_NOT_FOUND)
        why.code = ERR_DATA; /* gone since it was looked at: the next look says whether it is missing */
    return result < 0 ? err_from(err, &why, "%s", why.text) : 0;
}

static int64_t count_chunks(const struct sharing *s)
{
    int64_t chunks = 1; /* of an empty share, too */
    for (int i = 0; i < s->manifest->pieces; i++)
        if (is_wanted(s->share, s->manifest, i))
            chunks += chunks_of(s->manifest, i);
    return chunks;
}

static int read_share(struct sharing *s, struct error *err)
{
    size_t chunks = (size_t)count_chunks(s);
    s->chunk = calloc(chunks, sizeof *s->chunk);
    s->file = calloc((size_t)s->manifest->pieces, sizeof *s->file);
    s->range = calloc(chunks * SHARE_RUNS_MAX, sizeof *s->range);
    if (!s->chunk || !s->file || !s->range)
        return err_set(err, ERR_MACHINE, "out of memory");
    if (add_wanted(s, err) < 0)
        return -1;
    FAULT("share-planned");
    return files_look(s->share->store, read_once, s, err);
}

static void sharing_clear(struct sharing *s)
{
    for (int i = 0; i < s->chunks; i++) {
        free(s->chunk[i].head);
        piece_sum_free(s->chunk[i].running);
    }
    free(s->chunk);
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
    return result < 0 ? err_from(err, &why, "%s", why.text) : 0;
}
