#include "cli/portrait.h"

#include <unistd.h>

#include "cli/core/picture_draw.h"
#include "common/base/limits.h"
#include "common/os/file.h"
#include "common/os/uri.h"

static int portrait_path(const char *uri, char out[RM_URI_MAX + 16], struct error *err)
{
    char folder[RM_URI_MAX];
    struct str path = str_init(RM_URI_MAX + 15);
    if (uri_path(uri, folder, sizeof folder, err) < 0)
        return -1;
    str_addf(&path, "%s/run.svg", folder);
    text_copy(out, RM_URI_MAX + 16, str_text(&path));
    str_clear(&path);
    return 0;
}

int portrait_write(const struct job_spec *spec, const struct report *report, struct error *err)
{
    char path[RM_URI_MAX + 16];
    struct str svg = str_init(PICTURE_SVG_MAX);
    int status = portrait_path(spec->checkpoint.uri, path, err);
    picture_svg(report, spec->name, &svg);
    if (status == 0 && svg.length && !svg.truncated)
        status = file_write(path, svg.data, svg.length, 0644, err);
    str_clear(&svg);
    return status;
}

void portrait_remove(const char *uri)
{
    char path[RM_URI_MAX + 16];
    if (portrait_path(uri, path, NULL) == 0)
        unlink(path);
}
