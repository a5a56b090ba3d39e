#include "agent/worker_pages.h"

#include <math.h>
#include <string.h>

#include "common/wire/exposition.h"

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
    p->reduce_time += m->reduce_time;
    p->reduce_bytes += m->reduce_bytes;
    p->second = m->second;
    p->pace = m->pace;
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
        p->switches += p->second.switches;
        p->failures += p->second.failures;
        p->second = (struct msg_transport){0};
        return;
    default:
        return;
    }
}

static void print_pace(const struct msg_pace *p, struct exposition *page)
{
    exposition_gauge(page, "lanes", "Lanes of the newest step that this worker computed.", p->lanes);
    exposition_gauge(page, "lane_seconds", "Time that one of them took it.", (double)p->lane_us / 1e6);
    exposition_gauge(page, "slow_ratio", "As many times as long as most workers', where it is slow; else 0.",
                     p->slow / 100.0);
}

static void print_metrics(const struct worker_pages *p, struct exposition *page)
{
    exposition_family(page, EXPOSITION_STATESET, "phase", "What this worker's trainer does.");
    for (int i = PHASE_IDLE; i <= PHASE_TRAINING; i++)
        exposition_state(page, msg_phase_name((enum msg_phase)i), p->phase == (enum msg_phase)i);
    exposition_gauge(page, "step", "Newest step that this worker committed.", (double)p->step);
    if (p->loss_known)
        exposition_gauge(page, "loss", "Loss of that step.", p->loss);
    exposition_counter(page, "steps", "Steps that this worker committed.", (double)p->steps_trained);
    exposition_counter(page, "step_seconds", "Time of them.", (double)p->step_time / RM_S);
    exposition_counter(page, "tokens", "Tokens of them, all workers together.", (double)p->tokens);
    exposition_counter(page, "data_wait_seconds", "Time that they stood still for data.",
                       (double)p->data_wait / RM_S);
    exposition_counter(page, "reduce_seconds",
                       "Time that summing them over the ring took, waiting for slower members included.",
                       (double)p->reduce_time / RM_S);
    exposition_counter(page, "reduce_bytes", "Bytes that this worker sent to the next one for that.",
                       (double)p->reduce_bytes);
    print_pace(&p->pace, page);
    exposition_gauge(page, "second_transport",
                     "1 where the newest step's sums went by a second transport (NCCL), 0 by the ring.",
                     p->second.used);
    exposition_counter(page, "transport_switches", "Times that sums left the ring for a second transport.",
                       (double)(p->switches + p->second.switches));
    exposition_counter(page, "transport_failures", "Failures of a second transport.",
                       (double)(p->failures + p->second.failures));
    exposition_counter(page, "rings", "Rings that this worker was ready for.", (double)p->rings);
    exposition_counter(page, "ring_seconds", "Time to connect them.", (double)p->ring_time / RM_S);
    exposition_counter(page, "state_seconds", "Time to get the state for them.",
                       (double)p->state_time / RM_S);
    exposition_counter(page, "stops", "Stops of a ring, announced or not.", (double)p->stops);
    exposition_counter(page, "discarded_passes", "Passes that a stop threw away.", (double)p->discarded);
    exposition_counter(page, "checkpoint_slices", "Slices of checkpoints given to the agent.",
                       (double)p->slices);
    exposition_counter(page, "trainers", "Trainers started.", (double)p->trainers);
}

int worker_pages_get(const struct worker_pages *p, const struct ws_get *get, struct str *body,
                     const char **type)
{
    if (!strcmp(get->path, "/healthz")) {
        str_adds(body, "ok\n");
        return 200;
    }
    if (strcmp(get->path, "/metrics") != 0)
        return 404;
    struct exposition page = exposition_begin(body, "ringmaster_worker_", get->accept);
    print_metrics(p, &page);
    exposition_end(&page);
    *type = exposition_type(&page);
    return 200;
}
