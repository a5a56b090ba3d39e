/* The bundle copies itself: whole, over what an attempt that was cut short left there, or with a sentence. */
#include "agent/bundle/install.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/os/file.h"

static char place[64];
static struct error err;

static const char *in(const char *name)
{
    static char path[4][256];
    static int next;
    next = (next + 1) % 4;
    snprintf(path[next], sizeof path[next], "%s/%s", place, name);
    return path[next];
}

static void put(const char *name, const char *text, int mode)
{
    cr_assert_eq(file_write(in(name), text, strlen(text), 0600, &err), 0, "%s", err.text);
    cr_assert_eq(chmod(in(name), (mode_t)mode), 0);
}

static void is(const char *name, const char *text, unsigned mode)
{
    struct stat there;
    struct str found = str_init(1 << 20);
    cr_assert_eq(file_read(in(name), &found, &err), 0, "%s", err.text);
    cr_assert_str_eq(str_text(&found), text);
    cr_assert_eq(stat(in(name), &there), 0);
    cr_assert_eq(there.st_mode & 0777, mode, "%s: %o", name, there.st_mode & 0777);
    str_clear(&found);
}

static void folder(const char *name)
{
    cr_assert_eq(mkdir(in(name), 0700), 0);
}

static void arrange(void)
{
    snprintf(place, sizeof place, "/tmp/install-test.XXXXXX");
    cr_assert(mkdtemp(place));
    folder("from");
    folder("from/bin");
    folder("from/lib");
    folder("to");
    put("from/bin/program", "run me", 0555);
    put("from/lib/library", "load me", 0400);
}

static void dismiss(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", place);
    cr_assert_eq(system(command), 0);
}

TestSuite(install, .init = arrange, .fini = dismiss, .timeout = 60);

static int run(void)
{
    err = (struct error){0};
    return bundle_install(in("from"), in("to"), &err);
}

Test(install, all_of_it_is_there_for_everybody_whatever_the_umask)
{
    struct stat there;
    umask(077);
    cr_assert_eq(run(), 0, "%s", err.text);
    is("to/bin/program", "run me", 0755);
    is("to/lib/library", "load me", 0644);
    cr_assert_eq(stat(in("to/bin"), &there), 0);
    cr_assert_eq(there.st_mode & 0777, 0755);
}

Test(install, it_may_be_repeated_over_whatever_an_attempt_left)
{
    folder("to/bin");
    put("to/bin/program", "run", 0400);
    put("to/bin/program.new", "ru", 0000);
    put("to/of-somebody-else", "stays", 0644);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(run(), 0, "%s", err.text);
        is("to/bin/program", "run me", 0755);
        cr_assert_neq(access(in("to/bin/program.new"), F_OK), 0);
    }
    is("to/of-somebody-else", "stays", 0644);
}

Test(install, a_program_that_runs_there_is_not_written_to)
{
    cr_assert_eq(run(), 0, "%s", err.text);
    int running = open(in("to/bin/program"), O_RDONLY);
    put("from/bin/program", "newer", 0555);
    cr_assert_eq(run(), 0, "%s", err.text);
    char text[8] = "";
    cr_assert_eq(read(running, text, sizeof text - 1), 6);
    cr_assert_str_eq(text, "run me");
    is("to/bin/program", "newer", 0755);
    close(running);
}

Test(install, what_cant_be_written_whole_is_not_there_and_the_machine_is_blamed)
{
    const struct rlimit few = {3, 3};
    cr_assert(signal(SIGXFSZ, SIG_IGN) != SIG_ERR && setrlimit(RLIMIT_FSIZE, &few) == 0);
    cr_assert_lt(run(), 0);
    cr_assert(strstr(err.text, "can't write /tmp/install-test."), "%s", err.text);
    cr_assert_eq(err.class, CLASS_MACHINE);
    cr_assert_neq(access(in("to/bin/program"), F_OK), 0);
    cr_assert_neq(access(in("to/lib/library"), F_OK), 0);
}

Test(install, a_folder_that_is_none_and_a_bundle_that_is_none_are_named)
{
    char wanted[256];
    snprintf(wanted, sizeof wanted, "%s is no folder", in("from/bin/program"));
    cr_assert_lt(bundle_install(in("from"), in("from/bin/program"), &err), 0);
    cr_assert_str_eq(err.text, wanted);
    cr_assert_eq(err.code, ERR_USAGE);
    cr_assert_lt(bundle_install(in("absent"), in("to"), &err), 0);
    cr_assert(strstr(err.text, "/absent is no folder"), "%s", err.text);
    cr_assert_eq(symlink("/etc/passwd", in("from/lib/link")), 0);
    cr_assert_lt(run(), 0);
    snprintf(wanted, sizeof wanted, "%s is no file of a bundle", in("from/lib/link"));
    cr_assert_str_eq(err.text, wanted);
}
