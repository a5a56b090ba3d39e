/* A program's pipes by their names: kept beside its images, and read again. */
#include "agent/snapshot/program_streams.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int make_folder(char path[static 64])
{
    snprintf(path, 64, "/tmp/streams-test-XXXXXX");
    cr_assert(mkdtemp(path));
    int folder = open(path, O_RDONLY | O_DIRECTORY);
    cr_assert_geq(folder, 0);
    return folder;
}

static void remove_folder(int folder, const char *path)
{
    unlinkat(folder, "ringmaster-streams", 0);
    close(folder);
    cr_expect_eq(rmdir(path), 0);
}

Test(program_streams, what_was_saved_is_read_again)
{
    static const struct program_streams rows[] = {
        {"pipe:[1]", "pipe:[2]"},
        {"pipe:[18446744073709551615]", "pipe:[18446744073709551615]"},
        {"", "pipe:[7]"},
        {"pipe:[7]", ""},
        {"", ""}};
    char path[64];
    int folder = make_folder(path);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct program_streams read;
        struct error err = {0};
        cr_assert_eq(program_streams_save(folder, &rows[i], &err), 0, "%s", err.text);
        cr_assert_eq(program_streams_load(folder, &read, &err), 0, "%s", err.text);
        cr_expect_str_eq(read.out, rows[i].out);
        cr_expect_str_eq(read.err, rows[i].err);
    }
    remove_folder(folder, path);
}

Test(program_streams, a_folder_that_is_no_snapshot_says_so)
{
    static const char *const texts[] = {"",
                                        "pipe:[1]",
                                        "pipe:[1]\n",
                                        "pipe:[1]\nfile:2\n",
                                        "\n\n\n",
                                        "pipe:[1]\npipe:[2]\nmore",
                                        "/dev/null\n\n",
                                        "pipe:[11111111111111111111111111111111111111]\n\n"};
    char path[64];
    int folder = make_folder(path);
    struct program_streams read;
    struct error err = {0};
    cr_expect_eq(program_streams_load(folder, &read, &err), -1);
    cr_expect(strstr(err.text, "no snapshot"), "%s", err.text);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        int fd = openat(folder, "ringmaster-streams", O_WRONLY | O_CREAT | O_TRUNC, 0600);
        cr_assert_eq(write(fd, texts[i], strlen(texts[i])), (ssize_t)strlen(texts[i]));
        close(fd);
        cr_expect_eq(program_streams_load(folder, &read, &err), -1, "%s", texts[i]);
        cr_expect_eq(err.code, ERR_DATA);
    }
    remove_folder(folder, path);
}

Test(program_streams, pipes_of_a_process_that_lives_are_known_and_nothing_else)
{
    int ends[2];
    struct program_streams streams;
    cr_assert_eq(pipe(ends), 0);
    cr_assert_eq(dup2(ends[1], STDOUT_FILENO), STDOUT_FILENO);
    int null = open("/dev/null", O_WRONLY);
    int before = dup(STDERR_FILENO);
    cr_assert_eq(dup2(null, STDERR_FILENO), STDERR_FILENO);
    program_streams_read(getpid(), &streams);
    dup2(before, STDERR_FILENO);
    cr_expect_eq(strncmp(streams.out, "pipe:[", 6), 0);
    cr_expect_str_eq(streams.err, "");
}
