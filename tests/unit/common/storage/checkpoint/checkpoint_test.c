/* Saving, listing, loading, keeping and deleting checkpoints. */
#include "fixture.h"

#include <fcntl.h>
#include <sys/wait.h>

#include "common/os/crypto.h"
#include "common/storage/checkpoint/files.h"
#include "common/storage/checkpoint/sums.h"
#include "common/storage/object/object_ops.h"

TestSuite(checkpoint, .init = fixture_make, .fini = fixture_remove);

static struct manifest m; /* large; what the last save left in the folder */

Test(checkpoint, a_state_comes_back_bit_for_bit_for_any_shape_and_number_of_parts)
{
    static const struct model_shape shapes[] = {{1, 1, 1, 1, 1},     {2, 2, 8, 5, 11},
                                                {1, 5, 80, 37, 257}, {3, 4, 32, 16, 256},
                                                {-1, 0, 0, 0, 40},   {-1, 0, 0, 0, 30 << 20}};
    static const int parts[] = {1, 2, 3, 5, 8, RM_WORKERS_MAX};
    int64_t step = 0;
    for (size_t s = 0; s < 6; s++) {
        struct model_layout *layout = fixture_layout(&shapes[s]);
        for (size_t p = 0; p < 6; p++) {
            if (layout->parameters < parts[p])
                continue;
            char name[CHECKPOINT_NAME_MAX];
            struct fixture_save save = {
                .layout = layout, .step = ++step, .seed = 100 + p, .parts = parts[p], .keep = 100};
            fixture_save(&save, &m);
            checkpoint_name(name, step, false);
            fixture_holds(name, layout, 100 + p);
            cr_assert_eq(manifest_parts(&m), parts[p]);
        }
        free(layout);
    }
}

Test(checkpoint, a_programs_image_is_model_safetensors_byte_for_byte)
{
    struct model_layout *layout = fixture_layout(&(struct model_shape){-1, 0, 0, 0, 20 << 20});
    struct fixture_save save = {.layout = layout, .step = 4, .seed = 9, .parts = 3, .final = true};
    float *image = fixture_state(layout, 9), *found = malloc(20 << 20);
    char path[600];
    uint8_t hash[RM_HASH_BYTES];
    fixture_save(&save, &m);
    snprintf(path, sizeof path, "%s/final/model.safetensors", fixture_folder());
    FILE *file = fopen(path, "r");
    cr_assert(file && found && fread(found, 1, 20 << 20, file) == 20 << 20 && fgetc(file) == EOF);
    cr_assert_eq(memcmp(found, image, 20 << 20), 0);
    sha256_once(image, 20 << 20, hash);
    cr_assert_arr_eq(m.weights_sha256, hash, RM_HASH_BYTES);
    cr_assert_eq(image_bytes(&m.shape), 20 << 20);
    fclose(file);
    free(found);
    free(image);
    free(layout);
}

Test(checkpoint, an_image_of_another_size_is_refused)
{
    struct model_layout *layout = fixture_layout(&(struct model_shape){-1, 0, 0, 0, 400});
    struct model_layout *other = fixture_layout(&(struct model_shape){-1, 0, 0, 0, 404});
    struct fixture_save save = {.layout = layout, .step = 4, .seed = 9, .parts = 1};
    float *state = fixture_state(other, 1);
    struct error err = {0};
    fixture_save(&save, &m);
    cr_assert_lt(checkpoint_load(fixture_store, "step-00000004", other, state, NULL, &err), 0);
    cr_assert_eq(err.code, ERR_USAGE);
    cr_assert(strstr(err.text, "the state is an image of 404 bytes here, and of 400 in the checkpoint"), "%s",
              err.text);
    free(state);
    free(layout);
    free(other);
}

Test(checkpoint, the_weights_do_not_depend_on_the_number_of_writers)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    uint8_t first[RM_HASH_BYTES];
    for (int parts = 1; parts <= 8; parts++) {
        struct fixture_save save = {
            .layout = layout, .step = parts, .seed = 9, .parts = parts, .final = true};
        fixture_save(&save, &m);
        cr_assert(m.has_weights);
        cr_assert_eq(checkpoint_delete(fixture_store, "final", NULL), 0);
        if (parts == 1)
            memcpy(first, m.weights_sha256, RM_HASH_BYTES);
        cr_assert_arr_eq(m.weights_sha256, first, RM_HASH_BYTES);
    }
    free(layout);
}

