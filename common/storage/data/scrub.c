/* One thread of low priority that reads a data folder from end to end, chunk by chunk with a pause behind
 * each, and remembers the first chunk that is not what it was. The engine opens it beside a training
 * (engine_data.c), and looks before each step's lanes. */
#include "common/storage/data/scrub.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/os/clock.h"
#include "common/os/crypto.h"
#include "common/os/priority.h"
#include "common/storage/data/tree.h"

enum {
    PIECE = 1 << 20, /* bytes read at a time */
    REST_TIMES = 49, /* as long as a chunk took: a fiftieth of a processor at most */
};

struct scrub {
    struct scrub_options options;
    struct data_index index;
    bool learns;         /* the index is being made */
    int64_t chunk, file; /* the next one, and whose it is */
    int64_t left;        /* of the first pass */
    uint8_t *piece;
    pthread_t thread;
    bool started;
    atomic_bool ending, found;
    pthread_mutex_t lock; /* over the end of a rest */
    pthread_cond_t ends;
    struct error err; /* written before `found` */
};

static int list_files(struct scrub *s, struct error *err)
{
    for (int64_t i = 0; i < corpus_files(s->options.corpus); i++) {
        struct index_entry file = corpus_file(s->options.corpus, i);
        if (data_index_add(&s->index, &file, err) < 0)
            return -1;
    }
    return 0;
}

static void aim_at(struct scrub *s, int64_t chunk)
{
    s->chunk = chunk < s->index.chunks ? chunk : 0;
    s->file = 0;
    while (s->file + 1 < s->index.count && s->index.file[s->file + 1].first <= s->chunk)
        s->file++;
}

/* Past the last comes the first. */
static void go_on(struct scrub *s)
{
    if (++s->chunk == s->index.chunks)
        aim_at(s, 0);
    while (s->file + 1 < s->index.count && s->index.file[s->file + 1].first <= s->chunk)
        s->file++;
}

/* -1 without a word: told to end. */
static int hash_chunk(struct scrub *s, uint8_t out[RM_HASH_BYTES], struct error *err)
{
    const struct index_entry *file = &s->index.file[s->file];
    int64_t first = (s->chunk - file->first) * TREE_CHUNK;
    int64_t bytes = tree_chunk_bytes(file->bytes, s->chunk - file->first);
    struct sha256 *hash = sha256_open();
    for (int64_t at = 0; at < bytes; at += PIECE) {
        int64_t count = bytes - at < PIECE ? bytes - at : PIECE;
        if (atomic_load(&s->ending) ||
            corpus_read_aside(s->options.corpus, s->file, first + at, s->piece, count, err) < 0) {
            sha256_free(hash);
            return -1;
        }
        sha256_add(hash, s->piece, (size_t)count);
    }
    sha256_finish(hash, out);
    return 0;
}

/* The beginning says most: a reason that goes on from worker to worker is cut. */
static int refuse_chunk(const struct scrub *s, struct error *err)
{
    const struct index_entry *file = &s->index.file[s->file];
    int64_t chunk = s->chunk - file->first;
    return err_set(
        err, ERR_DATA,
        "data %.200s/%.100s: chunk %lld (from byte %lld) is not what it was; bring it back, and look at "
        "this machine's disk and memory: size and time are as they were. Steps may have been trained on it",
        corpus_folder(s->options.corpus), file->name, (long long)chunk, (long long)chunk * TREE_CHUNK);
}

/* The first pass has been everywhere. */
static int end_learning(struct scrub *s, struct error *err)
{
    uint8_t root[RM_HASH_BYTES];
    s->learns = false;
    data_index_root(&s->index, corpus_width(s->options.corpus), root);
    if (!memcmp(root, s->options.root, sizeof root))
        return 0;
    return err_set(
        err, ERR_DATA,
        "data %.200s: the content is not what it was when this worker started; bring it back, and look at "
        "this machine's disk and memory: all sizes and times are as they were",
        corpus_folder(s->options.corpus));
}

static int look_at_chunk(struct scrub *s, struct error *err)
{
    uint8_t hash[RM_HASH_BYTES], *known = s->index.chunk[s->chunk];
    if (hash_chunk(s, hash, err) < 0)
        return -1;
    if (s->learns)
        memcpy(known, hash, sizeof hash);
    else if (memcmp(known, hash, sizeof hash) != 0)
        return refuse_chunk(s, err);
    s->left -= s->left > 0;
    return s->learns && !s->left ? end_learning(s, err) : 0;
}

/* A disk that does not answer is told by who trains: nothing is known of the bytes. */
static bool is_finding(struct scrub *s, const struct error *err)
{
    return !atomic_load(&s->ending) && err->code == ERR_DATA;
}

static void tell_finding(struct scrub *s, const struct error *err)
{
    s->err = *err;
    s->err.class = CLASS_MACHINE;
    atomic_store(&s->found, true);
}

static void rest_for(struct scrub *s, rm_time time)
{
    rm_time until = clock_now() + time;
    struct timespec at = {(time_t)(until / RM_S), (long)(until % RM_S)};
    pthread_mutex_lock(&s->lock);
    while (!atomic_load(&s->ending) && pthread_cond_timedwait(&s->ends, &s->lock, &at) == 0)
        continue;
    pthread_mutex_unlock(&s->lock);
}

static void *scrub_on(void *ctx)
{
    struct scrub *s = ctx;
    rm_time took = 0;
    priority_low();
    for (;;) {
        struct error err = {0};
        rest_for(s, rm_later(s->options.pause, REST_TIMES * took));
        if (atomic_load(&s->ending))
            return NULL;
        rm_time begun = clock_now();
        int status = look_at_chunk(s, &err);
        took = clock_now() - begun;
        if (status < 0 && is_finding(s, &err)) {
            tell_finding(s, &err);
            return NULL;
        }
        if (status == 0)
            go_on(s);
    }
}

static int start_thread(struct scrub *s, struct error *err)
{
    s->piece = malloc(PIECE);
    s->started = s->piece && pthread_create(&s->thread, NULL, scrub_on, s) == 0;
    return s->started ? 0 : err_set(err, ERR_MACHINE, "no memory or no thread to look at data");
}

static void open_lock(struct scrub *s)
{
    pthread_condattr_t monotonic;
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&s->ends, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

int scrub_open(struct scrub **ret, const struct scrub_options *options, struct error *err)
{
    struct scrub *s = calloc(1, sizeof *s);
    if (!s)
        return err_set(err, ERR_MACHINE, "no memory to look at data");
    s->options = *options;
    s->index = *options->index;
    *options->index = (struct data_index){0};
    s->learns = !s->index.count;
    open_lock(s);
    if ((s->learns && list_files(s, err) < 0)) {
        scrub_free(s);
        return -1;
    }
    s->left = s->index.chunks;
    aim_at(s, (int64_t)(options->from * (double)s->index.chunks));
    if (start_thread(s, err) < 0) {
        scrub_free(s);
        return -1;
    }
    *ret = s;
    return 0;
}

void scrub_free(struct scrub *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    atomic_store(&s->ending, true);
    pthread_cond_signal(&s->ends);
    pthread_mutex_unlock(&s->lock);
    if (s->started)
        pthread_join(s->thread, NULL);
    pthread_cond_destroy(&s->ends);
    pthread_mutex_destroy(&s->lock);
    data_index_clear(&s->index);
    free(s->piece);
    free(s);
}

bool scrub_found(struct scrub *s, struct error *err)
{
    if (!atomic_load(&s->found))
        return false;
    *err = s->err;
    return true;
}
