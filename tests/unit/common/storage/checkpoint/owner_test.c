/* One live owner of a place for checkpoints. */
#include "fixture.h"

#include <semaphore.h>
#include <sys/wait.h>
#include <time.h>

#include "common/storage/checkpoint/checkpoint.h"
#include "common/storage/checkpoint/owner.h"
#include "tests/unit/common/storage/checkpoint/bucket.h"

TestSuite(owner, .init = fixture_make, .fini = fixture_remove);

static int own(const char *uri, struct owner **ret, struct error *err)
{
    struct object_options place = {.uri = uri};
    struct owner_options options = {.place = &place, .run = "0123456789abcdef"};
    return owner_open(ret, &options, err);
}

Test(owner, a_second_run_on_the_folder_is_told_so)
{
    char uri[256];
    struct owner *first, *second = NULL;
    struct error err = {0};
    snprintf(uri, sizeof uri, "%s/new/folder", fixture_uri);
    cr_assert_eq(own(uri, &first, &err), 0, "%s", err.text);
    cr_assert_eq(own(uri, &second, &err), -1);
    cr_assert_eq(err.code, ERR_MACHINE);
    cr_assert(strstr(err.text, "new/folder: another run uses this folder"), "%s", err.text);
    owner_free(first);
    cr_assert_eq(own(uri, &second, &err), 0, "%s", err.text);
    owner_free(second);
}

Test(owner, a_folder_is_free_when_the_process_that_owned_it_is_gone)
{
    int status;
    struct owner *owner;
    int child = fork();
    if (!child)
        _exit(own(fixture_uri, &owner, NULL) < 0);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
    cr_assert_eq(own(fixture_uri, &owner, NULL), 0);
    owner_free(owner);
}

Test(owner, a_folder_that_cannot_be_made_is_the_machines_fault)
{
    struct owner *owner;
    struct error err = {0};
    cr_assert_eq(own("file:///proc/no/such", &owner, &err), -1);
    cr_assert_eq(err.code, ERR_MACHINE);
    cr_assert(strstr(err.text, "/proc/no"), "%s", err.text);
}

Test(owner, a_run_is_named_by_its_key_and_does_not_give_it_away)
{
    char one[OWNER_RUN_MAX], again[OWNER_RUN_MAX], other[OWNER_RUN_MAX];
    owner_run("key one", 7, one);
    owner_run("key one", 7, again);
    owner_run("key two", 7, other);
    cr_assert_str_eq(one, again);
    cr_assert_str_neq(one, other);
}

/* --- a bucket --- */

#define CLAIM(more) "{\"run\":\"ffffffffffffffff\",\"job\":\"other\",\"since\":1790000000000" more "}"

static struct bucket *bucket;
static sem_t changes;

static void bucket_make(void)
{
    sem_init(&changes, 0, 0);
    bucket = bucket_open();
}

static void bucket_remove(void)
{
    bucket_free(bucket);
    sem_destroy(&changes);
}

TestSuite(owner_bucket, .init = bucket_make, .fini = bucket_remove);

static void changed(void *ctx)
{
    (void)ctx;
    sem_post(&changes);
}

static int own_bucket(const char *run, const char *title, bool told, struct owner **ret, struct error *err)
{
    struct object_options place = {
        .uri = "s3://bucket/base", .endpoint = bucket_endpoint(bucket), .region = "eu-test-1"};
    struct owner_options options = {.place = &place,
                                    .run = run,
                                    .title = title,
                                    .look = 20 * RM_MS,
                                    .lease = 300 * RM_MS,
                                    .changed = told ? changed : NULL};
    return owner_open(ret, &options, err);
}

static struct owner *first_owner(void)
{
    struct owner *owner = NULL;
    struct error err = {0};
    cr_assert_eq(own_bucket("0123456789abcdef", "one", true, &owner, &err), 0, "%s", err.text);
    return owner;
}

static void await_change(void)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 30;
    cr_assert_eq(sem_timedwait(&changes, &end), 0, "nothing changes");
}

static bool says(const char *name, const char *words)
{
    char text[1024];
    bucket_get(bucket, name, text, sizeof text);
    return strstr(text, words) != NULL;
}

Test(owner_bucket, a_place_that_was_lost_is_taken_again_when_the_other_one_releases_it)
{
    struct owner *owner = first_owner();
    struct error why = {0};
    bucket_put(bucket, ".owner-00000002", CLAIM(""));
    await_change();
    cr_assert(owner_is_away(owner, &why) && why.class == CLASS_PASSING && !why.person, "%s", why.text);
    cr_assert(strstr(why.text, "job other, there since 2026-09-21T"), "%s", why.text);
    bucket_put(bucket, ".owner-00000002", CLAIM(",\"released\":true"));
    await_change();
    cr_assert_not(owner_is_away(owner, &why));
    cr_assert(says(".owner-00000003", "\"job\":\"one\""));
    owner_free(owner);
    cr_assert(says(".owner-00000003", "released"));
}

Test(owner_bucket, a_place_that_was_lost_is_taken_again_when_the_other_one_does_not_answer_for_a_lease)
{
    struct owner *owner = first_owner();
    struct error why = {0};
    bucket_put(bucket, ".owner-00000002", CLAIM(""));
    await_change();
    cr_assert(owner_is_away(owner, &why));
    await_change();
    cr_assert_not(owner_is_away(owner, &why));
    cr_assert(says(".owner-00000003", "\"job\":\"one\""));
    owner_free(owner);
}

