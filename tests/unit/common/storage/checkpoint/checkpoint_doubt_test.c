/* What one machine sees is not what lies in the store: its memory, its disk, its way there may be wrong, and
 * no sound checkpoint may be lost by that. A store that lies stands for such a machine. */
#include <errno.h>

#include "common/base/err_system.h"
#include "common/storage/object/object_ops.h"
#include "fixture.h"

static void make(void);
TestSuite(doubt, .init = make, .fini = fixture_remove);

enum { STEPS = 2 };

static struct manifest m;
static struct model_layout *layout;

/* The folder's own way of reading, and how this machine changes it. */
static const struct object_ops *true_ops;
static struct object_ops ops;
static struct {
    bool memory;      /* a page in memory is wrong: whoever reads past it gets the right bytes */
    bool any;         /* other bytes each time */
    bool unseen;      /* a file is not found by its name, though it is listed */
    bool always;      /* the same byte of a file is wrong each time, wherever it is read from */
    bool overtaken;   /* whoever asks for the first manifest finds that somebody else has just removed it, and
                         died */
    const char *once; /* one read inside of a file of such a name is wrong, and no other */
    atomic_int fails; /* reads that fail with EIO from now on */
    atomic_int past;  /* reads that passed the memory */
    atomic_int number; /* of a lie */
} lie;

static void tell(const struct object_store *store, const struct object_range *range)
{
    uint8_t *bytes = range->into;
    atomic_fetch_add(&lie.past, store->past_caches);
    if (range->bytes && lie.memory && !store->past_caches)
        bytes[range->bytes / 2] ^= 1;
    if (range->bytes && lie.always)
        bytes[range->bytes / 2] ^= 1;
    if (range->bytes && lie.any)
        bytes[range->bytes / 2] ^= (uint8_t)(1 + atomic_fetch_add(&lie.number, 1) % 250);
    if (range->offset && lie.once && strstr(range->name, lie.once)) {
        bytes[range->bytes / 2] ^= 1;
        lie.once = NULL;
    }
    if (range->came)
        range->came(range->ctx, bytes, (size_t)range->bytes);
}

static int read_wrong(struct object_store *store, const struct object_range *range, int count,
                      struct error *err)
{
    for (int i = 0; i < count; i++) {
        struct object_range plain = range[i];
        plain.came = NULL;
        if (atomic_fetch_sub(&lie.fails, 1) > 0) {
            errno = EIO;
            return err_system(err, ERR_MACHINE, "%s", range[i].name);
        }
        if (true_ops->read(store, &plain, 1, err) < 0)
            return -1;
        tell(store, &range[i]);
    }
    return 0;
}

static int head_wrong(struct object_store *store, const char *name, struct object_info *ret,
                      struct error *err)
{
    if (lie.unseen && strstr(name, "model.safetensors"))
        return err_set(err, ERR_NOT_FOUND, "%s: not found", name);
    return true_ops->head(store, name, ret, err);
}

static int get_wrong(struct object_store *store, const char *name, int64_t most, struct str *out,
                     struct error *err)
{
    char path[512];
    fixture_path(path, "step-00000001/manifest.json");
    if (lie.overtaken && strstr(name, "step-00000001/manifest"))
        unlink(path);
    if (true_ops->get(store, name, most, out, err) < 0)
        return -1;
    if (lie.memory && !store->past_caches && out->length)
        out->data[out->length / 2] ^= 1;
    return 0;
}

static void make(void)
{
    fixture_make();
    layout = fixture_layout(&fixture_shape);
    for (int64_t step = 1; step <= STEPS; step++) {
        struct fixture_save save = {.layout = layout, .step = step, .seed = (uint64_t)step, .parts = 2};
        fixture_save(&save, &m);
    }
    true_ops = fixture_store->ops;
    ops = *true_ops;
    ops.read = read_wrong;
    ops.head = head_wrong;
    ops.get = get_wrong;
    fixture_store->ops = &ops;
}

