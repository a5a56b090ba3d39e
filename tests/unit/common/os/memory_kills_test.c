/* Whether somebody was killed for memory, by what both versions of cgroups tell. */
#include "common/os/memory_kills.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char root[] = "/tmp/memory-kills-XXXXXX";

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

TestSuite(memory_kills, .init = begin, .fini = end);

static const char version_2[] =
    "low 0\nhigh 0\nmax 41\noom 3\noom_kill %s\noom_group_kill 0\n"; /* 41 times at its limit, and freed some
                                                                      */
static const char version_1[] = "oom_kill_disable 0\nunder_oom 0\noom_kill %s\n";
static const char before_linux_4_13[] = "oom_kill_disable 0\nunder_oom 0\n";

Test(memory_kills, the_number_is_that_of_its_own_line)
{
    static const struct {
        const char *text;
        int64_t kills;
    } cases[] = {
        {"oom_kill 2\n", 2},
        {"low 0\nhigh 0\nmax 41\noom 3\noom_kill 7\noom_group_kill 9\n", 7},
        {"oom_kill_disable 0\nunder_oom 0\noom_kill 5\n", 5},
        {"oom_kill_disable 1\nunder_oom 1\n", -1},
        {"oom 3\noom_group_kill 1\n", -1},
        {"oom_kill many\n", -1},
        {"oom_kill -4\n", -1},
        {"oom_kill", -1},
        {"\n\n\noom_kill 1", 1},
        {"", -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_assert_eq(memory_kills_in(cases[i].text), cases[i].kills, "\"%s\"", cases[i].text);
}

Test(memory_kills, kills_count_and_a_limit_that_was_reached_only_where_nobody_tells_kills)
{
    static const struct {
        struct memory_kills before, after;
        bool grew;
    } cases[] = {
        {{0, -1}, {1, -1}, true},    {{4, -1}, {4, -1}, false},
        {{0, 10}, {0, 900}, false}, /* it was at its limit, and found something to free */
        {{0, 10}, {1, 900}, true},   {{-1, 10}, {-1, 11}, true},
        {{-1, 10}, {-1, 10}, false}, {{-1, -1}, {-1, -1}, false},
        {{-1, -1}, {-1, 3}, false}, /* the one before was not read */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_assert_eq(memory_kills_grew(cases[i].before, cases[i].after), cases[i].grew, "case %zu", i);
}

static void put(const char *name, const char *format, const char *what)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')); at++) {
        *at = 0;
        mkdir(path, 0700);
        *at = '/';
    }
    FILE *file = fopen(path, "w");
    cr_assert(file, "%s", path);
    for (; *format; format++) {
        if (*format == '%' && *++format)
            fputs(what, file);
        else
            fputc(*format, file);
    }
    cr_assert_eq(fclose(file), 0);
}

static struct memory_kills of(const char *membership)
{
    char path[256];
    put("membership", membership, "");
    snprintf(path, sizeof path, "%s/membership", root);
    return memory_kills_read(root, path);
}

Test(memory_kills, version_2_tells_them_in_the_events_of_the_nearest_group_that_is_seen)
{
    put("memory.events", version_2, "1");
    put("kubepods/pod1/memory.events", version_2, "6");
    cr_assert_eq(of("0::/\n").kills, 1);
    cr_assert_eq(of("0::/kubepods/pod1\n").kills, 6);
    cr_assert_eq(of("0::/not/to/be/seen\n").kills, 1, "a container sees its own group as the root");
}

Test(memory_kills, version_1_tells_them_with_the_out_of_memory_control)
{
    put("memory/memory.oom_control", version_1, "2");
    put("memory/memory.failcnt", "%s\n", "17");
    struct memory_kills found = of("4:cpu,cpuacct:/a\n5:memory:/kubepods/pod1\n0::/b\n");
    cr_assert(found.kills == 2 && found.hits == 17);
    put("memory/memory.oom_control", before_linux_4_13, "");
    found = of("5:memory:/\n");
    cr_assert(found.kills == -1 && found.hits == 17);
}

Test(memory_kills, where_nothing_tells_them_nothing_is_known)
{
    struct memory_kills found = of("nonsense\n0:\n0::/\n");
    cr_assert(found.kills == -1 && found.hits == -1);
    memory_kills_now();
}
