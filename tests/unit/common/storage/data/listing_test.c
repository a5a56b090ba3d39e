/* Which objects are a job's data, kept as text. */
#include <criterion/criterion.h>
#include <string.h>

#include "common/storage/data/listing.h"

static void add(struct listing *l, const char *name, int64_t bytes, const char *tag)
{
    struct error err;
    cr_assert_eq(listing_add(l, name, bytes, tag, &err), 0, "%s", err.text);
}

static void text_of(const struct listing *l, struct str *out)
{
    struct error err;
    *out = str_init(LISTING_TEXT_MAX);
    cr_assert_eq(listing_write(l, out, &err), 0, "%s", err.text);
}

static void refused(const char *text, const char *why)
{
    struct listing l;
    struct error err = {0};
    cr_assert_eq(listing_read(&l, text, strlen(text), "it", &err), -1, "%s", text);
    cr_assert_eq(err.code, ERR_DATA);
    cr_assert(strstr(err.text, why), "%s", err.text);
    cr_assert_eq(strncmp(err.text, "it: ", 4), 0, "%s", err.text);
    listing_clear(&l);
}

Test(listing, comes_back_from_its_text_as_it_was)
{
    struct listing l = {.width = 2}, again;
    struct str text, second;
    struct error err;
    add(&l, "a b/\xc3\xa4\"\\.bin", 1030, "\"0123\"");
    add(&l, "z.bin", 0, "");
    l.file[0].skip = 1024;
    text_of(&l, &text);
    cr_assert_eq(listing_read(&again, text.data, text.length, "it", &err), 0, "%s", err.text);
    cr_assert_eq(again.count, 2);
    cr_assert_eq(again.width, 2);
    cr_assert_str_eq(again.file[0].name, l.file[0].name);
    cr_assert_str_eq(again.file[0].tag, "\"0123\"");
    cr_assert_eq(again.file[0].bytes, 1030);
    cr_assert_eq(again.file[0].skip, 1024);
    cr_assert_eq(listing_bytes(&again), 1030);
    text_of(&again, &second);
    cr_assert_str_eq(str_text(&text), str_text(&second));
    str_clear(&text);
    str_clear(&second);
    listing_clear(&l);
    listing_clear(&again);
}

Test(listing, refuses_more_bytes_than_can_be)
{
    struct listing l = {0};
    struct error err = {0};
    add(&l, "a", (int64_t)1 << 49, "t");
    add(&l, "b", (int64_t)1 << 49, "t");
    cr_assert_eq(listing_add(&l, "c", 1, "t", &err), -1);
    cr_assert_eq(err.code, ERR_DATA);
    cr_assert(strstr(err.text, "c: with it the files have more bytes than can be"), "%s", err.text);
    cr_assert_eq(listing_add(&l, "d", -1, "t", &err), -1);
    cr_assert_eq(listing_bytes(&l), (int64_t)1 << 50);
    listing_clear(&l);
}

Test(listing, leaves_out_what_a_folder_would_leave_out)
{
    struct listing l = {0};
    add(&l, ".git/config", 1, "t");
    add(&l, "a/.hidden/b", 1, "t");
    add(&l, "a/b.c", 1, "t");
    add(&l, "a/b/.x", 1, "t");
    cr_assert_eq(l.count, 1);
    cr_assert_str_eq(l.file[0].name, "a/b.c");
    listing_clear(&l);
}

Test(listing, refuses_names_that_are_out_of_order_or_no_text)
{
    struct listing l = {.width = 1};
    struct str text = str_init(LISTING_TEXT_MAX);
    struct error err;
    add(&l, "b\xff", 1, "t");
    cr_assert_eq(listing_add(&l, "a", 1, "t", &err), -1);
    cr_assert_eq(listing_add(&l, "b\xff", 1, "t", &err), -1);
    cr_assert_eq(listing_write(&l, &text, &err), -1);
    cr_assert(strstr(err.text, "UTF-8"), "%s", err.text);
    str_clear(&text);
    listing_clear(&l);
}

Test(listing, refuses_a_text_that_is_none)
{
#define FILE_A "{\"bytes\":4,\"name\":\"a\",\"skip\":0,\"tag\":\"t\"}"
    refused("", "");
    refused("[]", "");
    refused("{\"files\":[],\"version\":2,\"width\":1}", "version 2");
    refused("{\"files\":[],\"version\":1,\"width\":3}", "3");
    refused("{\"files\":{},\"version\":1,\"width\":1}", "files");
    refused("{\"files\":[" FILE_A "," FILE_A "],\"version\":1,\"width\":1}", "order");
    refused("{\"files\":[{\"bytes\":4,\"name\":\"a\",\"skip\":5,\"tag\":\"t\"}],\"version\":1,\"width\":1}",
            "skip");
    refused("{\"files\":[{\"bytes\":4,\"name\":\".a\",\"skip\":0,\"tag\":\"t\"}],\"version\":1,\"width\":1}",
            ".a");
}

static void compared(const char *name, int64_t bytes, const char *tag, const char *why)
{
    struct listing kept = {.width = 1}, now = {0};
    struct error err = {0};
    add(&kept, "a", 3, "one");
    add(&kept, "b", 4, "two");
    add(&now, "a", 3, "one");
    add(&now, "aa", 9, "new");
    add(&now, name, bytes, tag);
    int status = listing_compare(&kept, &now, &err);
    cr_assert_eq(status, why ? -1 : 0, "%s", err.text);
    cr_assert(!why || (err.code == ERR_DATA && strstr(err.text, why)), "%s", err.text);
    listing_clear(&kept);
    listing_clear(&now);
}

Test(listing, tells_the_file_that_is_gone_or_has_changed_and_passes_over_new_ones)
{
    compared("b", 4, "two", NULL);
    compared("c", 4, "two", "b: the file is gone");
    compared("b", 5, "two", "b: the file has changed: 4 bytes then, 5 now");
    compared("b", 4, "2", "b: the file has changed: another content");
}

Test(listing, is_kept_under_its_hash)
{
    uint8_t hash[RM_HASH_BYTES] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x11};
    char name[LISTING_OBJECT_MAX];
    listing_object_name(hash, name);
    cr_assert_str_eq(name, "data-0123456789abcdef.json");
}
