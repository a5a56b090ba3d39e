#include "operator/metrics_need.h"

#include "operator/core/need.h"

struct printing {
    struct exposition *page;
    int64_t now_ms;
    int jobs;
};

/* Of who nobody knows it of there is none: an autoscaler that finds no value leaves a job as it is, and a 0
 * would be a size. */
static void print_job(void *ctx, const char *name, void *value)
{
    struct printing *p = ctx;
    const struct job_entry *job = value;
    int needed = need_workers(&job->view, job->coordinator, job->answered_ms, p->now_ms);
    (void)name;
    if (!needed || p->jobs++ >= METRICS_NEED_JOBS)
        return;
    struct exposition_label labels[] = {{"training_job_namespace", job->view.namespace_name},
                                        {"training_job", job->view.name}};
    exposition_sample_of(p->page, labels, 2, needed);
}

void metrics_print_needs(struct cache *cache, int64_t now_ms, struct exposition *page)
{
    struct printing p = {.page = page, .now_ms = now_ms};
    exposition_family(page, EXPOSITION_GAUGE, "job_workers_needed",
                      "Workers with which a job is done in time for its deadline.");
    table_each(&cache->jobs, print_job, &p);
}