Test(checkpoint, only_the_named_files_are_left_in_the_folder)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    struct fixture_save save = {.layout = layout, .step = 200, .seed = 1, .parts = 2};
    fixture_save(&save, &m);
    char command[600], line[256], all[1024] = "";
    snprintf(command, sizeof command, "ls -A %s/step-00000200", fixture_folder());
    FILE *ls = popen(command, "r");
    while (fgets(line, sizeof line, ls))
        strncat(all, line, sizeof all - strlen(all) - 1);
    pclose(ls);
    char hex[17];
    hex_encode(m.lineage, 8, hex);
    for (char *at = all; (at = strstr(at, hex));)
        memcpy(at, "LINEAGE", 7), memmove(at + 7, at + 16, strlen(at + 16) + 1);
    cr_assert_str_eq(all, "config.json\nmanifest.json\nmodel.safetensors\n"
                          "optimizer-00001-of-00002-LINEAGE.safetensors\n"
                          "optimizer-00002-of-00002-LINEAGE.safetensors\n");
    free(layout);
}

Test(checkpoint, the_manifest_says_what_was_saved)
{
    static struct manifest found;
    struct model_layout *layout = fixture_layout(&fixture_shape);
    struct fixture_save save = {.layout = layout, .step = 7, .seed = 1, .parts = 3};
    struct error err = {0};
    fixture_save(&save, &m);
    cr_assert_eq(checkpoint_manifest(fixture_store, "step-00000007", &found, &err), 0, "%s", err.text);
    cr_assert_eq(memcmp(&found, &m, sizeof m), 0);
    cr_assert_eq(found.data.bytes, 3456);
    cr_assert_eq(found.generation, 3);
    cr_assert_eq(found.k[3], -1);
    cr_assert_eq(checkpoint_manifest(fixture_store, "step-00000008", &found, &err), -1);
    cr_assert_eq(err.code, ERR_NOT_FOUND);
    cr_assert_eq(checkpoint_manifest(fixture_store, "../step-00000007", &found, &err), -1);
    cr_assert_eq(err.code, ERR_NOT_FOUND);
    free(layout);
}

Test(checkpoint, they_are_listed_newest_first_and_final_counts_as_its_step)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    static struct checkpoint_list list;
    struct error err = {0};
    static const int64_t steps[] = {20, 123456789012, 100, 9};
    for (int i = 0; i < 4; i++) {
        struct fixture_save save = {.layout = layout, .step = steps[i], .seed = 1, .parts = 1};
        fixture_save(&save, &m);
    }
    struct fixture_save final = {.layout = layout, .step = 100, .seed = 1, .parts = 2, .final = true};
    fixture_save(&final, &m);
    cr_assert_eq(checkpoint_list(fixture_store, &list, &err), 0, "%s", err.text);
    cr_assert_eq(list.count, 5);
    cr_assert_eq(list.skipped, 0);
    cr_assert_str_eq(list.entry[0].name, "step-123456789012");
    cr_assert_str_eq(list.entry[1].name, "final");
    cr_assert(list.entry[1].final);
    cr_assert_str_eq(list.entry[2].name, "step-00000100");
    cr_assert_str_eq(list.entry[4].name, "step-00000009");
    cr_assert_eq(list.entry[1].bytes, manifest_bytes(&m));
    cr_assert_str_eq(list.entry[1].fingerprint, m.fingerprint);
    cr_assert_arr_eq(list.entry[1].lineage, m.lineage, RM_HASH_BYTES);
    fixture_holds("final", layout, 1);
    free(layout);
}

Test(checkpoint, an_absent_folder_holds_none)
{
    static struct checkpoint_list list;
    static struct checkpoint_resume resume;
    struct error err = {0};
    struct object_store *nowhere;
    cr_assert_eq(object_open(&nowhere, &(struct object_options){.uri = "file:///nowhere/at/all"}, &err), 0);
    cr_assert_eq(checkpoint_list(nowhere, &list, &err), 0, "%s", err.text);
    cr_assert_eq(list.count, 0);
    cr_assert_eq(checkpoint_resume(nowhere, &resume, &err), 0);
    cr_assert_not(resume.found);
    object_free(nowhere);
}

