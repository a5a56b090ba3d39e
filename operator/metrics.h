/* What the operator counts, and its text for Prometheus. docs/metrics.md names each. */
#ifndef RM_OPERATOR_METRICS_H
#define RM_OPERATOR_METRICS_H

#include <stdint.h>

#include "common/kube/client.h"
#include "common/wire/exposition.h"

enum { METRICS_BUCKETS = 12, METRICS_CALLS = 256 };

/* A histogram of seconds. */
struct timings {
    int64_t bucket[METRICS_BUCKETS + 1]; /* not cumulative; the last one is what is longer */
    int64_t count;
    double sum;
};

struct metrics {
    struct timings reconciles, requests, reactions;
    int64_t reconciles_refused, conflicts, status_writes, polls, polls_failed;
    int64_t relists, watch_troubles, events_lost;
    int64_t pods_created, pods_deleted;
    int jobs, pods, nodes, queued, in_work, requests_waiting;
    int namespaces_left;
    int prices; /* lines */
    bool leading, refused, prices_refused;
    int calls_count;
    struct metrics_call {
        const char *verb, *resource;
        int status;
        int64_t count;
    } call[METRICS_CALLS];
};

void timings_add(struct timings *timings, rm_time took);
void metrics_request(struct metrics *metrics, const struct kube_request *request,
                     const struct kube_answer *answer, rm_time took);
/* The page was begun with metrics_prefix, and is ended, by the caller. */
void metrics_print(const struct metrics *metrics, struct exposition *page);
extern const char metrics_prefix[];

#endif
