#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/loop/loop.h"
#include "common/os/file.h"
#include "common/os/orphan.h"

struct desk {
    struct loop *loop;
    struct loop_child *child;
    int code, signal, exits;
};

static void exited(void *ctx, int code, int signo)
{
    struct desk *d = ctx;
    d->code = code;
    d->signal = signo;
    d->exits++;
    loop_stop(d->loop);
}

static void spawn_shell(struct desk *d, const char *script, int fd3)
{
    struct error err;
    const char *const args[] = {"sh", "-c", script, NULL};
    int fds[] = {-1, -1, STDERR_FILENO, fd3};
    struct loop_child_options options = {
        .path = "/bin/sh", .args = args, .fds = fds, .fd_count = fd3 < 0 ? 3 : 4, .exited = exited, .ctx = d};
    *d = (struct desk){0};
    cr_assert_eq(loop_open(&d->loop, &err), 0);
    cr_assert_eq(loop_child_open(&d->child, d->loop, &options, &err), 0, "%s", err.text);
}

static void desk_close(struct desk *d)
{
    loop_child_free(d->child);
    loop_free(d->loop);
}

Test(process, a_childs_exit_code_and_its_descriptors_arrive)
{
    struct desk d;
    int ends[2];
    char text[16] = "";
    cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
    spawn_shell(&d, "echo hello >&3; exit 7", ends[1]);
    close(ends[1]);
    loop_run(d.loop);
    cr_assert_eq(d.code, 7);
    cr_assert_eq(d.signal, 0);
    cr_assert_eq(read(ends[0], text, sizeof text - 1), 6);
    cr_assert_str_eq(text, "hello\n");
    close(ends[0]);
    desk_close(&d);
}

Test(process, a_killed_child_names_its_signal)
{
    struct desk d;
    spawn_shell(&d, "kill -STOP $$", -1);
    cr_assert(loop_child_kill(d.child, SIGKILL));
    loop_run(d.loop);
    cr_assert_eq(d.signal, SIGKILL);
    cr_assert_not(loop_child_kill(d.child, SIGKILL));
    desk_close(&d);
}

Test(process, a_forgotten_child_is_reaped_without_a_word)
{
    struct desk d;
    struct loop_bell *bell; /* keeps the loop alive, as a program's sockets do */
    spawn_shell(&d, "kill -STOP $$", -1);
    cr_assert_eq(loop_bell_open(&bell, d.loop, NULL, NULL, NULL), 0);
    pid_t pid = loop_child_pid(d.child);
    loop_child_kill(d.child, SIGKILL);
    loop_child_free(d.child);
    d.child = NULL;
    while (kill(pid, 0) == 0)
        loop_turn(d.loop, true);
    cr_assert_eq(d.exits, 0);
    loop_bell_free(bell);
    desk_close(&d);
}

Test(process, a_loop_may_end_before_a_forgotten_child)
{
    struct desk d;
    spawn_shell(&d, "kill -STOP $$", -1);
    pid_t pid = loop_child_pid(d.child);
    loop_child_free(d.child);
    loop_free(d.loop);
    kill(pid, SIGKILL);
    cr_assert_eq(waitpid(pid, NULL, 0), pid);
    cr_assert_eq(d.exits, 0);
}

Test(process, a_program_that_is_not_there_is_named)
{
    struct error err;
    struct loop *loop;
    struct loop_child *child;
    const char *const args[] = {"x", NULL};
    int fds[] = {-1, -1, -1};
    struct loop_child_options options = {
        .path = "/nonexistent/program", .args = args, .fds = fds, .fd_count = 3, .exited = exited};
    cr_assert_eq(loop_open(&loop, NULL), 0);
    cr_assert_eq(loop_child_open(&child, loop, &options, &err), -1);
    cr_assert_eq(err.code, ERR_MACHINE);
    cr_assert(strstr(err.text, "/nonexistent/program"), "%s", err.text);
    loop_free(loop);
}

/* A parent that is killed while its child waits for ever: the pipe's end is held by the child alone, so
 * reading it to its end is to wait for the child's death. */
Test(process, an_orphan_dies_with_its_parent)
{
    int ends[2], started[2];
    char byte;
    cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
    cr_assert_eq(pipe2(started, O_CLOEXEC), 0);
    pid_t parent = fork();
    if (parent == 0) {
        pid_t self = getpid();
        if (fork() == 0) {
            if (orphan_guard(self, NULL) < 0 || write(started[1], "x", 1) != 1)
                _exit(1);
            for (;;)
                pause();
        }
        close(ends[1]);
        for (;;)
            pause();
    }
    close(ends[1]);
    cr_assert_eq(read(started[0], &byte, 1), 1);
    kill(parent, SIGKILL);
    waitpid(parent, NULL, 0);
    cr_assert_eq(read(ends[0], &byte, 1), 0);
    close(ends[0]);
    close(started[0]);
    close(started[1]);
}

Test(process, an_orphan_from_the_start_is_told)
{
    struct error err;
    cr_assert_eq(orphan_guard(0, &err), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(orphan_guard(1 << 22, &err) == -1 && strstr(err.text, "has ended") ? 0 : 1);
    int status;
    waitpid(child, &status, 0);
    cr_assert_eq(status, 0);
}

Test(process, files_are_written_whole_and_read_back)
{
    char folder[] = "/tmp/rm-file-XXXXXX", path[64];
    struct error err;
    struct stat info;
    struct str text = str_init(64), small = str_init(4);
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/key", folder);
    cr_assert_eq(file_read(path, &text, &err), -1);
    cr_assert_eq(err.code, ERR_NOT_FOUND);
    cr_assert_eq(file_write(path, "secret", 6, 0600, &err), 0);
    cr_assert_eq(file_read(path, &text, &err), 0);
    cr_assert_str_eq(str_text(&text), "secret");
    cr_assert_eq(stat(path, &info), 0);
    cr_assert_eq(info.st_mode & 0777, 0600);
    cr_assert_eq(file_read(path, &small, &err), -1);
    cr_assert(strstr(err.text, "larger than 4 bytes"), "%s", err.text);
    str_clear(&text);
    str_clear(&small);
    unlink(path);
    rmdir(folder);
}

Test(process, a_memory_file_has_its_size_and_closes_on_exec)
{
    int fd;
    struct stat info;
    cr_assert_eq(file_memory(&fd, "test", 12345, NULL), 0);
    cr_assert_eq(fstat(fd, &info), 0);
    cr_assert_eq(info.st_size, 12345);
    cr_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    close(fd);
}