Test(checkpoint, only_the_newest_sixteen_are_listed)
{
    struct model_layout *layout = fixture_layout(&(struct model_shape){1, 1, 1, 1, 1});
    static struct checkpoint_list list;
    for (int i = 1; i <= 20; i++) {
        struct fixture_save save = {.layout = layout, .step = i, .seed = 1, .parts = 1};
        fixture_save(&save, &m);
    }
    struct fixture_save final = {.layout = layout, .step = 20, .seed = 1, .parts = 1, .final = true};
    fixture_save(&final, &m);
    cr_assert_eq(checkpoint_list(fixture_store, &list, NULL), 0);
    cr_assert_eq(list.count, RM_CHECKPOINTS_LISTED);
    cr_assert(list.entry[0].final);
    cr_assert_eq(list.entry[1].step, 20);
    cr_assert_eq(list.entry[15].step, 6);
    free(layout);
}

Test(checkpoint, another_model_is_refused_without_harm_to_the_checkpoint)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    struct model_layout *other = fixture_layout(&(struct model_shape){2, 4, 8, 5, 11});
    float *state = fixture_state(layout, 1);
    struct error err = {0};
    struct fixture_save save = {.layout = layout, .step = 5, .seed = 3, .parts = 2};
    fixture_save(&save, &m);
    cr_assert_eq(checkpoint_load(fixture_store, "step-00000005", other, state, NULL, &err), -1);
    cr_assert_eq(err.code, ERR_USAGE);
    cr_assert(strstr(err.text, "4 heads"), "%s", err.text);
    fixture_holds("step-00000005", layout, 3);
    free(state);
    free(layout);
    free(other);
}

/* --- repeating --- */

Test(checkpoint, the_same_step_and_lineage_is_not_saved_twice)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    struct fixture_save save = {.layout = layout, .step = 5, .seed = 3, .parts = 2};
    struct stat before, after;
    char path[512];
    struct error err = {0};
    fixture_save(&save, &m);
    fixture_path(path, "step-00000005/manifest.json");
    cr_assert_eq(stat(path, &before), 0);
    save.parts = 3;
    fixture_save(&save, &m); /* by another world: no pieces are written, publishing succeeds at once */
    cr_assert_eq(stat(path, &after), 0);
    cr_assert_eq(before.st_ino, after.st_ino);
    cr_assert_eq(manifest_parts(&m), 2);

    save.seed = 4; /* another history of the same step */
    cr_assert_eq(fixture_try_save(&save, &m, &err), -1);
    cr_assert_eq(err.code, ERR_EXISTS);
    cr_assert(strstr(err.text, "step-00000005") && strstr(err.text, "another history"), "%s", err.text);
    fixture_holds("step-00000005", layout, 3);
    free(layout);
}

Test(checkpoint, a_slice_may_be_written_again_and_in_any_order)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    struct fixture_save save = {.layout = layout, .step = 5, .seed = 3, .parts = 4};
    float *state = fixture_state(layout, 3);
    struct error err = {0};
    static const int first[] = {2, 0, 2}, second[] = {3, 0, 1, 2};
    fixture_manifest(&save, &m);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(fixture_write(&save, state, first[i], &m, &err), 0, "%s", err.text);
    fixture_manifest(&save, &m);
    for (int i = 0; i < 4; i++)
        cr_assert_eq(fixture_write(&save, state, second[i], &m, &err), 0, "%s", err.text);
    cr_assert_eq(fixture_publish(&save, &m, &err), 0, "%s", err.text);
    fixture_holds("step-00000005", layout, 3);
    free(state);
    free(layout);
}

Test(checkpoint, slices_of_another_split_or_history_do_not_mix_in)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    struct fixture_save four = {.layout = layout, .step = 5, .seed = 3, .parts = 4};
    struct fixture_save stale = {.layout = layout, .step = 5, .seed = 8, .parts = 3};
    struct fixture_save three = {.layout = layout, .step = 5, .seed = 3, .parts = 3};
    float *state = fixture_state(layout, 3), *other = fixture_state(layout, 8);
    struct error err = {0};
    fixture_manifest(&four, &m);
    cr_assert_eq(fixture_write(&four, state, 3, &m, &err), 0); /* a world that fell apart while saving */
    fixture_manifest(&stale, &m);
    for (int part = 0; part < 3; part++)
        cr_assert_eq(fixture_write(&stale, other, part, &m, &err), 0);
    fixture_save(&three, &m);
    fixture_holds("step-00000005", layout, 3);
    char name[128] = "step-00000005/";
    manifest_optimizer_name(name + strlen(name), 3, 4, m.lineage);
    cr_assert_not(fixture_has(name));
    free(state);
    free(other);
    free(layout);
}

