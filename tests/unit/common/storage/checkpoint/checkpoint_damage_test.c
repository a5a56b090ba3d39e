/* Every way of damaging a checkpoint's files is found, and the one before it is used. */
#include "fixture.h"

#include <fcntl.h>

TestSuite(damage, .init = fixture_make, .fini = fixture_remove);

static struct manifest m;
static const struct model_shape tiny = {.layers = 1, .heads = 1, .width = 2, .context = 2, .vocabulary = 3};

static char optimizer[2][MANIFEST_FILE_MAX]; /* names of the last saved checkpoint's files */

static void save_one(const struct model_layout *layout, int64_t step)
{
    struct fixture_save save = {.layout = layout, .step = step, .seed = (uint64_t)step, .parts = 2};
    fixture_save(&save, &m);
    for (int part = 0; part < 2; part++)
        manifest_optimizer_name(optimizer[part], part, 2, m.lineage);
}

static void flip(const char *path, off_t at, int bit)
{
    uint8_t byte;
    int fd = open(path, O_RDWR);
    cr_assert(fd >= 0, "%s", path);
    cr_assert_eq(pread(fd, &byte, 1, at), 1);
    byte ^= (uint8_t)(1 << bit);
    cr_assert_eq(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

static off_t size_of(const char *path)
{
    struct stat st;
    cr_assert_eq(stat(path, &st), 0);
    return st.st_size;
}

static void is_damaged(const char *what, off_t at)
{
    struct error err = {0};
    cr_assert_eq(checkpoint_verify(fixture_store, "step-00000001", NULL, &err), -1, "%s at %d", what,
                 (int)at);
    cr_assert_eq(err.code, ERR_DATA, "%s", err.text);
    cr_assert(strstr(err.text, what) && strstr(err.text, "step-00000001"), "%s: %s", what, err.text);
}

static const char *const files[] = {"model.safetensors", "config.json", "manifest.json", optimizer[0],
                                    optimizer[1]};

Test(damage, a_flipped_bit_in_any_byte_of_any_file_is_found)
{
    struct model_layout *layout = fixture_layout(&tiny);
    save_one(layout, 1);
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        char path[512], name[128];
        snprintf(name, sizeof name, "step-00000001/%s", files[f]);
        fixture_path(path, name);
        off_t size = size_of(path);
        for (off_t at = 0; at < size; at++) {
            flip(path, at, (int)at % 8);
            is_damaged(files[f], at);
            flip(path, at, (int)at % 8);
        }
    }
    cr_assert_eq(checkpoint_verify(fixture_store, "step-00000001", NULL, NULL), 0);
    free(layout);
}

Test(damage, a_file_cut_short_grown_or_gone_is_found)
{
    struct model_layout *layout = fixture_layout(&tiny);
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        char path[512], name[128];
        if (!strcmp(files[f], "manifest.json"))
            continue;
        cr_assert_eq(checkpoint_delete_all(fixture_store, NULL), 0);
        save_one(layout, 1);
        snprintf(name, sizeof name, "step-00000001/%s", files[f]);
        fixture_path(path, name);
        cr_assert_eq(truncate(path, size_of(path) + 1), 0);
        is_damaged(files[f], -1);
        for (off_t size = size_of(path) - 2; size >= 0; size -= size > 600 ? 97 : 1) {
            cr_assert_eq(truncate(path, size), 0);
            is_damaged(files[f], size);
        }
        unlink(path);
        is_damaged(files[f], 0);
    }
    free(layout);
}

/* Both files are as long, and each is what some manifest names. */
static void swap(const char *one, const char *other)
{
    char a[512], b[512], c[512];
    fixture_path(a, one);
    fixture_path(b, other);
    fixture_path(c, "swapped");
    cr_assert(rename(a, c) == 0 && rename(b, a) == 0 && rename(c, b) == 0);
}

Test(damage, files_that_changed_places_are_found)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    float *state = fixture_state(layout, 9);
    static const enum manifest_hash kinds[] = {MANIFEST_XXH3, MANIFEST_SHA256};
    for (int i = 0; i < 2; i++) {
        struct error err = {0};
        for (int64_t step = 1; step <= 2; step++)
            fixture_save(
                &(struct fixture_save){
                    .layout = layout, .step = step, .seed = (uint64_t)step, .parts = 1, .hash = kinds[i]},
                &m);
        swap("step-00000001/model.safetensors", "step-00000002/model.safetensors");
        cr_assert_eq(checkpoint_load(fixture_store, "step-00000002", layout, state, NULL, &err), -1);
        cr_assert_eq(err.code, ERR_DATA, "%s", err.text);
        cr_assert_eq(checkpoint_verify(fixture_store, "step-00000001", NULL, &err), -1);
        cr_assert_eq(checkpoint_delete_all(fixture_store, NULL), 0);
    }
    free(state);
    free(layout);
}

