#include "common/os/held_cpu.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/os/file.h"

enum { PATH_MOST = 4096, TEXT_MOST = 64 << 10, STAT_STEAL = 7, STAT_COUNTED = 8 };

/* The number of a line as "nr_periods 12"; 0: there is none. */
static int64_t value_of(const char *text, const char *key)
{
    size_t length = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (!strncmp(line, key, length) && line[length] == ' ')
            return strtoll(line + length, NULL, 10);
    }
    return 0;
}

static bool read_text(const char *path, struct str *out)
{
    struct error err;
    str_reset(out);
    return file_read(path, out, &err) == 0;
}

/* A group's periods are as many as those of the one around it; each may be the one that is used up. */
static void read_group(const char *folder, struct str *text, struct held_cpu *ret)
{
    char path[PATH_MOST + 16];
    snprintf(path, sizeof path, "%s/cpu.stat", folder);
    if (!read_text(path, text))
        return;
    int64_t periods = value_of(str_text(text), "nr_periods");
    ret->periods = periods > ret->periods ? periods : ret->periods;
    ret->throttled += value_of(str_text(text), "nr_throttled");
}

/* The group at `path` below `mount`, and all above it. */
static void read_along(const char *mount, const char *path, struct str *text, struct held_cpu *ret)
{
    char folder[PATH_MOST];
    size_t root = strlen(mount);
    if (snprintf(folder, sizeof folder, "%s%s", mount, path) >= (int)sizeof folder)
        return;
    for (char *end; strlen(folder) > root && (end = strrchr(folder, '/')); *end = 0)
        if (end[1])
            read_group(folder, text, ret);
    read_group(mount, text, ret);
}

/* "0::/path" is version 2's, "4:cpu,cpuacct:/path" one of version 1's. */
static void read_line(const char *root, char *line, struct str *text, struct held_cpu *ret)
{
    char mount[PATH_MOST], with_commas[PATH_MOST + 2];
    char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!path)
        return;
    *controllers++ = *path++ = 0;
    snprintf(with_commas, sizeof with_commas, ",%s,", controllers);
    if (!*controllers) {
        read_along(root, path, text, ret);
    } else if (strstr(with_commas, ",cpu,")) {
        snprintf(mount, sizeof mount, "%s/%s", root, controllers);
        read_along(mount, path, text, ret);
    }
}

static void read_groups(const char *root, const char *membership, struct held_cpu *ret)
{
    struct str lines = str_init(TEXT_MOST), text = str_init(TEXT_MOST);
    if (read_text(membership, &lines)) {
        char *line = lines.data, *end;
        for (; line && *line; line = end ? end + 1 : NULL) {
            end = strchr(line, '\n');
            if (end)
                *end = 0;
            read_line(root, line, &text, ret);
        }
    }
    str_clear(&lines);
    str_clear(&text);
}

/* "cpu  user nice system idle iowait irq softirq steal guest ...": guests' time is in user's. */
static void read_stolen(const char *stat, struct held_cpu *ret)
{
    struct str text = str_init(1 << 20);
    if (read_text(stat, &text) && !strncmp(str_text(&text), "cpu ", 4)) {
        const char *at = str_text(&text) + 4;
        char *end;
        for (int i = 0; i < STAT_COUNTED; i++, at = end) {
            int64_t ticks = strtoll(at, &end, 10);
            ret->ticks += ticks;
            ret->stolen += i == STAT_STEAL ? ticks : 0;
        }
    }
    str_clear(&text);
}

void held_cpu_read_at(struct held_cpu *ret, const char *root, const char *membership, const char *stat)
{
    *ret = (struct held_cpu){0};
    read_groups(root, membership, ret);
    read_stolen(stat, ret);
}

void held_cpu_read(struct held_cpu *ret)
{
    held_cpu_read_at(ret, "/sys/fs/cgroup", "/proc/self/cgroup", "/proc/stat");
}

enum held_cpu_by held_cpu_by(const struct held_cpu *before, const struct held_cpu *after)
{
    int64_t periods = after->periods - before->periods, throttled = after->throttled - before->throttled;
    int64_t ticks = after->ticks - before->ticks, stolen = after->stolen - before->stolen;
    if (throttled > 0 && throttled >= periods / 4)
        return HELD_CPU_BY_LIMIT;
    return stolen > 0 && stolen >= ticks / 10 ? HELD_CPU_BY_HOST : HELD_CPU_BY_NONE;
}
