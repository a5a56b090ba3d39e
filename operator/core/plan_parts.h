/* The stages of job_plan, one after the other on one struct: observe what happened, decide what is wanted,
 * tell it in conditions and sentences, and list the writes. Private to plan*.c. */
#ifndef RM_OPERATOR_CORE_PLAN_PARTS_H
#define RM_OPERATOR_CORE_PLAN_PARTS_H

#include "operator/core/account.h"
#include "operator/core/plan.h"

enum {
    OP_LOST_PATIENCE_MS = 10 * 1000,   /* for the kubelet's word on a worker that its coordinator lost */
    OP_PHASE_PATIENCE_MS = 10 * 1000,  /* for its word on a pod whose container has failed */
    OP_SILENT_PATIENCE_MS = 12 * 1000, /* for the answer of a coordinator on a node that is not ready */
    OP_SILENCE_MS = 30 * 1000,         /* of a coordinator without an answer until it is told... */
    OP_SUCCESSION_MS =
        120 * 1000, /* ...and until another one takes its place, doubled where that was in vain */
    OP_RELEASE_PATIENCE_MS = 60 * 1000, /* for the coordinator's end after a worker was released */
    OP_CLEAN_PATIENCE_MS = 15 * 1000,   /* for programs of a finished job to end by themselves */
    OP_DEAD_PATIENCE_MS = 30 * 1000,    /* after the end of a pod's grace, until its node counts as dead */
    OP_RETRY_FIRST_MS = 30 * 1000,      /* after startTimeout, plus up to this much again */
    OP_HEARD_EACH_MS = 60 * 1000,       /* that it was heard again is written with other news, or so often */
    OP_PREPARE_MS = 60 * 1000,    /* that a kubelet may take to prepare a pod before it is told as trouble */
    OP_TICK_MS = 15 * 1000,       /* how often a waiting job's sentence is looked at */
    OP_METER_EACH_MS = 60 * 1000, /* that time costs is written with other news, or so often... */
    OP_PRICE_PATIENCE_MS = 60 * 1000, /* ...and a machine's price is waited for so long */
    OP_ROUGH_S = 30,                  /* what its seconds are rounded to: each change of them is a write */
};

enum op_mode { OP_RUN, OP_HOLD, OP_IDLING, OP_STOP, OP_SUSPEND, OP_DONE };

struct op_elsewhere;

struct planner {
    const struct op_view *s;
    const struct job_view *job;
    const struct job_status *stored; /* what actions may rely on */
    struct job_status next;
    struct op_plan *plan;
    bool pauses;               /* no pod is to run: spec.suspend, or the budget is spent */
    bool lingers;              /* it is spent, and what the workers hold can't be saved now: they stay for a
                                * while, and nobody else comes */
    enum op_mode mode;         /* HOLD: nothing new is made (not admitted); IDLING: one pod is, at most, that
                                * waits for a node; STOP: on the way to Failed */
    bool lost[RM_WORKERS_MAX]; /* given up in this plan, though their pods may still run somewhere */
    bool finishing;            /* workers were released: the coordinator is about to end */
    bool wants_key;            /* HOLD: all there is to wait for is the Secret with the job's key */
    char trouble[OP_MESSAGE_MAX]; /* why nothing can be made; "" */
    char trouble_reason[OP_REASON_MAX];
    uint64_t trial; /* of a pod of this job, for op_trials_know; 0: not asked */
};

/* plan_names.c: for the sentences of assertions */
const char *plan_mode_name(const struct planner *p); /* "IDLING" */

/* plan_find.c: questions about pods */
const struct node_view *find_node(const struct planner *p, const struct pod_view *pod);
const struct pod_view *find_worker(const struct planner *p, int index, int attempt);
const struct pod_view *find_live(const struct planner *p, int index); /* of a slot in use; NULL: none yet */
const struct pod_view *find_coordinator(const struct planner *p, int term);
bool pod_is_vanished(const struct planner *p, const struct pod_view *pod); /* nobody will end it properly */
bool pod_is_failed(const struct pod_view *pod);                            /* over, and by its own fault */
const struct coordinator_view *find_coordinator_view(const struct planner *p); /* the current term's; NULL */
bool pod_is_of_other_image(const struct planner *p,
                           const struct pod_view *pod); /* than the job's pinned one */
int64_t find_silence(const struct planner *p);          /* how long the coordinator has given no answer; 0 */
int find_places(const struct planner *p);               /* the target, but for those whom nobody takes */
bool find_any_alive(const struct planner *p, enum pod_role role);
bool find_any_unwanted(const struct planner *p); /* a pod is alive that no slot stands for */

/* Of the workers whose pods are there: how many have a node, how many wait for one, and how many of these are
 * held back by gates. */
struct op_found {
    int scheduled, waiting, gated;
};
struct op_found find_present(const struct planner *p);

/* plan_meter.c: what the pods cost */
void plan_meter(struct planner *p);
void plan_price_tokens(struct planner *p);
bool plan_is_due(const struct planner *p);     /* is the new reading news by itself? */
bool plan_has_prices(const struct planner *p); /* any at all */
bool plan_can_price(const struct planner *p);  /* and it may see which one is a machine's */
int64_t plan_rate(const struct op_cost *cost); /* an hour, of all that runs now */

/* plan_budget.c: what the job may cost */
void plan_budget(struct planner *p); /* decides whether it pauses */
void plan_say_budget(const struct planner *p, char *out,
                     size_t size); /* "spent 9.97 of the budget of 10.00 USD" */
