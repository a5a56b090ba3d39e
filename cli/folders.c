#include "cli/folders.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/limits.h"
#include "common/base/str.h"

/* Is one folder the other, or inside it? Both are absolute and without "." and "..". */
static bool within(const char *inner, const char *outer)
{
    size_t length = strlen(outer);
    return !strncmp(inner, outer, length) &&
           (!inner[length] || inner[length] == '/' || outer[length - 1] == '/');
}

/* A path with its links followed, as far as it exists; what is not there yet stays as it is written. `out`
 * has RM_URI_MAX bytes. */
static void follow_links(const char *path, char *out)
{
    char whole[RM_URI_MAX], real[PATH_MAX];
    text_copy(whole, sizeof whole, path);
    size_t end = strlen(whole);
    text_copy(out, RM_URI_MAX, whole);
    for (; end > 0; end--) {
        char rest = whole[end];
        if (rest && rest != '/')
            continue;
        whole[end] = 0;
        bool there = realpath(whole, real);
        whole[end] = rest;
        if (!there)
            continue;
        snprintf(out, RM_URI_MAX, "%s%s", real, whole + end);
        return;
    }
}

/* "/home/me/runs" of "file:///home/me/runs", and of itself; NULL: a bucket. */
static const char *path_of(const char *uri)
{
    if (!strncmp(uri, "file://", 7))
        return uri + 7;
    return *uri == '/' ? uri : NULL;
}

bool folder_within(const char *inner_uri, const char *outer_uri)
{
    char inner[RM_URI_MAX], outer[RM_URI_MAX];
    const char *inner_path = path_of(inner_uri), *outer_path = path_of(outer_uri);
    if (!inner_path || !outer_path)
        return within(inner_uri, outer_uri);
    follow_links(inner_path, inner);
    follow_links(outer_path, outer);
    return within(inner, outer);
}
