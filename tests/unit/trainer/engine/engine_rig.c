#include "engine_rig.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/prng.h"
#include "common/os/cpu.h"
#include "common/os/file.h"
#include "tests/unit/trainer/backend/stand_in.h"

static const char key[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

static void write_text(const char *folder)
{
    char path[96];
    uint64_t state = 1;
    snprintf(path, sizeof path, "%s/text", folder);
    FILE *f = fopen(path, "w");
    cr_assert_not_null(f);
    for (int i = 0; i < 2000; i++)
        fprintf(f, "%s ", (const char *[]){"near", "far", "away", "is", "here"}[prng_below(&state, 5)]);
    fclose(f);
}

struct rig *rig_open(void)
{
    struct rig *rig = calloc(1, sizeof *rig);
    struct job_spec *s = &rig->spec;
    text_copy(rig->folder, sizeof rig->folder, "/tmp/rm-seam-test-XXXXXX");
    cr_assert_not_null(mkdtemp(rig->folder));
    write_text(rig->folder);
    job_spec_defaults(s);
    text_copy(s->name, sizeof s->name, "seam");
    s->workers.min = 1;
    s->workers.max = s->workers.target = RIG_ENGINES;
    s->model.shape = (struct model_shape){2, 2, 24, 12, 256};
    snprintf(s->data.uri, sizeof s->data.uri, "file://%s", rig->folder);
    snprintf(s->checkpoint.uri, sizeof s->checkpoint.uri, "file:///nowhere/%s", rig->folder + 5);
    s->batch.lanes = RIG_LANES;
    s->batch.lane_sequences = 2;
    s->optimizer.learning_rate = 0.01;
    s->optimizer.warmup_steps = 2;
    s->steps = 20;
    s->threads = 1;
    s->evaluation.every_steps = 4;
    s->evaluation.sequences = 3;
    s->evaluation.hold_out = 0.1;
    s->checkpoint.every_steps = 5;
    job_spec_fill(s);
    for (int i = 0; i < RIG_ENGINES; i++)
        rig->e[i] = (struct rig_engine){.state_fd = -1, .snapshot_fd = -1};
    message_init(&rig->form, MSG_FORM);
    rig->form.generation = (struct msg_generation){1, 0};
    return rig;
}

void rig_close(struct rig *rig)
{
    char path[96];
    for (int i = 0; i < RIG_ENGINES; i++) {
        rig_end(rig, i);
        if (rig->e[i].state_fd >= 0)
            close(rig->e[i].state_fd);
        if (rig->e[i].snapshot_fd >= 0)
            close(rig->e[i].snapshot_fd);
    }
    snprintf(path, sizeof path, "%s/text", rig->folder);
    unlink(path);
    rmdir(rig->folder);
    free(rig);
}

void rig_start(struct rig *rig, int i, engine_open_backend *backend)
{
    struct rig_engine *e = &rig->e[i];
    struct msg_setup *setup = calloc(1, sizeof *setup);
    struct message *up = calloc(1, sizeof *up);
    struct elastic_event opened;
    struct error err = {0};
    if (e->state_fd < 0)
        cr_assert_eq(file_memory(&e->state_fd, "state", 0, NULL), 0);
    if (e->snapshot_fd < 0)
        cr_assert_eq(file_memory(&e->snapshot_fd, "snapshot", 0, NULL), 0);
    setup->worker = i;
    setup->incarnation = 0xabc0 + (uint64_t)i;
    text_copy(setup->listen, sizeof setup->listen, "127.0.0.1");
    text_copy(setup->key, sizeof setup->key, key);
    const struct engine_options options = {.spec = &rig->spec,
                                           .setup = setup,
                                           .state_fd = e->state_fd,
                                           .snapshot_fd = e->snapshot_fd,
                                           .data_fd = -1,
                                           .backend = backend};
    cpu_flush_denormals();
    cr_assert_eq(engine_open(&e->engine, &options, &err), 0, "%s", err.text);
    e->who = stand_in_newest();
    engine_opened(e->engine, up, &opened);
    e->up = up->up;
    free(setup);
    free(up);
}

void rig_end(struct rig *rig, int i)
{
    engine_free(rig->e[i].engine);
    rig->e[i].engine = NULL;
}

static void *run(void *arg)
{
    struct rig_engine *e = arg;
    cpu_flush_denormals();
    engine_run(e->engine, &e->action, &e->result);
    return NULL;
}

bool rig_run_action(struct rig *rig, int i, const struct elastic_action *action)
{
    rig->e[i].action = *action;
    run(&rig->e[i]);
    return rig->e[i].result.outcome == OUTCOME_OK;
}

bool rig_run(struct rig *rig, int i, enum elastic_command command)
{
    return rig_run_action(
        rig, i, &(struct elastic_action){.command = command, .form = &rig->form, .part = 0, .parts = 1});
}

static void all_at_once(struct rig *rig, int world, const struct elastic_action *action)
{
    for (int i = 0; i < world; i++) {
        rig->e[i].action = *action;
        cr_assert_eq(pthread_create(&rig->e[i].thread, NULL, run, &rig->e[i]), 0);
    }
    for (int i = 0; i < world; i++)
        pthread_join(rig->e[i].thread, NULL);
}

static void expect_ok(struct rig *rig, int world)
{
    for (int i = 0; i < world; i++)
        cr_assert_eq(rig->e[i].result.outcome, OUTCOME_OK, "engine %d, command %d: %s", i,
                     (int)rig->e[i].result.command, rig->e[i].result.text);
}

void rig_each(struct rig *rig, int world, enum elastic_command command)
{
    const struct elastic_action action = {.command = command, .form = &rig->form, .parts = 1};
    all_at_once(rig, world, &action);
}

void rig_all(struct rig *rig, int world, enum elastic_command command)
{
    rig_each(rig, world, command);
    expect_ok(rig, world);
}

static void name_member(struct rig *rig, struct msg_member *m, int i)
{
    m->worker = i;
    m->incarnation = 0xabc0 + (uint64_t)i;
    text_copy(m->address, sizeof m->address, rig->e[i].up.address);
}

void rig_connect(struct rig *rig, int world)
{
    rig->form.generation.n++;
    rig->form.form.count = world;
    for (int i = 0; i < world; i++)
        name_member(rig, &rig->form.form.member[i], i);
    rig_all(rig, world, CMD_CONNECT);
}

void rig_step(struct rig *rig, int world)
{
    bool again = false;
    do {
        const struct elastic_action lanes = {.command = CMD_LANES, .form = &rig->form, .again = again};
        all_at_once(rig, world, &lanes);
        expect_ok(rig, world);
        all_at_once(rig, world, &(struct elastic_action){.command = CMD_EXCHANGE});
        again = rig->e[0].result.outcome == OUTCOME_RESCALE;
    } while (again);
    expect_ok(rig, world);
    rig_all(rig, world, CMD_COMMIT);
}

const char *rig_digest(struct rig *rig, int i)
{
    static char text[RM_HASH_HEX];
    cr_assert(rig_run(rig, i, CMD_DIGEST));
    hex_encode(rig->e[i].result.digest, RM_HASH_BYTES, text);
    return text;
}

float *rig_area(struct rig *rig, int i, enum snapshot_area area, size_t *ret_bytes)
{
    struct model_layout *layout = calloc(1, sizeof *layout);
    model_layout_init(layout, &rig->spec.model.shape);
    *ret_bytes = (size_t)snapshot_area_bytes(layout);
    off_t at = (off_t)snapshot_area_at((int64_t)*ret_bytes, area);
    free(layout);
    float *map = mmap(NULL, *ret_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, rig->e[i].snapshot_fd, at);
    cr_assert_neq(map, MAP_FAILED);
    return map;
}

float *rig_snapshot(struct rig *rig, int i, int part, int parts, size_t *ret_bytes)
{
    const struct elastic_action action = {.command = CMD_SNAPSHOT, .part = part, .parts = parts};
    float *map = rig_area(rig, i, SNAPSHOT_TAKEN, ret_bytes), *copy = malloc(*ret_bytes);
    memset(map, 0, *ret_bytes);
    cr_assert(rig_run_action(rig, i, &action), "%s", rig->e[i].result.text);
    memcpy(copy, map, *ret_bytes);
    munmap(map, *ret_bytes);
    return copy;
}

bool rig_load(struct rig *rig, int i, const struct msg_snapshot *snapshot, const void *bytes)
{
    size_t size;
    float *map = rig_area(rig, i, SNAPSHOT_LOADED, &size);
    struct msg_loaded loaded = {.state = snapshot->state,
                                .parts = 1,
                                .shares = set_below(1),
                                .exact = snapshot->exact,
                                .tensors = snapshot->tensors};
    memcpy(loaded.k, snapshot->k, sizeof loaded.k);
    memcpy(map, bytes, size);
    munmap(map, size);
    rig->form.form.count = 1;
    return rig_run_action(
        rig, i,
        &(struct elastic_action){
            .command = CMD_LOAD, .form = &rig->form, .loaded = &loaded, .shares = loaded.shares, .parts = 1});
}

bool rig_take(struct rig *rig, int i, int from, enum elastic_command command)
{
    struct msg_form *form = &rig->form.form;
    form->resume = rig->e[from].result.state;
    form->sources_count = 1;
    name_member(rig, &form->source[0], from);
    return rig_run(rig, i, command);
}
