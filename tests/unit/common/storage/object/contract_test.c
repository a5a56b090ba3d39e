/* What every store has to do: a folder always, and the bucket that RINGMASTER_TEST_S3 names
 * (s3://bucket/prefix, with credentials and endpoint in the environment) where it is set. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/prng.h"
#include "common/os/crypto.h"
#include "common/storage/object/object.h"

enum { STORES = 2, FOLDER = 0, BUCKET = 1, MIB = 1 << 20 };

static char folder[64];
static int which[STORES] = {FOLDER, BUCKET};

/* A store with nothing in it; the bucket's prefix is new for each test. */
static struct object_store *open_store(int kind)
{
    char uri[512];
    struct object_store *store;
    struct error err = {0};
    const char *bucket = getenv("RINGMASTER_TEST_S3");
    snprintf(folder, sizeof folder, "/tmp/object-test-XXXXXX");
    cr_assert(mkdtemp(folder));
    if (kind == BUCKET && !bucket)
        return NULL;
    snprintf(uri, sizeof uri, "%s%s%s", kind == BUCKET ? bucket : "file://", kind == BUCKET ? "/" : "",
             kind == BUCKET ? folder + 5 : folder);
    cr_assert_eq(object_open(&store, &(struct object_options){.uri = uri}, &err), 0, "%s", err.text);
    return store;
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *place)
{
    (void)st, (void)flag, (void)place;
    return remove(path);
}

static int note_name(void *ctx, const struct object_entry *entry, struct error *err);

struct names {
    int count;
    char name[4096][64];
    int64_t bytes;
};

