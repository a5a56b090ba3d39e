#include "agent/storage/worker_store.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/storage/worker_load.h"
#include "common/model/snapshot.h"
#include "common/os/file.h"
#include "common/storage/checkpoint/checkpoint.h"

enum { EVENTS_MAX = 8 };

struct desk {
    struct loop *loop;
    struct worker_store *store;
    struct worker_load *load;
    struct job_spec spec;
    char folder[64];
    int snapshot_fd;
    uint8_t key[RM_HASH_BYTES];
    float *snapshot, *loaded; /* the areas */
    int64_t floats;           /* of each */
    int count, wanted;
    struct agent_event event[EVENTS_MAX];
    struct message message[EVENTS_MAX]; /* what event[i].message pointed at */
};

static const uint8_t lineage[RM_HASH_BYTES] = {1, 2, 3};

static void done(void *ctx, const struct agent_event *event)
{
    struct desk *d = ctx;
    cr_assert_lt(d->count, EVENTS_MAX);
    d->event[d->count] = *event;
    if (event->message)
        d->message[d->count] = *event->message;
    if (++d->count == d->wanted)
        loop_stop(d->loop);
}

static void fill(struct desk *d, float by)
{
    for (int64_t i = 0; i < d->floats; i++)
        d->snapshot[i] = (float)i * by;
}

static struct desk *desk_open(void)
{
    struct desk *d = calloc(1, sizeof *d);
    struct error err;
    text_copy(d->folder, sizeof d->folder, "/tmp/rm-store-XXXXXX");
    cr_assert_not_null(mkdtemp(d->folder));
    d->spec.model.shape =
        (struct model_shape){.layers = 1, .heads = 1, .width = 4, .context = 4, .vocabulary = 256};
    text_copy(d->spec.name, sizeof d->spec.name, "tiny");
    snprintf(d->spec.checkpoint.uri, sizeof d->spec.checkpoint.uri, "file://%s", d->folder);
    d->spec.checkpoint.keep = 3;
    size_t bytes = (size_t)worker_store_snapshot_bytes(&d->spec);
    struct model_layout layout;
    model_layout_init(&layout, &d->spec.model.shape);
    d->floats = 3 * layout.parameters;
    cr_assert_eq(file_memory(&d->snapshot_fd, "snapshot", bytes, &err), 0);
    char *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, d->snapshot_fd, 0);
    cr_assert_neq(map, MAP_FAILED);
    d->snapshot = (float *)map;
    d->loaded = (float *)(map + snapshot_area_at(snapshot_area_bytes(&layout), SNAPSHOT_LOADED));
    cr_assert_eq(loop_open(&d->loop, &err), 0);
    struct worker_store_options options = {
        .spec = &d->spec, .key = d->key, .snapshot_fd = d->snapshot_fd, .done = done, .ctx = d};
    cr_assert_eq(worker_store_open(&d->store, d->loop, &options, &err), 0);
    struct worker_load_options load = {
        .spec = &d->spec, .snapshot_fd = d->snapshot_fd, .done = done, .ctx = d};
    cr_assert_eq(worker_load_open(&d->load, d->loop, &load, &err), 0);
    struct msg_up up = {
        .fingerprint = "the numerics of this machine", .data_files = 3, .data_bytes = 1 << 20};
    memset(up.data_sha256, 'a', RM_HASH_HEX - 1);
    worker_store_know(d->store, &up);
    worker_load_know(d->load, &up);
    fill(d, 0.5f);
    return d;
}

static void desk_close(struct desk *d)
{
    char command[128];
    worker_store_free(d->store);
    worker_load_free(d->load);
    loop_free(d->loop);
    munmap(d->snapshot, (size_t)worker_store_snapshot_bytes(&d->spec));
    close(d->snapshot_fd);
    snprintf(command, sizeof command, "rm -r %s", d->folder);
    cr_assert_eq(system(command), 0);
    free(d);
}

static struct message *blank(enum msg_type type)
{
    struct message *message = calloc(1, sizeof *message);
    message->type = type;
    message->generation = (struct msg_generation){.term = 1, .n = 2};
    return message;
}

/* Asks and waits for this many answers since the desk was opened. */
static void ask(struct desk *d, enum agent_action_kind kind, struct message *request)
{
    if (kind == AGENT_LIST || kind == AGENT_LOAD)
        worker_load_ask(d->load, kind, request);
    else
        worker_store_ask(d->store, kind, request);
    free(request);
}

