#include "cli/run_picture.h"

#include "cli/core/picture_draw.h"

static const char file[] = "run.svg";

int run_picture_write(struct object_store *store, const char *job, const struct report *report,
                      struct error *err)
{
    struct str svg = str_init(PICTURE_SVG_MAX);
    int status = 0;
    picture_svg(report, job, &svg);
    if (svg.length && !svg.truncated) {
        struct object_body body = {.runs = 1, .run = {{svg.data, svg.length}}};
        status = object_put(store, file, &body, OBJECT_REPLACE, err);
    }
    str_clear(&svg);
    return status;
}

void run_picture_remove(struct object_store *store)
{
    const char *name = file;
    object_delete(store, &name, 1, NULL);
}
