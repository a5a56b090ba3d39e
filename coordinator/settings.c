#include "coordinator/settings.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/os/config.h"

static void take_rules(const struct job_spec *spec, struct rdzv_settings *s)
{
    static const enum rdzv_rule means[] = {[JOB_RULE_NONE] = RULE_COUNTS,
                                           [JOB_RULE_FAIL_JOB] = RULE_FAILS_JOB,
                                           [JOB_RULE_RESTART] = RULE_SPARES};
    for (int code = 0; code < PROGRAM_CODES; code++)
        s->rule[code] = (uint8_t)means[job_rule_of(&spec->failure_policy.rules, code)];
}

/* 0: nobody says. */
static int attempt_told(void)
{
    const char *text = config_get(CONFIG_POD_ATTEMPT);
    long attempt = text ? strtol(text, NULL, 10) : 0;
    return attempt > 0 && attempt < INT_MAX ? (int)attempt : 0;
}

/* Who holds its state elsewhere than in its own memory works with it while it is asked for. Under `run` all
 * share one machine, whose processors a newcomer that listens takes from them, while a state that all wait
 * for comes as fast as memory is copied. */
static bool newcomers_listen(const struct job_spec *spec, bool pod)
{
    const char *text = config_get(CONFIG_LISTEN);
    bool near = spec->device != JOB_DEVICE_GPU && !job_is_elastic(spec);
    return near && (text && *text ? strcmp(text, "0") != 0 : pod);
}

struct rdzv_settings settings_of(const struct coordinator_options *options)
{
    const struct job_spec *spec = &options->files->spec;
    struct rdzv_settings s = {
        .term = options->term,
        .workers_min = spec->workers.min,
        .workers_max = spec->workers.max,
        .workers_target = spec->workers.target,
        /* a program has no lanes to share out, and is done or not */
        .lanes = job_restarts(spec) ? spec->workers.max : spec->batch.lanes,
        .steps = job_restarts(spec) ? 1 : spec->steps,
        .program = job_restarts(spec),
        .alone = job_freezes(spec),
        .attempt_least = options->pod ? attempt_told() : 0,
        .brought = job_is_elastic(spec),
        .listens = newcomers_listen(spec, options->pod != NULL),
        .gpus = spec->device == JOB_DEVICE_GPU,
        .reads_files = !job_restarts(spec) && !job_is_elastic(spec) && !job_data_is_remote(spec),
        .exact = spec->reduction == JOB_EXACT,
        .allow_mixed_hardware = spec->allow_mixed_hardware,
        /* what there is after the first coordinator of a pod is the job's own */
        .resume = spec->checkpoint.resume || (options->pod && options->term > 1),
        .evaluation_every = spec->evaluation.every_steps,
        .checkpoint_every = spec->checkpoint.every_steps,
        /* snapshots of processes their launcher times itself */
        .max_loss = spec->checkpoint.every == JOB_AUTO && !job_freezes(spec) ? spec->checkpoint.max_loss : 0,
        .join_window = job_join_window(spec, options->pod != NULL),
        .first_window = job_first_window(spec),
        .heartbeat = spec->elasticity.heartbeat,
        .lost_after = spec->elasticity.lost_after,
        .form_timeout = spec->elasticity.form_timeout,
        .step_timeout = spec->elasticity.step_timeout,
        .start_timeout = spec->elasticity.start_timeout,
        .max_restarts = spec->failure_policy.max_restarts,
        .within = spec->failure_policy.within,
        /* a folder's disk that is full or broken does not mend itself while one waits */
        .save_patience = job_uri_is_bucket(spec->checkpoint.uri) ? spec->checkpoint.end_timeout : 0,
        .end_timeout = spec->checkpoint.end_timeout,
        .stop_takes = job_restarts(spec) ? spec->launch.grace_period : 0,
        .leave_unsaved = !spec->checkpoint.on_preemption,
        .unsupervised = options->pod != NULL,
        .predecessor = options->predecessor,
    };
    take_rules(spec, &s);
    text_copy(s.job, sizeof s.job, spec->name);
    return s;
}