static void wait_for(struct desk *d, int answers)
{
    d->wanted = answers;
    if (d->count < answers)
        loop_run(d->loop);
    cr_assert_eq(d->count, answers);
}

static void ask_write(struct desk *d, int64_t step, int part, int parts)
{
    struct message *request = blank(MSG_SNAPSHOT);
    struct model_layout layout;
    model_layout_init(&layout, &d->spec.model.shape);
    request->snapshot.state = (struct msg_state){.held = true, .step = step};
    memcpy(request->snapshot.state.lineage, lineage, sizeof lineage);
    request->snapshot.part = part;
    request->snapshot.parts = parts;
    request->snapshot.tensors = layout.tensors;
    request->snapshot.exact = true;
    for (int i = 0; i < layout.tensors; i++)
        request->snapshot.k[i] = (int8_t)(20 - i);
    ask(d, AGENT_WRITE, request);
}

/* What the answers from `first` on have written. */
static void fill_publish(const struct desk *d, struct msg_publish *publish, int64_t step, int first,
                         int parts)
{
    const struct msg_checkpointed *written = &d->message[first].checkpointed;
    publish->step = step;
    publish->exact = true;
    memcpy(publish->lineage, lineage, sizeof lineage);
    publish->tensors = written->tensors;
    memcpy(publish->k, written->k, sizeof publish->k);
    for (int part = 0; part < parts; part++) {
        const struct msg_checkpointed *slice = &d->message[first + part].checkpointed;
        for (int i = 0; i < slice->count; i++)
            publish->piece[publish->count++] = slice->piece[i];
    }
}

static void ask_publish(struct desk *d, int64_t step, int first, int parts)
{
    struct message *request = blank(MSG_PUBLISH);
    fill_publish(d, &request->publish, step, first, parts);
    ask(d, AGENT_PUBLISH, request);
}

static void ask_load(struct desk *d, int64_t step)
{
    struct message *request = blank(MSG_LOAD);
    request->load.state = (struct msg_state){.held = true, .step = step};
    memcpy(request->load.state.lineage, lineage, sizeof lineage);
    request->load.parts = 1;
    request->load.shares = set_of(0);
    ask(d, AGENT_LOAD, request);
}

Test(worker_store, what_two_workers_write_is_published_listed_and_loaded)
{
    struct desk *d = desk_open();
    ask_write(d, 7, 0, 2);
    ask_write(d, 7, 1, 2);
    wait_for(d, 2);
    cr_assert(d->event[0].kind == AGENT_WRITTEN && d->event[0].ok, "%s", d->event[0].text);
    cr_assert(d->event[1].kind == AGENT_WRITTEN && d->event[1].ok, "%s", d->event[1].text);
    cr_assert_eq(d->message[1].checkpointed.part, 1);
    ask_publish(d, 7, 0, 2);
    wait_for(d, 3);
    ask(d, AGENT_LIST, blank(MSG_LIST));
    wait_for(d, 4);
    cr_assert(d->event[2].kind == AGENT_PUBLISHED && d->event[2].ok, "%s", d->event[2].text);
    cr_assert_gt(d->message[2].published.bytes, d->floats * 4);
    cr_assert(d->event[3].kind == AGENT_LISTED && d->event[3].ok, "%s", d->event[3].text);
    cr_assert_eq(d->message[3].checkpoints.count, 1);
    cr_assert_eq(d->message[3].checkpoints.checkpoint[0].step, 7);
    cr_assert_str_eq(d->message[3].checkpoints.checkpoint[0].fingerprint, "the numerics of this machine");

    fill(d, 0);
    ask_load(d, 7);
    wait_for(d, 5);
    cr_assert(d->event[4].kind == AGENT_LOADED && d->event[4].ok, "%s", d->event[4].text);
    cr_assert_eq(d->message[4].loaded.state.step, 7);
    cr_assert_eq(d->message[4].loaded.k[3], 17);
    cr_assert(d->message[4].loaded.exact);
    for (int64_t i = 0; i < d->floats; i++) {
        cr_assert_eq(d->loaded[i], (float)i * 0.5f);
        cr_assert_eq(d->snapshot[i], 0, "where the trainer's state may lie, a load leaves no trace");
    }
    desk_close(d);
}

static int newest(const struct desk *d, struct checkpoint_resume *ret, struct error *err)
{
    struct object_store *store;
    if (object_open(&store, &(struct object_options){.uri = d->spec.checkpoint.uri}, err) < 0)
        return -1;
    int result = checkpoint_resume(store, ret, err);
    object_free(store);
    return result;
}

