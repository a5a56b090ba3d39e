/* Lists and loads checkpoints on threads beside the loop, and comes back to it with what was found. */
#include "agent/storage/worker_load.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/model/arrays.h"
#include "common/model/image.h"
#include "common/model/snapshot.h"
#include "common/os/fault.h"
#include "common/os/log.h"
#include "common/storage/checkpoint/checkpoint.h"
#include "common/storage/checkpoint/folder_id.h"
#include "common/storage/checkpoint/place.h"

/* One piece of work; the background thread sees nothing else of this module but what never changes. */
struct task {
    struct worker_load *load;
    struct task *next;
    enum agent_action_kind kind;
    struct message request, reply;
    struct error err;
    bool ok, given_up;
    /* as known when it was asked for */
    char fingerprint[RM_FINGERPRINT_MAX];
    int64_t params_at, array_step;
};

struct worker_load {
    struct loop *loop;
    struct worker_load_options options;
    struct object_store *place; /* of the work under way */
    atomic_int cancel;          /* gives up what is under way */
    atomic_llong signs;         /* that it gets on */
    struct model_layout layout;
    char fingerprint[RM_FINGERPRINT_MAX];
    int64_t params_at, array_step; /* msg_up's */
    struct task *first, *last;     /* first is under way where running is set */
    bool running, ending;
};

/* Where values go. Mapped only while it is worked on: Linux takes a process's memory apart before it closes
 * its sockets, and an agent that maps a large state would be missed late. */
struct target {
    char *map;
    size_t bytes;
    float *array[MODEL_ARRAYS_MAX];
};

/* step: from array to array. */
static int map_target(struct target *t, int fd, int64_t at, int64_t step, const struct model_layout *layout,
                      struct error *err)
{
    off_t page = (off_t)at & ~(off_t)4095;
    struct stat st;
    int arrays = model_arrays_of(layout);
    int64_t size = 4 * layout->parameters, end = at + (arrays - 1) * step + size;
    if (fstat(fd, &st) < 0 || at % 4 || step % 4 || (arrays > 1 && step < size) || end > st.st_size)
        return err_set(err, ERR_PROTOCOL, "the trainer's state does not lie where it says");
    t->bytes = (size_t)(end - page);
    t->map = mmap(NULL, t->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, page);
    if (t->map == MAP_FAILED)
        return err_errno(err, ERR_MACHINE, "cannot map the memory for a checkpoint");
    for (int i = 0; i < arrays; i++)
        t->array[i] = (float *)(t->map + (at - page) + i * step);
    return 0;
}

static int open_target(const struct task *task, struct target *t, struct error *err)
{
    const struct worker_load *load = task->load;
    const struct model_layout *layout = &load->layout;
    if (task->request.load.in_state)
        return map_target(t, load->options.state_fd, task->params_at, task->array_step, layout, err);
    return map_target(t, load->options.snapshot_fd,
                      snapshot_area_at(snapshot_area_bytes(layout), SNAPSHOT_LOADED), 4 * layout->parameters,
                      layout, err);
}

_Static_assert((int)MODEL_ARRAYS_MAX <= (int)MSG_ARRAYS_MAX, "arrays of a state that was loaded");

static int list(struct task *task)
{
    struct checkpoint_list *found = calloc(1, sizeof *found);
    if (!found)
        return err_set(&task->err, ERR_MACHINE, "no memory to list checkpoints");
    struct object_store *place = task->load->place;
    int result = checkpoint_list(place, found, &task->err);
    for (int i = 0; result == 0 && i < found->skipped; i++)
        log_warn("a checkpoint can't be used", "name=%s why=\"%s\"", found->skip[i].name, found->skip[i].why);
    if (result == 0 && !found->count && found->skipped)
        result = checkpoint_all_damaged(place, found->skip, found->skipped, &task->err);
    struct msg_checkpoints *reply = &task->reply.checkpoints;
    task->reply.type = MSG_CHECKPOINTS;
    folder_id(place, reply->folder);
    for (int i = 0; result == 0 && i < found->count; i++) {
        struct msg_checkpoint *to = &reply->checkpoint[reply->count++];
        to->step = found->entry[i].step;
        to->final = found->entry[i].final;
        memcpy(to->lineage, found->entry[i].lineage, sizeof to->lineage);
        text_copy(to->fingerprint, sizeof to->fingerprint, found->entry[i].fingerprint);
        hex_encode(found->entry[i].data_sha256, RM_HASH_BYTES, to->data_sha256);
    }
    free(found);
    return result;
}