Test(checkpoint, a_second_publisher_finishes_what_the_first_began)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    struct fixture_save save = {.layout = layout, .step = 5, .seed = 3, .parts = 2};
    static struct manifest again;
    float *state = fixture_state(layout, 3);
    struct error err = {0};
    char path[512];
    fixture_save(&save, &m);
    fixture_manifest(&save, &again);
    for (int i = 0; i < m.pieces; i++)
        if (strcmp(m.piece[i].file, "config.json") != 0)
            again.piece[again.pieces++] = m.piece[i];
    fixture_path(path, "step-00000005/manifest.json");
    unlink(path); /* as if the first had died just before it; then one slice was begun again */
    m.pieces = 0;
    cr_assert_eq(fixture_write(&save, state, 1, &m, &err), 0);
    cr_assert_eq(fixture_publish(&save, &again, &err), 0, "%s", err.text);
    fixture_holds("step-00000005", layout, 3);
    free(state);
    free(layout);
}

Test(checkpoint, publishing_without_all_pieces_is_refused)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    struct fixture_save save = {.layout = layout, .step = 5, .seed = 3, .parts = 3};
    float *state = fixture_state(layout, 3);
    struct error err = {0};
    fixture_manifest(&save, &m);
    cr_assert_eq(fixture_publish(&save, &m, &err), -1);
    cr_assert_eq(err.code, ERR_DATA);
    for (int part = 0; part < 2; part++)
        cr_assert_eq(fixture_write(&save, state, part, &m, &err), 0);
    cr_assert_eq(fixture_publish(&save, &m, &err), -1);
    cr_assert_eq(err.code, ERR_DATA);
    cr_assert_not(fixture_has("step-00000005/manifest.json"));
    free(state);
    free(layout);
}

Test(checkpoint, a_piece_that_is_not_what_its_writer_said_is_not_published)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    struct fixture_save save = {.layout = layout, .step = 5, .seed = 3, .parts = 2};
    float *state = fixture_state(layout, 3);
    struct error err = {0};
    fixture_manifest(&save, &m);
    for (int part = 0; part < 2; part++)
        cr_assert_eq(fixture_write(&save, state, part, &m, &err), 0);
    m.piece[0].sha256[0] ^= 1;
    cr_assert_eq(fixture_publish(&save, &m, &err), -1);
    cr_assert_eq(err.code, ERR_DATA);
    cr_assert(strstr(err.text, "model.safetensors: its content is damaged"), "%s", err.text);
    cr_assert_not(fixture_has("step-00000005/manifest.json"));
    free(state);
    free(layout);
}

/* Writes both slices, then changes the last byte of one file that is there; which one: the optimizer's. */
static void write_and_change(const struct fixture_save *save)
{
    float *state = fixture_state(save->layout, save->seed);
    char path[512], name[128];
    uint8_t byte;
    fixture_manifest(save, &m);
    for (int part = 0; part < save->parts; part++)
        cr_assert_eq(fixture_write(save, state, part, &m, NULL), 0);
    char checkpoint[CHECKPOINT_NAME_MAX], file[MANIFEST_FILE_MAX];
    checkpoint_name(checkpoint, save->step, save->final);
    manifest_optimizer_name(file, 0, save->parts, m.lineage);
    snprintf(name, sizeof name, "%s/%s", checkpoint, file);
    fixture_path(path, name);
    int fd = open(path, O_RDWR);
    off_t end = lseek(fd, -1, SEEK_END);
    cr_assert(fd >= 0 && end > 0 && pread(fd, &byte, 1, end) == 1);
    byte ^= 4;
    cr_assert_eq(pwrite(fd, &byte, 1, end), 1);
    close(fd);
    free(state);
}

