/* Takes each event of a run, as report.c hands it on, into bins, rings and marks of fixed number, and
 * answers what picture_svg.c and picture_text.c ask of them. */
#include "cli/core/picture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/limits.h"

void picture_init(struct picture *p, int64_t steps, int64_t first_step)
{
    int64_t own = steps > first_step ? steps - first_step : 1;
    *p = (struct picture){.first = first_step, .stride = (own + PICTURE_BINS - 1) / PICTURE_BINS};
    RM_ASSERT(p->stride >= 1, "%lld steps in a bin", (long long)p->stride);
}

/* Index of the bin that holds a step; a step outside of the run goes to the nearest. */
static int bin_of(const struct picture *p, int64_t step)
{
    int64_t i = (step - p->first - 1) / p->stride;
    RM_ASSERT(p->stride >= 1, "%lld steps in a bin", (long long)p->stride);
    if (step <= p->first)
        return 0;
    return i < PICTURE_BINS ? (int)i : PICTURE_BINS - 1;
}

static struct picture_bin *bin_at(struct picture *p, int64_t step)
{
    int i = bin_of(p, step);
    if (p->bins <= i)
        p->bins = i + 1;
    RM_ASSERT(i >= 0 && p->bins <= PICTURE_BINS, "bin %d of %d", i, p->bins);
    return &p->bin[i];
}

static void take_curve(struct picture_bin *b, enum picture_curve curve, double value)
{
    RM_ASSERT((unsigned)curve < sizeof b->curve / sizeof *b->curve, "curve %d", (int)curve);
    if (!isfinite(value))
        return;
    b->curve[curve].count++;
    b->curve[curve].sum += value;
}

static void take_step(struct picture *p, const struct event *e, rm_time at)
{
    struct picture_bin *b = bin_at(p, e->step);
    b->step = e->step;
    b->at = at;
    take_curve(b, PICTURE_NORM, e->norm);
    take_curve(b, PICTURE_RATE, e->rate);
    if (!isfinite(e->loss))
        return;
    b->low = b->count ? fmin(b->low, e->loss) : e->loss;
    b->high = b->count ? fmax(b->high, e->loss) : e->loss;
    b->sum += e->loss;
    b->count++;
}

static void take_evaluated(struct picture *p, const struct event *e)
{
    if (!isfinite(e->loss))
        return;
    struct picture_bin *b = bin_at(p, e->step);
    b->step = e->step > b->step ? e->step : b->step;
    b->evaluated = true;
    b->held_out = e->loss;
}

static void take_saved(struct picture *p, const struct event *e)
{
    if (e->step > p->first)
        bin_at(p, e->step)->saved = e->step;
}

/* The one that lasted shortest counts as part of the one before it. */
static void merge_rings(struct picture *p)
{
    int shortest = 1;
    RM_ASSERT(p->rings == PICTURE_RINGS, "two of %d rings become one", p->rings);
    for (int i = 1; i + 1 < p->rings; i++)
        if (p->ring[i + 1].step - p->ring[i].step < p->ring[shortest + 1].step - p->ring[shortest].step)
            shortest = i;
    memmove(&p->ring[shortest], &p->ring[shortest + 1],
            (size_t)(p->rings - shortest - 1) * sizeof p->ring[0]);
    p->rings--;
}

static void take_ring(struct picture *p, const struct event *e)
{
    struct picture_ring ring = {
        .step = e->step > p->first ? e->step : p->first, .term = e->term, .generation = e->generation};
    for (int i = 0; i < e->members; i++)
        if (e->member[i].worker >= 0)
            set_add(&ring.members, e->member[i].worker);
    p->rings_formed++;
    if (p->rings == PICTURE_RINGS)
        merge_rings(p);
    p->ring[p->rings++] = ring;
    RM_ASSERT(p->rings <= PICTURE_RINGS && p->rings <= p->rings_formed, "%d rings are kept of %lld", p->rings,
              (long long)p->rings_formed);
}

static void take_mark(struct picture *p, const struct event *e, enum picture_mark_kind kind, int64_t step)
{
    RM_ASSERT(p->marks >= 0 && e->worker >= 0 && e->worker < RM_WORKERS_MAX, "mark %d is about worker %d",
              p->marks, e->worker);
    if (p->marks < PICTURE_MARKS)
        p->mark[p->marks++] = (struct picture_mark){.kind = kind, .step = step, .worker = e->worker};
}

