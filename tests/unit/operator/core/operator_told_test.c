/* What is told of a machine's end, by its Node and by its metadata: each word once. */
#include <criterion/criterion.h>
#include <string.h>

#include "cast.h"

static const int64_t lead_ms = 120 * 1000;

static void cordon(struct cast *c)
{
    text_copy(c->node[2].may_leave, sizeof c->node[2].may_leave, "is cordoned");
}

static void taint(struct cast *c)
{
    text_copy(c->node[2].leave, sizeof c->node[2].leave,
              "has the taint aws-node-termination-handler/spot-itn");
    c->node[2].lead_ms = lead_ms;
}

static void untaint(struct cast *c)
{
    *c->node[2].leave = 0;
    c->node[2].lead_ms = 0;
}

/* All three are needed, so that none goes at once; the machine of worker 2 says that it goes, or may. */
static struct cast *told(void (*how)(struct cast *c))
{
    struct cast *c = cast_training("{\"workers\":{\"min\":3}}");
    how(c);
    cast_settle(c);
    return c;
}

/* note NULL: whatever it says. */
static int told_so(struct cast *c, const char *reason, const char *note)
{
    int count = 0;
    struct op_plan *plan = cast_plan(c);
    for (int i = 0; i < plan->events_count; i++)
        count += !strcmp(plan->event[i].reason, reason) && (!note || !strcmp(plan->event[i].note, note));
    plan_free(plan);
    return count;
}

static void metadata_says(struct cast *c, enum event_kind kind, bool will)
{
    struct op_coordinator_event *event = &c->coordinator.event[c->coordinator.events_count++];
    *event = (struct op_coordinator_event){.sequence = c->coordinator.events_count,
                                           .kind = kind,
                                           .worker = 2,
                                           .will = will,
                                           .note = "worker 2: so"};
    c->coordinator.worker[2].may_go = kind == EVENT_NOTICE_RECEIVED && !will;
    c->coordinator.worker[2].will_go = kind == EVENT_NOTICE_RECEIVED && will;
}

Test(operator_told, what_its_node_has_told_is_not_told_again_by_its_metadata_and_ends_with_the_last_of_them)
{
    static const char gone[] = "worker 2: its machine node-2 does not go: nobody says so any more";
    struct cast *c = told(taint);
    metadata_says(c, EVENT_NOTICE_RECEIVED, true);
    cr_assert_eq(told_so(c, "NoticeReceived", "worker 2: so"), 0);
    cast_settle(c);
    metadata_says(c, EVENT_NOTICE_WITHDRAWN, true);
    cr_assert_eq(told_so(c, "NoticeWithdrawn", "worker 2: so"), 0, "its Node says so still");
    cast_settle(c);
    untaint(c);
    cr_assert_eq(told_so(c, "NoticeWithdrawn", gone), 1);
    cast_settle(c);
    metadata_says(c, EVENT_NOTICE_RECEIVED, true);
    cr_assert_eq(told_so(c, "NoticeReceived", "worker 2: so"), 1, "that is a new one");
    cast_free(c);
}

Test(operator_told, a_surer_word_of_its_metadata_is_told_beside_its_nodes_and_taken_back_by_itself)
{
    struct cast *c = told(cordon);
    metadata_says(c, EVENT_NOTICE_RECEIVED, false);
    cr_assert_eq(told_so(c, "NoticeReceived", "worker 2: so"), 0);
    cast_settle(c);
    metadata_says(c, EVENT_NOTICE_RECEIVED, true);
    cr_assert_eq(told_so(c, "NoticeReceived", "worker 2: so"), 1);
    cast_settle(c);
    metadata_says(c, EVENT_NOTICE_WITHDRAWN, true);
    cr_assert_eq(told_so(c, "NoticeWithdrawn", "worker 2: so"), 1);
    cast_free(c);
}

Test(operator_told, a_notice_of_a_worker_that_does_not_say_whose_it_is_is_told)
{
    struct cast *c = told(taint);
    metadata_says(c, EVENT_NOTICE_RECEIVED, true);
    c->coordinator.event[0].worker = RM_WORKERS_MAX;
    cr_assert_eq(told_so(c, "NoticeReceived", "worker 2: so"), 1);
    c->coordinator.event[0].worker = -1;
    cr_assert_eq(told_so(c, "NoticeReceived", "worker 2: so"), 1);
    cast_free(c);
}

Test(operator_told, of_a_machine_with_several_workers_its_nodes_word_is_told_once)
{
    struct cast *c = cast_training("{\"workers\":{\"min\":3}}");
    for (int i = 0; i < 2; i++)
        text_copy(cast_worker(c, i)->node, OP_NODE_MAX, "node-2");
    cordon(c);
    cr_assert_eq(told_so(c, "NoticeReceived", NULL), 1);
    cr_assert_eq(
        told_so(c, "NoticeReceived", "worker 0 (and 2 more there): its machine may go: node-2 is cordoned"),
        1);
    cast_settle(c);
    cr_assert_eq(told_so(c, "NoticeReceived", NULL), 0);
    taint(c);
    cr_assert_eq(told_so(c, "NoticeReceived", NULL), 1, "it is surer");
    cast_settle(c);
    untaint(c);
    cr_assert_eq(told_so(c, "NoticeWithdrawn", NULL), 1, "the may stands beside it");
    cast_settle(c);
    *c->node[2].may_leave = 0;
    cr_assert_eq(told_so(c, "NoticeWithdrawn", NULL), 1);
    cast_settle(c);
    cr_assert_eq(told_so(c, "NoticeWithdrawn", NULL), 0);
    cast_free(c);
}
