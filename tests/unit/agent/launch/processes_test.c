/* Real processes: each end is told once, with its own code, whoever else ends in that moment. */
#include "agent/launch/processes.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/launch/descendants.h"

enum { RANKS = 3 };

static struct loop *loop;
static struct processes *processes;
static struct job_spec spec;
static int code[RANKS], ended;
static char why[RANKS][MSG_DETAIL_MAX];
static int refused;
static bool gone, tells = true;

static void process_ended(void *ctx, int local, const struct processes_end *end)
{
    (void)ctx;
    cr_assert(local >= 0 && local < RANKS && code[local] < 0, "process %d ended twice", local);
    code[local] = end->code;
    cr_assert_not(end->memory);
    refused += end->refused;
    cr_assert(spec.launch.tell_output || !*end->output, "%s", end->output);
    text_copy(why[local], sizeof why[local], end->why);
    ended++;
}

static void all_gone(void *ctx)
{
    (void)ctx;
    gone = true;
    loop_stop(loop);
}

/* Beside this test: build/tests and build/bin. */
static const char *agent(void)
{
    static char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);
    cr_assert_gt(n, 0);
    path[n] = 0;
    *strrchr(path, '/') = 0;
    char *folder = strrchr(path, '/');
    snprintf(folder, sizeof path - (size_t)(folder - path), "/bin/ringmaster-agent");
    return path;
}

static void start(const char *script)
{
    struct error err = {0};
    struct launch_ring ring = {.generation = {1, 1}, .world = 1};
    job_spec_defaults(&spec);
    text_copy(ring.address[0], RM_ADDRESS_MAX, "127.0.0.1:20000");
    text_copy(spec.name, sizeof spec.name, "j");
    spec.launched = true;
    spec.launch.processes = RANKS;
    spec.launch.tell_output = tells;
    spec.launch.command = (struct job_list){0};
    cr_assert(job_list_add(&spec.launch.command, "sh") && job_list_add(&spec.launch.command, "-c") &&
              job_list_add(&spec.launch.command, script));
    struct processes_options options = {
        .spec = &spec, .agent = agent(), .ended = process_ended, .gone = all_gone};
    for (int i = 0; i < RANKS; i++)
        code[i] = -1;
    cr_assert_eq(loop_open(&loop, &err), 0, "%s", err.text);
    cr_assert_eq(processes_open(&processes, loop, &options, &err), 0, "%s", err.text);
    processes_start(processes, &ring);
}

static void finish(void)
{
    processes_kill(processes);
    loop_run(loop);
    cr_assert(gone && descendants_none());
    processes_free(processes);
    loop_free(loop);
}

/* How many of them have that last word. */
static int words(const char *wanted)
{
    int n = 0;
    for (int i = 0; i < RANKS; i++)
        n += strcmp(why[i], wanted) == 0;
    return n;
}

TestSuite(processes, .timeout = 60);

Test(processes, three_that_end_together_beside_a_hundred_orphans_keep_their_codes)
{
    /* each waits for one moment, named by a file that the last one makes */
    char folder[] = "/tmp/processes-XXXXXX", script[1024];
    cr_assert(mkdtemp(folder));
    snprintf(script, sizeof script,
             "i=0; while [ $i -lt 34 ]; do (sleep 0.05 &) ; i=$((i+1)); done; : > %s/$RANK; "
             "while [ ! -e %s/0 ] || [ ! -e %s/1 ] || [ ! -e %s/2 ]; do sleep 0.005; done; "
             "case $RANK in 0) exit 3;; 1) kill -9 $$;; 2) exit 0;; esac",
             folder, folder, folder, folder);
    start(script);
    while (ended < RANKS)
        loop_turn(loop, true);
    cr_assert(code[0] == 3 && code[1] == 137 && code[2] == 0, "%d %d %d", code[0], code[1], code[2]);
    finish();
}

Test(processes, what_they_left_behind_is_gone_before_gone_is_told)
{
    start("trap '' TERM; (setsid sleep 1000 &); setsid sh -c 'setsid sleep 1000 & sleep 1000' & sleep 1000");
    processes_terminate(processes);
    finish();
    cr_assert(code[0] == 137 || code[0] == 143, "%d", code[0]);
    cr_assert_eq(ended, RANKS);
}