static void close_store(struct object_store *store)
{
    static struct names all;
    all.count = 0;
    if (store && object_list(store, "", note_name, &all, NULL) == 0)
        for (int i = 0; i < all.count; i++) {
            const char *name = all.name[i];
            object_delete(store, &name, 1, NULL);
        }
    object_free(store);
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

#define CONTRACT(name)                                                                                       \
    static void name(struct object_store *store);                                                            \
    ParameterizedTestParameters(contract, name)                                                              \
    {                                                                                                        \
        return cr_make_param_array(int, which, STORES);                                                      \
    }                                                                                                        \
    ParameterizedTest(const int *kind, contract, name, .timeout = 300)                                       \
    {                                                                                                        \
        struct object_store *store = open_store(*kind);                                                      \
        if (!store)                                                                                          \
            cr_skip_test("RINGMASTER_TEST_S3 names no bucket");                                              \
        name(store);                                                                                         \
        close_store(store);                                                                                  \
    }                                                                                                        \
    static void name(struct object_store *store)

/* --- helpers --- */

static char *bytes_of(uint64_t seed, size_t count)
{
    char *bytes = malloc(count + 1);
    for (size_t i = 0; i < count; i++)
        bytes[i] = (char)splitmix64(&seed);
    return bytes;
}

static int try_put(struct object_store *store, const char *name, const char *text, enum object_mode mode,
                   struct error *err)
{
    struct object_body body = {.runs = 1, .run = {{text, strlen(text)}}};
    return object_put(store, name, &body, mode, err);
}

static void put(struct object_store *store, const char *name, const char *text)
{
    struct error err = {0};
    cr_assert_eq(try_put(store, name, text, OBJECT_REPLACE, &err), 0, "%s: %s", name, err.text);
}

static void holds(struct object_store *store, const char *name, const char *text)
{
    struct str out = str_init(4096);
    struct error err = {0};
    cr_assert_eq(object_get(store, name, 4096, &out, &err), 0, "%s: %s", name, err.text);
    cr_assert_str_eq(str_text(&out), text);
    str_clear(&out);
}

static void is_absent(struct object_store *store, const char *name)
{
    struct object_info info;
    struct error err = {0};
    cr_assert_eq(object_head(store, name, &info, &err), -1, "%s", name);
    cr_assert_eq(err.code, ERR_NOT_FOUND, "%s", err.text);
}

static int note_name(void *ctx, const struct object_entry *entry, struct error *err)
{
    struct names *n = ctx;
    (void)err;
    cr_assert_lt(n->count, 4096);
    snprintf(n->name[n->count++], sizeof n->name[0], "%s", entry->name);
    n->bytes += entry->info.bytes;
    return 0;
}

static void lists(struct object_store *store, const char *prefix, const char *const *expected, int count)
{
    static struct names found;
    struct error err = {0};
    found.count = 0;
    cr_assert_eq(object_list(store, prefix, note_name, &found, &err), 0, "%s", err.text);
    cr_assert_eq(found.count, count, "\"%s\" lists %d", prefix, found.count);
    for (int i = 0; i < count; i++)
        cr_assert_str_eq(found.name[i], expected[i]);
}

/* --- small objects --- */

CONTRACT(what_was_put_is_there_whole_and_can_be_replaced)
{
    struct object_info info, again;
    struct error err = {0};
    put(store, "a/b", "one");
    holds(store, "a/b", "one");
    cr_assert_eq(object_head(store, "a/b", &info, &err), 0, "%s", err.text);
    cr_assert_eq(info.bytes, 3);
    cr_assert(info.tag[0]);
    put(store, "a/b", "another");
    holds(store, "a/b", "another");
    cr_assert_eq(object_head(store, "a/b", &again, &err), 0);
    cr_assert_str_neq(info.tag, again.tag);
    put(store, "empty", "");
    holds(store, "empty", "");
}

CONTRACT(what_is_absent_is_not_found)
{
    char byte;
    struct str out = str_init(16);
    struct error err = {0};
    struct object_range range = {.name = "no/such", .bytes = 1, .into = &byte};
    is_absent(store, "no/such");
    cr_assert_eq(object_get(store, "no/such", 16, &out, &err), -1);
    cr_assert_eq(err.code, ERR_NOT_FOUND);
    cr_assert_eq(object_read(store, &range, 1, &err), -1);
    cr_assert_eq(err.code, ERR_NOT_FOUND);
    put(store, "a/b", "x");
    is_absent(store, "a");
    is_absent(store, "a/b/c");
}

CONTRACT(only_the_first_creates)
{
    struct error err = {0};
    cr_assert_eq(try_put(store, "a", "first", OBJECT_CREATE, &err), 0, "%s", err.text);
    cr_assert_eq(try_put(store, "a", "second", OBJECT_CREATE, &err), -1);
    cr_assert_eq(err.code, ERR_EXISTS, "%s", err.text);
    holds(store, "a", "first");
}

CONTRACT(a_longer_object_than_asked_for_is_refused)
{
    struct str out = str_init(16);
    struct error err = {0};
    put(store, "a", "12345");
    cr_assert_eq(object_get(store, "a", 4, &out, &err), -1);
    cr_assert_eq(err.code, ERR_DATA, "%s", err.text);
    cr_assert_eq(object_get(store, "a", 5, &out, &err), 0, "%s", err.text);
    cr_assert_str_eq(str_text(&out), "12345");
    str_clear(&out);
}

CONTRACT(deleting_is_final_and_absent_is_fine)
{
    static const char *const names[] = {"a/b", "no/such", "a/c"};
    struct error err = {0};
    put(store, "a/b", "x");
    put(store, "a/c", "x");
    put(store, "a/d", "x");
    cr_assert_eq(object_delete(store, names, 3, &err), 0, "%s", err.text);
    is_absent(store, "a/b");
    is_absent(store, "a/c");
    holds(store, "a/d", "x");
    cr_assert_eq(object_delete(store, names, 3, &err), 0, "%s", err.text);
}

CONTRACT(names_may_hold_what_a_file_name_may_hold)
{
    static const char *const names[] = {"a b", "a%20b", "a+b=c&d?e#f", "\xc3\xa4/\xf0\x9f\x99\x82",
                                        "x~y!z'(1)*"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        put(store, names[i], names[i]);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        holds(store, names[i], names[i]);
    static const char *const sorted[] = {"a b", "a%20b", "a+b=c&d?e#f", "x~y!z'(1)*",
                                         "\xc3\xa4/\xf0\x9f\x99\x82"};
    lists(store, "", sorted, 5);
}

CONTRACT(names_that_could_lead_elsewhere_are_refused)
{
    static const char *const names[] = {"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/."};
    struct object_info info;
    struct error err = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        cr_assert_eq(try_put(store, names[i], "x", OBJECT_REPLACE, &err), -1, "\"%s\"", names[i]);
        cr_assert_eq(err.code, ERR_USAGE);
        cr_assert_eq(object_head(store, names[i], &info, &err), -1, "\"%s\"", names[i]);
    }
}

/* --- ranges --- */

static void hash_more(void *ctx, const void *bytes, size_t count)
{
    sha256_add(ctx, bytes, count);
}

CONTRACT(ranges_come_to_where_they_belong_and_in_order)
{
    enum { SIZE = 20 * MIB + 12345 };
    char *bytes = bytes_of(1, SIZE), *into = calloc(1, SIZE);
    struct object_body body = {.runs = 3,
                               .run = {{bytes, 1000}, {bytes + 1000, 0}, {bytes + 1000, SIZE - 1000}}};
    struct object_info info;
    struct error err = {0};
    uint8_t expected[RM_HASH_BYTES], found[RM_HASH_BYTES];
    cr_assert_eq(object_put(store, "big", &body, OBJECT_REPLACE, &err), 0, "%s", err.text);
    cr_assert_eq(object_head(store, "big", &info, &err), 0);
    cr_assert_eq(info.bytes, SIZE);
    struct sha256 *hash = sha256_open();
    struct object_range range[] = {
        {.name = "big", .offset = 7 * MIB, .bytes = SIZE - 7 * MIB, .into = into + 7 * MIB, .tag = info.tag},
        {.name = "big", .bytes = 7 * MIB - 1, .into = into, .came = hash_more, .ctx = hash},
        {.name = "big", .offset = 7 * MIB - 1, .bytes = 1, .into = into + 7 * MIB - 1},
        {.name = "big", .offset = SIZE, .bytes = 0, .into = into},
    };
    cr_assert_eq(object_read(store, range, 4, &err), 0, "%s", err.text);
    cr_assert_eq(memcmp(bytes, into, SIZE), 0);
    sha256_finish(hash, found);
    sha256_once(bytes, 7 * MIB - 1, expected);
    cr_assert_arr_eq(found, expected, RM_HASH_BYTES);

    struct object_range past = {.name = "big", .offset = SIZE - 10, .bytes = 11, .into = into};
    cr_assert_eq(object_read(store, &past, 1, &err), -1);
    cr_assert_eq(err.code, ERR_DATA, "%s", err.text);
    put(store, "big", "another content");
    struct object_range stale = {.name = "big", .bytes = 4, .into = into, .tag = info.tag};
    cr_assert_eq(object_read(store, &stale, 1, &err), -1);
    cr_assert_eq(err.code, ERR_DATA, "%s", err.text);
    free(bytes);
    free(into);
}

/* However a disk wants direct reads to be aligned. */
CONTRACT(what_is_read_past_the_caches_is_the_same)
{
    enum { BYTES = 3 * MIB + 77 };
    static const int64_t offsets[] = {0, 1, 4095, 4096, MIB - 1, 2 * MIB + 5, BYTES - 1};
    char *bytes = bytes_of(9, BYTES), *got = malloc(BYTES);
    struct object_body body = {.runs = 1, .run = {{bytes, BYTES}}};
    struct error err = {0};
    cr_assert_eq(object_put(store, "a", &body, OBJECT_REPLACE, &err), 0, "%s", err.text);
    put(store, "small", "text");
    object_pass_caches(store, true);
    holds(store, "small", "text");
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        int64_t count = BYTES - offsets[i] < MIB + 3 ? BYTES - offsets[i] : MIB + 3;
        struct object_range range = {.name = "a", .offset = offsets[i], .bytes = count, .into = got};
        memset(got, 0, BYTES);
        cr_assert_eq(object_read(store, &range, 1, &err), 0, "%s", err.text);
        cr_assert_eq(memcmp(got, bytes + offsets[i], (size_t)count), 0, "from byte %lld",
                     (long long)offsets[i]);
    }
    struct object_range beyond = {.name = "a", .offset = BYTES - 5, .bytes = 6, .into = got};
    cr_assert_eq(object_read(store, &beyond, 1, &err), -1);
    cr_assert_eq(err.code, ERR_DATA, "%s", err.text);
    object_pass_caches(store, false);
    free(bytes);
    free(got);
}

