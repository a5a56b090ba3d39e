/* Writes slices and manifests on threads beside the loop, and comes back to it with how each went. */
#include "agent/storage/worker_store.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "agent/storage/worker_settle.h"
#include "common/model/image.h"
#include "common/model/snapshot.h"
#include "common/net/session.h"
#include "common/os/clock.h"
#include "common/os/fault.h"
#include "common/os/log.h"
#include "common/os/priority.h"
#include "common/storage/checkpoint/checkpoint.h"
#include "common/storage/checkpoint/owner.h"
#include "common/storage/checkpoint/place.h"
#include "common/storage/checkpoint/tokenizer_file.h"

enum {
    RETRIES_TELL = 3,
    BEYOND_AT_ONCE = 2, /* checkpoints more than `keep`: what is published is read back at once */
};

static const rm_time silence_tells = 5 * RM_S;

/* One piece of work; the background thread sees nothing else of the store but what never changes. */
struct task {
    struct worker_store *store;
    struct task *next;
    enum agent_action_kind kind;
    struct message request, reply;
    struct error err;
    bool ok;
    char fingerprint[RM_FINGERPRINT_MAX]; /* as known when it was asked for */
    struct manifest_data data;
};

struct worker_store {
    struct loop *loop;
    struct worker_store_options options;
    struct object_store *place; /* of the work under way */
    struct worker_settle *settle;
    atomic_int cancel;
    atomic_bool yield;  /* the slice under way is to be given up where the store is away */
    atomic_llong signs; /* that work gets on */
    int retries;        /* of the work under way, in its thread alone: since bytes moved, and how many did */
    int64_t moved;
    rm_time moved_at;
    struct model_layout layout;
    char compared[MANIFEST_COMPARED_MAX];
    char run[OWNER_RUN_MAX];
    char fingerprint[RM_FINGERPRINT_MAX];
    struct manifest_data data;
    struct task *first, *last; /* first is under way where running is set */
    bool running, ending;
};

int64_t worker_store_snapshot_bytes(const struct job_spec *spec)
{
    struct model_layout layout;
    if (job_is_elastic(spec))
        return 0; /* the trainer hears it of the program */
    model_layout_init(&layout, &spec->model.shape);
    return snapshot_file_bytes(snapshot_area_bytes(&layout));
}

/* Mapped only while it is worked on: Linux takes a process's memory apart before it closes its sockets, and
 * an agent that maps a large state would be missed late. */
static float *snapshot_map(const struct worker_store *store, struct error *err)
{
    size_t bytes = (size_t)snapshot_area_bytes(&store->layout);
    off_t offset = (off_t)snapshot_area_at((int64_t)bytes, SNAPSHOT_TAKEN);
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, store->options.snapshot_fd, offset);
    if (at != MAP_FAILED)
        return at;
    err_errno(err, ERR_MACHINE, "cannot map the snapshot");
    return NULL;
}

static void snapshot_unmap(const struct worker_store *store, float *at)
{
    munmap(at, (size_t)snapshot_area_bytes(&store->layout));
}

static void piece_to_message(struct msg_piece *to, const struct manifest_piece *from)
{
    text_copy(to->file, sizeof to->file, from->file);
    to->offset = from->offset;
    to->bytes = from->bytes;
    memcpy(to->sha256, from->sha256, sizeof to->sha256);
}

static enum manifest_hash hash_of(const struct job_spec *spec)
{
    return spec->checkpoint.hash == JOB_HASH_SHA256 ? MANIFEST_SHA256 : MANIFEST_XXH3;
}

static int write_slice(struct task *task)
{
    struct worker_store *store = task->store;
    const struct msg_snapshot *snapshot = &task->request.snapshot;
    struct checkpoint_pieces pieces = {0};
    rm_time begin = clock_now();
    float *state = snapshot_map(store, &task->err);
    if (!state)
        return -1;
    struct checkpoint_slice slice = {.store = store->place,
                                     .run = store->run,
                                     .step = snapshot->state.step,
                                     .final = snapshot->final,
                                     .lineage = snapshot->state.lineage,
                                     .layout = &store->layout,
                                     .state = state,
                                     .keep = store->options.spec->checkpoint.keep,
                                     .part = snapshot->part,
                                     .parts = snapshot->parts};
    slice.hash = hash_of(store->options.spec);
    int result = checkpoint_write_slice(&slice, &pieces, &task->err);
    snapshot_unmap(store, state);
    struct msg_checkpointed *reply = &task->reply.checkpointed;
    task->reply.type = MSG_CHECKPOINTED;
    *reply = (struct msg_checkpointed){.step = snapshot->state.step,
                                       .final = snapshot->final,
                                       .exact = snapshot->exact,
                                       .image = snapshot->image,
                                       .tensors = snapshot->tensors,
                                       .part = snapshot->part,
                                       .parts = snapshot->parts,
                                       .took = clock_now() - begin,
                                       .damaged = pieces.damaged,
                                       .count = pieces.count};
    memcpy(reply->lineage, snapshot->state.lineage, sizeof reply->lineage);
    memcpy(reply->k, snapshot->k, sizeof reply->k);
    for (int i = 0; i < pieces.count; i++)
        piece_to_message(&reply->piece[i], &pieces.piece[i]);
    return result;
}