/* The first can't see who asks it; the second one takes the place, and answers. */
Test(owner_bucket, of_two_that_live_the_one_that_lost_the_place_stays_out_and_says_who_has_it)
{
    struct owner *one = first_owner(), *two = NULL;
    struct error err = {0}, why = {0};
    bucket_refuse_heads(bucket, "1-asks");
    cr_assert_eq(own_bucket("fedcba9876543210", "two", false, &two, &err), 0, "%s", err.text);
    while (!owner_is_away(one, &why) || !why.person)
        await_change();
    cr_assert(strstr(why.text, "job two, there since 2") && strstr(why.text, "end one of two runs"), "%s",
              why.text);
    bucket_refuse_heads(bucket, NULL);
    cr_assert(bucket_await_listings(bucket, 10));
    cr_assert(bucket_has(bucket, ".owner-00000002") && !bucket_has(bucket, ".owner-00000003"));
    owner_free(two);
    while (owner_is_away(one, &why))
        await_change();
    cr_assert(says(".owner-00000003", "\"job\":\"one\""));
    owner_free(one);
}

Test(owner_bucket, a_later_process_of_the_same_run_takes_nothing_from_anybody)
{
    struct owner *one = first_owner(), *two = NULL;
    struct error err = {0}, why = {0};
    cr_assert_eq(own_bucket("0123456789abcdef", "one", false, &two, &err), 0, "%s", err.text);
    cr_assert(bucket_await_listings(bucket, 6));
    cr_assert_not(owner_is_away(one, &why));
    cr_assert_not(owner_is_away(two, &why));
    cr_assert(bucket_has(bucket, ".owner-00000002") && !bucket_has(bucket, ".owner-00000003"));
    owner_free(one);
    cr_assert(!says(".owner-00000002", "released"), "it is not the first one's to give away");
    owner_free(two);
    cr_assert(says(".owner-00000002", "released"));
}

/* Created, and then no further: the next look finds the claim to be this process's own. */
Test(owner_bucket, a_claim_that_was_made_and_not_heard_of_is_found_to_be_its_own)
{
    struct owner *owner = first_owner();
    struct error why = {0};
    char text[1024];
    bucket_get(bucket, ".owner-00000001", text, sizeof text);
    bucket_put(bucket, ".owner-00000002", text);
    cr_assert(bucket_await_listings(bucket, 2));
    bucket_put(bucket, ".owner-00000002-asks", "x");
    for (int i = 0; i < 10 && bucket_has(bucket, ".owner-00000002-asks"); i++)
        cr_assert(bucket_await_listings(bucket, 1));
    cr_assert_not(bucket_has(bucket, ".owner-00000002-asks"), "it answers for it");
    cr_assert_not(owner_is_away(owner, &why));
    owner_free(owner);
    cr_assert(says(".owner-00000002", "released"));
}

/* A sentence that is too long loses its middle, and there it is said whose the place is. */
Test(owner_bucket, who_publishes_says_once_which_place_is_anothers_and_whole_whose)
{
    struct object_store *store;
    struct error err = {0};
    struct manifest m = {.step = 30, .fingerprint = "f"};
    struct object_options place = {.uri = "s3://bucket/base/a/place/that/has/a/longer/name/than/most/have",
                                   .endpoint = bucket_endpoint(bucket),
                                   .region = "eu-test-1"};
    cr_assert_eq(object_open(&store, &place, &err), 0, "%s", err.text);
    bucket_put(bucket, "a/place/that/has/a/longer/name/than/most/have/.owner-00000001", CLAIM(""));
    struct checkpoint_publication publication = {.store = store, .manifest = &m, .run = "0123456789abcdef"};
    cr_assert_eq(checkpoint_publish(&publication, &m, &err), -1);
    cr_assert(strstr(err.text, "most/have belongs to another run now: job other"), "%s", err.text);
    object_free(store);
}

Test(owner_bucket, who_writes_waits_while_the_place_is_anothers_and_goes_on_when_its_run_has_it_again)
{
    struct object_store *store;
    struct error err = {0};
    struct object_options place = {
        .uri = "s3://bucket/base", .endpoint = bucket_endpoint(bucket), .region = "eu-test-1"};
    cr_assert_eq(object_open(&store, &place, &err), 0, "%s", err.text);
    bucket_put(bucket, ".owner-00000001", "{\"run\":\"0123456789abcdef\",\"job\":\"one\"}");
    cr_assert_eq(owner_check(store, "0123456789abcdef", &err), 0, "%s", err.text);
    bucket_put(bucket, ".owner-00000002", CLAIM(""));
    cr_assert_eq(owner_check(store, "0123456789abcdef", &err), -1);
    cr_assert(err.code == ERR_EXISTS && err.class == CLASS_PASSING);
    cr_assert(strstr(err.text, "belongs to another run now: job other"), "%s", err.text);
    bucket_put(bucket, ".owner-00000002", CLAIM(",\"released\":true"));
    cr_assert_eq(owner_check(store, "0123456789abcdef", &err), -1);
    cr_assert(err.class == CLASS_PASSING && strstr(err.text, "which has ended"), "%s", err.text);
    bucket_put(bucket, ".owner-00000003", "{\"run\":\"0123456789abcdef\",\"job\":\"one\"}");
    cr_assert_eq(owner_check(store, "0123456789abcdef", &err), 0, "%s", err.text);
    object_free(store);
}
