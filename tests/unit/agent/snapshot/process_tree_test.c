/* A real tree of processes: all of it is found, and what can't be in a snapshot is refused wherever it is. */
#include "agent/snapshot/process_tree.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Says its pid, and waits for its end. */
static void say_and_wait(int out)
{
    pid_t self = getpid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (write(out, &self, sizeof self) != sizeof self)
        _exit(1);
    for (;;)
        pause();
}

/* A child with two children, one of which has one: pids in the order in which they said so. */
static void start_tree(pid_t pids[static 4])
{
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    if (fork() == 0) {
        if (fork() == 0)
            say_and_wait(ends[1]);
        if (fork() == 0) {
            if (fork() == 0)
                say_and_wait(ends[1]);
            say_and_wait(ends[1]);
        }
        say_and_wait(ends[1]);
    }
    for (int i = 0; i < 4; i++)
        cr_assert_eq(read(ends[0], &pids[i], sizeof pids[i]), (ssize_t)sizeof pids[i]);
    close(ends[0]);
    close(ends[1]);
}

static bool tree_has(const struct process_tree *tree, long pid)
{
    for (int i = 0; i < tree->count; i++)
        if (tree->pids[i] == pid)
            return true;
    return false;
}

static pid_t own_child(const pid_t pids[static 4])
{
    for (int i = 0; i < 4; i++)
        if (waitpid(pids[i], NULL, WNOHANG) == 0)
            return pids[i];
    return -1;
}

Test(process_tree, all_below_a_process_are_found)
{
    struct process_tree *tree = malloc(sizeof *tree);
    struct error err = {0};
    pid_t pids[4];
    start_tree(pids);
    pid_t root = own_child(pids);
    cr_assert_eq(process_tree_read(root, tree, &err), 0, "%s", err.text);
    cr_expect_eq(tree->count, 4);
    cr_expect_eq(tree->pids[0], root);
    for (int i = 0; i < 4; i++)
        cr_expect(tree_has(tree, pids[i]));
    cr_expect_not(tree_has(tree, getpid()));
    cr_expect_eq(process_tree_refuse(tree, &err), 0, "%s", err.text);
    kill(root, SIGKILL);
    free(tree);
}

Test(process_tree, a_process_that_is_not_there_is_said)
{
    struct process_tree *tree = malloc(sizeof *tree);
    struct error err = {0};
    cr_expect_eq(process_tree_read(1 << 22, tree, &err), -1);
    cr_expect_eq(err.code, ERR_NOT_FOUND);
    cr_expect_str_eq(err.text, "there is no process 4194304");
    free(tree);
}

/* CRIU's own words for it are that it can't detach from it. */
Test(process_tree, a_process_that_has_ended_and_waits_to_be_reaped_is_said)
{
    struct process_tree *tree = malloc(sizeof *tree);
    struct error err = {0};
    char expected[64];
    siginfo_t info;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    cr_assert_eq(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    cr_expect_eq(process_tree_read(child, tree, &err), -1);
    snprintf(expected, sizeof expected, "process %d has ended", (int)child);
    cr_expect_str_eq(err.text, expected);
    waitpid(child, NULL, 0);
    free(tree);
}

/* A kernel may give none (kernel.io_uring_disabled): a skip that is counted. */
Test(process_tree, a_process_with_an_io_uring_is_refused)
{
    char params[120] = {0};
    struct process_tree *tree = malloc(sizeof *tree);
    struct error err = {0};
    long ring = syscall(SYS_io_uring_setup, 2, params);
    if (ring < 0)
        cr_skip_test("this kernel gives no io_uring");
    cr_assert_eq(process_tree_read(getpid(), tree, &err), 0, "%s", err.text);
    cr_expect_eq(process_tree_refuse(tree, &err), -1);
    cr_expect(strstr(err.text, "io_uring cannot be in a snapshot"), "%s", err.text);
    free(tree);
}