CONTRACT(ranges_go_to_a_file_as_well_as_into_memory)
{
    enum { SIZE = 20 * MIB + 12345, AT = 77 };
    char *bytes = bytes_of(2, SIZE), *found = calloc(1, SIZE + AT);
    struct object_body body = {.runs = 1, .run = {{bytes, SIZE}}};
    struct error err = {0};
    int file = memfd_create("came", MFD_CLOEXEC);
    cr_assert_eq(object_put(store, "big", &body, OBJECT_REPLACE, &err), 0, "%s", err.text);
    struct object_range range[] = {
        {.name = "big", .bytes = 9 * MIB, .file = file, .at = AT},
        {.name = "big", .offset = 9 * MIB, .bytes = SIZE - 9 * MIB, .file = file, .at = AT + 9 * MIB},
    };
    cr_assert_eq(object_read(store, range, 2, &err), 0, "%s", err.text);
    cr_assert_eq(pread(file, found, SIZE + AT, 0), SIZE + AT);
    cr_assert_eq(memcmp(found + AT, bytes, SIZE), 0);
    close(file);
    range[0].file = open("/dev/full", O_WRONLY | O_CLOEXEC);
    cr_assert_eq(object_read(store, range, 1, &err), -1);
    cr_assert_eq(err.code, ERR_MACHINE, "%s", err.text);
    close(range[0].file);
    free(bytes);
    free(found);
}

