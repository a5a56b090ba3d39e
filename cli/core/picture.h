/* What a picture of a run is drawn from, kept while the run goes on, in bounded memory whatever its length:
 * neighbouring steps share a bin, rings that lasted shortest are merged into the one before.
 * Pure; the report owns one and feeds it. picture_draw.h draws it. */
#ifndef RM_CLI_PICTURE_H
#define RM_CLI_PICTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/core/event.h"
#include "common/base/set.h"
#include "common/base/time.h"

enum { PICTURE_BINS = 1024, PICTURE_RINGS = 192, PICTURE_MARKS = 256 };

/* What an update is made with, each a thin line on a scale of its own. */
enum picture_curve { PICTURE_NORM, PICTURE_RATE, PICTURE_CURVES };

struct picture_bin {
    int64_t step;          /* the last one in it */
    rm_time at;            /* of that step, since the run began */
    int count;             /* losses in it; those that are not finite are left out */
    double sum, low, high; /* of them */
    bool evaluated;        /* held_out is set: the last one in it */
    double held_out;
    int64_t saved; /* step of the newest checkpoint in it; 0: none */
    struct {
        int count; /* steps in it of which it is known */
        double sum;
    } curve[PICTURE_CURVES];
};

struct picture_ring {
    int64_t step;             /* committed when it was formed */
    int64_t term, generation; /* term: of the coordinator that formed it, 1 the first */
    struct worker_set members;
};

/* "3", and "2.3" where the coordinator was not the first. */
enum { PICTURE_NAME_MAX = 44 };
void picture_ring_name(const struct picture_ring *ring, char out[PICTURE_NAME_MAX]);

enum picture_mark_kind { PICTURE_LOST, PICTURE_LEFT, PICTURE_JOINED };

struct picture_mark {
    enum picture_mark_kind kind;
    int64_t step;
    int worker;
};

struct picture {
    int64_t first;          /* step that this run began at; its own first step is the one after */
    int64_t stride;         /* steps in a bin */
    int bins, rings, marks; /* in use */
    int64_t rings_formed;   /* all of them */
    struct picture_bin bin[PICTURE_BINS];
    struct picture_ring ring[PICTURE_RINGS];
    struct picture_mark mark[PICTURE_MARKS]; /* the first ones; what comes after is left out */
};

void picture_init(struct picture *picture, int64_t steps, int64_t first_step);
/* step: newest one committed before this event; at: time since the run began. */
void picture_take(struct picture *picture, const struct event *event, int64_t step, rm_time at);

/* Mean loss of the steps from + 1 to `to` as far as they are known; NaN: none. */
double picture_loss(const struct picture *picture, int64_t from, int64_t to);
/* Newest held-out loss of the steps from + 1 to `to`; NaN: none. */
double picture_held_out(const struct picture *picture, int64_t from, int64_t to);
/* Who trained step `step`. */
struct worker_set picture_members(const struct picture *picture, int64_t step);
/* Everybody who was ever in a ring. */
struct worker_set picture_everybody(const struct picture *picture);
/* When step `step` was committed, roughly where bins hold more than one; 0 at the beginning. */
rm_time picture_time(const struct picture *picture, int64_t step);
/* A curve has a point for every one or two bins: half as many as bins where there are many. */
int picture_curve_points(const struct picture *picture);
/* Mean over the point, and the step of its end; NaN: not known. */
double picture_curve(const struct picture *picture, enum picture_curve curve, int point, int64_t *ret_step);
/* The highest point; 0: none is known, or none is above 0. */
double picture_curve_high(const struct picture *picture, enum picture_curve curve);
/* The lowest and highest loss, of bins or of held-out data. False: there is none. */
bool picture_range(const struct picture *picture, double *ret_low, double *ret_high);

#endif