Test(worker_store, the_manifest_names_the_ring_that_saved_and_the_data_that_it_was_trained_on)
{
    struct desk *d = desk_open();
    struct checkpoint_resume *resume = calloc(1, sizeof *resume);
    uint8_t sha256[RM_HASH_BYTES];
    struct error err;
    ask_write(d, 7, 0, 1);
    wait_for(d, 1);
    ask_publish(d, 7, 0, 1);
    wait_for(d, 2);
    cr_assert_eq(newest(d, resume, &err), 0, "%s", err.text);
    cr_assert(resume->found);
    const struct manifest *m = &resume->manifest;
    cr_assert_eq(m->term, 1);
    cr_assert_eq(m->generation, 2);
    cr_assert_eq(m->data.files, 3);
    cr_assert_eq(m->data.bytes, 1 << 20);
    memset(sha256, 0xaa, sizeof sha256);
    cr_assert_arr_eq(m->data.sha256, sha256, sizeof sha256);
    cr_assert_str_eq(m->fingerprint, "the numerics of this machine");
    free(resume);
    desk_close(d);
}

Test(worker_store, a_publisher_whose_trainer_is_not_up_writes_what_the_coordinator_knows)
{
    struct desk *d = desk_open();
    struct checkpoint_resume *resume = calloc(1, sizeof *resume);
    struct message *request = blank(MSG_PUBLISH);
    struct msg_up nothing = {0};
    struct error err;
    ask_write(d, 7, 0, 1);
    wait_for(d, 1);
    worker_store_know(d->store, &nothing);
    fill_publish(d, &request->publish, 7, 0, 1);
    text_copy(request->publish.fingerprint, sizeof request->publish.fingerprint, "those of the ring");
    memset(request->publish.data_sha256, 'b', RM_HASH_HEX - 1);
    request->publish.data_files = 4;
    request->publish.data_bytes = 5000;
    ask(d, AGENT_PUBLISH, request);
    wait_for(d, 2);
    cr_assert_eq(newest(d, resume, &err), 0, "%s", err.text);
    cr_assert(resume->found);
    cr_assert_str_eq(resume->manifest.fingerprint, "those of the ring");
    cr_assert_eq(resume->manifest.data.files, 4);
    cr_assert_eq(resume->manifest.data.bytes, 5000);
    cr_assert_eq(resume->manifest.data.sha256[31], 0xbb);
    free(resume);
    desk_close(d);
}

Test(worker_store, a_checkpoint_that_is_not_there_is_a_failure_with_its_step)
{
    struct desk *d = desk_open();
    ask_load(d, 9);
    wait_for(d, 1);
    cr_assert_eq(d->event[0].kind, AGENT_LOADED);
    cr_assert_not(d->event[0].ok);
    cr_assert_eq(d->event[0].step, 9);
    cr_assert_neq(d->event[0].text[0], 0);
    desk_close(d);
}

Test(worker_store, an_empty_folder_lists_nothing)
{
    struct desk *d = desk_open();
    ask(d, AGENT_LIST, blank(MSG_LIST));
    wait_for(d, 1);
    cr_assert(d->event[0].ok, "%s", d->event[0].text);
    cr_assert_eq(d->message[0].checkpoints.count, 0);
    desk_close(d);
}

/* Others train meanwhile; and it is read again when the last weights are published. */
Test(worker_store, a_tokenizer_that_is_not_there_keeps_no_worker_from_its_work)
{
    struct error err = {0};
    struct desk *d = desk_open();
    struct worker_store *other = NULL;
    struct worker_store_options options = {
        .spec = &d->spec, .key = d->key, .snapshot_fd = d->snapshot_fd, .done = done, .ctx = d};
    snprintf(d->spec.data.tokenizer, sizeof d->spec.data.tokenizer, "file://%s/none.json", d->folder);
    cr_assert_eq(worker_store_open(&other, d->loop, &options, &err), 0, "%s", err.text);
    worker_store_free(other);
    desk_close(d);
}

Test(worker_store, ending_waits_for_what_is_under_way_and_drops_the_rest)
{
    struct desk *d = desk_open();
    for (int i = 0; i < 4; i++)
        ask_write(d, 7, i, 4);
    cr_assert_not(worker_store_idle(d->store));
    desk_close(d); /* the sanitizers' build would see a task that is left or used too late */
}