/* --- listing --- */

static int stop_at_once(void *ctx, const struct object_entry *entry, struct error *err)
{
    (void)entry;
    ++*(int *)ctx;
    return err_set(err, ERR_TRAINING, "enough");
}

CONTRACT(lists_are_in_byte_order_and_end_when_told_to)
{
    static const char *const sorted[] = {"B", "a!b", "a-b/c", "a.b", "a/b-c", "a/b/c", "a0", "b"};
    static const int order[] = {3, 7, 0, 5, 1, 6, 4, 2};
    int seen = 0;
    struct error err = {0};
    lists(store, "", NULL, 0);
    for (int i = 0; i < 8; i++)
        put(store, sorted[order[i]], "x");
    lists(store, "", sorted, 8);
    lists(store, "a-", sorted + 2, 1);
    lists(store, "a/", sorted + 4, 2);
    lists(store, "a/b-c", sorted + 4, 1);
    lists(store, "no/such/", NULL, 0);
    cr_assert_eq(object_list(store, "", stop_at_once, &seen, &err), -1);
    cr_assert_eq(err.code, ERR_TRAINING);
    cr_assert_eq(seen, 1);
}

CONTRACT(a_list_may_be_longer_than_a_page)
{
    static struct names found;
    struct error err = {0};
    for (int i = 0; i < 1203; i++) {
        char name[64];
        snprintf(name, sizeof name, "many/%05d", i);
        put(store, name, "x");
    }
    found = (struct names){0};
    cr_assert_eq(object_list(store, "many/", note_name, &found, &err), 0, "%s", err.text);
    cr_assert_eq(found.count, 1203);
    cr_assert_eq(found.bytes, 1203);
    for (int i = 0; i < 1203; i++)
        cr_assert_eq(strtol(found.name[i] + 5, NULL, 10), i);
}

static int note_part(void *ctx, const char *part, struct error *err)
{
    struct str *all = ctx;
    (void)err;
    str_addf(all, "%s ", part);
    return 0;
}

CONTRACT(folders_are_told_without_what_is_in_them)
{
    struct str all = str_init(4096);
    struct error err = {0};
    put(store, "step-2/a/b", "x");
    put(store, "step-2/b", "x");
    put(store, "step-10/a", "x");
    put(store, "run.svg", "x");
    cr_assert_eq(object_list_folders(store, "", note_part, &all, &err), 0, "%s", err.text);
    /* files before or after folders, as the store likes */
    bool first = !strcmp(str_text(&all), "run.svg step-10/ step-2/ ");
    cr_assert(first || !strcmp(str_text(&all), "step-10/ step-2/ run.svg "), "%s", str_text(&all));
    str_reset(&all);
    cr_assert_eq(object_list_folders(store, "step-2/", note_part, &all, &err), 0, "%s", err.text);
    bool folders_first = !strcmp(str_text(&all), "a/ b ");
    cr_assert(folders_first || !strcmp(str_text(&all), "b a/ "), "%s", str_text(&all));
    str_clear(&all);
}

/* --- uploads --- */

static int note_number(void *ctx, const struct object_part_info *part, struct error *err)
{
    struct str *all = ctx;
    (void)err;
    str_addf(all, "%d:%lld ", part->number, (long long)part->bytes);
    return 0;
}

static void parts_are(struct object_store *store, const char *id, const char *expected)
{
    struct str all = str_init(4096);
    struct error err = {0};
    cr_assert_eq(object_upload_list(store, "up/file", id, note_number, &all, &err), 0, "%s", err.text);
    cr_assert_str_eq(str_text(&all), expected);
    str_clear(&all);
}

