#include "cli/run_picture.h"

#include <time.h>

#include "cli/core/picture_draw.h"
#include "common/os/clock.h"

static const char file[] = "run.svg";

int run_picture_write(struct object_store *store, const char *job, int64_t parameters,
                      const struct report *report, struct error *err)
{
    char date[16];
    struct tm day;
    const time_t now = (time_t)(clock_wall_ms() / 1000);
    const struct picture_facts facts = {.name = job, .date = date, .parameters = parameters};
    struct str svg = str_init(PICTURE_SVG_MAX);
    int status = 0;
    if (!gmtime_r(&now, &day) || !strftime(date, sizeof date, "%Y-%m-%d", &day))
        *date = 0;
    picture_svg(report, &facts, &svg);
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
