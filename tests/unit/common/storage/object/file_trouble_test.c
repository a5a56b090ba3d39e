/* A folder whose file system refuses something is said to be in trouble, and its objects are not. */
#include <criterion/criterion.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/storage/object/object.h"

static char folder[64];
static struct object_store *store;
static char id[OBJECT_UPLOAD_MAX];
static struct object_part part;

static void make_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/file-trouble-test-XXXXXX");
    cr_assert(mkdtemp(folder));
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *place)
{
    (void)st, (void)flag, (void)place;
    return remove(path);
}

static void remove_folder(void)
{
    object_free(store);
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

TestSuite(file_trouble, .init = make_folder, .fini = remove_folder);

static void begin_upload(void)
{
    struct error err = {0};
    cr_assert_eq(object_open(&store, &(struct object_options){.uri = folder}, &err), 0, "%s", err.text);
    cr_assert_eq(object_upload_open(store, "below/big", id, &err), 0, "%s", err.text);
    part = (struct object_part){.number = 1, .body = {.runs = 1, .run = {{"content", 7}}}};
}

Test(file_trouble, a_note_whose_end_is_refused_is_no_note)
{
    struct error err = {0};
    setenv("RINGMASTER_FAULT", "mark-closed:1/fails-1", 1);
    begin_upload();
    cr_assert_eq(object_upload_parts(store, "below/big", id, &part, 1, &err), -1);
    cr_assert_eq(err.code, ERR_MACHINE);
    cr_assert(strstr(err.text, "part 1 can't be noted") && strstr(err.text, strerror(EDQUOT)), "%s",
              err.text);
    cr_assert_eq(object_upload_parts(store, "below/big", id, &part, 1, &err), 0, "it works once more: %s",
                 err.text);
}

static int count_part(void *ctx, const struct object_part_info *info, struct error *err)
{
    (void)info, (void)err;
    ++*(int *)ctx;
    return 0;
}

enum { NUMBERS = 64 }; /* of descriptors; those of the test's own frame are among them */

static void leave_numbers(int numbers)
{
    const struct rlimit few = {(rlim_t)numbers, 1024};
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
}

Test(file_trouble, without_descriptors_parts_are_neither_missing_nor_others)
{
    struct error err = {0};
    int parts = 0, refused = 0, numbers = 3;
    begin_upload();
    cr_assert_eq(object_upload_parts(store, "below/big", id, &part, 1, &err), 0, "%s", err.text);
    for (int result = -1; result < 0; numbers++) {
        err = (struct error){0};
        parts = 0;
        leave_numbers(numbers);
        result = object_upload_list(store, "below/big", id, count_part, &parts, &err);
        cr_assert(result == 0 ? parts == 1 : err.code == ERR_MACHINE && err.class == CLASS_MACHINE,
                  "%d: %d parts: %s", numbers, parts, err.text);
        refused += result < 0;
        cr_assert_lt(numbers, NUMBERS);
    }
    cr_assert_gt(refused, 0);
    for (int result = -1, few = 3; result < 0; few++) {
        err = (struct error){0};
        leave_numbers(few);
        result = object_upload_complete(store, "below/big", id, &part, 1, OBJECT_CREATE, &err);
        cr_assert(result == 0 || (err.code == ERR_MACHINE && err.class == CLASS_MACHINE), "%d: %s", few,
                  err.text);
        cr_assert_lt(few, NUMBERS);
    }
}
