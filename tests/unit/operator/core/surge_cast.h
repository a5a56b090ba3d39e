/* Jobs some of whose machines may go, or will (cast.h). */
#ifndef RM_TESTS_OPERATOR_SURGE_CAST_H
#define RM_TESTS_OPERATOR_SURGE_CAST_H

#include <criterion/criterion.h>
#include <string.h>

#include "cast.h"

#define PLAYED __attribute__((unused)) static

PLAYED struct op_slot *slot(struct cast *c, int index)
{
    return &c->job.status.workers.slot[index];
}

PLAYED void cordon(struct cast *c, int node)
{
    text_copy(c->node[node].may_leave, sizeof c->node[node].may_leave, "is cordoned");
}

/* It says hello to its coordinator. */
PLAYED void arrives(struct cast *c, int index, bool in_ring)
{
    struct coordinator_view *view = &c->coordinator;
    int attempt = slot(c, index)->attempt;
    view->worker[view->workers_count++] =
        (struct op_present){.worker = index, .attempt = attempt, .in_ring = in_ring, .waits = !in_ring};
    if (in_ring)
        view->member[view->ring_size++] = (struct op_member){.worker = index, .attempt = attempt};
}

/* The pod that was asked for is there, and its worker with it. */
PLAYED void comes(struct cast *c, int index, bool in_ring)
{
    cast_pod(c, OP_WORKER, index, slot(c, index)->attempt);
    arrives(c, index, in_ring);
}

/* Its coordinator has let it go. */
PLAYED void leaves(struct cast *c, int index)
{
    struct pod_view *pod = cast_worker(c, index);
    pod->phase = OP_SUCCEEDED;
    pod->terminated = pod->left = true;
}

PLAYED void all_stay(struct cast *c)
{
    cast_settle(c);
    cast_settle(c);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(slot(c, i)->state, OP_SLOT_PRESENT, "worker %d stays", i);
}

PLAYED int told_so(struct cast *c, const char *reason, const char *note)
{
    int count = 0;
    struct op_plan *plan = cast_plan(c);
    for (int i = 0; i < plan->events_count; i++)
        count += !strcmp(plan->event[i].reason, reason) && !strcmp(plan->event[i].note, note);
    plan_free(plan);
    return count;
}

PLAYED void taint(struct cast *c, int node, int64_t lead_ms)
{
    text_copy(c->node[node].leave, sizeof c->node[node].leave,
              "has the taint aws-node-termination-handler/spot-itn");
    c->node[node].lead_ms = lead_ms;
}

static const int64_t second_ms = 1000;

PLAYED void later(struct cast *c, int64_t ms)
{
    c->now_ms += ms;
    c->answered_ms = c->now_ms;
}

PLAYED void will_go(struct cast *c, int worker)
{
    c->coordinator.worker[worker].will_go = true;
}

#endif
