/* Looks on a thread at what a job in pods begins with, again and again while its store is away. */
#include "coordinator/pod_job.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/job/spec.h"
#include "common/os/clock.h"
#include "common/os/log.h"
#include "common/storage/checkpoint/checkpoint.h"
#include "common/storage/checkpoint/owner.h"
#include "common/storage/checkpoint/place.h"
#include "common/storage/checkpoint/remote_data.h"
#include "common/storage/checkpoint/tokenizer_file.h"
#include "common/storage/data/arrival.h"
#include "common/storage/data/corpus.h"

static const rm_time pause_least = RM_S, pause_most = 30 * RM_S;

struct pod_job {
    struct loop *loop;
    struct pod_job_options options;
    struct loop_timer *timer;
    struct loop_bell *place; /* rung by the owner's thread */
    rm_time pause;           /* before the last look; 0: there was none */
    bool running, begun, away;
    atomic_int cancel;
    /* the background work's own while it runs */
    struct job_spec spec;
    struct owner *owner;
    struct object_store *checkpoints;
    bool found;             /* a checkpoint to go on from */
    struct arrival arrival; /* of the data */
    bool complete;
    struct checkpoint_entry newest;
    struct manifest manifest;
    struct error err;
    int status;
};

static void owner_waits(void *ctx, const char *text)
{
    (void)ctx;
    log_info("the checkpoints have an owner", "why=\"%s\"", text);
}

static void place_changed(void *ctx)
{
    struct pod_job *j = ctx;
    loop_wake(j->place);
}

static int own(struct pod_job *j, struct error *err)
{
    char run[OWNER_RUN_MAX];
    struct object_options place = {.uri = j->spec.checkpoint.uri,
                                   .endpoint = j->spec.checkpoint.endpoint,
                                   .region = j->spec.checkpoint.region};
    if (j->owner)
        return 0;
    owner_run(j->options.files->key, JOB_KEY_BYTES, run);
    struct owner_options options = {.place = &place,
                                    .run = run,
                                    .title = j->spec.name,
                                    .waiting = owner_waits,
                                    .changed = place_changed,
                                    .ctx = j};
    if (owner_open(&j->owner, &options, err) < 0)
        return -1;
    if (!owner_is_fenced(j->owner)) {
        char text[RM_URI_MAX];
        owner_unfenced_sentence(j->owner, text, sizeof text);
        log_warn("nothing but the clock keeps two owners apart", "why=\"%s\"", text);
    }
    return 0;
}

static int find_newest(struct pod_job *j, struct error *err)
{
    struct checkpoint_list *list = calloc(1, sizeof *list);
    if (!list)
        return err_set(err, ERR_MACHINE, "no memory to list checkpoints");
    int status = checkpoint_list(j->checkpoints, list, err);
    for (int i = 0; status == 0 && i < list->skipped; i++)
        log_warn("a checkpoint can't be used", "name=%s why=\"%s\"", list->skip[i].name, list->skip[i].why);
    if (status == 0 && !list->count && list->skipped)
        status = checkpoint_all_damaged(j->checkpoints, list->skip, list->skipped, err);
    j->found = status == 0 && list->count > 0;
    if (j->found) {
        j->newest = list->entry[0];
        status = checkpoint_manifest(j->checkpoints, j->newest.name, &j->manifest, err);
    }
    free(list);
    return status;
}

/* Auto, of data in a folder that only the workers see, may mean any of them. */
static int compare(const struct pod_job *j, struct error *err)
{
    struct job_spec *spec = malloc(sizeof *spec);
    const char *compared = j->manifest.compared;
    if (!spec)
        return err_set(err, ERR_MACHINE, "no memory to compare jobs");
    *spec = j->spec;
    int status = job_spec_compare(spec, compared, strlen(compared), err);
    bool open = spec->data.format == (enum job_data_format)CORPUS_AUTO;
    for (int format = 0; open && status < 0 && format < CORPUS_AUTO; format++) {
        spec->data.format = (enum job_data_format)format;
        status = job_spec_compare(spec, compared, strlen(compared), NULL);
    }
    free(spec);
    return status;
}

static int check_resume(const struct pod_job *j, struct error *err)
{
    if (!j->found)
        return 0;
    if (!j->spec.checkpoint.resume && !j->options.successor)
        return err_set(err, ERR_USAGE,
                       "spec.checkpoint.resume is Never, but %.200s holds %s; choose another place",
                       j->spec.checkpoint.uri, j->newest.name);
    if (compare(j, err) < 0)
        return err_wrap(err, "the job differs from %s in %.200s", j->newest.name, j->spec.checkpoint.uri);
    return 0;
}

