#include "common/os/uri.h"

#include <string.h>

#include "common/base/str.h"

int uri_path(const char *uri, char *out, size_t size, struct error *err)
{
    const char *path = uri;
    if (!strncmp(uri, "file://", 7))
        path = uri + 7;
    else if (strstr(uri, "://"))
        return err_set(err, ERR_USAGE, "%s: only folders (file:///path) can be used here", uri);
    if (!*path)
        return err_set(err, ERR_USAGE, "%s: the path is empty", uri);
    if (!text_copy(out, size, path))
        return err_set(err, ERR_USAGE, "%.64s...: the path is longer than %zu bytes", uri, size - 1);
    return 0;
}