void picture_take(struct picture *p, const struct event *e, int64_t step, rm_time at)
{
    switch (e->kind) {
    case EVENT_STEP:
        take_step(p, e, at);
        break;
    case EVENT_EVALUATED:
        take_evaluated(p, e);
        break;
    case EVENT_CHECKPOINT_SAVED:
        take_saved(p, e);
        break;
    case EVENT_RING_FORMED:
        take_ring(p, e);
        break;
    case EVENT_WORKER_LOST:
        take_mark(p, e, PICTURE_LOST, step);
        break;
    case EVENT_WORKER_LEFT:
        take_mark(p, e, PICTURE_LEFT, step);
        break;
    case EVENT_WORKER_JOINED:
        take_mark(p, e, PICTURE_JOINED, step);
        break;
    default:
        break;
    }
}

double picture_loss(const struct picture *p, int64_t from, int64_t to)
{
    double sum = 0;
    int count = 0;
    for (int i = bin_of(p, from + 1); i < p->bins && i <= bin_of(p, to); i++) {
        sum += p->bin[i].sum;
        count += p->bin[i].count;
    }
    return count ? sum / count : NAN;
}

double picture_held_out(const struct picture *p, int64_t from, int64_t to)
{
    double newest = NAN;
    for (int i = bin_of(p, from + 1); i < p->bins && i <= bin_of(p, to); i++)
        if (p->bin[i].evaluated)
            newest = p->bin[i].held_out;
    return newest;
}

struct worker_set picture_members(const struct picture *p, int64_t step)
{
    RM_ASSERT(p->rings >= 0 && p->rings <= PICTURE_RINGS, "%d rings", p->rings);
    struct worker_set members = {0};
    for (int i = 0; i < p->rings && p->ring[i].step < step; i++)
        members = p->ring[i].members;
    return members;
}

struct worker_set picture_everybody(const struct picture *p)
{
    RM_ASSERT(p->marks >= 0 && p->marks <= PICTURE_MARKS, "%d marks", p->marks);
    struct worker_set all = {0};
    for (int i = 0; i < p->rings; i++)
        all = set_union(all, p->ring[i].members);
    for (int i = 0; i < p->marks; i++)
        set_add(&all, p->mark[i].worker);
    return all;
}

rm_time picture_time(const struct picture *p, int64_t step)
{
    if (step <= p->first || !p->bins)
        return 0;
    int i = bin_of(p, step);
    RM_ASSERT(i >= 0 && i < PICTURE_BINS, "bin %d", i);
    return p->bin[i < p->bins ? i : p->bins - 1].at;
}

static int bins_of_point(const struct picture *p)
{
    RM_ASSERT(p->bins >= 0 && p->bins <= PICTURE_BINS, "%d bins", p->bins);
    return p->bins > PICTURE_BINS / 2 ? 2 : 1;
}

int picture_curve_points(const struct picture *p)
{
    return (p->bins + bins_of_point(p) - 1) / bins_of_point(p);
}

double picture_curve(const struct picture *p, enum picture_curve curve, int point, int64_t *ret_step)
{
    int each = bins_of_point(p), count = 0;
    double sum = 0;
    RM_ASSERT(point >= 0 && point < picture_curve_points(p), "point %d of %d", point,
              picture_curve_points(p));
    *ret_step = p->first;
    for (int i = point * each; i < (point + 1) * each && i < p->bins; i++) {
        *ret_step = p->bin[i].step;
        count += p->bin[i].curve[curve].count;
        sum += p->bin[i].curve[curve].sum;
    }
    return count ? sum / count : NAN;
}

double picture_curve_high(const struct picture *p, enum picture_curve curve)
{
    double high = 0;
    int64_t step;
    for (int i = 0; i < picture_curve_points(p); i++)
        high = fmax(high, picture_curve(p, curve, i, &step)); /* fmax passes a NaN over */
    return high;
}

bool picture_range(const struct picture *p, double *ret_low, double *ret_high)
{
    *ret_low = INFINITY;
    *ret_high = -INFINITY;
    for (int i = 0; i < p->bins; i++) {
        const struct picture_bin *b = &p->bin[i];
        if (b->count) {
            *ret_low = fmin(*ret_low, b->low);
            *ret_high = fmax(*ret_high, b->high);
        }
        if (b->evaluated) {
            *ret_low = fmin(*ret_low, b->held_out);
            *ret_high = fmax(*ret_high, b->held_out);
        }
    }
    return *ret_low <= *ret_high;
}

void picture_ring_name(const struct picture_ring *ring, char out[PICTURE_NAME_MAX])
{
    if (ring->term > 1)
        snprintf(out, PICTURE_NAME_MAX, "%lld.%lld", (long long)ring->term, (long long)ring->generation);
    else
        snprintf(out, PICTURE_NAME_MAX, "%lld", (long long)ring->generation);
}