static int open_corpus(struct pod_job *j, struct remote_data *data, struct corpus **ret, struct error *err)
{
    const struct job_spec *s = &j->spec;
    struct corpus_source source = remote_data_source(data);
    struct corpus_options options = {.uri = s->data.uri,
                                     .source = &source,
                                     .format = (enum corpus_format)s->data.format,
                                     .context = s->model.shape.context,
                                     .vocabulary = s->model.shape.vocabulary,
                                     .hold_out = s->evaluation.hold_out};
    int64_t batch = (int64_t)s->batch.lanes * s->batch.lane_sequences;
    if (corpus_open(ret, &options, err) < 0)
        return -1;
    if (corpus_check(*ret, batch, s->evaluation.every_steps ? s->evaluation.sequences : 0, err) == 0)
        return 0;
    corpus_free(*ret);
    return -1;
}

/* It waits, and says what a person may do meanwhile. */
static int wait_on(struct error *err)
{
    err_person(err);
    return err_class(err, CLASS_PASSING);
}

/* Before anything is trained somebody may be about to upload it, as a bucket may be made after its job. */
static int wait_for_data(struct pod_job *j, const struct remote_data *data, struct error *err)
{
    struct arrival_amount there = remote_data_amount(data);
    if (arrival_is_over(&j->arrival, there, clock_now()))
        return 0;
    if (there.files)
        err_set(err, ERR_DATA,
                "spec.trainer.data: %" PRId64
                " files have come to %.100s: it begins once there are no more for "
                "%d s; suspend the job where more are to follow later",
                there.files, j->spec.data.uri, (int)(ARRIVAL_SETTLES / RM_S));
    else
        err_set(err, ERR_DATA,
                "spec.trainer.data: there is nothing under %.100s: suspend the job, upload all of its data "
                "there, and resume it",
                j->spec.data.uri);
    return wait_on(err);
}

/* The listing that the checkpoint found was trained on, if it is one; else that of now, kept from here on. */
static int settle_listing(struct pod_job *j, struct remote_data *data, struct error *err)
{
    struct corpus *corpus = NULL;
    struct error why = {0};
    uint8_t sha256[RM_HASH_BYTES];
    bool kept = false;
    if (j->found) {
        memcpy(sha256, j->manifest.data.sha256, sizeof sha256);
        kept = remote_data_take_kept(data, j->checkpoints, sha256, &why) == 0;
        if (!kept && why.code != ERR_NOT_FOUND)
            return err_from(err, &why, "%s", why.text);
    }
    if (!j->found && wait_for_data(j, data, err) < 0)
        return -1;
    if (open_corpus(j, data, &corpus, err) < 0)
        return j->arrival.awaited && err->code == ERR_DATA ? wait_on(err) : -1; /* it may not be all */
    j->spec.data.format = (enum job_data_format)corpus_format(corpus);          /* what Auto means here */
    int status = kept ? 0 : remote_data_keep(data, j->checkpoints, corpus, sha256, err);
    corpus_free(corpus);
    if (status == 0)
        hex_encode(sha256, sizeof sha256, j->spec.data.listing);
    return status;
}

/* Only before anything is trained: weights that exist do not hang on a text. A file is one of the workers'
 * volumes; they look. */
static int check_tokenizer(struct pod_job *j, struct error *err)
{
    bool begins = !j->found && !j->options.successor;
    return begins && job_uri_is_bucket(j->spec.data.tokenizer)
               ? tokenizer_file_check(&j->spec, &j->cancel, err)
               : 0;
}

static int settle_data(struct pod_job *j, struct error *err)
{
    struct remote_data *data = NULL;
    if (check_tokenizer(j, err) < 0)
        return -1;
    if (!job_data_is_remote(&j->spec))
        return 0;
    if (!j->checkpoints)
        return err_set(err, ERR_USAGE,
                       "spec.trainer.data.uri is an object store, and spec.checkpoint.uri is a folder: which "
                       "files the data are is kept beside the checkpoints, where the coordinator of a pod "
                       "sees no folder; choose an object store for both");
    int status = remote_data_open(&data, &j->spec, err);
    if (status == 0)
        status = settle_listing(j, data, err);
    remote_data_free(data);
    return status;
}

