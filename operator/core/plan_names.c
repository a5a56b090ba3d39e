/* What a plan's mode is called, for the sentences of assertions in all of its stages. */
#include "common/base/assert.h"
#include "operator/core/plan_parts.h"

const char *plan_mode_name(const struct planner *p)
{
    static const char *const names[] = {[OP_RUN] = "RUN",   [OP_HOLD] = "HOLD",       [OP_IDLING] = "IDLING",
                                        [OP_STOP] = "STOP", [OP_SUSPEND] = "SUSPEND", [OP_DONE] = "DONE"};
    RM_ASSERT((unsigned)p->mode < sizeof names / sizeof *names, "%d is the number of no mode", (int)p->mode);
    return names[p->mode];
}
