#include "common/os/cores.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/os/file.h"

enum { PATH_MOST = 4096, CORES_MOST = 4096 };

static bool read_line(const char *folder, const char *name, char *out, size_t size)
{
    char path[PATH_MOST];
    struct str text = str_init(PATH_MOST);
    struct error err;
    bool read = snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path &&
                file_read(path, &text, &err) == 0;
    text_copy(out, size, read ? str_text(&text) : "");
    str_clear(&text);
    return read;
}

/* 0: no limit. */
static int cores_of(long long quota, long long period)
{
    if (quota <= 0 || period <= 0)
        return 0;
    long long cores = (quota + period - 1) / period;
    return cores > CORES_MOST ? CORES_MOST : (int)cores;
}

/* "150000 100000", or "max 100000". */
static int quota_v2(const char *folder)
{
    char line[128], *rest;
    if (!read_line(folder, "cpu.max", line, sizeof line))
        return 0;
    long long quota = strtoll(line, &rest, 10);
    return rest == line ? 0 : cores_of(quota, strtoll(rest, NULL, 10));
}

static int quota_v1(const char *folder)
{
    char quota[64], period[64];
    if (!read_line(folder, "cpu.cfs_quota_us", quota, sizeof quota) ||
        !read_line(folder, "cpu.cfs_period_us", period, sizeof period))
        return 0;
    return cores_of(strtoll(quota, NULL, 10), strtoll(period, NULL, 10));
}

static int least(int a, int b)
{
    return !a || (b && b < a) ? b : a;
}

/* The least of the quotas of the group at `path` below `mount` and of all above it. */
static int quota_along(const char *mount, const char *path, int (*quota)(const char *folder))
{
    char folder[PATH_MOST];
    size_t root = strlen(mount);
    if (snprintf(folder, sizeof folder, "%s%s", mount, path) >= (int)sizeof folder)
        return 0;
    int found = quota(folder);
    for (char *end; (end = strrchr(folder, '/')) && (size_t)(end - folder) >= root;) {
        *end = 0;
        found = least(found, quota(folder));
    }
    return found;
}

/* One line of the membership: "0::/path" is version 2's, "4:cpu,cpuacct:/path" one of version 1's. */
static int quota_of_line(const char *root, char *line)
{
    char mount[PATH_MOST];
    char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!path)
        return 0;
    *controllers++ = *path++ = 0;
    if (!*controllers)
        return quota_along(root, path, quota_v2);
    char with_commas[PATH_MOST + 2];
    snprintf(with_commas, sizeof with_commas, ",%s,", controllers);
    if (!strstr(with_commas, ",cpu,"))
        return 0;
    snprintf(mount, sizeof mount, "%s/%s", root, controllers);
    int found = quota_along(mount, path, quota_v1);
    snprintf(mount, sizeof mount, "%s/cpu", root); /* the same, by the name that is linked to it */
    return found ? found : quota_along(mount, path, quota_v1);
}

int cores_quota(const char *root, const char *membership)
{
    int found = 0;
    struct error err;
    struct str text = str_init(64 << 10);
    if (file_read(membership, &text, &err) == 0) {
        char *line = text.data, *end;
        for (; line && *line; line = end ? end + 1 : NULL) {
            end = strchr(line, '\n');
            if (end)
                *end = 0;
            found = least(found, quota_of_line(root, line));
        }
    }
    str_clear(&text);
    return found;
}

int cores_usable(void)
{
    cpu_set_t cpus;
    int cores = sched_getaffinity(0, sizeof cpus, &cpus) ? 1 : CPU_COUNT(&cpus);
    cores = least(cores, cores_quota("/sys/fs/cgroup", "/proc/self/cgroup"));
    return cores > 0 ? cores : 1;
}

int cores_share(int sharing)
{
    int share = cores_usable() / (sharing > 0 ? sharing : 1);
    return share > 0 ? share : 1;
}
