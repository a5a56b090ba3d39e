#include "agent/worker_pages.h"

#include <math.h>
#include <string.h>

static void hear_progress(struct worker_pages *p, const struct msg_progress *m)
{
    p->phase = PHASE_TRAINING;
    p->step = m->step;
    p->steps_trained++;
    p->tokens += m->tokens;
    p->rescaled = m->rescaled;
    p->loss_known = m->loss_known && isfinite(m->loss);
    p->loss = m->loss;
    p->step_time += m->step_time;
    p->data_wait += m->data_wait;
}

void worker_pages_hear(struct worker_pages *p, const struct message *message)
{
    switch (message->type) {
    case MSG_PROGRESS:
        hear_progress(p, &message->progress);
        return;
    case MSG_READY:
        p->phase = PHASE_READY;
        p->rings++;
        p->ring_time += message->ready.ring_time;
        p->state_time += message->ready.state_time;
        return;
    case MSG_STOPPED:
        p->phase = PHASE_STOPPED;
        p->stops++;
        p->discarded += message->stopped.discarded;
        return;
    case MSG_SNAPSHOT:
        p->slices++;
        return;
    case MSG_UP:
        p->phase = PHASE_IDLE;
        return;
    default:
        return;
    }
}

static void head(struct str *out, const char *name, const char *type, const char *unit, const char *help)
{
    str_addf(out, "# TYPE ringmaster_worker_%s %s\n", name, type);
    if (*unit)
        str_addf(out, "# UNIT ringmaster_worker_%s %s\n", name, unit);
    str_addf(out, "# HELP ringmaster_worker_%s %s\n", name, help);
}

static void gauge(struct str *out, const char *name, const char *unit, const char *help, double value)
{
    head(out, name, "gauge", unit, help);
    str_addf(out, "ringmaster_worker_%s %.17g\n", name, value);
}

static void counter(struct str *out, const char *name, const char *unit, const char *help, double value)
{
    head(out, name, "counter", unit, help);
    str_addf(out, "ringmaster_worker_%s_total %.17g\n", name, value);
}

static void print_metrics(const struct worker_pages *p, struct str *out)
{
    head(out, "phase", "stateset", "", "What this worker's trainer does.");
    for (int i = PHASE_IDLE; i <= PHASE_TRAINING; i++)
        str_addf(out, "ringmaster_worker_phase{ringmaster_worker_phase=\"%s\"} %d\n",
                 msg_phase_name((enum msg_phase)i), p->phase == (enum msg_phase)i);
    gauge(out, "step", "", "Newest step that this worker committed.", (double)p->step);
    if (p->loss_known)
        gauge(out, "loss", "", "Loss of that step.", p->loss);
    counter(out, "steps", "", "Steps that this worker committed.", (double)p->steps_trained);
    counter(out, "step_seconds", "seconds", "Time of them.", (double)p->step_time / RM_S);
    counter(out, "tokens", "", "Tokens of them, all workers together.", (double)p->tokens);
    counter(out, "data_wait_seconds", "seconds", "Time that they stood still for data.",
            (double)p->data_wait / RM_S);
    counter(out, "rings", "", "Rings that this worker was ready for.", (double)p->rings);
    counter(out, "ring_seconds", "seconds", "Time to connect them.", (double)p->ring_time / RM_S);
    counter(out, "state_seconds", "seconds", "Time to get the state for them.", (double)p->state_time / RM_S);
    counter(out, "stops", "", "Stops of a ring, announced or not.", (double)p->stops);
    counter(out, "discarded_passes", "", "Passes that a stop threw away.", (double)p->discarded);
    counter(out, "checkpoint_slices", "", "Slices of checkpoints given to the agent.", (double)p->slices);
    counter(out, "trainers", "", "Trainers started.", (double)p->trainers);
    str_adds(out, "# EOF\n");
}

int worker_pages_get(const struct worker_pages *p, const char *path, struct str *body, const char **type)
{
    if (!strcmp(path, "/healthz")) {
        str_adds(body, "ok\n");
        return 200;
    }
    if (strcmp(path, "/metrics") != 0)
        return 404;
    *type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    print_metrics(p, body);
    return 200;
}
