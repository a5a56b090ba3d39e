/* The coordinator's /metrics. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "coordinator/core/rdzv_state.h"
#include "coordinator/status/history.h"

static double seconds(rm_time t)
{
    return (double)t / RM_S;
}

static void print_goodput(const struct rdzv *st, rm_time now, struct exposition *page)
{
    struct rdzv_goodput g = rdzv_goodput(st, now);
    /* No counter: time that came to nothing is moved from one class to another. */
    exposition_family(page, EXPOSITION_GAUGE, "goodput_seconds", "Where the job's time went.");
    exposition_sample(page, "class", "productive", seconds(g.productive));
    exposition_sample(page, "class", "checkpoint", seconds(g.checkpoint));
    exposition_sample(page, "class", "recovery", seconds(g.recovery));
    exposition_sample(page, "class", "waiting", seconds(g.waiting));
    exposition_sample(page, "class", "rework", seconds(g.rework));
    exposition_gauge(page, "goodput_ratio", "Share of the time that brought steps which count.",
                     rdzv_productive_share(g));
}

static void print_recoveries(const struct history *c, const struct rdzv *st, struct exposition *page)
{
    exposition_family(page, EXPOSITION_COUNTER, "ring_changes", "Rings that were formed again, by cause.");
    for (int cause = CAUSE_NONE + 1; cause < CAUSES; cause++)
        exposition_sample(page, "cause", cause_name((enum cause)cause), (double)c->recoveries[cause]);
    exposition_family(page, EXPOSITION_COUNTER, "recovery_seconds",
                      "Time from a sign to the next step, by phase.");
    exposition_sample(page, "phase", "detect", seconds(c->detect));
    exposition_sample(page, "phase", "agree", seconds(c->agree));
    exposition_sample(page, "phase", "ring", seconds(c->ring));
    exposition_sample(page, "phase", "state", seconds(c->state_time));
    exposition_sample(page, "phase", "first_step", seconds(c->first_step));
    const struct exposition_histogram durations = {history_recovery_bounds, c->took, HISTORY_RECOVERY_BOUNDS,
                                                   seconds(c->total)};
    exposition_family(page, EXPOSITION_HISTOGRAM, "recovery_duration_seconds",
                      "Time of each of them, from the sign to the next step.");
    exposition_buckets(page, &durations);
    exposition_gauge(page, "last_recovery_seconds", "The newest of them, from the sign to the next step.",
                     seconds(st->last_recovery.total));
    exposition_family(page, EXPOSITION_COUNTER, "steps_redone",
                      "Steps redone, by whether the change was announced.");
    exposition_sample(page, "change", "announced", (double)c->redone_announced);
    exposition_sample(page, "change", "sudden", (double)c->redone_sudden);
    exposition_counter(page, "lanes_dealt",
                       "Lanes of a step under way that were dealt out anew as a ring was re-formed.",
                       (double)st->lanes_dealt);
    exposition_counter(page, "failures", "Workers and trainers that failed.", (double)st->failures_total);
}

static void print_checkpoints(const struct history *c, const struct rdzv *st, rm_time now,
                              struct exposition *page)
{
    exposition_gauge(page, "checkpoint_step", "Newest published checkpoint, -1 none.", (double)st->saved);
    exposition_gauge(page, "checkpoint_age_seconds",
                     "Time since a checkpoint was published, or since the coordinator began.",
                     seconds(now - st->saved_at));
    exposition_gauge(page, "checkpoint_waiting_seconds",
                     "Age of the newest checkpoint that the store does not take, 0 none.",
                     st->outage.on ? seconds(now - st->outage.taken) : 0);
    exposition_counter(page, "checkpoints", "Checkpoints published.", (double)c->checkpoint.count);
    exposition_counter(page, "checkpoint_written_bytes", "Bytes of them.", (double)c->checkpoint.bytes_all);
    exposition_counter(page, "checkpoint_publish_seconds", "Time that publishing them took.",
                       seconds(c->checkpoint.took_all));
}

