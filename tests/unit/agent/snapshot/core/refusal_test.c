/* What stands in the way of a snapshot, in words: refusals before it, and the cause out of CRIU's log. */
#include "agent/snapshot/core/words.h"

#include <criterion/criterion.h>
#include <string.h>

Test(refusal, what_cannot_be_in_a_snapshot_is_refused_by_its_name)
{
    static const struct {
        const char *target, *says; /* NULL: taken */
    } rows[] = {
        {"/dev/nvidia0", "process 1007 has /dev/nvidia0 open: a GPU's state cannot be in a snapshot"},
        {"/dev/nvidiactl", "/dev/nvidiactl open"},
        {"/dev/nvidia-uvm", "/dev/nvidia-uvm open"},
        {"/dev/dri/renderD128", "/dev/dri/renderD128 open: a GPU's state"},
        {"anon_inode:[io_uring]", "has anon_inode:[io_uring] open: io_uring cannot be in a snapshot"},
        {"/dev/null", NULL},
        {"anon_inode:[eventpoll]", NULL},
        {"/data/dev/nvidia0", NULL},
        {"pipe:[4711]", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error err = {0};
        int result = snapshot_refuse_descriptor(1007, rows[i].target, &err);
        cr_expect_eq(result, rows[i].says ? -1 : 0, "%s", rows[i].target);
        if (rows[i].says)
            cr_expect(strstr(err.text, rows[i].says), "%s: %s", rows[i].target, err.text);
    }
}

Test(refusal, a_criu_that_is_too_old_is_told_with_what_would_do)
{
    struct error err = {0};
    cr_expect_eq(snapshot_refuse_version(31700, &err), -1);
    cr_expect_str_eq(err.text,
                     "criu is 3.17, which is too old: a snapshot wants 4.1 or later, as Debian 13 has it");
    cr_expect_eq(snapshot_refuse_version(40000, &err), -1);
    cr_expect_eq(snapshot_refuse_version(40100, &err), 0);
    cr_expect_eq(snapshot_refuse_version(40101, &err), 0);
    cr_expect_eq(snapshot_refuse_version(50000, &err), 0);
}

static uint64_t bits(int a, int b, int c, int d, int e)
{
    return 1ULL << a | 1ULL << b | 1ULL << c | 1ULL << d | 1ULL << e;
}

Test(refusal, each_right_that_is_missing_is_named)
{
    static const int needed[] = {6, 7, 8, 19, 40}; /* the kernel's numbers */
    static const char *const names[] = {"SETGID", "SETUID", "SETPCAP", "SYS_PTRACE", "CHECKPOINT_RESTORE"};
    uint64_t all = bits(6, 7, 8, 19, 40);
    struct error err = {0};
    cr_expect_eq(snapshot_refuse_rights(all, &err), 0);
    cr_expect_eq(snapshot_refuse_rights(~0ULL, &err), 0);
    for (int i = 0; i < 5; i++) {
        cr_expect_eq(snapshot_refuse_rights(~(1ULL << needed[i]), &err), -1);
        for (int other = 0; other < 5; other++)
            cr_expect_eq(strstr(err.text, names[other]) != NULL, other == i, "%s without %s", err.text,
                         names[i]);
    }
    cr_expect_eq(snapshot_refuse_rights(0, &err), -1);
    cr_expect(strstr(err.text, "SETGID, SETUID, SETPCAP, SYS_PTRACE, CHECKPOINT_RESTORE, which"), "%s",
              err.text);
}

Test(refusal, rights_are_read_from_a_status_page_or_not_at_all)
{
    uint64_t rights = 7;
    cr_expect(
        snapshot_effective_rights("Name:\tx\nCapPrm:\t1\nCapEff:\t00000100000801c0\nCapBnd:\t2\n", &rights));
    cr_expect_eq(rights, 0x100000801c0ULL);
    cr_expect_not(snapshot_effective_rights("Name:\tCapEff:\t1\n", &rights));
    cr_expect_not(snapshot_effective_rights("Name:\tx\nCapEff:\n", &rights));
    cr_expect_not(snapshot_effective_rights("Name:\tx\nCapEff:\tthree\n", &rights));
    cr_expect_not(snapshot_effective_rights("", &rights));
}

/* Lines as CRIU 4.1.1 writes them. */
Test(refusal, the_cause_is_the_first_error_that_criu_does_not_go_on_from)
{
    static const struct {
        const char *log, *cause; /* NULL: none */
    } rows[] = {
        {"(00.073985) Error (criu/util.c:1533): rlimit: Can't setup RLIMIT_NOFILE for self: Operation not "
         "permitted\n"
         "(00.085690) Error (criu/files-reg.c:1790): Can't lookup mount=24 for fd=10 path=/dev/null\n"
         "(00.085696) Error (criu/cr-dump.c:1681): Dump files (pid: 1501) failed with -1\n"
         "(00.097598) Error (criu/cr-dump.c:2111): Dumping FAILED.\n",
         "Can't lookup mount=24 for fd=10 path=/dev/null"},
        {"(00.035122) pie: 48: Error (criu/pie/restorer.c:316): Unable to drop capability 0: -1\n",
         "Unable to drop capability 0: -1"},
        {"(00.051811)     10: Error (criu/files-reg.c:2175): File tmp/out has bad size 29 (expect 26)\n",
         "File tmp/out has bad size 29 (expect 26)"},
        {"(00.1) Warn  (criu/kerndat.c:193): Can't fetch value\n(00.2) Dumping finished successfully\n",
         NULL},
        {"(00.1) net: Error (criu/net.c:3997): net: Unable to create a veth pair: -1\n", NULL},
        {"Error (x.c:1): without a time, and without a line's end",
         "without a time, and without a line's end"},
        {"(00.1) Error without a place\n", NULL},
        {"(00.1", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char cause[SNAPSHOT_CAUSE_MAX] = "";
        cr_expect_eq(snapshot_cause(rows[i].log, cause), rows[i].cause != NULL, "row %zu: %s", i, cause);
        cr_expect_str_eq(cause, rows[i].cause ? rows[i].cause : "", "row %zu", i);
    }
}

Test(refusal, a_cause_without_end_is_cut)
{
    char log[5000] = "Error (x.c:1): ", cause[SNAPSHOT_CAUSE_MAX];
    memset(log + strlen(log), 'a', sizeof log - strlen(log) - 1);
    log[sizeof log - 1] = 0;
    cr_expect(snapshot_cause(log, cause));
    cr_expect_lt(strlen(cause), (size_t)SNAPSHOT_CAUSE_MAX);
}
