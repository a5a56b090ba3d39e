/* CPUs that a container may use, by the files of its cgroups. */
#include "common/os/cores.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char root[] = "/tmp/cores-XXXXXX";

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

static int quota(const char *membership)
{
    char path[256];
    put("membership", membership);
    snprintf(path, sizeof path, "%s/membership", root);
    return cores_quota(root, path);
}

/* With this in that file a process of these groups may use so many. */
static void gives(const char *file, const char *text, const char *membership, int cores)
{
    put(file, text);
    cr_assert_eq(quota(membership), cores, "%s: %s", file, text);
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

TestSuite(cores, .init = begin, .fini = end);

Test(cores, a_quota_of_version_2_is_rounded_up)
{
    gives("cpu.max", "150000 100000\n", "0::/\n", 2); /* a container sees its own group as the root */
    gives("cpu.max", "400000 100000\n", "0::/\n", 4);
    gives("cpu.max", "max 100000\n", "0::/\n", 0);
}

Test(cores, the_smallest_quota_on_the_way_up_counts)
{
    put("pods/pod1/container/cpu.max", "max 100000\n");
    put("pods/pod1/cpu.max", "300000 100000\n");
    gives("pods/cpu.max", "800000 100000\n", "0::/pods/pod1/container\n", 3);
    gives("pods/cpu.max", "50000 100000\n", "0::/pods/pod1/container\n", 1);
}

Test(cores, a_quota_of_version_1_counts_too)
{
    put("cpu,cpuacct/cpu.cfs_quota_us", "250000\n");
    gives("cpu,cpuacct/cpu.cfs_period_us", "100000\n",
          "5:memory:/a\n4:cpu,cpuacct:/kubepods/pod1/not-to-be-seen-in-here\n0::/b\n", 3);
    gives("cpu,cpuacct/cpu.cfs_quota_us", "-1\n", "4:cpu,cpuacct:/\n", 0);
    cr_assert_eq(quota("4:cpuset:/\n"), 0);
}

Test(cores, what_is_no_such_file_is_no_limit)
{
    cr_assert_eq(quota(""), 0);
    cr_assert_eq(quota("nonsense\n0:\n0::\n"), 0);
    gives("cpu.max", "\n", "0::/\n", 0);
    gives("cpu.max", "100000", "0::/\n", 0);
    cr_assert_geq(cores_usable(), 1);
}