static int load_newest(float *state, struct error *err)
{
    struct model_range range[MODEL_ARRAYS_MAX];
    struct checkpoint_share share = {
        .store = fixture_store,
        .step = m.step,
        .lineage = m.lineage,
        .layout = layout,
        .parts = 1,
        .shares = set_of(0),
        .array = {state, state + layout->parameters, state + 2 * layout->parameters}};
    return checkpoint_load_share(&share, range, NULL, err);
}

static void nothing_is_renamed(void)
{
    cr_assert(fixture_has("step-00000002/manifest.json"));
    cr_assert_not(fixture_has("step-00000002/manifest.damaged.json"));
}

Test(doubt, one_machine_with_wrong_bytes_in_its_memory_reads_them_from_the_disk_and_goes_on)
{
    float *state = fixture_state(layout, 9), *expected = fixture_state(layout, STEPS);
    struct error err = {0};
    static struct checkpoint_resume resume;
    lie.memory = true;
    cr_assert_eq(load_newest(state, &err), 0, "%s", err.text);
    cr_assert_eq(memcmp(state, expected, 12 * (size_t)layout->parameters), 0);
    cr_assert_gt(atomic_load(&lie.past), 0, "this test reads past its memory");
    cr_assert_eq(checkpoint_resume(fixture_store, &resume, &err), 0, "%s", err.text);
    cr_assert_eq(resume.entry.step, STEPS);
    cr_assert_eq(resume.skipped, 0);
    nothing_is_renamed();
    free(state), free(expected), free(layout);
}

Test(doubt, a_machine_that_reads_something_else_each_time_blames_itself)
{
    float *state = fixture_state(layout, 9);
    struct error err = {0};
    static struct checkpoint_resume resume;
    lie.any = true;
    cr_assert_eq(load_newest(state, &err), -1);
    cr_assert_eq(err.code, ERR_MACHINE);
    cr_assert_eq(err.class, CLASS_MACHINE, "%s", err.text);
    cr_assert_eq(checkpoint_resume(fixture_store, &resume, &err), -1);
    cr_assert_eq(err.class, CLASS_MACHINE, "%s", err.text);
    nothing_is_renamed();
    free(state), free(layout);
}

Test(doubt, a_read_that_fails_is_said_and_passes_over_no_checkpoint)
{
    float *state = fixture_state(layout, 9);
    struct error err = {0};
    static struct checkpoint_resume resume;
    atomic_store(&lie.fails, 1);
    cr_assert_eq(load_newest(state, &err), -1);
    cr_assert_eq(err.code, ERR_MACHINE);
    cr_assert_eq(err.class, CLASS_PASSING, "%s", err.text);
    atomic_store(&lie.fails, 1);
    cr_assert_eq(checkpoint_resume(fixture_store, &resume, &err), -1, "and not with the one before it");
    cr_assert_eq(err.class, CLASS_PASSING, "%s", err.text);
    cr_assert_eq(load_newest(state, &err), 0, "a moment later it is there as it was: %s", err.text);
    nothing_is_renamed();
    free(state), free(layout);
}

Test(doubt, a_file_that_its_folder_lists_is_not_missing)
{
    float *state = fixture_state(layout, 9);
    struct error err = {0};
    char path[512];
    lie.unseen = true;
    cr_assert_eq(load_newest(state, &err), -1);
    cr_assert_eq(err.class, CLASS_PASSING, "%s", err.text);
    cr_assert(strstr(err.text, "its folder lists it"), "%s", err.text);
    lie.unseen = false;
    fixture_path(path, "step-00000002/model.safetensors");
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(load_newest(state, &err), -1);
    cr_assert_eq(err.class, CLASS_OBJECT, "%s", err.text);
    cr_assert(strstr(err.text, "does not list it"), "%s", err.text);
    nothing_is_renamed();
    free(state), free(layout);
}

