/* One live owner of a place for checkpoints. */
#include "fixture.h"

#include <sys/wait.h>

#include "common/storage/checkpoint/owner.h"

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
