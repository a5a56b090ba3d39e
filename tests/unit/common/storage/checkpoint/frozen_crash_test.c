/* A crash at any point of publishing and settling leaves the newest whole snapshot of processes. */
#include <signal.h>
#include <sys/wait.h>

#include "frozen_fixture.h"

TestSuite(frozen_crash, .init = fixture_make, .fini = fixture_remove);

/* In a child that has this fault point set ("": none); whether it was killed by it. */
static bool publish_in_child(const struct frozen_fixture *f, int keep, const char *fault)
{
    int status, child = fork();
    cr_assert(child >= 0);
    if (!child) {
        setenv("RINGMASTER_FAULT", fault, 1);
        _exit(frozen_fixture_try(f, NULL) < 0 || frozen_fixture_settle(f->number, keep, NULL, NULL) < 0);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0, "status %x",
              status);
    return WIFSIGNALED(status);
}

Test(frozen_crash, at_every_fault_point_the_newest_whole_one_is_used)
{
    static const struct {
        const char *fault;
        bool published;
    } points[] = {{"part-written", false},  {"upload-whole", false},    {"image-sent", false},
                  {"object-temp", false},   {"frozen-published", true}, {"frozen-read-back", true},
                  {"before-delete", true},  {"before-delete:2", true},  {"file-removed", true},
                  {"file-removed:2", true}, {"file-removed:3", true}};
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        for (int64_t number = 1; number <= 3; number++)
            cr_assert_not(
                publish_in_child(&(struct frozen_fixture){number, (uint64_t)number, 0, 100, NULL}, 100, ""));
        struct frozen_fixture next = {4, 4, 0, FROZEN_PIECE_LEAST + 1, NULL};
        cr_assert(publish_in_child(&next, 1, points[i].fault), "%s was not reached", points[i].fault);
        cr_assert_eq(frozen_fixture_newest(), points[i].published ? 4 : 3, "%s", points[i].fault);

        /* whoever goes on takes the next number, and clears what is left */
        next = (struct frozen_fixture){5, 5, 0, 100, NULL};
        cr_assert_not(publish_in_child(&next, 1, ""));
        cr_assert_eq(frozen_fixture_newest(), 5);
        cr_assert_not(fixture_has("process-00000004"), "%s", points[i].fault);
        cr_assert_eq(frozen_delete_all(fixture_store, NULL), 0);
    }
}

/* Its manifest would be a number's second. */
Test(frozen_crash, a_writer_that_was_given_up_publishes_nothing_over_its_successor)
{
    struct error err = {0};
    cr_assert(publish_in_child(&(struct frozen_fixture){1, 1, 0, 100, NULL}, 3, "image-sent"));
    frozen_fixture_publish(&(struct frozen_fixture){1, 2, 0, 100, NULL});
    cr_assert_lt(frozen_fixture_try(&(struct frozen_fixture){1, 1, 3, 100, NULL}, &err), 0);
    cr_assert_eq(err.code, ERR_EXISTS);
    cr_assert_eq(frozen_verify(fixture_store, "process-00000001", &err), 0, "%s", err.text);
}
