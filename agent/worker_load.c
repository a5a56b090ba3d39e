#include "agent/worker_load.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/model/snapshot.h"
#include "common/os/fault.h"
#include "common/os/log.h"
#include "common/store/checkpoint.h"
#include "common/store/place.h"

/* One piece of work; the background thread sees nothing else of this module but what never changes. */
struct task {
    struct worker_load *load;
    struct task *next;
    enum agent_action_kind kind;
    struct message request, reply;
    struct error err;
    bool ok;
    char fingerprint[RM_FINGERPRINT_MAX]; /* as known when it was asked for */
};

struct worker_load {
    struct loop *loop;
    struct worker_load_options options;
    struct object_store *place; /* of the work under way */
    atomic_int cancel;
    struct model_layout layout;
    char fingerprint[RM_FINGERPRINT_MAX];
    struct task *first, *last; /* first is under way where running is set */
    bool running, ending;
};

/* Mapped only while it is worked on: Linux takes a process's memory apart before it closes its sockets, and
 * an agent that maps a large state would be missed late. */
static float *area_map(const struct worker_load *load, struct error *err)
{
    size_t bytes = (size_t)snapshot_area_bytes(&load->layout);
    off_t offset = (off_t)snapshot_area_at(&load->layout, SNAPSHOT_LOADED);
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, load->options.snapshot_fd, offset);
    if (at != MAP_FAILED)
        return at;
    err_errno(err, ERR_MACHINE, "cannot map the memory for a checkpoint");
    return NULL;
}

static int list(struct task *task)
{
    struct checkpoint_list *found = calloc(1, sizeof *found);
    if (!found)
        return err_set(&task->err, ERR_MACHINE, "no memory to list checkpoints");
    int result = checkpoint_list(task->load->place, found, &task->err);
    struct msg_checkpoints *reply = &task->reply.checkpoints;
    task->reply.type = MSG_CHECKPOINTS;
    for (int i = 0; result == 0 && i < found->count; i++) {
        struct msg_checkpoint *to = &reply->checkpoint[reply->count++];
        to->step = found->entry[i].step;
        to->final = found->entry[i].final;
        memcpy(to->lineage, found->entry[i].lineage, sizeof to->lineage);
        text_copy(to->fingerprint, sizeof to->fingerprint, found->entry[i].fingerprint);
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

static void fill_loaded(struct task *task, const struct manifest *manifest)
{
    struct msg_loaded *reply = &task->reply.loaded;
    task->reply.type = MSG_LOADED;
    task->reply.generation = task->request.generation;
    reply->state = task->request.form.resume;
    /* steps of one arithmetic on a state of another: the whole is not the same bits anywhere */
    reply->exact = manifest->exact && !strcmp(manifest->fingerprint, task->fingerprint);
    copy_k(reply->k, &reply->tensors, manifest);
}

static int load_state(struct task *task)
{
    struct worker_load *load = task->load;
    const struct msg_state *wanted = &task->request.form.resume;
    struct manifest *manifest = calloc(1, sizeof *manifest);
    if (!manifest)
        return err_set(&task->err, ERR_MACHINE, "no memory to load a checkpoint");
    float *state = area_map(load, &task->err);
    int result = -1;
    if (state) {
        result = checkpoint_load_state(load->place, wanted->step, wanted->lineage, &load->layout, state,
                                       manifest, &task->err);
        munmap(state, (size_t)snapshot_area_bytes(&load->layout));
    }
    if (result == 0)
        fill_loaded(task, manifest);
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
    } else {
        result = load_state(task);
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
                                .step = lists ? 0 : task->request.form.resume.step};
    if (!task->ok)
        text_copy(out->text, sizeof out->text, task->err.text);
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
        task_event(task, &event);
        if (!task->ok)
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
    if (loop_work(load->loop, task_work, task_done, task, &task->err) < 0)
        task_done(task);
}

int worker_load_open(struct worker_load **ret, struct loop *loop, const struct worker_load_options *options,
                     struct error *err)
{
    struct worker_load *load = calloc(1, sizeof *load);
    if (!load)
        return err_set(err, ERR_MACHINE, "no memory for checkpoints");
    *load = (struct worker_load){.loop = loop, .options = *options};
    if (place_open_checkpoints(&load->place, options->spec, &load->cancel, err) < 0) {
        free(load);
        return -1;
    }
    model_layout_init(&load->layout, &options->spec->model.shape);
    *ret = load;
    return 0;
}

void worker_load_ask(struct worker_load *load, enum agent_action_kind kind, const struct message *request)
{
    struct task *task = calloc(1, sizeof *task);
    if (!task) {
        log_warn("checkpoint work is dropped", "why=\"no memory\"");
        return;
    }
    task->load = load;
    task->kind = kind;
    task->request = *request;
    text_copy(task->fingerprint, sizeof task->fingerprint, load->fingerprint);
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
}

void worker_load_free(struct worker_load *load)
{
    if (!load)
        return;
    load->ending = true;
    atomic_store(&load->cancel, 1);
    while (load->running)
        loop_turn(load->loop, true);
    for (struct task *task = load->first, *next; task; task = next) {
        next = task->next;
        free(task);
    }
    object_free(load->place);
    free(load);
}