static void copy_k(int8_t *to, int *count, const struct manifest *manifest)
{
    *count = manifest->tensors;
    for (int i = 0; i < manifest->tensors; i++)
        to[i] = (int8_t)manifest->k[i];
}

static void fill_loaded(struct task *task, const struct manifest *manifest, const struct model_range *range)
{
    const struct msg_load *asked = &task->request.load;
    struct msg_loaded *reply = &task->reply.loaded;
    task->reply.type = MSG_LOADED;
    task->reply.generation = task->request.generation;
    reply->state = asked->state;
    reply->parts = asked->parts;
    reply->shares = asked->shares;
    reply->in_state = asked->in_state;
    /* steps of one arithmetic on a state of another: the whole is not the same bits anywhere */
    reply->exact = manifest->exact && !strcmp(manifest->fingerprint, task->fingerprint);
    copy_k(reply->k, &reply->tensors, manifest);
    reply->ranges = model_arrays_of(&task->load->layout);
    for (int i = 0; i < reply->ranges; i++)
        reply->range[i] = (struct msg_range){range[i].first, range[i].count};
}

static int load_share(struct task *task)
{
    struct worker_load *load = task->load;
    const struct msg_load *asked = &task->request.load;
    struct model_range range[MODEL_ARRAYS_MAX];
    struct target t;
    struct manifest *manifest = calloc(1, sizeof *manifest);
    if (!manifest)
        return err_set(&task->err, ERR_MACHINE, "no memory to load a checkpoint");
    int result = open_target(task, &t, &task->err);
    if (result == 0) {
        struct checkpoint_share share = {.store = load->place,
                                         .step = asked->state.step,
                                         .lineage = asked->state.lineage,
                                         .layout = &load->layout,
                                         .parts = asked->parts,
                                         .shares = asked->shares,
                                         .stop = &load->cancel};
        memcpy(share.array, t.array, sizeof share.array);
        result = checkpoint_load_share(&share, range, manifest, &task->err);
        munmap(t.map, t.bytes);
    }
    if (result == 0)
        fill_loaded(task, manifest, range);
    free(manifest);
    return result;
}

static void task_work(void *ctx)
{
    struct task *task = ctx;
    int result;
    if (task->kind == AGENT_LIST) {
        result = list(task);
        FAULT("listed");
    } else if (task->given_up) {
        result = err_set(&task->err, ERR_ABORTED, "given up before it began");
    } else {
        result = load_share(task);
        FAULT("checkpoint-loaded");
    }
    task->ok = result == 0;
}

static void task_event(const struct task *task, struct agent_event *out)
{
    bool lists = task->kind == AGENT_LIST;
    *out = (struct agent_event){.kind = lists ? AGENT_LISTED : AGENT_LOADED,
                                .ok = task->ok,
                                .message = task->ok ? &task->reply : NULL,
                                .given_up = task->given_up,
                                .step = lists ? 0 : task->request.load.state.step};
    if (!task->ok)
        agent_event_blame(out, &task->err);
    /* what does not verify is the checkpoint's own, where nobody said more */
    if (!task->ok && !lists && task->err.code == ERR_DATA && out->class == CLASS_UNKNOWN)
        out->class = CLASS_OBJECT;
}

static void task_start(struct worker_load *load);