/* So it reads nothing again; and what changed meanwhile is found by whoever loads it. */
Test(checkpoint, publishing_goes_by_what_the_writers_say_that_they_wrote)
{
    static const enum manifest_hash kinds[] = {MANIFEST_XXH3, MANIFEST_SHA256};
    struct model_layout *layout = fixture_layout(&fixture_shape);
    float *state = fixture_state(layout, 1);
    for (int i = 0; i < 2; i++) {
        struct fixture_save save = {.layout = layout, .step = 5 + i, .seed = 3, .parts = 2, .hash = kinds[i]};
        char name[CHECKPOINT_NAME_MAX];
        struct error err = {0};
        checkpoint_name(name, save.step, false);
        write_and_change(&save);
        cr_assert_eq(fixture_publish(&save, &m, &err), 0, "%s", err.text);
        cr_assert_eq(checkpoint_load(fixture_store, name, layout, state, NULL, &err), -1);
        cr_assert(err.code == ERR_DATA && err.class == CLASS_OBJECT, "%s", err.text);
        cr_assert_eq(checkpoint_verify(fixture_store, name, NULL, &err), -1);
        save.parts = 3; /* whoever saves the step again finds it, too, and puts it right */
        fixture_save(&save, &m);
        fixture_holds(name, layout, 3);
    }
    free(state);
    free(layout);
}

Test(checkpoint, what_no_writer_vouches_for_is_read_before_it_is_published)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    struct fixture_save save = {.layout = layout, .step = 5, .seed = 3, .parts = 2};
    struct error err = {0};
    char name[FILES_NAME_MAX];
    const char *names = name;
    write_and_change(&save);
    for (int part = 0; part < 2; part++) {
        sums_name(name, "step-00000005", m.lineage, part, 2);
        cr_assert(fixture_has(name));
        cr_assert_eq(object_delete(fixture_store, &names, 1, NULL), 0);
    }
    cr_assert_eq(fixture_publish(&save, &m, &err), -1, "without their sums");
    cr_assert(strstr(err.text, "its content is damaged"), "%s", err.text);
    cr_assert_not(fixture_has("step-00000005/manifest.json"));
    fixture_save(&save, &m);
    fixture_holds("step-00000005", layout, 3);

    save = (struct fixture_save){.layout = layout, .step = 6, .seed = 3, .parts = 2, .final = true};
    write_and_change(&save);
    cr_assert_eq(fixture_publish(&save, &m, &err), -1, "final/ is read whole");
    free(layout);
}

/* A writer that comes anew, after its death, has not seen the bytes arrive that lie there. */
Test(checkpoint, what_an_earlier_try_left_is_read_before_it_is_published)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    struct fixture_save save = {.layout = layout, .step = 5, .seed = 3, .parts = 2};
    float *state = fixture_state(layout, 3);
    struct error err = {0};
    write_and_change(&save);
    fixture_manifest(&save, &m);
    for (int part = 0; part < 2; part++)
        cr_assert_eq(fixture_write(&save, state, part, &m, NULL), 0);
    cr_assert_eq(fixture_publish(&save, &m, &err), -1);
    cr_assert(strstr(err.text, "its content is damaged"), "%s", err.text);
    free(state);
    free(layout);
}

/* As earlier releases wrote it: pieces of SHA-256, weightsSha256, and no word about the hash. */
Test(checkpoint, those_of_older_versions_load)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    float *state = fixture_state(layout, 3);
    struct fixture_save save = {.layout = layout, .step = 5, .seed = 3, .parts = 2, .hash = MANIFEST_SHA256};
    char path[512];
    fixture_save(&save, &m);
    sha256_once(state, 4 * (size_t)layout->parameters, m.weights_sha256);
    m.has_weights = true;
    fixture_path(path, "step-00000005/manifest.json");
    for (m.version = 1; m.version < MANIFEST_VERSION; m.version++) {
        struct str text = str_init(MANIFEST_TEXT_MAX);
        m.hash = m.version == 1 ? MANIFEST_WHOLE : MANIFEST_SHA256;
        manifest_write(&m, &text);
        FILE *file = fopen(path, "w");
        cr_assert(file && fwrite(text.data, 1, text.length, file) == text.length && fclose(file) == 0);
        fixture_holds("step-00000005", layout, 3);
        cr_assert_eq(checkpoint_verify(fixture_store, "step-00000005", NULL, NULL), 0);
        str_clear(&text);
    }
    free(state);
    free(layout);
}

Test(checkpoint, another_models_config_that_was_left_behind_is_replaced)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    struct fixture_save save = {.layout = layout, .step = 5, .seed = 3, .parts = 2};
    float *state = fixture_state(layout, 3);
    char path[512];
    fixture_manifest(&save, &m);
    for (int part = 0; part < 2; part++)
        cr_assert_eq(fixture_write(&save, state, part, &m, NULL), 0);
    fixture_path(path, "step-00000005/config.json");
    FILE *left = fopen(path, "w");
    cr_assert(left && fputs("{\"n_layer\": 99}", left) >= 0 && fclose(left) == 0);
    cr_assert_eq(fixture_publish(&save, &m, NULL), 0);
    fixture_holds("step-00000005", layout, 3);
    free(state);
    free(layout);
}

