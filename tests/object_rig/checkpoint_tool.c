/* Saves and loads checkpoints of made-up states, as agents do but in one process: what tools/store_faults
 * tries with a proxy between it and the store.
 *
 *   checkpoint_tool save URI SEED STEP WRITERS WIDTH    each writer on a thread and connections of its own
 *   checkpoint_tool load URI SEED WIDTH                 prints the step of what it loaded, 0 for none
 *
 * A state follows from its seed and step alone, so load can tell whether what came is what was saved. Wrong
 * weights end the program with WRONG; everything else with the documented exit code and a sentence. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/prng.h"
#include "common/job/spec.h"
#include "common/os/crypto.h"
#include "common/storage/checkpoint/checkpoint.h"

enum { WRONG = 99, WRITERS_MAX = 8, KEEP = 2 };

struct state {
    struct model_layout layout;
    uint8_t lineage[RM_HASH_BYTES];
    float *value; /* (3, parameters) */
};

struct writer {
    pthread_t thread;
    const char *uri;
    struct checkpoint_slice slice;
    struct checkpoint_pieces pieces;
    struct error err;
    int result;
};

static int state_open(struct state *ret, uint64_t seed, int64_t step, int width, struct error *err)
{
    struct model_shape shape = {.layers = 1, .heads = 1, .width = width, .context = 8, .vocabulary = 64};
    model_layout_init(&ret->layout, &shape);
    size_t count = 3 * (size_t)ret->layout.parameters;
    ret->value = calloc(count, sizeof(float));
    if (!ret->value)
        return err_set(err, ERR_MACHINE, "no memory for the state");
    uint64_t chance = seed * 1000003 + (uint64_t)step;
    for (size_t i = 0; i < count; i++)
        ret->value[i] = (float)(prng_unit(&chance) - 0.5);
    sha256_once(ret->value, count * sizeof(float), ret->lineage);
    return 0;
}

static int place_open(struct object_store **ret, const char *uri, struct error *err)
{
    struct object_options options = {.uri = uri, .connections = 4};
    return object_open(ret, &options, err);
}

static void *write_slice(void *ctx)
{
    struct writer *writer = ctx;
    struct object_store *store = NULL;
    writer->result = place_open(&store, writer->uri, &writer->err);
    writer->slice.store = store;
    if (writer->result == 0)
        writer->result = checkpoint_write_slice(&writer->slice, &writer->pieces, &writer->err);
    object_free(store);
    return NULL;
}

/* All slices at once; the pieces of all of them go into the manifest. */
static int write_slices(const char *uri, const struct state *state, int64_t step, int writers,
                        struct manifest *manifest, struct error *err)
{
    struct writer *writer = calloc((size_t)writers, sizeof *writer);
    if (!writer)
        return err_set(err, ERR_MACHINE, "no memory for the writers");
    int result = 0, started = 0;
    for (; result == 0 && started < writers; started++) {
        struct checkpoint_slice slice = {.step = step,
                                         .lineage = state->lineage,
                                         .layout = &state->layout,
                                         .state = state->value,
                                         .part = started,
                                         .parts = writers};
        writer[started].uri = uri;
        writer[started].slice = slice;
        if (pthread_create(&writer[started].thread, NULL, write_slice, &writer[started]))
            result = err_set(err, ERR_MACHINE, "no thread for a writer");
    }
    for (int i = 0; i < started; i++) {
        pthread_join(writer[i].thread, NULL);
        if (writer[i].result < 0 && result == 0) {
            *err = writer[i].err;
            result = -1;
        }
        for (int p = 0; p < writer[i].pieces.count; p++)
            manifest->piece[manifest->pieces++] = writer[i].pieces.piece[p];
    }
    free(writer);
    return result;
}

static void describe(struct manifest *manifest, const struct state *state, int64_t step)
{
    manifest->step = step;
    manifest->shape = state->layout.shape;
    manifest->tensors = state->layout.tensors;
    memcpy(manifest->lineage, state->lineage, sizeof manifest->lineage);
    snprintf(manifest->compared, sizeof manifest->compared, "{}");
    snprintf(manifest->fingerprint, sizeof manifest->fingerprint, "made up");
    snprintf(manifest->job, sizeof manifest->job, "faults");
    manifest->data = (struct manifest_data){.files = -1, .bytes = -1};
    manifest->exact = true;
    manifest->term = manifest->generation = 1;
}