/* Damages checkpoints 3 (a bit of its data) and 2 (its manifest); 1 is good. */
static struct model_layout *two_damaged_of_three(void)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    char path[512];
    for (int64_t step = 1; step <= 3; step++)
        save_one(layout, step);
    char name[128];
    snprintf(name, sizeof name, "step-00000003/%s", optimizer[1]);
    fixture_path(path, name);
    flip(path, size_of(path) - 1, 3);
    fixture_path(path, "step-00000002/manifest.json");
    flip(path, 40, 0);
    return layout;
}

Test(damage, a_run_goes_on_from_the_newest_that_verifies_and_names_the_others)
{
    struct model_layout *layout = two_damaged_of_three();
    static struct checkpoint_resume resume;
    struct error err = {0};
    cr_assert_eq(checkpoint_resume(fixture_store, &resume, &err), 0, "%s", err.text);
    cr_assert(resume.found);
    cr_assert_eq(resume.entry.step, 1);
    cr_assert_eq(resume.manifest.step, 1);
    cr_assert_eq(resume.skipped, 2);
    cr_assert_str_eq(resume.skip[0].name, "step-00000003");
    cr_assert(strstr(resume.skip[0].why, "content is damaged"), "%s", resume.skip[0].why);
    cr_assert_str_eq(resume.skip[1].name, "step-00000002");
    cr_assert(strstr(resume.skip[1].why, "it is damaged"), "%s", resume.skip[1].why);
    cr_assert(fixture_has("step-00000003/manifest.json") && fixture_has("step-00000002/manifest.json"));
    cr_assert_not(fixture_has("step-00000003/manifest.damaged.json"), "who reads renames nothing");
    free(layout);
}

Test(damage, loading_says_file_expected_and_found_and_renames_nothing)
{
    struct model_layout *layout = two_damaged_of_three();
    float *state = fixture_state(layout, 9);
    static struct checkpoint_list list;
    struct error err = {0};
    cr_assert_eq(checkpoint_list(fixture_store, &list, &err), 0);
    cr_assert_eq(list.count, 2);
    cr_assert_eq(list.skipped, 1);
    cr_assert_eq(checkpoint_load(fixture_store, "step-00000003", layout, state, NULL, &err), -1);
    cr_assert_eq(err.code, ERR_DATA);
    cr_assert_eq(err.class, CLASS_OBJECT, "it was looked at again before that is said");
    cr_assert(strstr(err.text, optimizer[1]) && strstr(err.text, "have the hash") &&
                  strstr(err.text, "as the manifest says"),
              "%s", err.text);
    cr_assert(fixture_has("step-00000003/manifest.json"));
    fixture_holds("step-00000001", layout, 1);
    free(state);
    free(layout);
}

Test(damage, verifying_changes_nothing)
{
    struct model_layout *layout = two_damaged_of_three();
    cr_assert_eq(checkpoint_verify(fixture_store, "step-00000003", NULL, NULL), -1);
    cr_assert(fixture_has("step-00000003/manifest.json"));
    free(layout);
}

Test(damage, a_damaged_checkpoint_can_be_saved_anew)
{
    struct model_layout *layout = two_damaged_of_three();
    save_one(layout, 2);
    save_one(layout, 3);
    fixture_holds("step-00000002", layout, 2);
    fixture_holds("step-00000003", layout, 3);
    cr_assert_not(fixture_has("step-00000003/manifest.damaged.json"));
    free(layout);
}

Test(damage, one_whose_manifest_alone_is_damaged_is_written_anew_without_a_resume)
{
    struct model_layout *layout = two_damaged_of_three();
    save_one(layout, 2);
    fixture_holds("step-00000002", layout, 2);
    free(layout);
}

Test(damage, a_manifest_of_another_step_is_damage)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    char from[512], to[512];
    static struct checkpoint_list list;
    save_one(layout, 1);
    fixture_path(from, "step-00000001");
    fixture_path(to, "step-00000005");
    cr_assert_eq(rename(from, to), 0);
    cr_assert_eq(checkpoint_list(fixture_store, &list, NULL), 0);
    cr_assert_eq(list.count, 0);
    cr_assert(strstr(list.skip[0].why, "it is of step 1"), "%s", list.skip[0].why);
    free(layout);
}