static void print_states(const struct rdzv *st, struct exposition *page)
{
    exposition_family(page, EXPOSITION_STATESET, "coordinator_state", "What the coordinator does.");
    for (int s = 0; s < RDZV_STATES; s++)
        exposition_state(page, rdzv_state_name((enum rdzv_state)s), st->state == (enum rdzv_state)s);
}

static void print_info(const struct rdzv *st, struct exposition *page)
{
    char term[24];
    snprintf(term, sizeof term, "%" PRId64, st->settings.term);
    struct exposition_label labels[] = {{"training_job", st->settings.job}, {"term", term}};
    exposition_family(page, EXPOSITION_INFO, "coordinator",
                      "Which job this is, and which coordinator of it.");
    exposition_sample_of(page, labels, 2, 1);
}

static int present(const struct rdzv *st)
{
    int n = 0;
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        n += st->worker[i].presence == PRESENT && !st->worker[i].released;
    return n;
}

/* What nobody knows is not there: a 0 would be a value. */
static void gauge_if_known(struct exposition *page, const char *name, const char *help, double value)
{
    if (isfinite(value))
        exposition_gauge(page, name, help, value);
}

static void print_progress(const struct rdzv *st, struct exposition *page)
{
    double step = st->told > 0 ? (double)st->told : 0;
    exposition_gauge(page, "step", "Newest committed step.", step);
    exposition_gauge(page, "steps", "Steps that the job is to have.", (double)st->settings.steps);
    if (st->told > 0) {
        gauge_if_known(page, "loss", "Loss of the newest step.", st->loss);
        gauge_if_known(page, "gradient_norm", "Norm of its mean gradient, before clipping.",
                       st->numbers.norm);
        gauge_if_known(page, "clip_factor", "Factor that clipping took that by.", st->numbers.clip);
        gauge_if_known(page, "learning_rate", "Learning rate of that step.", st->numbers.rate);
    }
    gauge_if_known(page, "held_out_loss", "Loss of the newest evaluation.", st->held_out);
    exposition_gauge(page, "step_seconds", "Time of a step, smoothed.", st->step_time / RM_S);
    if (st->settings.brought) {
        exposition_gauge(page, "step_samples", "Samples of a step, all workers together.",
                         (double)st->tokens);
        exposition_counter(page, "samples", "Samples of the steps that were committed.",
                           (double)st->tokens_told);
        return;
    }
    exposition_gauge(page, "step_tokens", "Tokens of a step, all workers together.", (double)st->tokens);
    exposition_counter(page, "tokens", "Tokens of the steps that were committed.", (double)st->tokens_told);
}

/* A user's program: what it does not say is not there. */
static void print_reported(const struct rdzv *st, struct exposition *page)
{
    const struct rdzv_report *r = &st->report;
    if (!r->known)
        return;
    exposition_gauge(page, "step", "Newest committed step.", (double)r->step);
    if (r->steps)
        exposition_gauge(page, "steps", "Steps that the job is to have.", (double)r->steps);
    gauge_if_known(page, "loss", "Loss of the newest step.", r->loss);
    if (st->step_time > 0)
        exposition_gauge(page, "step_seconds", "Time of a step, smoothed.", st->step_time / RM_S);
}

void history_print_metrics(const struct history *c, const struct rdzv *st, rm_time now,
                           struct exposition *page)
{
    print_info(st, page);
    print_states(st, page);
    if (st->settings.program)
        print_reported(st, page);
    else
        print_progress(st, page);
    exposition_gauge(page, "ring_size", "Members of the ring at work.",
                     st->state == RDZV_TRAINING ? st->world : 0);
    exposition_gauge(page, "ring_generation", "Newest member list.", (double)st->ring.n);
    exposition_gauge(page, "workers_connected", "Workers whose agents are connected.", present(st));
    print_goodput(st, now, page);
    print_recoveries(c, st, page);
    print_checkpoints(c, st, now, page);
    exposition_counter(page, "data_wait_seconds", "Time that trainers stood still for data, all together.",
                       seconds(st->data_wait));
}
