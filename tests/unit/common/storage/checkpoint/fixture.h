/* A folder of its own for each test, states made from a seed, and saving them in one call. */
#ifndef RM_TESTS_STORE_FIXTURE_H
#define RM_TESTS_STORE_FIXTURE_H

#include <criterion/criterion.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/prng.h"
#include "common/model/image.h"
#include "common/storage/checkpoint/checkpoint.h"

static char fixture_uri[128];
static struct object_store *fixture_store;

static inline void fixture_make(void)
{
    /* in memory where that can be: these tests write much that is never read again */
    const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(fixture_uri, sizeof fixture_uri, "file://%s/store-test-XXXXXX", folder);
    cr_assert(mkdtemp(fixture_uri + 7));
    cr_assert_eq(object_open(&fixture_store, &(struct object_options){.uri = fixture_uri}, NULL), 0);
}

static inline int fixture_remove_entry(const char *path, const struct stat *st, int flag, struct FTW *place)
{
    (void)st, (void)flag, (void)place;
    return remove(path);
}

static inline void fixture_remove(void)
{
    object_free(fixture_store);
    nftw(fixture_uri + 7, fixture_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static inline const char *fixture_folder(void)
{
    return fixture_uri + 7;
}

static inline void fixture_path(char out[512], const char *name)
{
    snprintf(out, 512, "%s/%s", fixture_folder(), name);
}

static inline bool fixture_has(const char *name)
{
    char path[512];
    fixture_path(path, name);
    return access(path, F_OK) == 0;
}

__attribute__((unused)) static const struct model_shape fixture_shape = {
    .layers = 2, .heads = 2, .width = 8, .context = 5, .vocabulary = 11};

static inline struct model_layout *fixture_layout(const struct model_shape *shape)
{
    struct model_layout *layout = malloc(sizeof *layout);
    cr_assert(layout);
    image_or_model_layout(layout, shape);
    return layout;
}

/* (3, parameters); the seed stands for a history */
static inline float *fixture_state(const struct model_layout *layout, uint64_t seed)
{
    size_t count = 3 * (size_t)layout->parameters;
    float *state = malloc(count * sizeof *state);
    cr_assert(state);
    for (size_t i = 0; i < count; i++)
        state[i] = (float)prng_unit(&seed) - 0.5f;
    return state;
}

static inline void fixture_lineage(uint8_t out[RM_HASH_BYTES], int64_t step, uint64_t seed)
{
    uint64_t mixed = seed * 1000003 + (uint64_t)step;
    for (int i = 0; i < RM_HASH_BYTES; i++)
        out[i] = (uint8_t)splitmix64(&mixed);
}

struct fixture_save {
    const struct model_layout *layout;
    int64_t step;
    uint64_t seed; /* of the state and its lineage */
    int parts, keep;
    bool final;
    enum manifest_hash hash;
    bool unsettled; /* published, and not yet read back */
    bool alone;     /* nobody but the publisher finds damaged what stands there */
};

static inline void fixture_manifest(const struct fixture_save *save, struct manifest *m)
{
    memset(m, 0, sizeof *m);
    m->hash = save->hash;
    m->step = save->step;
    m->shape = save->layout->shape;
    m->tensors = save->layout->tensors;
    for (int i = 0; i < m->tensors; i++)
        m->k[i] = i % 31 - 4;
    m->exact = true;
    m->term = 1;
    m->generation = 3;
    m->data.files = 12;
    m->data.bytes = 3456;
    memset(m->data.sha256, 0xab, RM_HASH_BYTES);
    snprintf(m->compared, sizeof m->compared, "{\"batch\":{\"lanes\":4},\"rate\":0.10000000000000001}");
    snprintf(m->fingerprint, sizeof m->fingerprint, "numerics 1 \"quoted\" fp32");
    snprintf(m->job, sizeof m->job, "tiny");
    fixture_lineage(m->lineage, save->step, save->seed);
}

static inline int fixture_write(const struct fixture_save *save, const float *state, int part,
                                struct manifest *m, struct error *err)
{
    struct checkpoint_pieces pieces;
    struct checkpoint_slice slice = {.store = fixture_store,
                                     .step = save->step,
                                     .final = save->final,
                                     .lineage = m->lineage,
                                     .layout = save->layout,
                                     .state = state,
                                     .hash = save->hash,
                                     .keep = save->keep,
                                     .part = part,
                                     .parts = save->parts};
    if (checkpoint_write_slice(&slice, &pieces, err) < 0)
        return -1;
    for (int i = 0; i < pieces.count; i++)
        m->piece[m->pieces++] = pieces.piece[i];
    return 0;
}

static inline int fixture_publish(const struct fixture_save *save, struct manifest *m, struct error *err)
{
    struct checkpoint_publication publication = {.store = fixture_store,
                                                 .final = save->final,
                                                 .keep = save->keep ? save->keep : 100,
                                                 .layout = save->layout,
                                                 .manifest = m,
                                                 .replaces = !save->alone};
    struct checkpoint_settling settling = {.store = fixture_store, .step = m->step, .keep = publication.keep};
    if (checkpoint_publish(&publication, m, err) < 0)
        return -1;
    return save->final || save->unsettled || checkpoint_settle(&settling, err) >= 0 ? 0 : -1;
}

/* Writes all slices (the last first) and publishes; m is what stands in the folder then. */
static inline int fixture_try_save(const struct fixture_save *save, struct manifest *m, struct error *err)
{
    float *state = fixture_state(save->layout, save->seed);
    int result = 0;
    fixture_manifest(save, m);
    for (int part = save->parts - 1; part >= 0 && result == 0; part--)
        result = fixture_write(save, state, part, m, err);
    free(state);
    return result < 0 ? -1 : fixture_publish(save, m, err);
}

static inline void fixture_save(const struct fixture_save *save, struct manifest *m)
{
    struct error err = {0};
    cr_assert_eq(fixture_try_save(save, m, &err), 0, "%s", err.text);
}

/* The named checkpoint loads, and holds the state of this seed bit for bit. */
static inline void fixture_holds(const char *name, const struct model_layout *layout, uint64_t seed)
{
    float *expected = fixture_state(layout, seed), *found = fixture_state(layout, seed + 1);
    struct error err = {0};
    cr_assert_eq(checkpoint_load(fixture_store, name, layout, found, NULL, &err), 0, "%s", err.text);
    size_t arrays = image_bytes(&layout->shape) ? 1 : 3;
    cr_assert_eq(memcmp(expected, found, 4 * arrays * (size_t)layout->parameters), 0, "%s holds other values",
                 name);
    free(expected);
    free(found);
}

#endif