/* The coordinator's word counts, who heard it from the ring; else that of this worker's own trainer. */
static void name_origin(struct manifest *out, const struct task *task)
{
    const struct msg_publish *publish = &task->request.publish;
    bool said = publish->fingerprint[0];
    text_copy(out->fingerprint, sizeof out->fingerprint, said ? publish->fingerprint : task->fingerprint);
    out->data = task->data;
    if (!publish->data_sha256[0])
        return;
    out->data.files = publish->data_files;
    out->data.bytes = publish->data_bytes;
    hex_decode(publish->data_sha256, out->data.sha256, sizeof out->data.sha256);
}

static void manifest_of(struct manifest *out, const struct task *task)
{
    const struct worker_store *store = task->store;
    const struct msg_publish *publish = &task->request.publish;
    *out = (struct manifest){.hash = hash_of(store->options.spec),
                             .step = publish->step,
                             .shape = store->layout.shape,
                             .tensors = publish->tensors,
                             .exact = publish->exact,
                             .term = (uint64_t)task->request.generation.term,
                             .generation = (uint64_t)task->request.generation.n};
    memcpy(out->lineage, publish->lineage, sizeof out->lineage);
    text_copy(out->compared, sizeof out->compared, store->compared);
    name_origin(out, task);
    text_copy(out->job, sizeof out->job, store->options.spec->name);
    for (int i = 0; i < publish->tensors; i++)
        out->k[i] = publish->k[i];
    for (int i = 0; i < publish->count && i < MANIFEST_PIECES_MAX; i++) {
        struct manifest_piece *piece = &out->piece[out->pieces++];
        text_copy(piece->file, sizeof piece->file, publish->piece[i].file);
        piece->offset = publish->piece[i].offset;
        piece->bytes = publish->piece[i].bytes;
        memcpy(piece->sha256, publish->piece[i].sha256, sizeof piece->sha256);
    }
}

/* It was there when the job began. Weights do not hang on a text that can be put beside them later. */
static void add_tokenizer(struct worker_store *store, struct str *out)
{
    struct error why = {0};
    if (tokenizer_file_read(store->options.spec, out, &store->cancel, &why) == 0)
        return;
    str_reset(out);
    log_warn("the last weights have no tokenizer beside them", "why=\"%s\"", why.text);
}

/* Older ones go, but not before it is known that the new one lies there: mostly while nobody else wants the
 * processor. Where that took so long that two more stand than are kept, it is done before anything else. */
static void settle_checkpoint(struct worker_store *store, int64_t step)
{
    struct checkpoint_settling settling = {
        .store = store->place, .run = store->run, .step = step, .keep = store->options.spec->checkpoint.keep};
    int beyond = checkpoint_beyond(store->place, step, settling.keep);
    struct error why = {0};
    if (beyond < BEYOND_AT_ONCE) {
        if (beyond)
            worker_settle_begin(store->settle, step);
        return;
    }
    worker_settle_stop(store->settle);
    if (checkpoint_settle(&settling, &why) < 0)
        log_warn("older checkpoints stay", "why=\"%s\"", why.text);
}

static int publish_task(struct task *task)
{
    struct worker_store *store = task->store;
    struct manifest *manifest = calloc(2, sizeof *manifest);
    if (!manifest)
        return err_set(&task->err, ERR_MACHINE, "no memory to publish a checkpoint");
    rm_time begin = clock_now();
    manifest_of(manifest, task);
    const struct msg_publish *told = &task->request.publish;
    const struct model_card_losses losses = {told->loss, told->held_out, told->evaluated};
    struct str tokenizer = str_init(MANIFEST_TOKENIZER_MAX + 1);
    struct checkpoint_publication publication = {.losses = &losses,
                                                 .store = store->place,
                                                 .run = store->run,
                                                 .final = task->request.publish.final,
                                                 .keep = store->options.spec->checkpoint.keep,
                                                 .layout = &store->layout,
                                                 .manifest = manifest,
                                                 .tokenizer = &tokenizer,
                                                 .replaces = told->replaces};
    if (publication.final)
        add_tokenizer(store, &tokenizer);
    int result = checkpoint_publish(&publication, manifest + 1, &task->err);
    task->reply.type = MSG_PUBLISHED;
    task->reply.generation = task->request.generation;
    task->reply.published = (struct msg_published){.step = task->request.publish.step,
                                                   .final = task->request.publish.final,
                                                   .bytes = result ? 0 : manifest_bytes(manifest + 1),
                                                   .took = clock_now() - begin};
    if (result == 0 && !publication.final)
        settle_checkpoint(store, publication.manifest->step);
    str_clear(&tokenizer);
    free(manifest);
    return result;
}