static int publish_in_child(const struct fixture_save *save, const struct manifest *mine)
{
    int child = fork();
    cr_assert(child >= 0);
    if (child)
        return child;
    struct error err = {0};
    m = *mine;
    int result = fixture_publish(save, &m, &err);
    if (result < 0)
        fprintf(stderr, "publisher of %d parts: %s\n", save->parts, err.text);
    _exit(result < 0 ? 1 : 0);
}

Test(checkpoint, two_worlds_that_publish_the_same_state_at_once_both_succeed)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    float *state = fixture_state(layout, 3);
    static struct manifest mine[2];
    for (int64_t step = 1; step <= 25; step++) {
        struct fixture_save save[2] = {{.layout = layout, .step = step, .seed = 3, .parts = 2},
                                       {.layout = layout, .step = step, .seed = 3, .parts = 3}};
        int child[2], status;
        char name[CHECKPOINT_NAME_MAX];
        for (int w = 0; w < 2; w++) {
            fixture_manifest(&save[w], &mine[w]);
            for (int part = 0; part < save[w].parts; part++)
                cr_assert_eq(fixture_write(&save[w], state, part, &mine[w], NULL), 0);
        }
        for (int w = 0; w < 2; w++)
            child[w] = publish_in_child(&save[w], &mine[w]);
        for (int w = 0; w < 2; w++) {
            cr_assert_eq(waitpid(child[w], &status, 0), child[w]);
            cr_assert_eq(status, 0, "step %d, world %d", (int)step, w);
        }
        checkpoint_name(name, step, false);
        fixture_holds(name, layout, 3);
    }
    free(state);
    free(layout);
}

/* --- keeping and deleting --- */

Test(checkpoint, keep_counts_the_newest_and_never_final)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    static struct checkpoint_list list;
    for (int64_t step = 10; step <= 60; step += 10) {
        struct fixture_save save = {.layout = layout, .step = step, .seed = 1, .parts = 2, .keep = 3};
        fixture_save(&save, &m);
    }
    struct fixture_save final = {
        .layout = layout, .step = 60, .seed = 1, .parts = 2, .keep = 2, .final = true};
    fixture_save(&final, &m);
    cr_assert_eq(checkpoint_list(fixture_store, &list, NULL), 0);
    cr_assert_eq(list.count, 3);
    cr_assert(list.entry[0].final);
    cr_assert_eq(list.entry[1].step, 60);
    cr_assert_eq(list.entry[2].step, 50);
    cr_assert_not(fixture_has("step-00000040"));
    free(layout);
}

/* Steps 10 to 30, none of which went for a newer one. */
static void three_unsettled(const struct model_layout *layout)
{
    for (int64_t step = 10; step <= 30; step += 10) {
        struct fixture_save save = {
            .layout = layout, .step = step, .seed = 1, .parts = 2, .keep = 1, .unsettled = true};
        fixture_save(&save, &m);
        cr_assert_eq(checkpoint_beyond(fixture_store, step, 1), step / 10 - 1);
    }
}

Test(checkpoint, older_ones_go_when_the_new_one_was_read_back_and_not_before)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    struct checkpoint_settling settling = {.store = fixture_store, .step = 30, .keep = 3};
    struct error err = {0};
    char path[512];
    three_unsettled(layout);
    cr_assert_eq(checkpoint_settle(&settling, &err), 0, "nothing is beyond three");
    cr_assert(fixture_has("step-00000010/manifest.json") && fixture_has("step-00000020/manifest.json"));

    settling.keep = 1;
    fixture_path(path, "step-00000030/model.safetensors");
    FILE *file = fopen(path, "r+");
    cr_assert(file && fseek(file, -1, SEEK_END) == 0 && fputc(7, file) == 7 && fclose(file) == 0);
    cr_assert_eq(checkpoint_settle(&settling, &err), -1);
    cr_assert(err.code == ERR_DATA && err.class == CLASS_OBJECT && strstr(err.text, "step-00000030"), "%s",
              err.text);
    fixture_holds("step-00000010", layout, 1);
    fixture_holds("step-00000020", layout, 1);

    struct fixture_save again = {
        .layout = layout, .step = 30, .seed = 1, .parts = 2, .keep = 1, .unsettled = true};
    fixture_save(&again, &m);
    cr_assert_eq(checkpoint_settle(&settling, &err), 1, "%s", err.text);
    cr_assert_not(fixture_has("step-00000010") || fixture_has("step-00000020"));
    fixture_holds("step-00000030", layout, 1);
    free(layout);
}

