/* The picture of a run: its loss and its workers over its steps, with what happened to them. Pure. */
#ifndef RM_CLI_PICTURE_DRAW_H
#define RM_CLI_PICTURE_DRAW_H

#include "cli/core/screen.h"

enum { PICTURE_SVG_MAX = 200 << 10 }; /* bytes; whatever the run */

/* Lines of style.columns at most, in plain ASCII unless style.unicode. Nothing before the first step. */
void picture_text(const struct report *report, struct screen_style style, struct str *out);

/* A whole file. name: the job's. Nothing before the first step. */
void picture_svg(const struct report *report, const char *name, struct str *out);

#endif