Test(doubt, a_folder_that_is_seen_without_the_checkpoint_may_be_seen_with_it_later)
{
    float *state = fixture_state(layout, 9);
    struct error err = {0};
    m.step = STEPS + 1;
    cr_assert_eq(load_newest(state, &err), -1);
    cr_assert_eq(err.code, ERR_NOT_FOUND);
    cr_assert_eq(err.class, CLASS_PASSING, "%s", err.text);
    free(state), free(layout);
}

static void same_bytes(const char *one, const char *other)
{
    struct str text[2] = {str_init(1 << 20), str_init(1 << 20)};
    struct error err = {0};
    cr_assert_eq(object_get(fixture_store, one, 1 << 20, &text[0], &err), 0, "%s", err.text);
    cr_assert_eq(object_get(fixture_store, other, 1 << 20, &text[1], &err), 0, "%s", err.text);
    cr_assert_eq(text[0].length, text[1].length);
    cr_assert_eq(memcmp(text[0].data, text[1].data, text[0].length), 0);
    str_clear(&text[0]), str_clear(&text[1]);
}

/* All pieces are at hand, as where the first publisher died behind its manifest. */
Test(doubt, a_publisher_that_alone_finds_damage_moves_and_removes_nothing)
{
    struct fixture_save save = {.layout = layout, .step = STEPS + 1, .seed = 7, .parts = 2, .alone = true};
    static struct manifest whole, again;
    struct error err = {0};
    float *state = fixture_state(layout, save.seed);
    fixture_manifest(&save, &whole);
    for (int part = 0; part < save.parts; part++)
        cr_assert_eq(fixture_write(&save, state, part, &whole, &err), 0, "%s", err.text);
    again = whole;
    cr_assert_eq(fixture_publish(&save, &whole, &err), 0, "%s", err.text);
    whole = again;
    lie.always = true;
    cr_assert_eq(fixture_publish(&save, &whole, &err), -1);
    cr_assert_eq(err.class, CLASS_OBJECT, "%s", err.text);
    cr_assert(strstr(err.text, "nobody else has said so"), "%s", err.text);
    lie.always = false;
    cr_assert_not(fixture_has("step-00000003/manifest.damaged.json"));
    fixture_holds("step-00000003", layout, save.seed);
    cr_assert_eq(fixture_publish(&save, &again, &err), 0, "another machine finds it sound: %s", err.text);
    free(state), free(layout);
}

/* What has been handed on can't be taken back: who reads it again hands it on twice. */
Test(doubt, an_export_of_which_a_part_arrives_wrong_is_refused_and_the_next_one_is_whole)
{
    struct object_store *target;
    struct error err = {0};
    char uri[256];
    snprintf(uri, sizeof uri, "%s/exported", fixture_uri);
    cr_assert_eq(object_open(&target, &(struct object_options){.uri = uri}, &err), 0, "%s", err.text);
    lie.once = "step-00000002/model.safetensors";
    cr_assert_eq(checkpoint_export(fixture_store, "step-00000002", target, &err), -1);
    cr_assert_null(lie.once, "a part arrived wrong");
    cr_assert_eq(err.code, ERR_DATA);
    cr_assert(strstr(err.text, "model.safetensors"), "%s", err.text);
    cr_assert_not(fixture_has("exported/model.safetensors"));
    err = (struct error){0};
    cr_assert_eq(checkpoint_export(fixture_store, "step-00000002", target, &err), 0, "%s", err.text);
    same_bytes("step-00000002/model.safetensors", "exported/model.safetensors");
    same_bytes("step-00000002/config.json", "exported/config.json");
    object_free(target), free(layout);
}

Test(doubt, what_another_machine_died_over_while_it_deleted_it_goes_with_the_end_of_the_run)
{
    struct fixture_save save = {.layout = layout, .step = 3, .seed = 3, .parts = 2, .keep = 1, .final = true};
    lie.overtaken = true;
    fixture_save(&save, &m);
    cr_assert(fixture_has("final/manifest.json") && fixture_has("step-00000002/manifest.json"));
    cr_assert_not(fixture_has("step-00000001/manifest.json"));
    cr_assert_not(fixture_has("step-00000001/model.safetensors"), "nobody would ever remove it");
}
