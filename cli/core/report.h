/* The bookkeeping of a run: what the events so far add up to. Pure; screen.h turns it into words. */
#ifndef RM_CLI_REPORT_H
#define RM_CLI_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/core/event.h"
#include "cli/core/picture.h"
#include "common/base/time.h"

enum { REPORT_RECOVERIES_MAX = 64, REPORT_LABEL_MAX = 64 };

struct report_recovery {
    int64_t step;                                         /* committed when it began */
    char label[REPORT_LABEL_MAX];                         /* "worker 1 lost" */
    double detect, agree, ring, state, first_step, total; /* ms */
    int64_t steps_redone;
};

/* What a user's program says of its progress. */
struct report_told {
    bool known;
    int64_t step, steps; /* steps 0: not known */
    double loss;         /* NaN: not known */
    rm_time step_time;   /* smoothed; 0: not known */
    rm_time at;          /* when the newest came */
};

struct report {
    int64_t steps, first_step; /* steps: 0 of a program, whose steps nobody knows; first_step: where this run
                                  began, 0 or the resume step */
    int64_t step;              /* newest one committed */
    int world;
    double loss, first_loss;        /* NaN before the first step */
    double norm, rate;              /* of the newest step; NaN: not known */
    double evaluated;               /* NaN: never */
    double pace;                    /* tokens, or samples, a second, smoothed; 0 before the first step */
    bool samples;                   /* steps are made of samples, not of tokens */
    rm_time step_time;              /* smoothed time from one step to the next; 0: not known */
    rm_time begun, last_step_at;    /* last_step_at 0: none yet */
    struct report_told told;        /* of a program */
    char pending[REPORT_LABEL_MAX]; /* what happened since the last recovery */
    int64_t pending_step;
    int recoveries; /* all of them; the array holds the first REPORT_RECOVERIES_MAX */
    struct report_recovery recovery[REPORT_RECOVERIES_MAX];
    const char
        *drilled[RM_WORKERS_MAX]; /* what a drill did to who is not back yet; NULL: none did anything */
    struct picture picture;
    bool store_is_away; /* a checkpoint waits for it */
    int store_was_away; /* times, with the present one */
    double store_away;  /* seconds in all, without the present one */
    bool ended;         /* COMPLETE, FAILED or INTERRUPTED has come */
    struct event end;
};

void report_init(struct report *report, int64_t steps, int64_t first_step, rm_time now);
void report_take(struct report *report, const struct event *event, rm_time now);
/* A drill does this to worker `worker`: its loss is no riddle. done: "killed", a literal. */
void report_drill(struct report *report, int worker, const char *done);
/* RECOVERED of a coordinator's loss: training went on meanwhile, as far as the workers were there. */
bool report_is_takeover(const struct event *event);
/* Time to go at the present pace; -1: not known yet. */
rm_time report_left(const struct report *report);

#endif