Test(checkpoint, final_is_read_whole_and_older_ones_go_with_it)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    three_unsettled(layout);
    struct fixture_save final = {
        .layout = layout, .step = 31, .seed = 2, .parts = 2, .keep = 1, .final = true};
    fixture_save(&final, &m);
    cr_assert(fixture_has("step-00000030"));
    cr_assert_not(fixture_has("step-00000010") || fixture_has("step-00000020"));
    free(layout);
}

static int near_reads, past_reads; /* of the last weights: from what the machine remembers, and past that */
static const struct object_ops *plain_ops;

static int count_read(struct object_store *store, const struct object_range *range, int count,
                      struct error *err)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(range[i].name, "final/model.safetensors"))
            *(object_passes_caches(store) ? &past_reads : &near_reads) += 1;
    return plain_ops->read(store, range, count, err);
}

/* Also by whoever finds it published, as the first publisher died before it deleted anything. */
Test(checkpoint, final_is_read_from_where_it_lies_before_older_ones_go)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    plain_ops = fixture_store->ops;
    struct object_ops counting = *plain_ops;
    float *state = fixture_state(layout, 2);
    counting.read = count_read;
    fixture_store->ops = &counting;
    struct fixture_save final = {
        .layout = layout, .step = 31, .seed = 2, .parts = 2, .keep = 1, .final = true};
    for (int again = 0; again < 2; again++) {
        struct error err = {0};
        three_unsettled(layout);
        past_reads = near_reads = 0;
        fixture_manifest(&final, &m);
        for (int part = 0; part < final.parts && !again; part++)
            cr_assert_eq(fixture_write(&final, state, part, &m, &err), 0, "%s", err.text);
        cr_assert_eq(fixture_publish(&final, &m, &err), 0, "%s", err.text);
        cr_assert_gt(past_reads, 0);
        cr_assert_eq(near_reads, 0);
        cr_assert_not(fixture_has("step-00000010") || fixture_has("step-00000020"));
        cr_assert_not(object_passes_caches(fixture_store), "what follows is read as ever");
    }
    fixture_store->ops = plain_ops;
    free(state);
    free(layout);
}

Test(checkpoint, keep_never_deletes_a_step_newer_than_the_one_it_publishes)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    static const int64_t before[] = {10, 150, 200, 231}, anew[] = {50, 100};
    for (size_t i = 0; i < sizeof before / sizeof *before; i++)
        fixture_save(&(struct fixture_save){.layout = layout, .step = before[i], .seed = 1, .parts = 1}, &m);
    for (size_t i = 0; i < sizeof anew / sizeof *anew; i++)
        fixture_save(
            &(struct fixture_save){.layout = layout, .step = anew[i], .seed = 1, .parts = 1, .keep = 1}, &m);
    cr_assert(fixture_has("step-00000231") && fixture_has("step-00000200") && fixture_has("step-00000150"),
              "a run that went back may have been wrong about them");
    cr_assert(fixture_has("step-00000100"));
    cr_assert_not(fixture_has("step-00000050"));
    cr_assert_not(fixture_has("step-00000010"));
    free(layout);
}

Test(checkpoint, leftovers_of_older_steps_go)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    float *state = fixture_state(layout, 3);
    for (int64_t step = 1; step <= 9; step += 4) { /* 1, 5, 9: one slice of two */
        struct fixture_save half = {.layout = layout, .step = step, .seed = 3, .parts = 2};
        fixture_manifest(&half, &m);
        cr_assert_eq(fixture_write(&half, state, 0, &m, NULL), 0);
    }
    for (int64_t step = 7; step <= 8; step++) {
        struct fixture_save save = {.layout = layout, .step = step, .seed = 3, .parts = 1, .keep = 1};
        fixture_save(&save, &m);
    }
    cr_assert_not(fixture_has("step-00000001"));
    cr_assert_not(fixture_has("step-00000005"));
    cr_assert(fixture_has("step-00000009"), "newer than what was published");
    free(state);
    free(layout);
}

