/* Snapshots of processes in a store: they come back byte for byte, what is damaged or another's is passed
 * over, a number is published once, and old ones go by the rule for checkpoints. */
#include "frozen_fixture.h"

TestSuite(frozen, .init = fixture_make, .fini = fixture_remove);

enum { TWO_PIECES = FROZEN_PIECE_LEAST + 12345 };

static void same_file(int folder, const char *name, int other)
{
    static char a[1 << 16], b[1 << 16];
    int one = openat(folder, name, O_RDONLY), two = openat(other, name, O_RDONLY);
    cr_assert(one >= 0 && two >= 0, "%s", name);
    for (;;) {
        ssize_t n = read(one, a, sizeof a), k = read(two, b, sizeof b);
        cr_assert_eq(n, k, "%s", name);
        if (n <= 0)
            break;
        cr_assert_eq(memcmp(a, b, (size_t)n), 0, "%s", name);
    }
    close(one);
    close(two);
}

/* Fetches what "mine" would go on from; the caller removes the folder. */
static int fetch_newest(struct error *err, int *ret_result)
{
    uint8_t key[RM_HASH_BYTES];
    struct frozen_choice choice;
    struct frozen_manifest *m = malloc(sizeof *m);
    frozen_fixture_key(key, "mine");
    cr_assert_eq(frozen_choose(fixture_store, &(struct frozen_keys){.own = key}, 0, m, &choice, NULL), 0);
    cr_assert(choice.found);
    int folder = frozen_fixture_empty();
    *ret_result = frozen_fetch(fixture_store, m, folder, NULL, err);
    free(m);
    return folder;
}

Test(frozen, the_files_come_back_byte_for_byte)
{
    static const size_t sizes[] = {0, 1, 5000, FROZEN_PIECE_LEAST - 999, TWO_PIECES, 5 * FROZEN_PIECE_LEAST};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct error err = {0};
        int result, before = frozen_fixture_folder(7, sizes[i]);
        frozen_fixture_publish(&(struct frozen_fixture){(int64_t)i + 1, 7, 0, sizes[i], NULL});
        int after = fetch_newest(&err, &result);
        cr_assert_eq(result, 0, "%s", err.text);
        same_file(before, "pages-1.img", after);
        same_file(before, "core-1000.img", after);
        same_file(before, "empty", after);
        frozen_fixture_remove(before);
        frozen_fixture_remove(after);
        char name[CHECKPOINT_NAME_MAX];
        frozen_name(name, (int64_t)i + 1);
        cr_assert_eq(frozen_verify(fixture_store, name, &err), 0, "%s", err.text);
    }
}

Test(frozen, a_number_is_published_once)
{
    struct error err = {0};
    frozen_fixture_publish(&(struct frozen_fixture){1, 1, 0, 100, NULL});
    cr_assert_lt(frozen_fixture_try(&(struct frozen_fixture){1, 2, 0, 100, NULL}, &err), 0);
    cr_assert_eq(err.code, ERR_EXISTS);
    cr_assert_str_eq(err.text, "snapshot process-00000001 is there already: somebody else has published that "
                               "number");
    cr_assert_eq(frozen_verify(fixture_store, "process-00000001", &err), 0, "%s", err.text);
}

static void change_byte(const char *name, long at)
{
    char path[512];
    fixture_path(path, name);
    FILE *file = fopen(path, "r+");
    cr_assert(file, "%s", path);
    fseek(file, at, SEEK_SET);
    int byte = fgetc(file);
    fseek(file, at, SEEK_SET);
    fputc(byte ^ 1, file);
    fclose(file);
}

