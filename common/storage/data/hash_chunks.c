#include "common/storage/data/hash_chunks.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/os/sha256_many.h"
#include "common/storage/data/tree.h"

enum {
    PAIR = 2,        /* chunks that a thread reads, and hashes side by side */
    THREADS_MAX = 4, /* each has memory for a pair */
};

struct place {
    int64_t file, chunk;
};

struct chunk_work {
    const struct corpus *corpus;
    const struct identify_options *options;
    const bool *skip; /* (chunks) */
    struct data_index *index;
    int64_t room; /* bytes of the largest chunk */
    pthread_mutex_t lock;
    struct place next;
    bool failed;
    struct place failed_at;
    struct error err;
};

static bool is_skipped(const struct chunk_work *w, struct place at)
{
    return w->skip[w->index->file[at.file].first + at.chunk];
}

/* Called with the lock held. */
static bool take_place(struct chunk_work *w, struct place *ret)
{
    struct place *next = &w->next;
    while (next->file < w->index->count) {
        if (next->chunk == tree_chunks(w->index->file[next->file].bytes))
            *next = (struct place){.file = next->file + 1};
        else if (is_skipped(w, *next))
            next->chunk++;
        else
            break;
    }
    if (w->failed || next->file == w->index->count)
        return false;
    *ret = *next;
    next->chunk++;
    return true;
}

static int take_pair(struct chunk_work *w, struct place pair[PAIR])
{
    int n = 0;
    pthread_mutex_lock(&w->lock);
    while (n < PAIR && take_place(w, &pair[n]))
        n++;
    pthread_mutex_unlock(&w->lock);
    return n;
}

static void note_failure(struct chunk_work *w, struct place at, const struct error *err)
{
    pthread_mutex_lock(&w->lock);
    bool before =
        at.file < w->failed_at.file || (at.file == w->failed_at.file && at.chunk < w->failed_at.chunk);
    if (!w->failed || before) {
        w->failed = true;
        w->failed_at = at;
        w->err = *err;
    }
    pthread_mutex_unlock(&w->lock);
}

static void note_read(struct chunk_work *w, int64_t bytes)
{
    if (!w->options->moved)
        return;
    pthread_mutex_lock(&w->lock);
    w->options->moved(w->options->ctx, bytes);
    pthread_mutex_unlock(&w->lock);
}

static int read_chunk(const struct chunk_work *w, struct place at, uint8_t *out, struct sha256_text *ret,
                      struct error *err)
{
    const struct index_entry *file = &w->index->file[at.file];
    int64_t from = at.chunk * TREE_CHUNK, bytes = tree_chunk_bytes(file->bytes, at.chunk);
    *ret = (struct sha256_text){out, (size_t)bytes, w->index->chunk[file->first + at.chunk]};
    if (corpus_read_bytes(w->corpus, at.file, from, out, bytes, err) < 0)
        return -1;
    return corpus_check_bytes(w->corpus, at.file, from, out, bytes, err);
}

static bool hash_pair(struct chunk_work *w, uint8_t *room)
{
    struct place pair[PAIR];
    struct sha256_text text[PAIR];
    struct error err;
    int n = take_pair(w, pair);
    int64_t bytes = 0;
    for (int i = 0; i < n; i++) {
        if (read_chunk(w, pair[i], room + i * w->room, &text[i], &err) < 0) {
            note_failure(w, pair[i], &err);
            return false;
        }
        bytes += (int64_t)text[i].count;
    }
    sha256_many(text, n);
    note_read(w, bytes);
    return n == PAIR;
}

static void *hash_pairs(void *ctx)
{
    struct chunk_work *w = ctx;
    struct error err;
    uint8_t *room = malloc((size_t)w->room * PAIR);
    if (!room) {
        err_set(&err, ERR_MACHINE, "no memory to hash data: %lld bytes for a thread",
                (long long)w->room * PAIR);
        note_failure(w, (struct place){0}, &err);
        return NULL;
    }
    while (hash_pair(w, room))
        continue;
    free(room);
    return NULL;
}

static int64_t chunks_to_do(const struct chunk_work *w, int64_t *ret_largest)
{
    int64_t chunks = 0;
    *ret_largest = 1;
    for (int64_t i = 0; i < w->index->count; i++) {
        const struct index_entry *file = &w->index->file[i];
        for (int64_t c = 0; c < tree_chunks(file->bytes); c++) {
            int64_t bytes = tree_chunk_bytes(file->bytes, c);
            if (w->skip[file->first + c])
                continue;
            chunks++;
            *ret_largest = bytes > *ret_largest ? bytes : *ret_largest;
        }
    }
    return chunks;
}

static int threads_for(const struct identify_options *options, const struct corpus *corpus, int64_t chunks)
{
    int64_t pairs = (chunks + PAIR - 1) / PAIR;
    int threads = options->threads < THREADS_MAX ? options->threads : THREADS_MAX;
    if (!corpus_folder(corpus) || threads < 1)
        return 1;
    return pairs < threads ? (int)pairs : threads;
}

int hash_chunks(const struct corpus *corpus, const struct identify_options *options, const bool *skip,
                struct data_index *index, struct error *err)
{
    struct chunk_work w = {.corpus = corpus, .options = options, .skip = skip, .index = index};
    pthread_t thread[THREADS_MAX];
    int64_t chunks = chunks_to_do(&w, &w.room);
    int started = 0, others = threads_for(options, corpus, chunks) - 1;
    if (!chunks)
        return 0;
    pthread_mutex_init(&w.lock, NULL);
    while (started < others && pthread_create(&thread[started], NULL, hash_pairs, &w) == 0)
        started++;
    hash_pairs(&w);
    for (int i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    pthread_mutex_destroy(&w.lock);
    if (w.failed && err)
        *err = w.err;
    return w.failed ? -1 : 0;
}
