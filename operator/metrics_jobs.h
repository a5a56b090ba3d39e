/* What Prometheus is told of each job: what it has cost, how often its pods were taken away or ended by
 * themselves (as `kubectl get tj` shows it), and how many workers it needs to be done in time, for
 * autoscalers. Of 2000 jobs at most. docs/metrics.md names each. */
#ifndef RM_OPERATOR_METRICS_JOBS_H
#define RM_OPERATOR_METRICS_JOBS_H

#include "common/wire/exposition.h"
#include "operator/cache.h"

void metrics_print_jobs(struct cache *cache, int64_t now_ms, struct exposition *page);

#endif
