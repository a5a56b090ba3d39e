/* Where the time of the whole job went. A coordinator counts its own time alone, and its successor begins
 * anew: the operator adds their terms up. What no coordinator accounts for (none is there yet, one was lost,
 * the job is suspended) is waiting, so that the classes come to the time since the job's start. */
#include <stdio.h>
#include <string.h>

#include "operator/core/plan_parts.h"

#include "common/base/assert.h"

/* Of the classes that a coordinator knows best. */
static int64_t accounted(const struct op_goodput *g)
{
    int64_t sum = 0;
    for (int which = 0; which < GOODPUT_CLASSES; which++)
        sum += which == GOODPUT_WAITING ? 0 : g->seconds[which];
    return sum;
}

static void fill_up(struct planner *p, int64_t until_ms)
{
    struct op_goodput *g = &p->next.goodput;
    int64_t wall = p->next.start_ms ? (until_ms - p->next.start_ms) / 1000 : 0, known = accounted(g);
    g->seconds[GOODPUT_WAITING] = wall > known ? wall - known : 0;
    int64_t all = known + g->seconds[GOODPUT_WAITING];
    RM_ASSERT(all == (wall > known ? wall : known), "%lld s of %lld are accounted for", (long long)all,
              (long long)wall);
    double share = all > 0 ? (double)g->seconds[GOODPUT_PRODUCTIVE] / (double)all : 0;
    snprintf(g->ratio, sizeof g->ratio, "%.3f", share);
}

static void add_term(struct planner *p, const struct coordinator_view *view)
{
    RM_ASSERT(view->goodput.known, "nobody knows the time of term %d", view->term);
    struct op_goodput *g = &p->next.goodput;
    if (g->term && g->term != view->term)
        memcpy(g->earlier, g->seconds, sizeof g->earlier);
    g->term = view->term;
    g->known = true;
    for (int which = 0; which < GOODPUT_CLASSES; which++)
        if (which != GOODPUT_WAITING)
            g->seconds[which] = g->earlier[which] + view->goodput.seconds[which];
}

void plan_take_goodput(struct planner *p, const struct coordinator_view *view)
{
    if (!view->goodput.known)
        return;
    add_term(p, view);
    fill_up(p, p->s->answered_ms ? p->s->answered_ms : p->s->now_ms);
}

void plan_end_goodput(struct planner *p)
{
    RM_ASSERT(p->mode == OP_DONE, "the time of a job ends in mode %s", plan_mode_name(p));
    const struct coordinator_view *view = find_coordinator_view(p);
    if (view && view->goodput.known)
        add_term(p, view);
    if (p->next.goodput.known)
        fill_up(p, p->next.completion_ms);
}
