/* Stands in for CRIU where there is none: freezes one process that keeps all that it has to remember in a
 * memory file of the name ringmaster-state, and has it live again by starting its command anew with that file
 * at the same descriptor, with the pid that it had. The first word of the file says "not now" where it is not
 * 0. A process without any descriptor, as the trial's, lives again as one that waits.
 *
 * A `--criu FILE` that begins with "criu 3.17" is taken for a CRIU of that version. */
#include "agent/snapshot/criu/freezer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/snapshot/process_tree.h"
#include "common/os/clock.h"

enum { STATE_MAX = 1 << 20, WORDS_MAX = 1 << 17, ARGUMENTS_MAX = 512, VERSION = 40101 };
static const char state_link[] = "/memfd:ringmaster-state";

int freezer_version(const char *binary)
{
    int major, minor;
    FILE *file = binary ? fopen(binary, "re") : NULL;
    if (!binary)
        return VERSION;
    if (!file)
        return -1;
    int found = fscanf(file, "criu %d.%d", &major, &minor);
    fclose(file);
    return found == 2 ? 10000 * major + 100 * minor : VERSION;
}

/* --- files of the folder --- */

static int write_file(int folder, const char *name, const void *bytes, size_t length, struct error *err)
{
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ssize_t written = fd < 0 ? -1 : write(fd, bytes, length);
    if (fd >= 0)
        close(fd);
    return written == (ssize_t)length
               ? 0
               : err_set(err, ERR_MACHINE, "the dump failed: criu: can't write %s", name);
}

/* How many bytes it has, -1 where it can't be read. */
static ssize_t read_file(int folder, const char *name, char *out, size_t size)
{
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    ssize_t had = 0, n = -1;
    while (fd >= 0 && (n = read(fd, out + had, size - 1 - (size_t)had)) > 0)
        had += n;
    if (fd >= 0)
        close(fd);
    out[had] = 0;
    return n < 0 ? -1 : had;
}

static int copy_proc(long pid, const char *what, int folder, struct error *err)
{
    static char text[WORDS_MAX];
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/%s", pid, what);
    ssize_t length = read_file(AT_FDCWD, path, text, sizeof text);
    if (length < 0)
        return err_set(err, ERR_MACHINE, "the dump failed: criu: can't read %s", path);
    return write_file(folder, what, text, (size_t)length, err);
}

static int copy_link(long pid, const char *what, int folder, struct error *err)
{
    char path[64], target[512];
    snprintf(path, sizeof path, "/proc/%ld/%s", pid, what);
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length < 0)
        return err_set(err, ERR_MACHINE, "the dump failed: criu: can't read %s", path);
    return write_file(folder, what, target, (size_t)length, err);
}

/* --- the process --- */

/* Where its state is: a descriptor; -1: it has none. ret_any: whether it has any descriptor. */
static int find_state(long pid, bool *ret_any)
{
    char path[64], target[256];
    int found = -1;
    snprintf(path, sizeof path, "/proc/%ld/fd", pid);
    DIR *folder = opendir(path);
    *ret_any = false;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        ssize_t length = readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1);
        if (length <= 0)
            continue;
        target[length] = 0;
        *ret_any = true;
        if (!strncmp(target, state_link, sizeof state_link - 1))
            found = (int)strtol(entry->d_name, NULL, 10);
    }
    if (folder)
        closedir(folder);
    return found;
}

static int stop_process(pid_t pid, struct error *err)
{
    int status;
    if (ptrace(PTRACE_INTERRUPT, pid, 0, 0) < 0 || waitpid(pid, &status, __WALL) != pid ||
        !WIFSTOPPED(status))
        return err_set(err, ERR_MACHINE, "the dump failed: criu: process %d can't be stopped", (int)pid);
    return 0;
}

/* Its state while it stands; it is let go on where that is no good moment. */
static ssize_t read_state(pid_t pid, int fd, char *state, struct error *err)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, fd);
    for (;;) {
        uint64_t busy = 0;
        if (stop_process(pid, err) < 0)
            return -1;
        ssize_t length = read_file(AT_FDCWD, path, state, STATE_MAX);
        if (length >= (ssize_t)sizeof busy)
            memcpy(&busy, state, sizeof busy);
        if (!busy)
            return length;
        ptrace(PTRACE_CONT, pid, 0, 0);
    }
}

static int save_process(pid_t pid, int fd, int folder, struct error *err)
{
    static char state[STATE_MAX];
    char number[32];
    ssize_t length = fd < 0 ? 0 : read_state(pid, fd, state, err);
    if (length < 0 || (fd < 0 && stop_process(pid, err) < 0))
        return -1;
    int digits = snprintf(number, sizeof number, "%d %d\n", (int)pid, fd);
    if (write_file(folder, "place", number, (size_t)digits, err) < 0 ||
        write_file(folder, "state", state, (size_t)length, err) < 0 ||
        copy_proc(pid, "cmdline", folder, err) < 0 || copy_proc(pid, "environ", folder, err) < 0 ||
        copy_link(pid, "exe", folder, err) < 0)
        return -1;
    return copy_link(pid, "cwd", folder, err);
}

static size_t add_varint(unsigned char *out, uint64_t value)
{
    size_t length = 0;
    for (; value >= 128; value >>= 7)
        out[length++] = (unsigned char)(value | 128);
    out[length++] = (unsigned char)value;
    return length;
}