/* ---- a store that is away ---- */

/* A part sent, or a while of bytes that move, show that it is not. */
static void look_at_store(struct worker_store *store)
{
    bool away = store->retries >= RETRIES_TELL || clock_now() - store->moved_at >= silence_tells;
    if (away && atomic_load(&store->yield))
        atomic_store(&store->cancel, 1);
}

/* Listing, looking and completing an upload take their time at a slow store, and hardly move a byte. */
static void answering(void *ctx)
{
    struct worker_store *store = ctx;
    store->moved_at = clock_now();
    atomic_fetch_add(&store->signs, 1);
}

static void bytes_moved(void *ctx, int64_t moved)
{
    struct worker_store *store = ctx;
    atomic_fetch_add(&store->signs, 1); /* a bucket's calls end by times of their own */
    if (moved != store->moved)
        store->moved_at = clock_now();
    if (moved - store->moved >= OBJECT_PART_LEAST)
        store->retries = 0;
    store->moved = moved;
    look_at_store(store);
}

static void retried(void *ctx, const char *why)
{
    struct worker_store *store = ctx;
    (void)why;
    store->retries++;
    atomic_fetch_add(&store->signs, 1);
    look_at_store(store);
}

/* Damage, or another's checkpoint in the place of ours, do not go away by themselves. */
static bool may_work_later(const struct error *err)
{
    return err->class == CLASS_PASSING || err->code == ERR_MACHINE || err->code == ERR_USAGE ||
           err->code == ERR_ABORTED;
}

static void *write_beside(void *arg)
{
    struct task *task = arg;
    priority_low();
    task->ok = write_slice(task) == 0;
    return NULL;
}

/* Training goes on meanwhile, and shall feel little of it. Where it does not, as in a leave, all processors
 * are free, and a low priority holds nothing up; and nobody trains beside the last one. */
static int write_low(struct task *task)
{
    pthread_t thread;
    if (task->request.snapshot.final || pthread_create(&thread, NULL, write_beside, task) != 0)
        return write_slice(task);
    pthread_join(thread, NULL);
    return task->ok ? 0 : -1;
}

static void task_work(void *ctx)
{
    struct task *task = ctx;
    int result = -1;
    task->store->retries = 0;
    task->store->moved_at = clock_now();
    if (task->kind == AGENT_WRITE) {
        FAULT("slice-asked");
        result = write_low(task);
        FAULT("slice-saved");
    } else if (task->kind == AGENT_PUBLISH) {
        FAULT("publish-asked");
        result = publish_task(task);
        FAULT("published");
    }
    task->ok = result == 0;
}

static void task_start(struct worker_store *store);

static void task_event(const struct task *task, struct agent_event *out)
{
    *out = (struct agent_event){.ok = task->ok, .message = task->ok ? &task->reply : NULL};
    if (!task->ok)
        agent_event_blame(out, &task->err);
    out->again = !task->ok && may_work_later(&task->err);
    if (task->kind == AGENT_WRITE) {
        out->kind = AGENT_WRITTEN;
        out->step = task->request.snapshot.state.step;
        out->final = task->request.snapshot.final;
    } else {
        out->kind = AGENT_PUBLISHED;
        out->step = task->request.publish.step;
        out->final = task->request.publish.final;
    }
}

static void task_done(void *ctx)
{
    struct task *task = ctx;
    struct worker_store *store = task->store;
    store->running = false;
    if (task->kind == AGENT_WRITE)
        atomic_store(&store->yield, false);
    if (!store->ending)
        atomic_store(&store->cancel, 0);
    store->first = task->next;
    if (!store->first)
        store->last = NULL;
    if (!store->ending) {
        struct agent_event event;
        task_event(task, &event);
        if (!task->ok)
            log_warn("checkpoint work failed", "why=\"%s\"", task->err.text);
        task_start(store);
        store->options.done(store->options.ctx, &event);
    }
    free(task);
}