/* The shell dies of the signal that its whole group gets; the program below it saves. */
Test(processes, a_program_below_a_shell_has_the_time_that_it_was_given)
{
    char folder[] = "/tmp/processes-XXXXXX", script[1024], path[64];
    cr_assert(mkdtemp(folder));
    snprintf(script, sizeof script,
             "sh -c 'trap \"sleep 0.3; : > %s/saved$RANK; exit\" TERM; : > %s/up$RANK; "
             "while :; do sleep 0.01; done'; true",
             folder, folder);
    start(script);
    for (int i = 0; i < RANKS; i++)
        for (snprintf(path, sizeof path, "%s/up%d", folder, i); access(path, F_OK) < 0;)
            loop_turn(loop, false);
    processes_terminate(processes);
    while (ended < RANKS)
        loop_turn(loop, true);
    for (int i = 0; i < RANKS; i++) {
        snprintf(path, sizeof path, "%s/saved%d", folder, i);
        cr_assert_eq(access(path, F_OK), 0, "rank %d was not let save; its shell ended with %d", i, code[i]);
    }
    finish();
}

/* And who does not go is ended with the rest when the time is over. */
Test(processes, a_program_below_a_shell_that_does_not_go_is_ended_with_the_rest)
{
    char folder[] = "/tmp/processes-XXXXXX", script[1024], path[64];
    cr_assert(mkdtemp(folder));
    snprintf(script, sizeof script, "sh -c 'trap : TERM; : > %s/up$RANK; while :; do sleep 0.01; done'; true",
             folder);
    start(script);
    for (int i = 0; i < RANKS; i++)
        for (snprintf(path, sizeof path, "%s/up%d", folder, i); access(path, F_OK) < 0;)
            loop_turn(loop, false);
    processes_terminate(processes);
    finish();
    cr_assert_eq(ended, RANKS);
}

Test(processes, the_last_line_tells_why)
{
    start("echo working; echo 'no such thing)' >&2; echo '=====' >&2; echo >&2; exit 4");
    while (ended < RANKS)
        loop_turn(loop, true);
    cr_assert_eq(words("exit code 4: no such thing)"), 1, "the first one's, as nobody asks the others");
    finish();
}

Test(processes, torchs_own_account_goes_before_the_last_line)
{
    start("echo '{\"message\": {\"message\": \"ValueError: from torch\", \"extraInfo\": {}}}' > "
          "$TORCHELASTIC_ERROR_FILE; echo 'something else'; exit 1");
    while (ended < RANKS)
        loop_turn(loop, true);
    cr_assert_eq(words("exit code 1: ValueError: from torch"), 1);
    finish();
}

/* As python/ringmaster/library.py writes it: by the process itself, by a child, and by one that is killed. */
#define REFUSAL(pid)                                                                                         \
    "echo '{\"message\": {\"message\": \"ringmaster refuses it: x\", \"extraInfo\": {\"py_callstack\": "     \
    "\"secret\", "                                                                                           \
    "\"ringmaster\": \"refused\", \"pid\": '" pid "'}}}' > $TORCHELASTIC_ERROR_FILE; "

static void run(const char *script)
{
    start(script);
    while (ended < RANKS)
        loop_turn(loop, true);
}

Test(processes, what_the_package_refuses_is_the_words_of_the_process_that_ended)
{
    run(REFUSAL("$$") "exit 1");
    cr_assert_eq(words("exit code 1: ringmaster refuses it: x"), 1);
    cr_assert_eq(refused, 1);
    finish();
}

Test(processes, what_another_process_was_refused_is_not_the_programs_end)
{
    run(REFUSAL("$PPID") "echo of its own; exit 3");
    cr_assert_eq(refused, 0);
    cr_assert_eq(words("exit code 3: of its own"), 1, "%s", why[0]);
    finish();
}

Test(processes, who_is_killed_after_a_refusal_was_killed)
{
    run(REFUSAL("$$") "echo of its own; kill -9 $$");
    cr_assert_eq(refused, 0);
    cr_assert_eq(words("killed by signal 9: of its own"), 1);
    finish();
}

Test(processes, a_refusal_is_no_output_that_is_not_to_be_told)
{
    tells = false;
    run(REFUSAL("$$") "exit 1");
    cr_assert_eq(refused, 1);
    cr_assert_eq(words("exit code 1: ringmaster refuses it: x"), 1, "%s", why[0]);
    finish();
}

Test(processes, a_program_that_is_not_there_ends_as_in_a_shell)
{
    start("exec no-such-program-anywhere");
    while (ended < RANKS)
        loop_turn(loop, true);
    cr_assert_eq(code[0], 127);
    finish();
}
