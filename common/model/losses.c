#include "common/model/losses.h"

#include <math.h>
#include <string.h>

#include "common/base/assert.h"

static void drop_oldest(struct losses *l)
{
    size_t left = (LOSSES_KEPT - 1) * sizeof *l->loss;
    RM_ASSERT(l->count == LOSSES_KEPT, "of %d losses the oldest goes", l->count);
    memmove(l->loss, l->loss + 1, left);
    memmove(l->held_out, l->held_out + 1, left);
    l->count--;
}

void losses_add(struct losses *l, int64_t step, double loss)
{
    RM_ASSERT(step >= 0 && l->count >= 0 && l->count <= LOSSES_KEPT, "step %lld is added to %d others",
              (long long)step, l->count);
    if (l->count && step == l->step) { /* told once more */
        l->loss[l->count - 1] = loss;
        return;
    }
    if (l->count && step != l->step + 1)
        l->count = 0;
    if (l->count == LOSSES_KEPT)
        drop_oldest(l);
    l->held_out[l->count] = NAN;
    l->loss[l->count++] = loss;
    l->step = step;
}

/* -1: it is not known. */
static int place_of(const struct losses *l, int64_t step)
{
    int64_t ago = l->step - step;
    RM_ASSERT(l->count >= 0 && l->count <= LOSSES_KEPT, "%d losses are known", l->count);
    return ago < 0 || ago >= l->count ? -1 : l->count - 1 - (int)ago;
}

void losses_evaluate(struct losses *l, int64_t step, double held_out)
{
    int at = place_of(l, step);
    if (at >= 0)
        l->held_out[at] = held_out;
}

bool losses_know(const struct losses *l, int64_t step, double *ret)
{
    int at = place_of(l, step);
    if (at >= 0)
        *ret = l->loss[at];
    return at >= 0;
}

bool losses_know_evaluation(const struct losses *l, int64_t step, double *ret)
{
    int at = place_of(l, step);
    if (at >= 0)
        *ret = l->held_out[at];
    return at >= 0 && !isnan(l->held_out[at]);
}

void losses_take(struct losses *l, const struct losses *from)
{
    double loss;
    RM_ASSERT(from->count >= 0 && from->count <= LOSSES_KEPT, "%d losses are taken", from->count);
    bool reaches = l->count && from->count && from->step - from->count <= l->step && l->step <= from->step;
    struct losses mine = *l;
    if (from->count && (!reaches || from->step - from->count <= l->step - l->count))
        *l = *from;
    for (int64_t step = l->step + 1; reaches && step <= from->step; step++)
        if (losses_know(from, step, &loss))
            losses_add(l, step, loss);
    for (int i = 0; i < mine.count && reaches; i++)
        if (!isnan(mine.held_out[i]))
            losses_evaluate(l, mine.step - mine.count + 1 + i, mine.held_out[i]);
    for (int i = 0; i < from->count; i++)
        if (!isnan(from->held_out[i]))
            losses_evaluate(l, from->step - from->count + 1 + i, from->held_out[i]);
}