/* Found in a run whose steps took 5 ms: the publisher of step 20 was quicker than that of step 16. */
/* Where a writer dies in its first moment an upload is all that there is of a step. */
Test(checkpoint, an_upload_that_was_only_begun_goes_with_the_older_steps_and_a_younger_one_stays)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    struct object_part part = {.number = 1, .body = {.runs = 1, .run = {{"x", 1}}}};
    char older[OBJECT_UPLOAD_MAX], newer[OBJECT_UPLOAD_MAX];
    struct error err;
    cr_assert_eq(object_upload_open(fixture_store, "step-00000010/model.safetensors", older, &err), 0);
    cr_assert_eq(object_upload_open(fixture_store, "step-00000030/model.safetensors", newer, &err), 0);
    for (int step = 20; step <= 40; step += 20)
        fixture_save(&(struct fixture_save){.layout = layout, .step = step, .seed = 1, .parts = 1}, &m);
    cr_assert_eq(object_upload_parts(fixture_store, "step-00000010/model.safetensors", older, &part, 1, &err),
                 -1);
    cr_assert_eq(err.code, ERR_NOT_FOUND, "%s", err.text);
    cr_assert_eq(object_upload_parts(fixture_store, "step-00000030/model.safetensors", newer, &part, 1, &err),
                 0, "%s", err.text);
    free(layout);
}

Test(checkpoint, pieces_that_wait_for_a_slow_publisher_survive_a_quicker_one)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    struct fixture_save slow = {.layout = layout, .step = 16, .seed = 3, .parts = 1};
    struct fixture_save quick = {.layout = layout, .step = 20, .seed = 4, .parts = 2, .keep = 2};
    static struct manifest waiting;
    float *state = fixture_state(layout, 3);
    struct error err = {0};
    struct fixture_save before = {.layout = layout, .step = 12, .seed = 2, .parts = 2};
    fixture_save(&before, &m);
    fixture_manifest(&slow, &waiting);
    cr_assert_eq(fixture_write(&slow, state, 0, &waiting, &err), 0, "%s", err.text);
    fixture_save(&quick, &m);
    cr_assert_eq(fixture_publish(&slow, &waiting, &err), 0, "%s", err.text);
    fixture_holds("step-00000016", layout, 3);
    fixture_holds("step-00000020", layout, 4);
    free(state);
    free(layout);
}

Test(checkpoint, what_is_not_ours_is_never_deleted)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    char path[512], target[512];
    for (int64_t step = 1; step <= 3; step++) {
        struct fixture_save save = {.layout = layout, .step = step, .seed = 1, .parts = 1};
        fixture_save(&save, &m);
    }
    static const char *const foreign[] = {"step-00000001/notes.txt", "step-7", "notes", "final-thoughts"};
    for (int i = 0; i < 4; i++) {
        fixture_path(path, foreign[i]);
        close(open(path, O_CREAT | O_WRONLY, 0666));
    }
    fixture_path(target, "step-00000003");
    fixture_path(path, "elsewhere");
    cr_assert_eq(rename(target, path), 0);
    cr_assert_eq(symlink(path, target), 0); /* a link in the place of a checkpoint */
    cr_assert_eq(checkpoint_delete_all(fixture_store, NULL), 0);
    for (int i = 0; i < 4; i++)
        cr_assert(fixture_has(foreign[i]), "%s", foreign[i]);
    cr_assert_not(fixture_has("step-00000001/model.safetensors"));
    cr_assert_not(fixture_has("step-00000002"));
    cr_assert(fixture_has("elsewhere/model.safetensors"));
    free(layout);
}

Test(checkpoint, one_can_be_deleted_by_name)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    struct error err = {0};
    for (int64_t step = 1; step <= 2; step++) {
        struct fixture_save save = {.layout = layout, .step = step, .seed = 1, .parts = 1};
        fixture_save(&save, &m);
    }
    cr_assert_eq(checkpoint_delete(fixture_store, "step-00000001", &err), 0);
    cr_assert_eq(checkpoint_delete(fixture_store, "step-00000001", &err), 0, "absent is fine");
    cr_assert_eq(checkpoint_delete(fixture_store, "../x", &err), -1);
    cr_assert_not(fixture_has("step-00000001"));
    fixture_holds("step-00000002", layout, 1);
    free(layout);
}
