/* Large bodies go to a disk past the memory's pages, and are the same bytes however they lie. */
#include <criterion/criterion.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/prng.h"
#include "common/storage/object/object.h"

enum { BYTES = 21 << 20, HEAD = 700 };

static char folder[64];
static struct object_store *store;
static uint8_t *bytes, *found;

static void make_in(const char *place)
{
    uint64_t seed = 3;
    snprintf(folder, sizeof folder, "%s/direct-test-XXXXXX", place);
    cr_assert(mkdtemp(folder));
    cr_assert_eq(object_open(&store, &(struct object_options){.uri = folder}, NULL), 0);
    bytes = malloc(BYTES);
    found = malloc(BYTES);
    for (size_t i = 0; i < BYTES; i += 8) {
        uint64_t word = splitmix64(&seed);
        memcpy(bytes + i, &word, 8);
    }
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *place)
{
    (void)st, (void)flag, (void)place;
    return remove(path);
}

static void finish(void)
{
    object_free(store);
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    free(bytes);
    free(found);
}

static int64_t heard;

static void hear(void *ctx, int64_t at, const void *run, size_t count)
{
    cr_assert_eq(memcmp(run, (const uint8_t *)ctx + at, count), 0);
    cr_assert_eq(at, heard);
    heard += (int64_t)count;
}

/* [first, first + count) of the bytes, in three runs. */
static struct object_body body_of(size_t first, size_t count)
{
    struct object_body body = {.runs = 3, .taken = hear, .ctx = bytes + first};
    const size_t size[3] = {HEAD, count / 3, count - HEAD - count / 3};
    for (int i = 0; i < 3; first += size[i++]) {
        body.run[i].bytes = bytes + first;
        body.run[i].count = size[i];
    }
    heard = 0;
    return body;
}

static void expect_all(const char *name)
{
    struct error err = {0};
    struct object_info info;
    struct object_range range = {.name = name, .bytes = BYTES, .into = found};
    memset(found, 0, BYTES);
    cr_assert_eq(object_head(store, name, &info, &err), 0, "%s", err.text);
    cr_assert_eq(info.bytes, BYTES);
    cr_assert_eq(object_read(store, &range, 1, &err), 0, "%s", err.text);
    cr_assert_eq(memcmp(found, bytes, BYTES), 0);
}

static void put_whole(void)
{
    struct error err = {0};
    struct object_body body = body_of(0, BYTES);
    cr_assert_eq(object_put(store, "whole", &body, OBJECT_REPLACE, &err), 0, "%s", err.text);
    cr_assert_eq(heard, BYTES);
    expect_all("whole");
}

/* Two writers whose border is within a page, the later part first. */
static void put_in_parts(void)
{
    static const size_t border = (10 << 20) + 333;
    struct error err = {0};
    char id[OBJECT_UPLOAD_MAX];
    struct object_part part[2];
    cr_assert_eq(object_upload_open(store, "parts", id, &err), 0, "%s", err.text);
    for (int i = 1; i >= 0; i--) {
        part[i] = (struct object_part){.number = i + 1, .offset = i ? (int64_t)border : 0};
        part[i].body = i ? body_of(border, BYTES - border) : body_of(0, border);
        cr_assert_eq(object_upload_parts(store, "parts", id, &part[i], 1, &err), 0, "%s", err.text);
    }
    cr_assert_eq(object_upload_complete(store, "parts", id, part, 2, OBJECT_CREATE, &err), 0, "%s", err.text);
    expect_all("parts");
}

Test(direct, on_a_disk)
{
    make_in("/var/tmp");
    put_whole();
    put_in_parts();
    finish();
}

Test(direct, where_there_is_only_memory)
{
    make_in(access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    put_whole();
    put_in_parts();
    finish();
}

/* It took the flag, and refuses the write, as some do: the first one, or one in the middle. */
Test(direct, where_the_file_system_takes_no_such_write)
{
    setenv("RINGMASTER_FAULT", "direct-write:2/fails-1", 1);
    make_in("/var/tmp");
    put_whole();
    put_in_parts();
    finish();
}

Test(direct, where_it_takes_none_at_all)
{
    setenv("RINGMASTER_FAULT", "direct-write:1/fails-9", 1);
    make_in("/var/tmp");
    put_whole();
    put_in_parts();
    finish();
}