Test(damage, a_checkpoint_of_a_newer_version_stops_the_run_and_is_kept)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    static struct checkpoint_resume resume;
    struct error err = {0};
    char path[512], command[1200];
    save_one(layout, 1);
    save_one(layout, 2);
    fixture_path(path, "step-00000002/manifest.json");
    snprintf(
        command, sizeof command,
        "sed -i -e 's/\"version\": 4/\"version\": 9/' -e '/manifestSha256/,$d' %s && truncate -s -2 %s && "
        "h=$(sha256sum < %s | cut -c1-64) && printf ',\\n  \"manifestSha256\": \"%%s\"\\n}\\n' $h >> %s",
        path, path, path, path);
    cr_assert_eq(system(command), 0);
    cr_assert_eq(checkpoint_resume(fixture_store, &resume, &err), -1);
    cr_assert_eq(err.code, ERR_DATA);
    cr_assert_eq(err.class, CLASS_SOFTWARE);
    cr_assert(strstr(err.text, "step-00000002: manifest.json: version 9 is newer"), "%s", err.text);
    cr_assert(fixture_has("step-00000002/manifest.json"));
    free(layout);
}

Test(damage, with_every_checkpoint_damaged_a_run_does_not_begin_anew_by_itself)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    static struct checkpoint_resume resume;
    struct error err = {0};
    char path[512];
    for (int64_t step = 1; step <= 2; step++)
        save_one(layout, step);
    fixture_path(path, "step-00000001/manifest.json");
    flip(path, 40, 0);
    fixture_path(path, "step-00000002/model.safetensors");
    flip(path, size_of(path) - 1, 3);
    cr_assert_eq(checkpoint_resume(fixture_store, &resume, &err), -1);
    cr_assert_eq(err.code, ERR_DATA);
    cr_assert_eq(err.class, CLASS_OBJECT);
    cr_assert(strstr(err.text, "step-00000001") && strstr(err.text, "step-00000002") &&
                  strstr(err.text, "--overwrite"),
              "%s", err.text);
    cr_assert(fixture_has("step-00000001/manifest.json") && fixture_has("step-00000002/manifest.json"));
    free(layout);
}

Test(damage, who_writes_a_piece_says_that_what_stood_there_was_damaged)
{
    struct model_layout *layout = two_damaged_of_three();
    static struct checkpoint_pieces pieces;
    for (int64_t step = 1; step <= 4; step++) {
        uint8_t lineage[RM_HASH_BYTES];
        float *state = fixture_state(layout, (uint64_t)step);
        fixture_lineage(lineage, step, (uint64_t)step);
        struct checkpoint_slice slice = {.store = fixture_store,
                                         .step = step,
                                         .lineage = lineage,
                                         .layout = layout,
                                         .state = state,
                                         .parts = 2};
        cr_assert_eq(checkpoint_write_slice(&slice, &pieces, NULL), 0);
        cr_assert_eq(pieces.damaged, step == 2 || step == 3, "step %d", (int)step);
        cr_assert_eq(pieces.count > 0, step > 1, "step %d", (int)step);
        free(state);
    }
    free(layout);
}

/* A publisher that has not all of it at hand would leave nothing. */
Test(damage, what_is_damaged_makes_way_only_for_a_checkpoint_that_is_whole)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    struct fixture_save save = {.layout = layout, .step = 1, .seed = 1, .parts = 2};
    static struct manifest half;
    struct error err = {0};
    char path[512];
    float *state = fixture_state(layout, 1);
    save_one(layout, 1);
    fixture_path(path, "step-00000001/model.safetensors");
    flip(path, size_of(path) - 1, 3);
    fixture_manifest(&save, &half);
    cr_assert_eq(fixture_write(&save, state, 1, &half, &err), 0, "%s", err.text);
    cr_assert_gt(half.pieces, 0, "it is written, although a manifest says that it is there");
    cr_assert_eq(fixture_publish(&save, &half, &err), -1);
    cr_assert(fixture_has("step-00000001/manifest.json"), "%s", err.text);
    save_one(layout, 1);
    fixture_holds("step-00000001", layout, 1);
    cr_assert_not(fixture_has("step-00000001/manifest.damaged.json"));
    free(state);
    free(layout);
}
