/* Which backend computes for a job, and what it is told of it. */
#include <string.h>

#include "common/base/assert.h"
#include "common/base/str.h"
#include "common/os/config.h"
#include "common/os/cores.h"
#include "common/os/log.h"
#include "trainer/backend/cpu/backend_cpu.h"
#include "trainer/backend/cuda/gpu/backend_gpu.h"
#include "trainer/backend/program/backend_program.h"
#include "trainer/engine/engine_parts.h"

/* Workers of one machine share its cores; what a pod may use is one worker's. */
int engine_threads(const struct engine *e)
{
    const struct job_spec *spec = e->spec;
    int sharers = e->alone ? 1 : spec->workers.target;
    int threads = spec->threads > 0 ? spec->threads : cores_share(sharers);
    RM_ASSERT(threads > 0, "%d threads for one of %d workers", threads, sharers);
    return threads;
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

/* Before the coordinator gives the worker up: the sentence here says more. */
static rm_time program_patience(const struct job_spec *spec)
{
    rm_time within = spec->elasticity.start_timeout;
    return within - rm_earlier(within / 2, 10 * RM_S);
}

/* What there is to sum the program says. */
static int open_program(struct engine *e, int fd, struct error *err)
{
    const struct job_spec *spec = e->spec;
    const struct backend_program_options options = {.fd = fd,
                                                    .lanes = spec->batch.lanes,
                                                    .sequences = spec->batch.lane_sequences,
                                                    .steps = spec->steps,
                                                    .seed = spec->seed,
                                                    .threads = engine_threads(e),
                                                    .patience = program_patience(spec),
                                                    .stop = &e->abort[ELASTIC_COMPUTES].word,
                                                    .pulse = &e->counter,
                                                    .patient = !spec->elasticity.step_timeout,
                                                    .layout = &e->layout};
    if (backend_program_open(&e->backend, &options, err) < 0)
        return -1;
    backend_program_data(e->backend, e->data_sha256);
    return 0;
}

enum { REPORT_MAX = 2048 };

/* What it has taken stands in the log, a line a purpose. */
static int open_gpu(struct backend **ret, const struct backend_options *options, struct error *err)
{
    if (backend_gpu_open(ret, options, err) < 0)
        return -1;
    struct str report = str_init(REPORT_MAX);
    backend_gpu_report(*ret, &report);
    log_info("computes on a GPU", "device=\"%s\"", backend_gpu_name(*ret));
    for (const char *line = str_text(&report); *line; line += strcspn(line, "\n") + 1)
        log_info("of its memory", "purpose=\"%.*s\"", (int)strcspn(line, "\n"), line);
    str_clear(&report);
    return 0;
}

static engine_open_backend *opener_of(const struct job_spec *spec)
{
    return spec->device == JOB_DEVICE_GPU ? open_gpu : backend_cpu_open;
}

int engine_backend_open(struct engine *e, const struct engine_options *given, struct error *err)
{
    engine_open_backend *open = given->backend;
    const struct job_spec *spec = e->spec;
    if (job_is_elastic(spec) && !open)
        return open_program(e, given->program_fd, err);
    const char *forced = config_get(CONFIG_TRAINER_ISA);
    text_copy(e->isa, sizeof e->isa, forced ? forced : spec->isa);
    model_layout_init(&e->layout, &spec->model.shape);
    const struct backend_options options = {.layout = &e->layout,
                                            .sequences = spec->batch.lane_sequences,
                                            .threads = engine_threads(e),
                                            .isa = e->isa,
                                            .bf16 = spec->precision == JOB_BF16,
                                            .recompute = spec->recompute,
                                            .mixed = spec->allow_mixed_hardware,
                                            .rule = rule_of(spec),
                                            .pulse = &e->counter,
                                            .shelf = given->shelf};
    return (open ? open : opener_of(spec))(&e->backend, &options, err);
}
