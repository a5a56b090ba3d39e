#include "operator/metrics_ends.h"

#include "operator/core/account.h"

struct printing {
    struct exposition *page;
    int64_t (*count)(const struct job_status *status);
    int jobs;
};

static void print_job(void *ctx, const char *name, void *value)
{
    struct printing *p = ctx;
    const struct job_entry *job = value;
    (void)name;
    if (p->jobs++ >= METRICS_ENDS_JOBS)
        return;
    struct exposition_label labels[] = {{"training_job_namespace", job->view.namespace_name},
                                        {"training_job", job->view.name}};
    exposition_sample_of(p->page, labels, 2, (double)p->count(&job->view.status));
}

void metrics_print_ends(struct cache *cache, struct exposition *page)
{
    static const struct {
        const char *name, *help;
        int64_t (*count)(const struct job_status *status);
    } families[] = {
        {"job_interruptions", "Pods of a job that were preempted, or lost with their nodes.",
         account_interruptions},
        {"job_restarts", "Pods of a job that failed, or did not fit.", account_restarts},
    };
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        struct printing p = {.page = page, .count = families[i].count};
        exposition_family(page, EXPOSITION_COUNTER, families[i].name, families[i].help);
        table_each(&cache->jobs, print_job, &p);
    }
}
