/* How many workers each job needs to be done in time, for autoscalers; docs/metrics.md names it. */
#ifndef RM_OPERATOR_METRICS_NEED_H
#define RM_OPERATOR_METRICS_NEED_H

#include "common/wire/exposition.h"
#include "operator/cache.h"

enum { METRICS_NEED_JOBS = 2000 }; /* of more, some are left out: a page has an end */

void metrics_print_needs(struct cache *cache, int64_t now_ms, struct exposition *page);

#endif