static int save(const char *uri, uint64_t seed, int64_t step, int writers, int width, struct error *err)
{
    struct state state = {0};
    struct object_store *store = NULL;
    struct manifest *manifest = calloc(2, sizeof *manifest);
    int result =
        manifest ? state_open(&state, seed, step, width, err) : err_set(err, ERR_MACHINE, "no memory");
    if (result == 0) {
        describe(manifest, &state, step);
        result = write_slices(uri, &state, step, writers, manifest, err);
    }
    if (result == 0)
        result = place_open(&store, uri, err);
    if (result == 0) {
        struct checkpoint_publication publication = {
            .replaces = true, .store = store, .keep = KEEP, .layout = &state.layout, .manifest = manifest};
        result = checkpoint_publish(&publication, &manifest[1], err);
        struct checkpoint_settling settling = {.store = store, .step = step, .keep = KEEP};
        if (result == 0)
            result = checkpoint_settle(&settling, err) < 0 ? -1 : 0;
    }
    object_free(store);
    free(state.value);
    free(manifest);
    return result;
}

enum { READERS = 3 };

/* As a ring of so many does: each reads a share, here one after the other. */
static int load_shares(struct object_store *store, const struct checkpoint_entry *entry,
                       const struct model_layout *layout, float *state, struct error *err)
{
    struct checkpoint_share share = {
        .store = store,
        .step = entry->step,
        .lineage = entry->lineage,
        .layout = layout,
        .parts = READERS,
        .array = {state, state + layout->parameters, state + 2 * layout->parameters}};
    struct model_range range[MODEL_ARRAYS_MAX];
    for (int i = 0; i < READERS; i++) {
        share.shares = set_of(i);
        if (checkpoint_load_share(&share, range, NULL, err) < 0)
            return -1;
    }
    return 0;
}

/* Loads one by its manifest and compares it with what was saved. */
static int load_entry(struct object_store *store, const struct checkpoint_entry *entry, uint64_t seed,
                      int width, struct error *err)
{
    struct state expected = {0};
    if (state_open(&expected, seed, entry->step, width, err) < 0)
        return -1;
    size_t bytes = 3 * (size_t)expected.layout.parameters * sizeof(float);
    float *came = calloc(1, bytes);
    int result = came ? load_shares(store, entry, &expected.layout, came, err)
                      : err_set(err, ERR_MACHINE, "no memory for the state");
    bool same = result < 0 || !memcmp(came, expected.value, bytes);
    free(came);
    free(expected.value);
    if (!same) {
        fprintf(stderr, "%s: these are not the weights that were saved\n", entry->name);
        return WRONG;
    }
    return result;
}

static int load(const char *uri, uint64_t seed, int width, struct error *err)
{
    struct object_store *store = NULL;
    struct checkpoint_resume *resume = calloc(1, sizeof *resume);
    if (!resume)
        return err_set(err, ERR_MACHINE, "no memory to resume");
    int result = place_open(&store, uri, err);
    if (result == 0)
        result = checkpoint_resume(store, resume, err);
    for (int i = 0; result == 0 && i < resume->skipped; i++)
        fprintf(stderr, "skipped %s: %s\n", resume->skip[i].name, resume->skip[i].why);
    if (result == 0 && resume->found)
        result = load_entry(store, &resume->entry, seed, width, err);
    if (result == 0)
        printf("%" PRId64 "\n", resume->found ? resume->entry.step : 0);
    object_free(store);
    free(resume);
    return result;
}

static int64_t number(const char *text)
{
    return strtoll(text, NULL, 10);
}

int main(int argc, char **argv)
{
    struct error err = {.code = ERR_USAGE,
                        .text = "checkpoint_tool save URI SEED STEP WRITERS WIDTH, or load URI SEED WIDTH"};
    int result = -1;
    if (argc == 7 && !strcmp(argv[1], "save") && number(argv[5]) > 0 && number(argv[5]) <= WRITERS_MAX)
        result = save(argv[2], (uint64_t)number(argv[3]), number(argv[4]), (int)number(argv[5]),
                      (int)number(argv[6]), &err);
    else if (argc == 5 && !strcmp(argv[1], "load"))
        result = load(argv[2], (uint64_t)number(argv[3]), (int)number(argv[4]), &err);
    if (result == WRONG)
        return WRONG;
    if (result < 0)
        fprintf(stderr, "checkpoint_tool: %s\n", err.text);
    return result < 0 ? error_exit_code(err.code) : 0;
}