CONTRACT(an_upload_by_two_writers_appears_when_it_is_completed)
{
    enum { PART = OBJECT_PART_LEAST + 7, LAST = 100, SIZE = 2 * PART + LAST };
    char *bytes = bytes_of(2, SIZE), *into = calloc(1, SIZE), id[OBJECT_UPLOAD_MAX];
    struct object_store *other;
    struct error err = {0};
    struct object_part part[3] = {
        {.number = 1, .offset = 0, .body = {.runs = 1, .run = {{bytes, PART}}}},
        {.number = 5000,
         .offset = PART,
         .body = {.runs = 2, .run = {{bytes + PART, 10}, {bytes + PART + 10, PART - 10}}}},
        {.number = 10000, .offset = 2 * PART, .body = {.runs = 1, .run = {{bytes + 2 * PART, LAST}}}}};
    cr_assert_eq(object_open(&other, &(struct object_options){.uri = object_uri(store)}, &err), 0);
    cr_assert_eq(object_upload_open(store, "up/file", id, &err), 0, "%s", err.text);
    parts_are(store, id, "");
    cr_assert_eq(object_upload_parts(other, "up/file", id, part + 1, 2, &err), 0, "%s", err.text);
    cr_assert_eq(object_upload_parts(store, "up/file", id, part, 1, &err), 0, "%s", err.text);
    parts_are(other, id, "1:5242887 5000:5242887 10000:100 ");
    is_absent(store, "up/file");
    lists(store, "", NULL, 0);
    cr_assert_eq(object_upload_complete(store, "up/file", id, part, 3, OBJECT_CREATE, &err), 0, "%s",
                 err.text);
    struct object_range range = {.name = "up/file", .bytes = SIZE, .into = into};
    cr_assert_eq(object_read(other, &range, 1, &err), 0, "%s", err.text);
    cr_assert_eq(memcmp(bytes, into, SIZE), 0);
    struct object_info info;
    cr_assert_eq(object_head(store, "up/file", &info, &err), 0);
    cr_assert_eq(info.bytes, SIZE);
    static const char *const only[] = {"up/file"};
    lists(store, "", only, 1);
    object_free(other);
    free(bytes);
    free(into);
}

static void begin_small(struct object_store *store, char id[OBJECT_UPLOAD_MAX], struct object_part *part,
                        const char *text)
{
    struct error err = {0};
    *part = (struct object_part){.number = 1, .body = {.runs = 1, .run = {{text, strlen(text)}}}};
    cr_assert_eq(object_upload_open(store, "up/file", id, &err), 0, "%s", err.text);
    cr_assert_eq(object_upload_parts(store, "up/file", id, part, 1, &err), 0, "%s", err.text);
}

CONTRACT(an_upload_never_creates_over_what_is_there)
{
    char id[OBJECT_UPLOAD_MAX];
    struct object_part part;
    struct error err = {0};
    begin_small(store, id, &part, "late");
    put(store, "up/file", "early");
    cr_assert_eq(object_upload_complete(store, "up/file", id, &part, 1, OBJECT_CREATE, &err), -1);
    cr_assert_eq(err.code, ERR_EXISTS, "%s", err.text);
    holds(store, "up/file", "early");
    cr_assert_eq(object_upload_complete(store, "up/file", id, &part, 1, OBJECT_REPLACE, &err), 0, "%s",
                 err.text);
    holds(store, "up/file", "late");
}

CONTRACT(a_part_sent_again_replaces_the_earlier_one)
{
    char id[OBJECT_UPLOAD_MAX];
    struct object_part part, old;
    struct error err = {0};
    begin_small(store, id, &part, "one");
    old = part;
    part.body.run[0].bytes = "other";
    part.body.run[0].count = 5;
    cr_assert_eq(object_upload_parts(store, "up/file", id, &part, 1, &err), 0, "%s", err.text);
    cr_assert_str_neq(old.tag, part.tag);
    cr_assert_eq(object_upload_complete(store, "up/file", id, &old, 1, OBJECT_CREATE, &err), -1);
    cr_assert_eq(err.code, ERR_DATA, "%s", err.text);
    is_absent(store, "up/file");
    cr_assert_eq(object_upload_complete(store, "up/file", id, &part, 1, OBJECT_CREATE, &err), 0, "%s",
                 err.text);
    holds(store, "up/file", "other");
}

