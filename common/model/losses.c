#include "common/model/losses.h"

#include <string.h>

#include "common/base/assert.h"

void losses_add(struct losses *l, int64_t step, double loss)
{
    RM_ASSERT(step >= 0 && l->count >= 0 && l->count <= LOSSES_KEPT, "step %lld is added to %d others",
              (long long)step, l->count);
    if (l->count && step == l->step)
        l->count--; /* it is told once more */
    else if (l->count && step != l->step + 1)
        l->count = 0;
    if (l->count == LOSSES_KEPT) {
        memmove(l->loss, l->loss + 1, (LOSSES_KEPT - 1) * sizeof *l->loss);
        l->count--;
    }
    l->loss[l->count++] = loss;
    l->step = step;
}

bool losses_know(const struct losses *l, int64_t step, double *ret)
{
    RM_ASSERT(l->count >= 0 && l->count <= LOSSES_KEPT, "%d losses are known", l->count);
    int64_t ago = l->step - step;
    if (ago < 0 || ago >= l->count)
        return false;
    *ret = l->loss[l->count - 1 - ago];
    return true;
}

void losses_take(struct losses *l, const struct losses *from)
{
    double loss;
    RM_ASSERT(from->count >= 0 && from->count <= LOSSES_KEPT, "%d losses are taken", from->count);
    bool reaches = l->count && from->count && from->step - from->count <= l->step && l->step <= from->step;
    if (from->count && (!reaches || from->step - from->count <= l->step - l->count)) {
        *l = *from;
        return;
    }
    for (int64_t step = l->step + 1; reaches && step <= from->step; step++)
        if (losses_know(from, step, &loss))
            losses_add(l, step, loss);
}
