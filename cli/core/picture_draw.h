/* The picture of a run: its loss and its workers over its steps, with what happened to them. Pure. */
#ifndef RM_CLI_PICTURE_DRAW_H
#define RM_CLI_PICTURE_DRAW_H

#include "cli/core/screen.h"

enum { PICTURE_SVG_MAX = 200 << 10 }; /* bytes; whatever the run */

/* Lines of style.columns at most, in plain ASCII unless style.unicode. Nothing before the first step. */
void picture_text(const struct report *report, struct screen_style style, struct str *out);

/* What stands in the picture's head beside what the report knows. */
struct picture_facts {
    const char *name;   /* the job's */
    const char *date;   /* of the run's end, as it is shown; "": left out */
    int64_t parameters; /* of the model; 0: left out */
};

/* A whole file, with colours for light pages and for dark ones. Nothing before the first step. */
void picture_svg(const struct report *report, const struct picture_facts *facts, struct str *out);

#endif
