#include "operator/metrics_jobs.h"

#include "operator/core/account.h"
#include "operator/core/need.h"
#include "operator/metrics.h"

enum { JOBS_MAX = 2000 }; /* of more, some are left out: a page has an end */

struct printing {
    struct exposition *page;
    const struct family *family;
    int64_t now_ms;
    int jobs;
};

struct family {
    const char *prefix; /* metrics_prefix, or that of all of Ringmaster: what a job's users know of it */
    enum exposition_kind kind;
    const char *name, *help;
    /* False: nobody knows it of this job, and there is no sample. */
    bool (*read)(const struct job_entry *job, int64_t now_ms, double *ret);
    bool money; /* it has the label `currency`, and is not there without one */
};

static bool read_cost(const struct job_entry *job, int64_t micros, double *ret)
{
    *ret = (double)micros / PRICE_UNIT;
    return job->view.status.cost.accounted_ms != 0;
}

static bool spent(const struct job_entry *job, int64_t now_ms, double *ret)
{
    (void)now_ms;
    return read_cost(job, job->view.status.cost.spent.micros, ret);
}

static bool saved(const struct job_entry *job, int64_t now_ms, double *ret)
{
    const struct op_cost *cost = &job->view.status.cost;
    (void)now_ms;
    return read_cost(job, cost->on_demand.micros - cost->spent.micros, ret);
}

static bool hours(const struct job_entry *job, int64_t now_ms, double *ret)
{
    (void)now_ms;
    return read_cost(job, job->view.status.cost.hours.micros, ret);
}

static bool unpriced(const struct job_entry *job, int64_t now_ms, double *ret)
{
    (void)now_ms;
    return read_cost(job, job->view.status.cost.unpriced.micros, ret);
}

static bool interruptions(const struct job_entry *job, int64_t now_ms, double *ret)
{
    (void)now_ms;
    *ret = (double)account_interruptions(&job->view.status);
    return true;
}

static bool restarts(const struct job_entry *job, int64_t now_ms, double *ret)
{
    (void)now_ms;
    *ret = (double)account_restarts(&job->view.status);
    return true;
}

/* An autoscaler that finds no value leaves a job as it is, and a 0 would be a size. */
static bool needed(const struct job_entry *job, int64_t now_ms, double *ret)
{
    *ret = need_workers(&job->view, job->coordinator, job->answered_ms, now_ms);
    return *ret > 0;
}

static const char of_all[] = "ringmaster_";

static const struct family families[] = {
    {metrics_prefix, EXPOSITION_GAUGE, "job_spent", "What the pods of a job have cost.", spent, true},
    {metrics_prefix, EXPOSITION_GAUGE, "job_saved", "What they would have cost more on demand.", saved, true},
    {metrics_prefix, EXPOSITION_GAUGE, "job_node_hours", "Hours of whole machines that they took.", hours,
     false},
    {metrics_prefix, EXPOSITION_GAUGE, "job_unpriced_node_hours",
     "Those of them for which no price is known.", unpriced, false},
    {of_all, EXPOSITION_COUNTER, "interruptions",
     "Pods of a job that were preempted, or lost with their nodes.", interruptions, false},
    {of_all, EXPOSITION_COUNTER, "restarts", "Pods of a job that failed, or did not fit.", restarts, false},
    {metrics_prefix, EXPOSITION_GAUGE, "job_workers_needed",
     "Workers with which a job is done in time for its deadline.", needed, false},
};

static void print_job(void *ctx, const char *name, void *value)
{
    struct printing *p = ctx;
    const struct job_entry *job = value;
    const char *currency = job->view.status.cost.currency;
    double number;
    (void)name;
    if (!p->family->read(job, p->now_ms, &number) || (p->family->money && !*currency) ||
        p->jobs++ >= JOBS_MAX)
        return;
    struct exposition_label labels[] = {{"training_job_namespace", job->view.namespace_name},
                                        {"training_job", job->view.name},
                                        {"currency", currency}};
    exposition_sample_of(p->page, labels, p->family->money ? 3 : 2, number);
}

void metrics_print_jobs(struct cache *cache, int64_t now_ms, struct exposition *page)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        struct exposition named = *page; /* the same text */
        struct printing p = {.page = &named, .family = &families[i], .now_ms = now_ms};
        named.prefix = families[i].prefix;
        exposition_family(&named, families[i].kind, families[i].name, families[i].help);
        table_each(&cache->jobs, print_job, &p);
    }
}
