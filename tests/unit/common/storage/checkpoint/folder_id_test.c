/* Which folder of checkpoints it is. */
#include "fixture.h"

#include <sys/wait.h>
#include <unistd.h>

#include "common/storage/checkpoint/folder_id.h"

TestSuite(folder_id, .init = fixture_make, .fini = fixture_remove);

static void id_of(const char *uri, char out[FOLDER_ID_CHARS])
{
    struct object_options options = {.uri = uri};
    struct object_store *store;
    struct error err = {0};
    cr_assert_eq(object_open(&store, &options, &err), 0, "%s", err.text);
    folder_id(store, out);
    object_free(store);
}

Test(folder_id, everybody_who_sees_a_folder_reads_one_number_and_another_folder_has_another)
{
    char first[FOLDER_ID_CHARS], again[FOLDER_ID_CHARS], other[FOLDER_ID_CHARS], uri[256];
    id_of(fixture_uri, first);
    id_of(fixture_uri, again);
    snprintf(uri, sizeof uri, "%s/another", fixture_uri);
    id_of(uri, other);
    cr_assert_eq(strlen(first), FOLDER_ID_CHARS - 1);
    cr_assert_str_eq(first, again);
    cr_assert_eq(strlen(other), FOLDER_ID_CHARS - 1);
    cr_assert_str_neq(first, other);
}

Test(folder_id, of_many_who_come_at_once_one_draws_it)
{
    enum { MANY = 16 };
    char said[MANY][FOLDER_ID_CHARS] = {{0}};
    int begin[2], tell[2], status;
    cr_assert_eq(pipe(begin) + pipe(tell), 0);
    for (int i = 0; i < MANY; i++) {
        if (fork())
            continue;
        char id[FOLDER_ID_CHARS], go;
        close(begin[1]);
        if (read(begin[0], &go, 1) == 0) /* all at once: when the other end is closed */
            id_of(fixture_uri, id);
        _exit(write(tell[1], id, sizeof id) != sizeof id);
    }
    close(begin[0]);
    close(begin[1]);
    for (int i = 0; i < MANY; i++)
        cr_assert_eq(read(tell[0], said[i], FOLDER_ID_CHARS), FOLDER_ID_CHARS);
    for (int i = 0; i < MANY; i++) {
        cr_assert_gt(wait(&status), 0);
        cr_assert_eq(status, 0);
        cr_assert_str_eq(said[i], said[0]);
    }
    cr_assert_eq(strlen(said[0]), FOLDER_ID_CHARS - 1);
}

Test(folder_id, a_folder_that_can_not_be_written_to_has_none)
{
    char id[FOLDER_ID_CHARS] = "old";
    id_of("file:///proc/self", id);
    cr_assert_str_eq(id, "");
}

Test(folder_id, what_is_no_number_is_none)
{
    char id[FOLDER_ID_CHARS], path[300];
    snprintf(path, sizeof path, "%s/.folder-id", fixture_uri + strlen("file://"));
    FILE *file = fopen(path, "w");
    cr_assert(file);
    fputs("0123456789abcdeX0123456789abcdef", file);
    fclose(file);
    id_of(fixture_uri, id);
    cr_assert_str_eq(id, "");
}
