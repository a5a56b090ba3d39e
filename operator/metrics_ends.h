/* How often each job's pods were taken away, and how often they ended by themselves, as `kubectl get tj`
 * shows it; docs/metrics.md names them. */
#ifndef RM_OPERATOR_METRICS_ENDS_H
#define RM_OPERATOR_METRICS_ENDS_H

#include "common/wire/exposition.h"
#include "operator/cache.h"

enum { METRICS_ENDS_JOBS = 2000 }; /* of more, some are left out: a page has an end */

void metrics_print_ends(struct cache *cache, struct exposition *page);

#endif