Test(frozen, one_byte_that_is_another_is_never_restored_and_the_one_before_is_taken)
{
    frozen_fixture_publish(&(struct frozen_fixture){1, 1, 0, 100, NULL});
    frozen_fixture_publish(&(struct frozen_fixture){2, 2, 0, 100, NULL});
    cr_assert_eq(frozen_fixture_newest(), 2);
    change_byte("process-00000002/manifest.json", 40);
    cr_assert_eq(frozen_fixture_newest(), 1);
    frozen_fixture_publish(&(struct frozen_fixture){3, 3, 0x30, TWO_PIECES, NULL});
    change_byte("process-00000003/image-0000000000000030", FROZEN_PIECE_LEAST + 20);
    struct error err = {0};
    int result, folder = fetch_newest(&err, &result);
    frozen_fixture_remove(folder);
    cr_assert_lt(result, 0);
    cr_assert(err.code == ERR_DATA && err.class == CLASS_OBJECT, "%s", err.text);
    cr_assert(
        strstr(err.text, "snapshot process-00000003: piece 2 of 2 of image-0000000000000030 is damaged"),
        "%s", err.text);
    cr_assert_lt(frozen_verify(fixture_store, "process-00000003", NULL), 0);

    uint8_t key[RM_HASH_BYTES];
    struct frozen_choice choice;
    struct frozen_manifest *m = malloc(sizeof *m);
    frozen_fixture_key(key, "mine");
    cr_assert_eq(frozen_choose(fixture_store, &(struct frozen_keys){.own = key}, 3, m, &choice, NULL), 0);
    cr_assert(choice.found && m->number == 1 && choice.newest == 3 && choice.skipped == 1);
    cr_assert_str_eq(choice.skip[0].name, "process-00000002");
    free(m);
}

Test(frozen, what_is_missing_is_damage)
{
    char path[512];
    struct error err = {0};
    frozen_fixture_publish(&(struct frozen_fixture){1, 1, 0x11, 100, NULL});
    fixture_path(path, "process-00000001/image-0000000000000011");
    cr_assert_eq(unlink(path), 0);
    cr_assert_lt(frozen_verify(fixture_store, "process-00000001", &err), 0);
    cr_assert_eq(err.code, ERR_DATA, "%s", err.text);
}

/* What "mine" is told; older: whose key it has besides, NULL: none. */
static int choose(const char *older, struct frozen_choice *choice, struct error *err)
{
    uint8_t own[RM_HASH_BYTES], other[RM_HASH_BYTES];
    struct frozen_manifest *m = malloc(sizeof *m);
    frozen_fixture_key(own, "mine");
    frozen_fixture_key(other, older ? older : "");
    struct frozen_keys keys = {.own = own, .older = older ? other : NULL};
    int result = frozen_choose(fixture_store, &keys, 0, m, choice, err);
    free(m);
    return result;
}

Test(frozen, another_jobs_are_restored_with_its_key_alone_and_without_it_nothing_begins_over_them)
{
    struct error err = {0};
    struct frozen_choice choice;
    cr_assert_eq(choose(NULL, &choice, &err), 0);
    cr_assert(!choice.found && choice.newest == 0);
    frozen_fixture_publish(&(struct frozen_fixture){4, 1, 0, 100, "theirs"});
    cr_assert_lt(choose(NULL, &choice, &err), 0);
    cr_assert(err.code == ERR_USAGE && err.person, "%s", err.text);
    cr_assert(strstr(err.text, "are another job's: name its Secret, to be kept, in checkpoint.processKeyRef"),
              "%s", err.text);
    cr_assert_eq(choose("theirs", &choice, &err), 0);
    cr_assert(choice.found);
    frozen_fixture_publish(&(struct frozen_fixture){3, 2, 0, 100, NULL});
    cr_assert_eq(choose(NULL, &choice, &err), 0);
    cr_assert(choice.found && choice.newest == 4 && choice.skipped == 1);
    cr_assert_str_eq(choice.skip[0].why, "it was not sealed with this job's key, and such files are code: it "
                                         "is not restored");
}

static int settle(int64_t number, int keep)
{
    struct error err = {0};
    int result = frozen_fixture_settle(number, keep, NULL, &err);
    cr_assert_geq(result, 0, "%s", err.text);
    return result;
}

