#include "operator/metrics.h"

#include <string.h>

const char metrics_type[] = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/* Seconds. */
static const double bounds[METRICS_BUCKETS] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 1, 5, 30};

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

static void print_head(struct str *out, const char *name, const char *type, const char *help)
{
    str_addf(out, "# TYPE ringmaster_operator_%s %s\n", name, type);
    str_addf(out, "# HELP ringmaster_operator_%s %s\n", name, help);
}

static void print_counter(struct str *out, const char *name, const char *help, int64_t value)
{
    print_head(out, name, "counter", help);
    str_addf(out, "ringmaster_operator_%s_total %lld\n", name, (long long)value);
}

static void print_gauge(struct str *out, const char *name, const char *help, int value)
{
    print_head(out, name, "gauge", help);
    str_addf(out, "ringmaster_operator_%s %d\n", name, value);
}

static void print_timings(struct str *out, const char *name, const char *help, const struct timings *timings)
{
    int64_t below = 0;
    print_head(out, name, "histogram", help);
    str_addf(out, "# UNIT ringmaster_operator_%s seconds\n", name);
    for (int i = 0; i < METRICS_BUCKETS; i++) {
        below += timings->bucket[i];
        str_addf(out, "ringmaster_operator_%s_bucket{le=\"%g\"} %lld\n", name, bounds[i], (long long)below);
    }
    str_addf(out, "ringmaster_operator_%s_bucket{le=\"+Inf\"} %lld\n", name, (long long)timings->count);
    str_addf(out, "ringmaster_operator_%s_count %lld\n", name, (long long)timings->count);
    str_addf(out, "ringmaster_operator_%s_sum %.6f\n", name, timings->sum);
}

static void print_calls(struct str *out, const struct metrics *metrics)
{
    print_head(out, "api_requests", "counter",
               "Requests to the API server by verb, resource and HTTP status "
               "(0: no answer).");
    for (int i = 0; i < metrics->calls_count; i++) {
        const struct metrics_call *call = &metrics->call[i];
        str_addf(out,
                 "ringmaster_operator_api_requests_total{verb=\"%s\",resource=\"%s\",code=\"%d\"} %lld\n",
                 call->verb, call->resource, call->status, (long long)call->count);
    }
}

void metrics_print(const struct metrics *m, struct str *out)
{
    print_gauge(out, "leader", "1 where this replica acts, 0 where it waits for the lease.", m->leading);
    print_gauge(out, "jobs", "TrainingJobs in the cache.", m->jobs);
    print_gauge(out, "pods", "Pods of TrainingJobs in the cache.", m->pods);
    print_gauge(out, "nodes", "Nodes in the cache.", m->nodes);
    print_gauge(out, "queue_depth", "Jobs that wait to be looked at, now or at a moment to come.", m->queued);
    print_gauge(out, "jobs_in_work", "Jobs whose writes are under way.", m->in_work);
    print_gauge(out, "api_requests_waiting", "Requests that wait for the client's rate limit.",
                m->requests_waiting);
    print_timings(out, "reconcile_seconds", "From looking at a job to the answer to the last write.",
                  &m->reconciles);
    print_counter(out, "reconciles_refused", "Reconciles that the API server refused something.",
                  m->reconciles_refused);
    print_counter(out, "status_conflicts", "Status writes that came after somebody else's.", m->conflicts);
    print_counter(out, "status_writes", "Status writes that were taken.", m->status_writes);
    print_counter(out, "pods_created", "Pods created.", m->pods_created);
    print_counter(out, "pods_deleted", "Pods deleted.", m->pods_deleted);
    print_timings(out, "api_request_seconds", "Time to the API server's answer, watches left out.",
                  &m->requests);
    print_calls(out, m);
    print_counter(out, "relists",
                  "Lists of a whole kind: one for each kind at the start, later ones mean "
                  "that a watch fell behind.",
                  m->relists);
    print_counter(out, "watch_failures", "Lists and watches that failed and were tried again.",
                  m->watch_troubles);
    print_counter(out, "coordinator_polls", "Answers of coordinators.", m->polls);
    print_counter(out, "coordinator_poll_failures", "Questions to coordinators without a usable answer.",
                  m->polls_failed);
    print_counter(out, "events_lost", "Kubernetes events that could not be written.", m->events_lost);
    str_adds(out, "# EOF\n");
}
