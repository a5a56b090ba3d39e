/* How a run looks to a person: text from plain structs. Colours only where style.colour is set. Pure. */
#ifndef RM_CLI_SCREEN_H
#define RM_CLI_SCREEN_H

#include <stdbool.h>

#include "cli/core/report.h"
#include "common/base/str.h"
#include "common/job/spec.h"

struct screen_style {
    bool colour;
    bool unicode; /* the locale can show more than ASCII */
    int columns;  /* of the terminal */
};

struct screen_facts {
    const struct job_spec *spec;
    int64_t parameters, data_files, data_bytes;
    int64_t resume_step; /* 0: anew */
};

/* What is about to be trained, three lines. */
void screen_head(const struct screen_facts *facts, struct screen_style style, struct str *out);

/* Where the coordinator that listens at `address` tells how the run does. */
void screen_page(const char *address, struct screen_style style, struct str *out);

/* One line without a newline, at most style.columns wide. */
void screen_progress(const struct report *report, struct screen_style style, struct str *out);

/* What an event says to a person, whole lines; nothing for most kinds. The report has taken it already. */
void screen_event(const struct report *report, const struct event *event, struct screen_style style,
                  struct str *out);
void screen_drill(const struct report *r, const char *spec, int64_t step, struct screen_style style,
                  struct str *out);

/* The final report. */
void screen_end(const struct report *report, const struct job_spec *spec, struct screen_style style,
                rm_time now, struct str *out);

/* Where the picture of the run lies, a line in the manner of the report. uri: the checkpoint folder. */
void screen_picture(const char *uri, struct screen_style style, struct str *out);

/* "81,234", "1.4 MB", "3 min 05 s", "57 ms"; show_age: "5s", "3m", "7h", "12d", as kubectl has it */
void show_count(int64_t n, struct str *out);
void show_bytes(int64_t n, struct str *out);
void show_time(rm_time t, struct str *out);
void show_age(rm_time t, struct str *out);
void show_ms(double ms, struct str *out);

#endif