static void task_start(struct worker_store *store)
{
    struct task *task = store->first;
    if (!task || store->running)
        return;
    store->running = true;
    if (loop_work(store->loop, task_work, task_done, task, &task->err) < 0)
        task_done(task);
}

/* The end of a training is late to hear of it; what lies in a bucket the coordinator, or `run`, has looked
 * at. No reason to end here: of one volume that lacks it nothing follows for the others, nor for the
 * training. */
static void warn_of_tokenizer(const struct job_spec *spec)
{
    struct error why = {0};
    if (!job_uri_is_bucket(spec->data.tokenizer) && tokenizer_file_check(spec, NULL, &why) < 0)
        log_warn("the last weights would have no tokenizer beside them if this worker published them",
                 "why=\"%s\"", why.text);
}

int worker_store_open(struct worker_store **ret, struct loop *loop,
                      const struct worker_store_options *options, struct error *err)
{
    struct worker_store *store = calloc(1, sizeof *store);
    if (!store)
        return err_set(err, ERR_MACHINE, "no memory for checkpoints");
    warn_of_tokenizer(options->spec);
    struct str compared = str_init(MANIFEST_COMPARED_MAX - 1);
    *store = (struct worker_store){.loop = loop, .options = *options, .data = {.files = -1, .bytes = -1}};
    struct object_options place = {.cancel = &store->cancel,
                                   .progress = bytes_moved,
                                   .answering = answering,
                                   .retrying = retried,
                                   .ctx = store};
    if (place_open_watched(&store->place, options->spec, &place, err) < 0) {
        free(store);
        return -1;
    }
    owner_run(options->key, JOB_KEY_BYTES, store->run);
    store->settle = worker_settle_open(options->spec, store->run);
    if (!store->settle) {
        worker_store_free(store);
        return err_set(err, ERR_MACHINE, "no memory for checkpoints");
    }
    if (!job_is_elastic(options->spec)) /* else `up` says it */
        model_layout_init(&store->layout, &options->spec->model.shape);
    job_spec_write_compared(options->spec, &compared);
    text_copy(store->compared, sizeof store->compared, str_text(&compared));
    str_clear(&compared);
    *ret = store;
    return 0;
}

void worker_store_ask(struct worker_store *store, enum agent_action_kind kind, const struct message *request)
{
    struct task *task = calloc(1, sizeof *task);
    if (!task) {
        struct agent_event event = {.kind = kind == AGENT_WRITE ? AGENT_WRITTEN : AGENT_PUBLISHED,
                                    .again = true};
        bool writes = kind == AGENT_WRITE;
        struct error err;
        err_set(&err, ERR_MACHINE, "no memory to write checkpoints");
        agent_event_blame(&event, &err);
        event.step = writes ? request->snapshot.state.step : request->publish.step;
        event.final = writes ? request->snapshot.final : request->publish.final;
        store->options.done(store->options.ctx, &event);
        return;
    }
    task->store = store;
    task->kind = kind;
    message_copy(&task->request, request);
    text_copy(task->fingerprint, sizeof task->fingerprint, store->fingerprint);
    task->data = store->data;
    if (store->last)
        store->last->next = task;
    else
        store->first = task;
    store->last = task;
    task_start(store);
}

void worker_store_know(struct worker_store *store, const struct msg_up *up)
{
    text_copy(store->fingerprint, sizeof store->fingerprint, up->fingerprint);
    store->data = (struct manifest_data){.files = up->data_files, .bytes = up->data_bytes};
    hex_decode(up->data_sha256, store->data.sha256, sizeof store->data.sha256);
    if (up->image_bytes)
        image_or_model_layout(&store->layout, (struct model_shape[]){image_shape(up->image_bytes)});
}

void worker_store_yield(struct worker_store *store)
{
    atomic_store(&store->yield, !worker_store_idle(store));
}

bool worker_store_idle(const struct worker_store *store)
{
    return !store->first;
}

int64_t worker_store_signs(const struct worker_store *store)
{
    return atomic_load(&store->signs);
}

bool worker_store_end(struct worker_store *store)
{
    store->ending = true;
    atomic_store(&store->cancel, 1);
    return !store->running;
}

void worker_store_free(struct worker_store *store)
{
    if (!store)
        return;
    worker_store_end(store);
    while (store->running)
        loop_turn(store->loop, true);
    for (struct task *task = store->first, *next; task; task = next) {
        next = task->next;
        free(task);
    }
    worker_settle_free(store->settle);
    object_free(store->place);
    free(store);
}