/* "...are spent, 0.66 more than the limit" */
void plan_say_end(const struct planner *p, char *out, size_t size);
/* "it goes on with a limit above 67.78 (66.67 are kept for a last save)", of a job that it stopped */
void plan_say_resumption(const struct planner *p, char *out, size_t size);
/* "...are spent; the workers stay until what they hold is saved, until T at most: why", of one that lingers
 */
void plan_say_lingering(const struct planner *p, char *out, size_t size);
/* Of a budget that nobody could keep to: why, and what to do; NULL: it can be kept to. */
const char *plan_lacks_prices(const struct planner *p);

/* plan_observe.c: slots against pods; counts endings, finds the last word */
void plan_observe(struct planner *p);

/* plan_decide.c: what is wanted from now on */
void plan_decide(struct planner *p);
void plan_fail(struct planner *p, const char *reason, const char *message); /* stop, then Failed */
int plan_live(const struct job_status *status);                             /* live worker slots */

/* Until when the next attempt of a slot that has ended waits; 0: it need not. pod: its last one; NULL. */
int64_t plan_rests_until(const struct planner *p, const struct op_slot *slot, const struct pod_view *pod);

/* plan_surge.c: first the replacement, then the leave */
bool surge_is_uneasy(const struct planner *p, int index); /* it is on a machine that may go, or will */
/* It has to go by a taint alone, and is kept for a while, as nobody has its place yet. */
bool surge_holds(struct planner *p, int index);
bool surge_leaves_by_itself(const struct planner *p, int index); /* that will, when it is time */
int surge_decide(const struct planner *p); /* how many more than the target are wanted */
/* Is this notice, which a worker's metadata gave or withdrew, one that its Node has given as well, as sure or
 * surer, and that was told and stands? */
bool surge_has_told(const struct planner *p, const struct op_coordinator_event *notice);
void surge_tell(struct planner *p); /* of whose Node says that it may go, and says so no more */
void surge_ask(struct planner *p);  /* whom the coordinator is to let go when it may */
void surge_say_asked(const struct planner *p, char out[OP_RELIEF_MAX]); /* for poller_say */
bool surge_relieves(struct planner *p, int index); /* it is uneasy, and all places are taken without */
/* Tells that it goes, or has gone, and from where. */
void surge_relieve(struct planner *p, const struct pod_view *pod);
bool surge_is_more(const struct planner *p, int index); /* its pod, to be made, is for more than the places */
void surge_bar(const struct planner *p, struct op_elsewhere *ret); /* those machines, to a pod of those */

/* plan_fallback.c: spot machines that go again and again */
void plan_note_interruption(struct planner *p, const struct pod_view *pod, const struct op_ending *ending);
void plan_fallback(struct planner *p); /* decides which machines new workers prefer */
/* It was put on another machine while spot machines went, and they stay again. */
bool plan_may_return(const struct planner *p, const struct pod_view *pod);

/* plan_store.c: what can be saved */
/* Workers hold a state that nobody could save now: who sends them away loses it. */
bool plan_may_lose(const struct planner *p, const struct op_found *found);
/* Why, of a job that plan_may_lose is true of. */
void plan_say_unsaved(const struct planner *p, char *out, size_t size);

/* plan_idle.c: too few nodes for too long */
bool idle_begins(struct planner *p);
bool idle_goes_on(struct planner *p); /* false: it is not idle, or not any more */
void idle_note(struct planner *p);    /* which machines the workers have, and which workers have none */
void idle_choose(const struct planner *p, struct op_elsewhere *ret); /* what the probe asks for */
void idle_say(const struct planner *p, char *out, size_t size); /* "idle since ...; worker 0 waits for" */

/* plan_fence.c: one tree of processes at a time, where snapshots are made of them */
void plan_fence(struct planner *p); /* after each change of the slots: who may run where nobody sees it? */
int64_t plan_fenced_until(const struct planner *p); /* no next worker before; INT64_MAX: nobody knows; 0 */
bool plan_is_fenced(struct planner *p);             /* now */

/* plan_base.c: is a pod that is to be made under this index one of spot.onDemandBase? */
bool plan_wants_base(const struct planner *p, int index);

/* plan_tell.c: conditions, state, message */
void plan_tell(struct planner *p);
void plan_tell_store(struct planner *p, const struct coordinator_view *view);
void plan_take_checkpoint(struct planner *p, const struct op_checkpoint *newest);
void plan_finish(struct planner *p, bool complete, const char *reason, const char *message);

/* plan_goodput.c: where the time of the whole job went */
void plan_take_goodput(struct planner *p, const struct coordinator_view *view);
void plan_end_goodput(struct planner *p); /* the job is over */

/* plan_act.c: the writes */
void plan_act(struct planner *p);

/* plan_check.c: asserts what holds of the whole plan, over all stages */
void plan_check(const struct planner *p);

/* plan.c */
/* The action, until the next is added; NULL where there are too many. */
struct op_action *plan_add(struct planner *p, enum op_kind kind, enum op_resource resource, const char *name,
                           const char *format, ...) __attribute__((format(printf, 5, 6)));
void plan_event(struct planner *p, bool warning, const char *reason, const char *action, const char *format,
                ...) __attribute__((format(printf, 5, 6)));
void plan_wake(struct planner *p, int64_t at_ms); /* the earliest counts; 0 is none */

#endif
