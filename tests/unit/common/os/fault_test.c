#include "common/os/fault.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs the given number of visits of "here" in a child; true where the fault killed it. */
static int killed(const char *setting, int worker, int visits)
{
    pid_t child = fork();
    if (child == 0) {
        setenv("RINGMASTER_FAULT", setting, 1);
        fault_worker(worker);
        for (int i = 0; i < visits; i++)
            FAULT("here");
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

Test(fault, strikes_at_its_name_only)
{
    cr_assert(killed("here", 0, 1));
    cr_assert(!killed("elsewhere", 0, 9));
}

Test(fault, strikes_at_the_nth_visit)
{
    cr_assert(!killed("here:3", 0, 2));
    cr_assert(killed("here:3", 0, 3));
}

Test(fault, flips_one_bit_once_and_kills_nobody)
{
    unsigned char bytes[5] = {0}, all = 0;
    setenv("RINGMASTER_FAULT", "here:2/flips", 1);
    for (int i = 0; i < 4; i++) {
        FAULT("here");
        cr_assert_not(FAULT_FAILS("here", EIO));
        FAULT_FLIP("elsewhere", bytes, sizeof bytes);
        FAULT_FLIP("here", bytes, sizeof bytes);
        cr_assert_eq(bytes[2] != 0, i > 0, "after %d visits", i + 1);
    }
    for (size_t i = 0; i < sizeof bytes; i++)
        all |= bytes[i];
    cr_assert_eq(all & (all - 1), 0, "%x", all);
}

Test(fault, strikes_in_one_worker_only)
{
    cr_assert(killed("here@2", 2, 1));
    cr_assert(!killed("here@2", 1, 1));
    cr_assert(killed("here:2@1", 1, 2));
    cr_assert(!killed("here@1", 11, 1));
}

Test(fault, strikes_by_a_process_own_name)
{
    pid_t child = fork();
    if (child == 0) {
        setenv("RINGMASTER_FAULT", "here@coordinator", 1);
        FAULT("here");
        fault_who("coordinator");
        FAULT("here");
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    cr_assert(WIFSIGNALED(status));
    cr_assert(!killed("here@coordinator", 0, 1));
}

Test(fault, passes_over_a_process_that_is_disarmed)
{
    pid_t child = fork();
    if (child == 0) {
        setenv("RINGMASTER_FAULT", "here", 1);
        fault_disarm();
        FAULT("here");
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    cr_assert(WIFEXITED(status));
}

/* What a child with that setting that gets to "here" so many times says; its end in *ret_status. */
static const char *said_by(const char *setting, int visits, int *ret_status)
{
    static char said[512];
    int ends[2];
    size_t length = 0;
    ssize_t n;
    cr_assert(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        setenv("RINGMASTER_FAULT", setting, 1);
        for (int i = 0; i < visits; i++)
            FAULT("here");
        FAULT("elsewhere");
        exit(0);
    }
    close(ends[1]);
    while ((n = read(ends[0], said + length, sizeof said - 1 - length)) > 0)
        length += (size_t)n;
    said[length] = 0;
    close(ends[0]);
    waitpid(child, ret_status, 0);
    return said;
}

/* First; a sanitizer may have a word of its own behind it, of threads that a fork does not have. */
static bool is_said(const char *said, const char *line)
{
    return !strncmp(said, line, strlen(line));
}

Test(fault, says_on_standard_error_where_it_struck)
{
    int status;
    cr_assert_str_eq(said_by("here", 1, &status), "fault point here\n");
    cr_assert(WIFSIGNALED(status));
}

Test(fault, a_setting_that_is_none_ends_who_reads_it_with_a_sentence)
{
    static const char *const wrong[] = {"here/stopp", "here/",   "here:0",       "here:-1",
                                        "here:x",     "here:2x", "here/fails-0", "here/failsafe",
                                        "here@",      ":2",      "/stop"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        int status;
        const char *said = said_by(wrong[i], 3, &status);
        cr_assert(strstr(said, "write NAME[:N][@WHO]"), "%s: %s", wrong[i], said);
        cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "%s", wrong[i]);
    }
}

Test(fault, that_nobody_got_there_is_said_at_the_end)
{
    int status;
    const char *said = said_by("nowhere", 1, &status);
    cr_assert(is_said(said, "RINGMASTER_FAULT: no process got to nowhere for the time that was asked for\n"),
              "%s", said);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    cr_assert(strstr(said_by("here:3", 2, &status), "no process got to here"));
    cr_assert(strstr(said_by("here@4", 2, &status), "no process got to here, nobody of that number or name"));
}

Test(fault, a_process_whose_child_got_there_says_nothing_of_it)
{
    int ends[2];
    char said[512] = "";
    cr_assert(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        setenv("RINGMASTER_FAULT", "here", 1);
        FAULT("elsewhere");
        pid_t below = fork();
        if (below == 0)
            FAULT("here");
        waitpid(below, NULL, 0);
        exit(0);
    }
    close(ends[1]);
    waitpid(child, NULL, 0);
    cr_assert(read(ends[0], said, sizeof said - 1) > 0);
    cr_assert(is_said(said, "fault point here\n"), "%s", said);
    cr_assert_not(strstr(said, "RINGMASTER_FAULT"), "%s", said);
}

Test(fault, stands_still_where_the_setting_ends_with_stop_and_can_go_on)
{
    pid_t child = fork();
    if (child == 0) {
        setenv("RINGMASTER_FAULT", "here:2@1/stop", 1);
        fault_worker(1);
        FAULT("here");
        FAULT("here");
        _exit(7);
    }
    int status = 0;
    waitpid(child, &status, WUNTRACED);
    cr_assert(WIFSTOPPED(status));
    kill(child, SIGCONT);
    waitpid(child, &status, 0);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

/* Which of the visits 1 to 6 of "here" in a child fail, as bits. */
static int failing(const char *setting)
{
    pid_t child = fork();
    if (child == 0) {
        int bits = 0;
        setenv("RINGMASTER_FAULT", setting, 1);
        for (int i = 1; i <= 6; i++)
            if (FAULT_FAILS("here", EIO) && errno == EIO)
                bits |= 1 << i;
        FAULT("here"); /* does not die of it */
        _exit(bits >> 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Test(fault, lets_calls_fail_from_the_nth_visit_on_for_so_many_times)
{
    cr_assert_eq(failing("here:3/fails-2"), 0x0c);
    cr_assert_eq(failing("here:5/fails"), 0x30);
    cr_assert_eq(failing("elsewhere/fails"), 0);
    cr_assert_eq(failing("here:7"), 0, "a call fails only where that is asked for");
}
