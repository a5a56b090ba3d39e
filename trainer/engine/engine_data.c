/* A job's training data as a trainer has it: where its bytes come from, what they are in one hash, the thread
 * that reads samples ahead, and the one that looks whether they still are what they were. */
#include <string.h>

#include "common/base/assert.h"
#include "common/storage/data/cache.h"
#include "common/storage/data/identify.h"
#include "trainer/engine/engine_parts.h"

/* Samples that are asked for ahead of their reading, where data comes from a store. */
enum { WANTED_SAMPLES = 48 };

/* Behind each chunk of data that is looked at again: 10 GB in eleven minutes, 1 TB in less than a day. */
static const rm_time scrub_pause = RM_S;

/* Samples read ahead take no more memory than this. */
#define READ_AHEAD_BYTES ((int64_t)64 << 20)

static int64_t batch_sequences(const struct job_spec *spec)
{
    return (int64_t)spec->batch.lanes * spec->batch.lane_sequences;
}

_Static_assert((int)CORPUS_TOKENS16 == (int)JOB_DATA_TOKENS16 &&
                   (int)CORPUS_TOKENS32 == (int)JOB_DATA_TOKENS32 && (int)CORPUS_AUTO == (int)JOB_DATA_AUTO,
               "the job's formats are the corpus's");

static int64_t sample_of(const void *ctx, int64_t step, int lane, int sequence)
{
    return cursor_sample(ctx, step, lane, sequence);
}

static int open_reader(struct engine *e, struct error *err)
{
    const struct job_spec *spec = e->spec;
    RM_ASSERT(e->cursor.samples >= batch_sequences(spec),
              "%lld samples are read ahead, and a step takes %lld", (long long)e->cursor.samples,
              (long long)batch_sequences(spec));
    struct prefetch_options options = {.corpus = e->corpus,
                                       .context = spec->model.shape.context,
                                       .lane_sequences = spec->batch.lane_sequences,
                                       .lanes = spec->batch.lanes,
                                       .steps = spec->steps,
                                       .room = READ_AHEAD_BYTES,
                                       .wanted = e->feed ? WANTED_SAMPLES : 0,
                                       .sample = sample_of,
                                       .ctx = &e->cursor};
    return prefetch_open(&e->reader, &options, err);
}

static int open_feed(struct engine *e, int fd, struct error *err)
{
    struct feed_options options = {.fd = fd, .abort = &e->abort[ELASTIC_COMPUTES].word, .pulse = &e->counter};
    if (!job_data_is_remote(e->spec))
        return 0;
    if (fd < 0)
        return err_set(err, ERR_USAGE, "data %s: the agent gives no socket for it", e->spec->data.uri);
    if (feed_open(&e->feed, &options, err) < 0)
        return err_wrap(err, "data %s", e->spec->data.uri);
    return 0;
}

_Static_assert((int)IDENTITY_TREE == (int)JOB_DATA_TREE && (int)IDENTITY_CHAIN == (int)JOB_DATA_CHAIN,
               "the job's hashes are the data's");

/* The data's hash: as known before, or the listing's, or of all bytes. *index: a tree's chunks, where they
 * are known. */
static int identify_data(struct engine *e, const struct msg_setup *setup, struct data_index *index,
                         struct error *err)
{
    char cache[RM_URI_MAX];
    struct corpus_identity identity;
    struct identify_options options = {
        .kind = (enum identity_kind)e->spec->data.hash,
        .times = e->spec->data.trust != JOB_DATA_CONTENT,
        .shares = e->spec->data.trust == JOB_DATA_SHARE ? e->spec->workers.target : 0,
        .share = setup->worker % e->spec->workers.target,
        .threads = engine_threads(e),
        .cache = cache,
        .cache_bytes = e->spec->data.cache_bytes,
        .ret = index};
    const char *known = e->feed ? e->spec->data.listing : setup->data_sha256;
    if (known[0] && !hex_decode(known, e->data_sha256, RM_HASH_BYTES))
        return err_set(err, ERR_PROTOCOL, "setup: the data's hash is no hash");
    if (known[0])
        return 0;
    cache_folder(e->spec->data.cache, cache);
    if (corpus_identify(e->corpus, &options, &identity, err) < 0)
        return -1;
    memcpy(e->data_sha256, identity.sha256, RM_HASH_BYTES);
    return 0;
}

/* Of a folder, as this worker sees it; those of a run begin at places of their own. A chain has no chunks. */
static int open_scrub(struct engine *e, const struct msg_setup *setup, struct data_index *index,
                      struct error *err)
{
    int workers = e->spec->workers.target;
    struct scrub_options options = {.corpus = e->corpus,
                                    .index = index,
                                    .from = (double)(setup->worker % workers) / workers,
                                    .pause = scrub_pause};
    if (e->feed || e->spec->data.hash == JOB_DATA_CHAIN)
        return 0;
    memcpy(options.root, e->data_sha256, RM_HASH_BYTES);
    return scrub_open(&e->scrub, &options, err);
}

static int look_at_data(struct engine *e, const struct msg_setup *setup, struct error *err)
{
    struct data_index index = {0};
    int status = identify_data(e, setup, &index, err) < 0 ? -1 : open_scrub(e, setup, &index, err);
    data_index_clear(&index);
    return status;
}

static int open_data(struct engine *e, const struct msg_setup *setup, struct error *err)
{
    const struct job_spec *spec = e->spec;
    if (job_is_elastic(spec))
        return 0;
    struct corpus_source source = e->feed ? feed_source(e->feed) : (struct corpus_source){0};
    int sequences = spec->evaluation.every_steps ? spec->evaluation.sequences : 0;
    struct corpus_options options = {.uri = spec->data.uri,
                                     .source = e->feed ? &source : NULL,
                                     .format = (enum corpus_format)spec->data.format,
                                     .context = spec->model.shape.context,
                                     .vocabulary = spec->model.shape.vocabulary,
                                     .hold_out = spec->evaluation.hold_out};
    if (corpus_open(&e->corpus, &options, err) < 0 ||
        corpus_check(e->corpus, batch_sequences(spec), sequences, err) < 0)
        return -1;
    e->cursor = (struct cursor){spec->seed, corpus_training(e->corpus), spec->batch.lanes,
                                spec->batch.lane_sequences};
    return look_at_data(e, setup, err) < 0 ? -1 : open_reader(e, err);
}

int engine_data_open(struct engine *e, const struct engine_options *options, struct error *err)
{
    return open_feed(e, options->data_fd, err) < 0 ? -1 : open_data(e, options->setup, err);
}

bool engine_data_spoilt(const struct engine *e, struct elastic_result *ret)
{
    struct error err;
    if (!e->scrub || !scrub_found(e->scrub, &err))
        return false;
    engine_failed(ret, &err, -1);
    return true;
}
