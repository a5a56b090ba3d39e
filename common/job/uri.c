#include <string.h>

#include "common/job/file.h"

/* Adds the parts of a path to out, resolving "." and ".." as text. */
static bool add_parts(char *out, size_t size, const char *path)
{
    while (*path) {
        size_t length = strcspn(path, "/"), used = strlen(out);
        bool dot = length == 1 && path[0] == '.', up = length == 2 && path[0] == '.' && path[1] == '.';
        if (up) {
            char *slash = strrchr(out, '/');
            if (slash)
                *slash = 0;
        } else if (length && !dot) {
            if (used + 1 + length >= size)
                return false;
            out[used] = '/';
            memcpy(out + used + 1, path, length);
            out[used + 1 + length] = 0;
        }
        path += length + (path[length] == '/');
    }
    return true;
}

/* s3://bucket/prefix, without empty parts: "runs//a" and "runs/a/" would be other objects than "runs/a". */
static int resolve_bucket(const char *uri, char *out, struct error *err)
{
    char parts[RM_URI_MAX - 5] = "";
    const char *bucket = uri + 5;
    if (!*bucket || *bucket == '/' || *bucket == '.')
        return err_set(err, ERR_USAGE, "is %.200s; after s3:// comes the bucket: s3://bucket/runs/a", uri);
    if (strpbrk(bucket, "?#%"))
        return err_set(err, ERR_USAGE, "is %.200s; ?, # and %% are not read here, choose another prefix",
                       uri);
    if (!add_parts(parts, sizeof parts, bucket))
        return err_set(err, ERR_USAGE, "is a URI of more than %d bytes", RM_URI_MAX - 6);
    text_copy(out, RM_URI_MAX, "s3://");
    text_copy(out + 5, RM_URI_MAX - 5, parts + 1);
    return 0;
}

int job_uri_resolve(const char *uri, const char *folder, char *out, struct error *err)
{
    const char *scheme = strstr(uri, "://");
    const char *path = uri;
    if (!strncmp(uri, "file://", 7))
        path = uri + 7;
    else if (!strncmp(uri, "s3://", 5))
        return resolve_bucket(uri, out, err);
    else if (scheme)
        return err_set(err, ERR_USAGE, "is %.200s; write a path, file:///path or s3://bucket/path", uri);
    if (path != uri && *path != '/')
        return err_set(err, ERR_USAGE, "is %.200s; after file:// comes an absolute path: file:///data/books",
                       uri);
    if (*path == '~')
        return err_set(err, ERR_USAGE, "is %.200s; ~ is not read here, write the path out", uri);
    char whole[RM_URI_MAX - 7] = "";
    bool fits =
        (*path == '/' || add_parts(whole, sizeof whole, folder)) && add_parts(whole, sizeof whole, path);
    if (!fits)
        return err_set(err, ERR_USAGE, "is a path of more than %d bytes", RM_URI_MAX - 8);
    text_copy(out, RM_URI_MAX, "file://");
    text_copy(out + 7, RM_URI_MAX - 7, *whole ? whole : "/");
    return 0;
}