/* As CRIU writes it: agent/snapshot/core/stats.c. */
static int write_stats(int folder, uint64_t frozen_us, uint64_t pages, struct error *err)
{
    const uint64_t fields[][2] = {{1, frozen_us / 4}, {2, frozen_us}, {4, frozen_us / 2}, {7, pages}};
    unsigned char inner[64], whole[128];
    uint32_t head[3] = {0x55105940, 0x57093306};
    size_t length = 0, at = sizeof head;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        inner[length++] = (unsigned char)(fields[i][0] << 3);
        length += add_varint(inner + length, fields[i][1]);
    }
    whole[at++] = 1 << 3 | 2;
    at += add_varint(whole + at, length);
    memcpy(whole + at, inner, length);
    head[2] = (uint32_t)(at + length - sizeof head);
    memcpy(whole, head, sizeof head);
    return write_file(folder, "stats-dump", whole, at + length, err);
}

static int refuse_more(long root, struct error *err)
{
    struct process_tree *tree = calloc(1, sizeof *tree);
    int result = tree ? process_tree_read(root, tree, err) : err_set(err, ERR_MACHINE, "no memory");
    if (result == 0 && tree->count > 1)
        result =
            err_set(err, ERR_MACHINE, "the dump failed: criu: a stand-in freezes one process, and %ld has %d",
                    root, tree->count);
    free(tree);
    return result;
}

int freezer_dump(const struct snapshot *wish, freezer_still *still, struct error *err)
{
    bool any;
    pid_t pid = (pid_t)wish->pid;
    int fd = find_state(wish->pid, &any);
    if (refuse_more(wish->pid, err) < 0)
        return -1;
    if (fd < 0 && any)
        return err_set(err, ERR_MACHINE, "the dump failed: criu: process %ld has no ringmaster-state",
                       wish->pid);
    rm_time from = clock_now();
    if (ptrace(PTRACE_SEIZE, pid, 0, 0) < 0)
        return err_set(err, ERR_MACHINE, "the dump failed: criu: process %ld: %s", wish->pid,
                       strerror(errno));
    int result = save_process(pid, fd, wish->folder, err);
    if (result == 0)
        result = write_stats(wish->folder, (uint64_t)((clock_now() - from) / RM_US), 256, err);
    if (result == 0)
        result = still(wish, err);
    if (result == 0 && !wish->leave_running)
        kill(pid, SIGKILL);
    else
        ptrace(PTRACE_DETACH, pid, 0, 0);
    return result;
}

/* --- living again --- */

static pid_t fork_as(pid_t pid)
{
    struct clone_args args = {
        .exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&pid, .set_tid_size = 1};
    return (pid_t)syscall(SYS_clone3, &args, sizeof args);
}

static int split_words(char *text, ssize_t length, char *out[static ARGUMENTS_MAX])
{
    int count = 0;
    for (char *at = text; at < text + length && count + 1 < ARGUMENTS_MAX; at += strlen(at) + 1)
        out[count++] = at;
    out[count] = NULL;
    return count;
}

static void take_stream(int fd, const char *had, int place)
{
    int nothing = open("/dev/null", O_RDWR);
    dup2(fd >= 0 && *had ? fd : nothing, place);
    if (nothing > STDERR_FILENO)
        close(nothing);
}

/* In the child: becomes what it was. */
static _Noreturn void live_again(const struct snapshot *wish, const struct program_streams *had, int fd)
{
    static char state[STATE_MAX], words[WORDS_MAX], environment[WORDS_MAX], exe[512], cwd[512];
    char *argv[ARGUMENTS_MAX], *envp[ARGUMENTS_MAX];
    ssize_t bytes = read_file(wish->folder, "state", state, sizeof state);
    int memory = memfd_create("ringmaster-state", 0);
    split_words(words, read_file(wish->folder, "cmdline", words, sizeof words), argv);
    split_words(environment, read_file(wish->folder, "environ", environment, sizeof environment), envp);
    read_file(wish->folder, "exe", exe, sizeof exe);
    read_file(wish->folder, "cwd", cwd, sizeof cwd);
    setsid();
    if (write(memory, state, (size_t)bytes) != bytes || chdir(cwd) < 0)
        _exit(126);
    take_stream(-1, "", STDIN_FILENO);
    take_stream(wish->out, had->out, STDOUT_FILENO);
    take_stream(strcmp(had->out, had->err) ? wish->err : wish->out, had->err, STDERR_FILENO);
    dup2(memory, fd);
    close_range(STDERR_FILENO + 1, (unsigned)fd - 1, 0);
    close_range((unsigned)fd + 1, ~0U, 0);
    execve(exe, argv, envp);
    _exit(127);
}

static _Noreturn void wait_only(void)
{
    setsid();
    close_range(0, ~0U, 0);
    for (;;)
        pause();
}

/* The images may go as soon as the restore is told to be done: the child has read them then, and closed its
 * end. */
static void wait_for_reading(const int ends[2])
{
    char none;
    close(ends[1]);
    while (read(ends[0], &none, 1) < 0 && errno == EINTR)
        ;
    close(ends[0]);
}

long freezer_restore(const struct snapshot *wish, const struct program_streams *had, struct error *err)
{
    char place[32];
    int pid, fd, ends[2];
    if (read_file(wish->folder, "place", place, sizeof place) <= 0 || sscanf(place, "%d %d", &pid, &fd) != 2)
        return err_set(err, ERR_MACHINE, "the restore failed: criu: the images can't be read");
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_errno(err, ERR_MACHINE, "a pipe");
    pid_t child = fork_as(pid);
    int why = errno;
    if (child == 0 && fd < 0)
        wait_only();
    if (child == 0)
        live_again(wish, had, fd);
    wait_for_reading(ends);
    if (child < 0)
        return err_set(err, ERR_MACHINE, "the restore failed: criu: Can't fork for %d: %s", pid,
                       strerror(why));
    return child;
}
