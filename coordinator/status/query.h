/* What a watcher's question says behind its path:
 * "after=17&told=41&relieve=2.1,4.3&deleted=5.1&will=4.3.110&stay=3". Members of other names are passed over.
 * Anybody may ask who reaches the port; what may come of it says core/rdzv_relief.h. Pure. */
#ifndef RM_COORDINATOR_QUERY_H
#define RM_COORDINATOR_QUERY_H

#include "coordinator/core/rdzv_types.h"

struct query {
    int64_t after; /* the revision that the watcher knows; -1 where it does not say */
    int64_t told;  /* the sequence of the newest event that it knows; 0 where it does not say */
    bool relieves; /* it says whose machines may go, if only that none does, whose pods are deleted, and whose
                      machines will go, after how many seconds: */
    struct rdzv_relief relief;
};

/* A member that is not as above is as if it were absent. */
void query_read(const char *text, struct query *ret);

#endif
