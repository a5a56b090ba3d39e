#include "operator/metrics_cost.h"

struct printing {
    struct exposition *page;
    int64_t (*amount)(const struct op_cost *cost);
    bool money;
    int jobs;
};

static int64_t spent(const struct op_cost *cost)
{
    return cost->spent.micros;
}

static int64_t saved(const struct op_cost *cost)
{
    return cost->on_demand.micros - cost->spent.micros;
}

static int64_t hours(const struct op_cost *cost)
{
    return cost->hours.micros;
}

static int64_t unpriced(const struct op_cost *cost)
{
    return cost->unpriced.micros;
}

static void print_job(void *ctx, const char *name, void *value)
{
    struct printing *p = ctx;
    const struct job_entry *job = value;
    const struct op_cost *cost = &job->view.status.cost;
    (void)name;
    if (!cost->accounted_ms || (p->money && !*cost->currency) || p->jobs++ >= METRICS_COST_JOBS)
        return;
    struct exposition_label labels[] = {{"training_job_namespace", job->view.namespace_name},
                                        {"training_job", job->view.name},
                                        {"currency", cost->currency}};
    exposition_sample_of(p->page, labels, p->money ? 3 : 2, (double)p->amount(cost) / PRICE_UNIT);
}

void metrics_print_costs(struct cache *cache, struct exposition *page)
{
    static const struct {
        const char *name, *help;
        int64_t (*amount)(const struct op_cost *cost);
        bool money;
    } families[] = {
        {"job_spent", "What the pods of a job have cost.", spent, true},
        {"job_saved", "What they would have cost more on demand.", saved, true},
        {"job_node_hours", "Hours of whole machines that they took.", hours, false},
        {"job_unpriced_node_hours", "Those of them for which no price is known.", unpriced, false},
    };
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        struct printing p = {.page = page, .amount = families[i].amount, .money = families[i].money};
        exposition_family(page, EXPOSITION_GAUGE, families[i].name, families[i].help);
        table_each(&cache->jobs, print_job, &p);
    }
}
