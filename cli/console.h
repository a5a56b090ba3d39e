/* Standard output and standard error of a run, so that events, a progress line that is drawn over and the
 * words of child processes don't run into each other. */
#ifndef RM_CLI_CONSOLE_H
#define RM_CLI_CONSOLE_H

#include <stdbool.h>

#include "cli/core/screen.h"
#include "common/base/time.h"

struct console {
    bool json, terminal;
    bool drawn;  /* a progress line stands without its newline */
    bool broken; /* nothing can be written to standard output any more */
    int reason;  /* errno of that */
    struct screen_style style;
    rm_time last_progress; /* 0: none yet */
};

void console_init(struct console *console, bool json);
/* Whole lines to standard output. */
void console_print(struct console *console, const struct str *text);
/* One line to standard error. */
void console_say(struct console *console, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same of a line that somebody else wrote, whatever bytes are in it. */
void console_pass(struct console *console, const char *text, size_t length);
/* On a terminal drawn over the last one, at most ten times a second; elsewhere a line every few seconds. */
void console_progress(struct console *console, const struct report *report, rm_time now);

#endif