/* By itself, or by a person who sets something right in the store: this program need not be made anew. */
static bool may_heal(const struct error *why)
{
    return why->code == ERR_MACHINE || why->class == CLASS_PASSING;
}

/* Proven to be damaged, it is for the workers to go on from an older one; anything else says nothing about
 * it. */
static int check_complete(struct pod_job *j, struct error *err)
{
    struct error why = {0};
    j->complete = false;
    if (!j->found || !j->newest.final || j->newest.step != j->spec.steps)
        return 0;
    if (checkpoint_verify(j->checkpoints, j->newest.name, &j->manifest, &why) == 0)
        j->complete = true;
    else if (why.code != ERR_DATA && why.code != ERR_NOT_FOUND)
        return err_from(err, &why, "%s", why.text);
    return 0;
}

static int prepare_parts(struct pod_job *j, struct error *err)
{
    if (job_uri_is_bucket(j->spec.checkpoint.uri)) {
        if (place_open_checkpoints(&j->checkpoints, &j->spec, &j->cancel, err) < 0 || own(j, err) < 0 ||
            find_newest(j, err) < 0)
            return err_wrap(err, "spec.checkpoint");
    }
    if (settle_data(j, err) < 0 || check_resume(j, err) < 0)
        return -1;
    return check_complete(j, err);
}

static void prepare_job(void *ctx)
{
    struct pod_job *j = ctx;
    j->spec = j->options.files->spec;
    j->err = (struct error){0};
    j->status = prepare_parts(j, &j->err);
    object_free(j->checkpoints);
    j->checkpoints = NULL;
}

static void put_in(struct pod_job *j)
{
    j->options.files->spec = j->spec;
    str_reset(&j->options.files->spec_text);
    job_spec_write(&j->spec, &j->options.files->spec_text);
}

static void look_later(struct pod_job *j)
{
    j->pause = j->pause ? 2 * j->pause : pause_least;
    if (j->pause > pause_most)
        j->pause = pause_most;
    loop_timer_set(j->timer, loop_now(j->loop) + j->pause);
}

/* What is taken again before anybody was told is no news. */
static void tell_place(void *ctx)
{
    struct pod_job *j = ctx;
    struct error why;
    if (!j->begun || !j->owner)
        return;
    bool away = owner_is_away(j->owner, &why);
    if (away || j->away)
        j->options.waits(j->options.ctx, away ? &why : NULL);
    j->away = away;
}

static void worked(void *ctx)
{
    struct pod_job *j = ctx;
    j->running = false;
    if (atomic_load(&j->cancel))
        return;
    if (j->status == 0) {
        put_in(j);
        if (j->complete)
            j->options.complete(j->options.ctx, &j->newest);
        else {
            j->begun = true;
            j->options.ready(j->options.ctx);
            tell_place(j);
        }
    } else if (may_heal(&j->err)) {
        look_later(j);
        j->options.waits(j->options.ctx, &j->err);
    } else
        j->options.refused(j->options.ctx, &j->err);
}

static void look_at_job(void *ctx)
{
    struct pod_job *j = ctx;
    struct error err;
    j->running = loop_work(j->loop, prepare_job, worked, j, &err) == 0;
    if (!j->running)
        look_later(j);
}

int pod_job_open(struct pod_job **ret, struct loop *loop, const struct pod_job_options *options,
                 struct error *err)
{
    struct pod_job *j = calloc(1, sizeof *j);
    if (!j)
        return err_set(err, ERR_MACHINE, "no memory to look at the job");
    *j = (struct pod_job){.loop = loop, .options = *options};
    if (loop_timer_open(&j->timer, loop, look_at_job, j, err) < 0 ||
        loop_bell_open(&j->place, loop, tell_place, j, err) < 0) {
        loop_timer_free(j->timer);
        free(j);
        return -1;
    }
    look_at_job(j);
    *ret = j;
    return 0;
}

bool pod_job_is_fenced(const struct pod_job *j)
{
    return !j->owner || owner_is_fenced(j->owner);
}

void pod_job_free(struct pod_job *j)
{
    if (!j)
        return;
    atomic_store(&j->cancel, 1);
    while (j->running)
        loop_turn(j->loop, true);
    owner_free(j->owner);
    loop_bell_free(j->place);
    loop_timer_free(j->timer);
    free(j);
}
