/* A process that waits with its modules imported: real Pythons, handed over in each moment. */
#include "agent/launch/standbys.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/str.h"

extern char **environ;

static struct loop *loop;
static struct standbys *standbys;
static struct job_spec spec;
static char folder[64], script[128], gate[128];
static int ended_with = -1;
static bool warm;

static void write_file(const char *name, const char *text)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    cr_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void are_warm(void *ctx)
{
    (void)ctx;
    warm = true;
}

static void has_ended(void *ctx, int code, int signo)
{
    (void)ctx;
    ended_with = signo ? 128 + signo : code;
}

/* Beside this test: build/tests and build/bin. */
static const char *agent(void)
{
    static char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);
    cr_assert_gt(n, 0);
    path[n] = 0;
    *strrchr(path, '/') = 0;
    char *end = strrchr(path, '/');
    snprintf(end, sizeof path - (size_t)(end - path), "/bin/ringmaster-agent");
    return path;
}

/* A program that ends with 5 in the right environment, and a module that imports as long as there is no gate.
 */
static void begin(const char *module)
{
    struct error err = {0};
    text_copy(folder, sizeof folder, "/tmp/standbys-XXXXXX");
    cr_assert(mkdtemp(folder));
    snprintf(script, sizeof script, "%s/program.py", folder);
    snprintf(gate, sizeof gate, "%s/gate", folder);
    write_file("slow.py", "import os, time\nhere = os.path.dirname(__file__)\n"
                          "while not os.path.exists(here + '/gate'):\n    time.sleep(0.005)\n");
    write_file("program.py",
               "import os, sys\ne = os.environ\n"
               "right = e.get('PLACE') == '1' and e.get('LD_PRELOAD') == '/of/the/image.so' and len(e) == 2\n"
               "sys.exit(5 if right else 6)\n");
    job_spec_defaults(&spec);
    spec.launched = true;
    cr_assert(job_list_add(&spec.launch.command, "python3") && job_list_add(&spec.launch.command, script));
    cr_assert(job_list_add(&spec.launch.preload, module));
    cr_assert_eq(loop_open(&loop, &err), 0, "%s", err.text);
    struct standbys_options options = {
        .spec = &spec, .agent = agent(), .count = 1, .environment = environ, .warm = are_warm};
    cr_assert_eq(standbys_open(&standbys, loop, &options, &err), 0, "%s", err.text);
    standbys_make(standbys, 0);
    while (!standbys_any(standbys) && !warm)
        loop_turn(loop, false);
}

static struct loop_child *take(void)
{
    char *environment[] = {"PLACE=1", "RINGMASTER_ASIDE_LD_PRELOAD=/of/the/image.so", NULL};
    return standbys_take(standbys, 0, environment, (int[]){STDOUT_FILENO, STDERR_FILENO});
}

static void finish(struct loop_child *child)
{
    loop_child_free(child);
    standbys_free(standbys);
    loop_free(loop);
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(standbys, .timeout = 60);

Test(standbys, one_that_is_ready_becomes_the_program)
{
    begin("decimal");
    while (!warm)
        loop_turn(loop, true);
    struct loop_child *child = take();
    cr_assert(child && !standbys_any(standbys));
    loop_child_pass(child, has_ended, NULL);
    while (ended_with < 0)
        loop_turn(loop, true);
    cr_assert_eq(ended_with, 5);
    finish(child);
}

Test(standbys, one_that_is_taken_while_it_still_imports_becomes_the_program_too)
{
    begin("slow");
    struct loop_child *child = take();
    cr_assert(child && !warm);
    loop_child_pass(child, has_ended, NULL);
    write_file("gate", "");
    while (ended_with < 0)
        loop_turn(loop, true);
    cr_assert_eq(ended_with, 5, "code %d; 0 would be taken for the program's success", ended_with);
    finish(child);
}

Test(standbys, one_that_dies_before_it_is_the_program_says_so_and_one_that_was_it_too)
{
    begin("slow");
    struct loop_child *child = take();
    loop_child_pass(child, has_ended, NULL);
    loop_child_kill(child, SIGKILL);
    while (ended_with < 0)
        loop_turn(loop, true);
    cr_assert(standbys_never_became(standbys, 0));
    cr_assert_not(standbys_never_became(standbys, 0), "asked once");
    finish(child);

    warm = false;
    ended_with = -1;
    spec = (struct job_spec){0};
    begin("decimal");
    while (!warm)
        loop_turn(loop, true);
    child = take();
    loop_child_pass(child, has_ended, NULL);
    while (ended_with < 0)
        loop_turn(loop, true);
    cr_assert_eq(ended_with, 5);
    cr_assert_not(standbys_never_became(standbys, 0));
    finish(child);
}

Test(standbys, where_a_module_is_not_there_none_is_given)
{
    begin("no_such_module_anywhere");
    while (!warm)
        loop_turn(loop, true);
    cr_assert_null(take());
    standbys_make(standbys, 0);
    loop_turn(loop, false);
    cr_assert_not(standbys_any(standbys), "what failed once is not tried again");
    finish(NULL);
}
