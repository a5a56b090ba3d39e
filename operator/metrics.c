#include "operator/metrics.h"

#include <stdio.h>
#include <string.h>

const char metrics_prefix[] = "ringmaster_operator_";

/* Seconds. */
static const double bounds[METRICS_BUCKETS] = {0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01,
                                               0.025,   0.1,    0.25,  1,      5,     30};

void timings_add(struct timings *timings, rm_time took)
{
    double seconds = (double)took / (double)RM_S;
    int i = 0;
    while (i < METRICS_BUCKETS && seconds > bounds[i])
        i++;
    timings->bucket[i]++;
    timings->count++;
    timings->sum += seconds;
}

void metrics_request(struct metrics *metrics, const struct kube_request *request,
                     const struct kube_answer *answer, rm_time took)
{
    const char *verb = kube_verb_name(request->verb), *resource = request->resource->plural;
    if (request->verb != KUBE_WATCH)
        timings_add(&metrics->requests, took);
    int i = 0;
    while (i < metrics->calls_count &&
           (metrics->call[i].status != answer->status || strcmp(metrics->call[i].verb, verb) != 0 ||
            strcmp(metrics->call[i].resource, resource) != 0))
        i++;
    if (i == METRICS_CALLS) /* never: verbs, resources and statuses are few */
        return;
    if (i == metrics->calls_count)
        metrics->call[metrics->calls_count++] = (struct metrics_call){verb, resource, answer->status, 0};
    metrics->call[i].count++;
}

static void print_timings(struct exposition *page, const char *name, const char *help,
                          const struct timings *timings)
{
    struct exposition_histogram histogram = {bounds, timings->bucket, METRICS_BUCKETS, timings->sum};
    exposition_family(page, EXPOSITION_HISTOGRAM, name, help);
    exposition_buckets(page, &histogram);
}

static void print_calls(struct exposition *page, const struct metrics *metrics)
{
    exposition_family(page, EXPOSITION_COUNTER, "api_requests",
                      "Requests to the API server by verb, resource and HTTP status (0: no answer).");
    for (int i = 0; i < metrics->calls_count; i++) {
        const struct metrics_call *call = &metrics->call[i];
        char code[16];
        snprintf(code, sizeof code, "%d", call->status);
        struct exposition_label labels[] = {
            {"verb", call->verb}, {"resource", call->resource}, {"code", code}};
        exposition_sample_of(page, labels, 3, (double)call->count);
    }
}

void metrics_print(const struct metrics *m, struct exposition *page)
{
    exposition_gauge(page, "leader", "1 where this replica acts, 0 where it waits for the lease.",
                     m->leading);
    exposition_gauge(page, "refused", "1 where this replica leads and waits for another release to end.",
                     m->refused);
    exposition_gauge(page, "namespaces_left", "Namespaces that another release looks after alone.",
                     m->namespaces_left);
    exposition_gauge(page, "jobs", "TrainingJobs in the cache.", m->jobs);
    exposition_gauge(page, "pods", "Pods of TrainingJobs in the cache.", m->pods);
    exposition_gauge(page, "nodes", "Nodes in the cache.", m->nodes);
    exposition_gauge(page, "queue_depth", "Jobs that wait to be looked at, now or at a moment to come.",
                     m->queued);
    exposition_gauge(page, "jobs_in_work", "Jobs whose writes are under way.", m->in_work);
    exposition_gauge(page, "api_requests_waiting", "Requests that wait for the client's rate limit.",
                     m->requests_waiting);
    exposition_gauge(page, "prices", "Prices that count, by lines of prices.csv.", m->prices);
    exposition_gauge(page, "prices_refused", "1 where prices.csv as it is now is refused, or gone.",
                     m->prices_refused);
    print_timings(page, "reconcile_seconds", "From looking at a job to the answer to the last write.",
                  &m->reconciles);
    print_timings(page, "change_to_request_seconds",
                  "From a watch's word of a change to the first request that it leads to.", &m->reactions);
    exposition_counter(page, "reconciles_refused", "Reconciles that the API server refused something.",
                       m->reconciles_refused);
    exposition_counter(page, "status_conflicts", "Status writes that came after somebody else's.",
                       (double)m->conflicts);
    exposition_counter(page, "status_writes", "Status writes that were taken.", (double)m->status_writes);
    exposition_counter(page, "pods_created", "Pods created.", (double)m->pods_created);
    exposition_counter(page, "pods_deleted", "Pods deleted.", (double)m->pods_deleted);
    print_timings(page, "api_request_seconds", "Time to the API server's answer, watches left out.",
                  &m->requests);
    print_calls(page, m);
    exposition_counter(page, "relists",
                       "Lists of a whole kind: one for each kind at the start, later ones mean "
                       "that a watch fell behind.",
                       m->relists);
    exposition_counter(page, "watch_failures", "Lists and watches that failed and were tried again.",
                       m->watch_troubles);
    exposition_counter(page, "coordinator_polls", "Answers of coordinators.", (double)m->polls);
    exposition_counter(page, "coordinator_poll_failures",
                       "Questions to coordinators without a usable answer.", m->polls_failed);
    exposition_counter(page, "events_lost", "Kubernetes events that could not be written.",
                       (double)m->events_lost);
}
