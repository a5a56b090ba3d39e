/* Listings of data that are kept beside the checkpoints, and their end. */
#include "fixture.h"

#include "common/storage/checkpoint/data_listing.h"

TestSuite(listings, .init = fixture_make, .fini = fixture_remove);

/* Keeps the listing of one file of that size. */
static void keep(int64_t bytes, uint8_t ret_sha256[RM_HASH_BYTES], char ret_name[LISTING_OBJECT_MAX])
{
    struct listing listing = {0};
    struct error err = {0};
    cr_assert_eq(listing_add(&listing, "a.txt", bytes, "tag", &err), 0, "%s", err.text);
    cr_assert_eq(data_listing_keep(fixture_store, &listing, ret_sha256, &err), 0, "%s", err.text);
    listing_object_name(ret_sha256, ret_name);
    listing_clear(&listing);
}

static void put(const char *name)
{
    struct object_body body = {.runs = 1, .run = {{"x", 1}}};
    struct error err = {0};
    cr_assert_eq(object_put(fixture_store, name, &body, OBJECT_CREATE, &err), 0, "%s", err.text);
}

Test(listings, of_a_job_that_starts_anew_only_its_own_stays_and_nothing_else_is_touched)
{
    char old[LISTING_OBJECT_MAX], now[LISTING_OBJECT_MAX];
    uint8_t sha256[RM_HASH_BYTES];
    struct error err = {0};
    keep(100, sha256, old);
    keep(200, sha256, now);
    put("data-notes.json");
    put("data-0123456789abcdef.json.txt");
    cr_assert_eq(data_listing_remove(fixture_store, sha256, &err), 0, "%s", err.text);
    cr_assert(fixture_has(now) && !fixture_has(old));
    cr_assert(fixture_has("data-notes.json") && fixture_has("data-0123456789abcdef.json.txt"));
    cr_assert_eq(data_listing_remove(fixture_store, NULL, &err), 0, "%s", err.text);
    cr_assert_not(fixture_has(now));
    cr_assert(fixture_has("data-notes.json"));
}

Test(listings, where_there_are_none_nothing_is_removed)
{
    struct error err = {0};
    cr_assert_eq(data_listing_remove(fixture_store, NULL, &err), 0, "%s", err.text);
}
