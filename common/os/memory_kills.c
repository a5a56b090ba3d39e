#include "common/os/memory_kills.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/os/file.h"

enum { PATH_MOST = 4096, TEXT_MOST = 4096 };

int64_t memory_kills_in(const char *text)
{
    static const char key[] = "oom_kill ";
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, sizeof key - 1) != 0)
            continue;
        const char *digits = line + sizeof key - 1;
        char *end;
        long long kills = strtoll(digits, &end, 10);
        return end == digits || kills < 0 ? -1 : (int64_t)kills;
    }
    return -1;
}

bool memory_kills_grew(struct memory_kills before, struct memory_kills after)
{
    if (before.kills >= 0 && after.kills >= 0)
        return after.kills > before.kills;
    return before.hits >= 0 && after.hits > before.hits;
}

static bool read_file(const char *folder, const char *name, struct str *out)
{
    char path[PATH_MOST];
    struct error err;
    str_reset(out);
    return snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path &&
           file_read(path, out, &err) == 0;
}

static bool read_v2(const char *folder, struct str *text, struct memory_kills *ret)
{
    if (!read_file(folder, "memory.events", text))
        return false;
    ret->kills = memory_kills_in(str_text(text));
    return true;
}

static bool read_v1(const char *folder, struct str *text, struct memory_kills *ret)
{
    char *end;
    if (!read_file(folder, "memory.oom_control", text))
        return false;
    ret->kills = memory_kills_in(str_text(text));
    if (!read_file(folder, "memory.failcnt", text))
        return true;
    long long hits = strtoll(str_text(text), &end, 10);
    ret->hits = end == str_text(text) ? -1 : (int64_t)hits;
    return true;
}

/* Of the nearest group on the way up from `path` to `mount` that can be seen. */
static bool read_nearest(const char *mount, const char *path,
                         bool (*read)(const char *folder, struct str *text, struct memory_kills *ret),
                         struct memory_kills *ret)
{
    char folder[PATH_MOST];
    size_t root = strlen(mount);
    struct str text = str_init(TEXT_MOST);
    bool found = false;
    if (snprintf(folder, sizeof folder, "%s%s", mount, path) < (int)sizeof folder) {
        found = read(folder, &text, ret);
        for (char *end; !found && (end = strrchr(folder, '/')) && (size_t)(end - folder) >= root;) {
            *end = 0;
            found = read(folder, &text, ret);
        }
    }
    str_clear(&text);
    return found;
}

/* One line of the membership: "0::/path" is version 2's, "4:memory:/path" one of version 1's. */
static bool read_line(const char *root, char *line, struct memory_kills *ret)
{
    char mount[PATH_MOST];
    char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!path)
        return false;
    *controllers++ = *path++ = 0;
    if (!*controllers)
        return read_nearest(root, path, read_v2, ret);
    snprintf(mount, sizeof mount, "%s/memory", root);
    return !strcmp(controllers, "memory") && read_nearest(mount, path, read_v1, ret);
}

struct memory_kills memory_kills_read(const char *root, const char *membership)
{
    struct memory_kills found = {.kills = -1, .hits = -1};
    struct error err;
    struct str text = str_init(64 << 10);
    if (file_read(membership, &text, &err) == 0) {
        char *line = text.data, *end;
        for (bool is = false; line && *line && !is; line = end ? end + 1 : NULL) {
            end = strchr(line, '\n');
            if (end)
                *end = 0;
            is = read_line(root, line, &found);
        }
    }
    str_clear(&text);
    return found;
}

struct memory_kills memory_kills_now(void)
{
    return memory_kills_read("/sys/fs/cgroup", "/proc/self/cgroup");
}
