/* What kept a process from its processors, by files of the system. */
#include "common/os/held_cpu.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char root[] = "/tmp/held-cpu-XXXXXX";

static void put(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')); at++) {
        *at = 0;
        mkdir(path, 0700);
        *at = '/';
    }
    FILE *file = fopen(path, "w");
    cr_assert(file && fputs(text, file) >= 0 && fclose(file) == 0, "%s", path);
}

static struct held_cpu reading(const char *membership)
{
    char groups[256], stat[256];
    struct held_cpu ret;
    put("membership", membership);
    snprintf(groups, sizeof groups, "%s/membership", root);
    snprintf(stat, sizeof stat, "%s/stat", root);
    held_cpu_read_at(&ret, root, groups, stat);
    return ret;
}

static void begin(void)
{
    cr_assert(mkdtemp(root));
}

static void end(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", root);
    cr_assert_eq(system(command), 0);
}

TestSuite(held_cpu, .init = begin, .fini = end);

Test(held_cpu, a_limit_that_is_used_up_in_every_fourth_period_holds_a_process_up)
{
    put("cpu.stat", "usage_usec 5\nnr_periods 100\nnr_throttled 10\nthrottled_usec 77\n");
    struct held_cpu before = reading("0::/\n");
    cr_assert_eq(before.periods, 100);
    cr_assert_eq(before.throttled, 10);
    put("cpu.stat", "usage_usec 5\nnr_periods 200\nnr_throttled 34\nthrottled_usec 99\n");
    struct held_cpu after = reading("0::/\n");
    cr_assert_eq(held_cpu_by(&before, &after), HELD_CPU_BY_NONE);
    put("cpu.stat", "usage_usec 5\nnr_periods 200\nnr_throttled 35\nthrottled_usec 99\n");
    after = reading("0::/\n");
    cr_assert_eq(held_cpu_by(&before, &after), HELD_CPU_BY_LIMIT);
}

Test(held_cpu, a_limit_of_a_group_around_it_holds_it_up_too)
{
    put("pod/cpu.stat", "nr_periods 50\nnr_throttled 20\n");
    put("pod/own/cpu.stat", "nr_periods 40\nnr_throttled 1\n");
    struct held_cpu seen = reading("0::/pod/own\n");
    cr_assert_eq(seen.periods, 50);
    cr_assert_eq(seen.throttled, 21);
    cr_assert_eq(reading("0::/pod/gone\n").throttled, 20);
}

Test(held_cpu, groups_of_version_1_are_read)
{
    put("cpu,cpuacct/pod/cpu.stat", "nr_periods 9\nnr_throttled 4\nthrottled_time 3\n");
    struct held_cpu seen = reading("5:memory:/pod\n4:cpu,cpuacct:/pod\n");
    cr_assert_eq(seen.periods, 9);
    cr_assert_eq(seen.throttled, 4);
}

Test(held_cpu, a_host_that_takes_a_tenth_of_the_time_is_named)
{
    put("stat", "cpu  100 0 100 800 0 0 0 0 50 0\ncpu0 1 2 3\n");
    struct held_cpu before = reading("");
    cr_assert_eq(before.ticks, 1000);
    cr_assert_eq(before.stolen, 0);
    put("stat", "cpu  500 0 500 909 0 0 0 91 50 0\n");
    struct held_cpu after = reading("");
    cr_assert_eq(held_cpu_by(&before, &after), HELD_CPU_BY_NONE);
    put("stat", "cpu  500 0 500 800 0 0 0 200 50 0\n");
    after = reading("");
    cr_assert_eq(held_cpu_by(&before, &after), HELD_CPU_BY_HOST);
}

Test(held_cpu, where_nothing_can_be_read_nobody_is_named)
{
    struct held_cpu seen = reading("nonsense\n0::/a/b\n:::\n");
    cr_assert_eq(held_cpu_by(&seen, &seen), HELD_CPU_BY_NONE);
    held_cpu_read(&seen);
    cr_assert_eq(held_cpu_by(&seen, &seen), HELD_CPU_BY_NONE);
}