CONTRACT(an_upload_that_is_over_takes_no_parts)
{
    char id[OBJECT_UPLOAD_MAX];
    struct object_part part;
    struct error err = {0};
    struct str none = str_init(64);
    begin_small(store, id, &part, "text");
    cr_assert_eq(object_upload_abort(store, "up/file", id, &err), 0, "%s", err.text);
    cr_assert_eq(object_upload_parts(store, "up/file", id, &part, 1, &err), -1);
    cr_assert_eq(err.code, ERR_NOT_FOUND, "%s", err.text);
    cr_assert_eq(object_upload_list(store, "up/file", id, note_number, &none, &err), -1);
    cr_assert_eq(err.code, ERR_NOT_FOUND, "%s", err.text);
    cr_assert_eq(object_upload_abort(store, "up/file", id, &err), 0, "once more is fine: %s", err.text);
    is_absent(store, "up/file");
    begin_small(store, id, &part, "text");
    cr_assert_eq(object_upload_complete(store, "up/file", id, &part, 1, OBJECT_CREATE, &err), 0, "%s",
                 err.text);
    cr_assert_eq(object_upload_parts(store, "up/file", id, &part, 1, &err), -1);
    cr_assert_eq(err.code, ERR_NOT_FOUND, "%s", err.text);
    holds(store, "up/file", "text");
}

static bool is_it(void *ctx, const char *name)
{
    return !strcmp(name, ctx);
}

CONTRACT(what_was_left_unfinished_is_collected_below_a_prefix)
{
    char id[OBJECT_UPLOAD_MAX], elsewhere[OBJECT_UPLOAD_MAX];
    struct object_part part;
    struct error err = {0};
    int aborted = -1;
    put(store, "up/other", "stays");
    begin_small(store, id, &part, "text");
    cr_assert_eq(object_upload_open(store, "elsewhere", elsewhere, &err), 0, "%s", err.text);
    cr_assert_eq(object_uploads_collect(store, "up/", is_it, "up/other", &aborted, &err), 0, "%s", err.text);
    cr_assert_eq(aborted, 0, "no upload of that is under way");
    cr_assert_eq(object_uploads_collect(store, "up/f", is_it, "up/file", &aborted, &err), 0, "%s", err.text);
    cr_assert_eq(aborted, 1);
    begin_small(store, id, &part, "text");
    cr_assert_eq(object_uploads_collect(store, "up/", NULL, NULL, &aborted, &err), 0, "%s", err.text);
    cr_assert_eq(aborted, 1);
    cr_assert_eq(object_upload_parts(store, "up/file", id, &part, 1, &err), -1);
    cr_assert_eq(err.code, ERR_NOT_FOUND);
    part.body.run[0].bytes = "text";
    cr_assert_eq(object_upload_parts(store, "elsewhere", elsewhere, &part, 1, &err), 0, "%s", err.text);
    holds(store, "up/other", "stays");
    cr_assert_eq(object_upload_abort(store, "elsewhere", elsewhere, &err), 0, "%s", err.text);
}

CONTRACT(what_is_under_way_can_be_given_up)
{
    atomic_int cancel = 1;
    struct object_store *given_up;
    struct object_options options = {.uri = object_uri(store), .cancel = &cancel};
    char *bytes = bytes_of(3, MIB);
    struct object_body body = {.runs = 1, .run = {{bytes, MIB}}};
    struct error err = {0};
    cr_assert_eq(object_open(&given_up, &options, &err), 0);
    cr_assert_eq(object_put(given_up, "a", &body, OBJECT_REPLACE, &err), -1);
    cr_assert_eq(err.code, ERR_ABORTED, "%s", err.text);
    is_absent(store, "a");
    object_free(given_up);
    free(bytes);
}

static void note_moved(void *ctx, int64_t moved)
{
    int64_t *last = ctx;
    cr_assert_gt(moved, *last, "equal pieces look like one that moves no more");
    *last = moved;
}

Test(contract, what_moves_is_counted_up_from_a_folder_too)
{
    struct object_store *store = open_store(FOLDER), *watched = NULL;
    struct error err = {0};
    int64_t moved = 0;
    static char bytes[4 * MIB], back[4 * MIB];
    struct object_body body = {.runs = 1, .run = {{bytes, sizeof bytes}}};
    cr_assert_eq(object_put(store, "whole", &body, OBJECT_REPLACE, &err), 0, "%s", err.text);
    struct object_options options = {.uri = object_uri(store), .progress = note_moved, .ctx = &moved};
    cr_assert_eq(object_open(&watched, &options, &err), 0, "%s", err.text);
    struct object_range range = {.name = "whole", .bytes = sizeof back, .into = back, .file = -1};
    cr_assert_eq(object_read(watched, &range, 1, &err), 0, "%s", err.text);
    cr_assert_geq(moved, (int64_t)sizeof back);
    object_free(watched);
    close_store(store);
}
