/* Which backend computes for a job, and what it is told of it. */
#include "common/os/config.h"
#include "common/os/cores.h"
#include "trainer/backend/cpu/backend_cpu.h"
#include "trainer/engine/engine_parts.h"

/* Workers of one machine share its cores; what a pod may use is one worker's. */
static int thread_count(const struct engine *e)
{
    const struct job_spec *spec = e->spec;
    int sharing = e->alone || spec->workers.target < 1 ? 1 : spec->workers.target;
    if (spec->threads > 0)
        return spec->threads;
    int share = cores_usable() / sharing;
    return share > 0 ? share : 1;
}

static struct backend_rule rule_of(const struct job_spec *spec)
{
    const struct job_optimizer *o = &spec->optimizer;
    return (struct backend_rule){
        .schedule = {.rate = o->learning_rate,
                     .rate_min = o->min_learning_rate,
                     .warmup = o->warmup_steps,
                     .steps = spec->steps,
                     .cosine = o->schedule == JOB_COSINE},
        .beta1 = o->beta1,
        .beta2 = o->beta2,
        .epsilon = o->epsilon,
        .weight_decay = o->weight_decay,
        .clip_norm = o->clip_norm,
    };
}

int engine_backend_open(struct engine *e, engine_open_backend *open, struct error *err)
{
    const struct job_spec *spec = e->spec;
    const char *forced = config_get(CONFIG_TRAINER_ISA);
    text_copy(e->isa, sizeof e->isa, forced ? forced : spec->isa);
    model_layout_init(&e->layout, &spec->model.shape);
    const struct backend_options options = {.layout = &e->layout,
                                            .sequences = spec->batch.lane_sequences,
                                            .threads = thread_count(e),
                                            .isa = e->isa,
                                            .bf16 = spec->precision == JOB_BF16,
                                            .recompute = spec->recompute,
                                            .rule = rule_of(spec),
                                            .pulse = &e->counter};
    return (open ? open : backend_cpu_open)(&e->backend, &options, err);
}
