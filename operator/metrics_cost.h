/* What each job has cost, for Prometheus; docs/metrics.md names each. */
#ifndef RM_OPERATOR_METRICS_COST_H
#define RM_OPERATOR_METRICS_COST_H

#include "common/wire/exposition.h"
#include "operator/cache.h"

enum { METRICS_COST_JOBS = 2000 }; /* of more, some are left out: a page has an end */

void metrics_print_costs(struct cache *cache, struct exposition *page);

#endif
