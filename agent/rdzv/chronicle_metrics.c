/* The coordinator's /metrics, as OpenMetrics text. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "agent/rdzv/chronicle.h"
#include "agent/rdzv/rdzv_state.h"

static void family(struct str *out, const char *name, const char *type, const char *unit, const char *help)
{
    str_addf(out, "# TYPE ringmaster_%s %s\n", name, type);
    if (*unit)
        str_addf(out, "# UNIT ringmaster_%s %s\n", name, unit);
    str_addf(out, "# HELP ringmaster_%s %s\n", name, help);
}

static void gauge(struct str *out, const char *name, const char *unit, const char *help, double value)
{
    family(out, name, "gauge", unit, help);
    str_addf(out, "ringmaster_%s %.17g\n", name, value);
}

static void counter(struct str *out, const char *name, const char *unit, const char *help, double value)
{
    family(out, name, "counter", unit, help);
    str_addf(out, "ringmaster_%s_total %.17g\n", name, value);
}

static void labelled(struct str *out, const char *name, const char *label, const char *value, double number)
{
    str_addf(out, "ringmaster_%s_total{%s=\"%s\"} %.17g\n", name, label, value, number);
}

static double seconds(rm_time t)
{
    return (double)t / RM_S;
}

static void print_goodput(const struct rdzv *st, rm_time now, struct str *out)
{
    struct rdzv_goodput g = rdzv_goodput(st, now);
    family(out, "goodput_seconds", "counter", "seconds", "Where the job's time went.");
    labelled(out, "goodput_seconds", "class", "productive", seconds(g.productive));
    labelled(out, "goodput_seconds", "class", "checkpoint", seconds(g.checkpoint));
    labelled(out, "goodput_seconds", "class", "recovery", seconds(g.recovery));
    labelled(out, "goodput_seconds", "class", "waiting", seconds(g.waiting));
    labelled(out, "goodput_seconds", "class", "rework", seconds(g.rework));
    gauge(out, "goodput_ratio", "ratio", "Share of the time that brought steps which count.",
          rdzv_productive_share(g));
}

static void print_recoveries(const struct chronicle *c, const struct rdzv *st, struct str *out)
{
    family(out, "interruptions", "counter", "", "Rings that were formed again, by cause.");
    for (int cause = CAUSE_NONE + 1; cause < CAUSES; cause++)
        labelled(out, "interruptions", "cause", rdzv_cause_name((enum rdzv_cause)cause),
                 (double)c->recoveries[cause]);
    family(out, "recovery_seconds", "counter", "seconds", "Time from a sign to the next step, by phase.");
    labelled(out, "recovery_seconds", "phase", "detect", seconds(c->detect));
    labelled(out, "recovery_seconds", "phase", "agree", seconds(c->agree));
    labelled(out, "recovery_seconds", "phase", "ring", seconds(c->ring));
    labelled(out, "recovery_seconds", "phase", "state", seconds(c->state_time));
    labelled(out, "recovery_seconds", "phase", "first_step", seconds(c->first_step));
    gauge(out, "last_recovery_seconds", "seconds", "The newest of them, from the sign to the next step.",
          seconds(st->last_recovery.total));
    family(out, "steps_redone", "counter", "", "Steps trained again, by whether the change was announced.");
    labelled(out, "steps_redone", "change", "announced", (double)c->redone_announced);
    labelled(out, "steps_redone", "change", "sudden", (double)c->redone_sudden);
    counter(out, "failures", "", "Workers and trainers that failed.", (double)st->failures_total);
}

static void print_checkpoints(const struct chronicle *c, const struct rdzv *st, rm_time now, struct str *out)
{
    gauge(out, "checkpoint_step", "", "Newest published checkpoint, -1 none.", (double)st->saved);
    gauge(out, "checkpoint_age_seconds", "seconds",
          "Time since a checkpoint was published, or since the coordinator began.",
          seconds(now - st->saved_at));
    gauge(out, "checkpoint_waiting_seconds", "seconds",
          "Age of the newest checkpoint that the store does not take, 0 none.",
          st->outage.on ? seconds(now - st->outage.taken) : 0);
    counter(out, "checkpoints", "", "Checkpoints published.", (double)c->checkpoint.count);
    counter(out, "checkpoint_written_bytes", "bytes", "Bytes of them.", (double)c->checkpoint.bytes_all);
    counter(out, "checkpoint_publish_seconds", "seconds", "Time that publishing them took.",
            seconds(c->checkpoint.took_all));
}

static void print_states(const struct rdzv *st, struct str *out)
{
    family(out, "coordinator_state", "stateset", "", "What the coordinator does.");
    for (int s = 0; s < RDZV_STATES; s++)
        str_addf(out, "ringmaster_coordinator_state{ringmaster_coordinator_state=\"%s\"} %d\n",
                 rdzv_state_name((enum rdzv_state)s), st->state == (enum rdzv_state)s);
}

static int present(const struct rdzv *st)
{
    int n = 0;
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        n += st->worker[i].presence == PRESENT && !st->worker[i].released;
    return n;
}

void chronicle_print_metrics(const struct chronicle *c, const struct rdzv *st, rm_time now, struct str *out)
{
    double step = st->told > 0 ? (double)st->told : 0;
    family(out, "coordinator", "info", "", "Which job this is, and which coordinator of it.");
    str_addf(out, "ringmaster_coordinator_info{training_job=\"%s\",term=\"%" PRId64 "\"} 1\n",
             st->settings.job, st->settings.term);
    print_states(st, out);
    gauge(out, "step", "", "Newest committed step.", step);
    gauge(out, "steps", "", "Steps that the job is to have.", (double)st->settings.steps);
    if (st->told > 0 && isfinite(st->loss))
        gauge(out, "loss", "", "Loss of the newest step.", st->loss);
    gauge(out, "step_seconds", "seconds", "Time of a step, smoothed.", st->step_time / RM_S);
    gauge(out, "step_tokens", "", "Tokens of a step, all workers together.", (double)st->tokens);
    gauge(out, "ring_size", "", "Members of the ring at work.", st->state == RDZV_TRAINING ? st->world : 0);
    gauge(out, "ring_generation", "", "Newest member list.", (double)st->ring.n);
    gauge(out, "workers_connected", "", "Workers whose agents are connected.", present(st));
    print_goodput(st, now, out);
    print_recoveries(c, st, out);
    print_checkpoints(c, st, now, out);
    counter(out, "data_wait_seconds", "seconds", "Time that trainers stood still for data, all together.",
            seconds(st->data_wait));
    str_adds(out, "# EOF\n");
}