static void task_done(void *ctx)
{
    struct task *task = ctx;
    struct worker_load *load = task->load;
    load->running = false;
    load->first = task->next;
    if (!load->first)
        load->last = NULL;
    if (!load->ending) {
        struct agent_event event;
        bool stopped = task->kind == AGENT_LOAD && atomic_load(&load->cancel);
        task->given_up = task->given_up || (!task->ok && stopped);
        task_event(task, &event);
        if (!task->ok && !task->given_up)
            log_warn("a checkpoint can't be read", "why=\"%s\"", task->err.text);
        task_start(load);
        load->options.done(load->options.ctx, &event);
    }
    free(task);
}

static void task_start(struct worker_load *load)
{
    struct task *task = load->first;
    if (!task || load->running)
        return;
    load->running = true;
    atomic_store(&load->cancel, 0);
    if (loop_work(load->loop, task_work, task_done, task, &task->err) < 0)
        task_done(task);
}

static void answering(void *ctx)
{
    struct worker_load *load = ctx;
    atomic_fetch_add(&load->signs, 1);
}

/* A folder says so when bytes have moved. A bucket does now and then, also while it waits: those calls end by
 * times of their own. */
static void bytes_moved(void *ctx, int64_t moved)
{
    (void)moved;
    answering(ctx);
}

static void retried(void *ctx, const char *why)
{
    (void)why;
    answering(ctx);
}

int worker_load_open(struct worker_load **ret, struct loop *loop, const struct worker_load_options *options,
                     struct error *err)
{
    struct worker_load *load = calloc(1, sizeof *load);
    if (!load)
        return err_set(err, ERR_MACHINE, "no memory for checkpoints");
    *load = (struct worker_load){.loop = loop, .options = *options};
    struct object_options place = {.cancel = &load->cancel,
                                   .progress = bytes_moved,
                                   .answering = answering,
                                   .retrying = retried,
                                   .ctx = load};
    if (place_open_watched(&load->place, options->spec, &place, err) < 0) {
        free(load);
        return -1;
    }
    if (!job_is_elastic(options->spec)) /* else `up` says it */
        model_layout_init(&load->layout, &options->spec->model.shape);
    *ret = load;
    return 0;
}

void worker_load_ask(struct worker_load *load, enum agent_action_kind kind, const struct message *request)
{
    struct task *task = calloc(1, sizeof *task);
    if (!task) {
        struct task failed = {.kind = kind};
        if (kind == AGENT_LOAD)
            failed.request.load.state.step = request->load.state.step;
        err_set(&failed.err, ERR_MACHINE, "no memory to read checkpoints");
        struct agent_event event;
        task_event(&failed, &event);
        load->options.done(load->options.ctx, &event);
        return;
    }
    task->load = load;
    task->kind = kind;
    message_copy(&task->request, request);
    text_copy(task->fingerprint, sizeof task->fingerprint, load->fingerprint);
    task->params_at = load->params_at;
    task->array_step = load->array_step;
    if (load->last)
        load->last->next = task;
    else
        load->first = task;
    load->last = task;
    task_start(load);
}

void worker_load_know(struct worker_load *load, const struct msg_up *up)
{
    text_copy(load->fingerprint, sizeof load->fingerprint, up->fingerprint);
    load->params_at = up->params_at;
    load->array_step = up->array_step;
    if (up->image_bytes)
        image_or_model_layout(&load->layout, (struct model_shape[]){image_shape(up->image_bytes)});
}

void worker_load_stop(struct worker_load *load)
{
    if (load->running && load->first->kind == AGENT_LOAD)
        atomic_store(&load->cancel, 1);
    for (struct task *task = load->first; task; task = task->next)
        task->given_up = task->kind == AGENT_LOAD && (task != load->first || !load->running);
}

int64_t worker_load_signs(const struct worker_load *load)
{
    return atomic_load(&load->signs);
}

bool worker_load_end(struct worker_load *load)
{
    load->ending = true;
    atomic_store(&load->cancel, 1);
    return !load->running;
}

void worker_load_free(struct worker_load *load)
{
    if (!load)
        return;
    worker_load_end(load);
    while (load->running)
        loop_turn(load->loop, true);
    for (struct task *task = load->first, *next; task; task = next) {
        next = task->next;
        free(task);
    }
    object_free(load->place);
    free(load);
}
