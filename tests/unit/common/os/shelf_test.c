/* What lies on a shelf, who laid it there, and who finds it. */
#include "common/os/shelf.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/os/file.h"

struct note {
    char name[8];
    uint64_t bytes;
};

static struct shelf opened(void)
{
    struct shelf s;
    struct error err = {0};
    cr_assert_eq(shelf_open(&s, &err), 0, "%s", err.text);
    return s;
}

/* A memory file with that text in it. */
static int memory_of(const char *text)
{
    struct error err = {0};
    int fd = -1;
    cr_assert_eq(file_memory(&fd, "a test", 0, &err), 0, "%s", err.text);
    cr_assert_eq(pwrite(fd, text, strlen(text), 0), (ssize_t)strlen(text));
    return fd;
}

static void lay(const struct shelf *s, const char *text)
{
    const struct note note = {"note", strlen(text)};
    struct error err = {0};
    int fd = memory_of(text);
    cr_assert_eq(shelf_lay(s, fd, &note, sizeof note, &err), 0, "%s", err.text);
    close(fd);
}

static void finds(const struct shelf *s, const char *text)
{
    struct note note = {0};
    char read[32] = "";
    int fd = -1;
    cr_assert(shelf_look(s, &fd, &note, sizeof note));
    cr_assert_str_eq(note.name, "note");
    cr_assert_eq(note.bytes, strlen(text));
    cr_assert_eq(pread(fd, read, sizeof read - 1, 0), (ssize_t)strlen(text));
    cr_assert_str_eq(read, text);
    cr_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC, "no program that is started gets it");
    close(fd);
}

static bool finds_nothing(const struct shelf *s)
{
    struct note note;
    int fd;
    return !shelf_look(s, &fd, &note, sizeof note);
}

Test(shelf, what_lies_there_is_found_again_and_again_until_it_is_emptied)
{
    struct shelf s = opened();
    cr_assert(finds_nothing(&s));
    lay(&s, "first");
    finds(&s, "first");
    finds(&s, "first");
    lay(&s, "second");
    finds(&s, "second");
    shelf_empty(&s);
    cr_assert(finds_nothing(&s));
    shelf_empty(&s);
    lay(&s, "third");
    finds(&s, "third");
    shelf_clear(&s);
    shelf_clear(&s);
}

Test(shelf, it_outlives_the_process_that_laid_it_there)
{
    struct shelf s = opened();
    int status;
    pid_t child = fork();
    if (child == 0) {
        lay(&s, "what was left");
        _exit(0);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    finds(&s, "what was left");
    shelf_clear(&s);
}

Test(shelf, another_note_is_not_looked_at_and_costs_no_descriptor)
{
    struct shelf s = opened();
    char small[4], large[64];
    int fd, before = dup(0);
    close(before);
    lay(&s, "first");
    cr_assert_not(shelf_look(&s, &fd, small, sizeof small));
    cr_assert_not(shelf_look(&s, &fd, large, sizeof large));
    int after = dup(0);
    cr_assert_eq(after, before, "descriptors were left open");
    close(after);
    finds(&s, "first");
    shelf_clear(&s);
}

Test(shelf, a_descriptor_that_is_none_is_refused_and_nothing_lies_there)
{
    struct shelf s = opened();
    struct error err = {0};
    lay(&s, "first");
    cr_assert_eq(shelf_lay(&s, -1, "note", 4, &err), -1);
    cr_assert_eq(err.code, ERR_MACHINE);
    cr_assert_eq(strncmp(err.text, "lay a descriptor on the shelf: ", 31), 0, "%s", err.text);
    cr_assert(finds_nothing(&s));
    shelf_clear(&s);
}
