/* One call of rdzv_step, as its functions pass it on: what is known, the time, and the actions so far. A
 * function without a turn only looks, or changes what it is handed. */
#ifndef RM_COORDINATOR_RDZV_TURN_H
#define RM_COORDINATOR_RDZV_TURN_H

#include "coordinator/core/rdzv_types.h"

struct turn {
    struct rdzv *st;
    rm_time now;
    struct rdzv_out *out;
};

#endif