Test(frozen, the_newest_stay_and_what_was_never_finished_goes)
{
    for (int64_t i = 1; i <= 4; i++)
        frozen_fixture_publish(&(struct frozen_fixture){i, (uint64_t)i, 0, 100, NULL});
    char path[512];
    fixture_path(path, "process-00000002/manifest.json");
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(settle(4, 3), 0);
    cr_assert(fixture_has("process-00000001/manifest.json") && !fixture_has("process-00000002"));
    cr_assert_eq(settle(4, 2), 1);
    cr_assert(!fixture_has("process-00000001") && fixture_has("process-00000003/manifest.json"));
    change_byte("process-00000004/image-0000000000000004", 5);
    struct error err = {0};
    cr_assert_lt(frozen_fixture_settle(4, 1, NULL, &err), 0);
    cr_assert(err.code == ERR_DATA && fixture_has("process-00000003/manifest.json"), "%s", err.text);
}

/* Whoever may write to the store could else have a job delete all that it can go on from. */
Test(frozen, what_another_job_has_sealed_does_not_count_and_does_not_go)
{
    struct error err = {0};
    frozen_fixture_publish(&(struct frozen_fixture){1, 1, 0, 100, NULL});
    frozen_fixture_publish(&(struct frozen_fixture){2, 2, 0, 100, "theirs"});
    frozen_fixture_publish(&(struct frozen_fixture){3, 3, 0, 100, "theirs"});
    frozen_fixture_publish(&(struct frozen_fixture){4, 4, 0, 100, NULL});
    cr_assert_eq(settle(4, 2), 0);
    cr_assert(fixture_has("process-00000001/manifest.json") && fixture_has("process-00000002/manifest.json"));
    frozen_fixture_publish(&(struct frozen_fixture){5, 5, 0, 100, NULL});
    cr_assert_eq(settle(5, 2), 1);
    cr_assert(!fixture_has("process-00000001") && fixture_has("process-00000004/manifest.json"));
    cr_assert(fixture_has("process-00000002/manifest.json") && fixture_has("process-00000003/manifest.json"));
    cr_assert_eq(frozen_fixture_settle(5, 2, "theirs", &err), 1, "%s", err.text);
    cr_assert(!fixture_has("process-00000003") && fixture_has("process-00000004/manifest.json"),
              "with that job's key they are this one's own");
}

Test(frozen, checkpoints_and_snapshots_do_not_see_each_other)
{
    static struct frozen_list list;
    static struct checkpoint_list checkpoints;
    frozen_fixture_publish(&(struct frozen_fixture){1, 1, 0, 100, NULL});
    cr_assert_eq(checkpoint_list(fixture_store, &checkpoints, NULL), 0);
    cr_assert(checkpoints.count == 0 && checkpoints.skipped == 0);
    cr_assert_eq(checkpoint_delete_all(fixture_store, NULL), 0);
    cr_assert_eq(frozen_list(fixture_store, &list, NULL), 0);
    cr_assert(list.count == 1 && list.newest == 1 && list.entry[0].bytes == 1099);
    cr_assert_str_eq(list.entry[0].name, "process-00000001");
    cr_assert_lt(frozen_delete(fixture_store, "step-00000001", NULL), 0);
    cr_assert_eq(frozen_delete_all(fixture_store, NULL), 0);
    cr_assert_not(fixture_has("process-00000001"));
}

Test(frozen, a_folder_with_something_else_in_it_is_no_snapshot)
{
    uint8_t key[RM_HASH_BYTES];
    struct error err = {0};
    struct frozen_manifest *m = calloc(1, sizeof *m);
    int folder = frozen_fixture_folder(1, 10);
    frozen_fixture_key(key, "mine");
    m->number = 1;
    struct frozen_publication p = {.store = fixture_store, .key = key, .chance = 1, .folder = folder};
    cr_assert_eq(mkdirat(folder, "inner", 0700), 0);
    cr_assert_lt(frozen_publish(&p, m, &err), 0);
    cr_assert_str_eq(err.text, "snapshot: inner is no file that belongs into one");
    frozen_fixture_remove(folder);
    p.folder = frozen_fixture_empty();
    cr_assert_lt(frozen_publish(&p, m, &err), 0);
    cr_assert_str_eq(err.text, "snapshot: its folder holds nothing");
    frozen_fixture_remove(p.folder);
    free(m);
}
