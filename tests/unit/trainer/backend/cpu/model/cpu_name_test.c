#include "trainer/backend/cpu/model/cpu_name.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void assert_name(const char *cpuinfo, const char *wanted)
{
    char path[] = "/tmp/cpuinfo-XXXXXX", name[CPU_NAME_MAX];
    int fd = mkstemp(path);
    cr_assert(fd >= 0 && write(fd, cpuinfo, strlen(cpuinfo)) == (ssize_t)strlen(cpuinfo));
    close(fd);
    cpu_name(path, name);
    unlink(path);
    cr_assert_str_eq(name, wanted, "%s", name);
}

Test(cpu_name, an_x86_64_is_its_name_family_model_and_stepping)
{
    assert_name("processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 26\nmodel\t\t: 2\n"
                "model name\t: AMD EPYC 9655\nstepping\t: 1\n\nprocessor\t: 1\nmodel name\t: other\n",
                "AMD EPYC 9655 (26/2/1)");
}

Test(cpu_name, two_kinds_of_arm64_are_not_alike)
{
    assert_name("processor\t: 0\nBogoMIPS\t: 2100.00\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\n"
                "CPU architecture: 8\nCPU variant\t: 0x1\nCPU part\t: 0xd40\nCPU revision\t: 1\n\n",
                "implementer 0x41 part 0xd40 (8/1/1)");
    assert_name("processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3\n"
                "CPU part\t: 0xd0c\nCPU revision\t: 1\n",
                "implementer 0x41 part 0xd0c (8/3/1)");
}

Test(cpu_name, nothing_said_is_no_name)
{
    char name[CPU_NAME_MAX];
    assert_name("", "unknown CPU (0/0/0)");
    cpu_name("/proc/no-such-file", name);
    cr_assert_str_eq(name, "unknown CPU (0/0/0)");
}
