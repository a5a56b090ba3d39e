/* Decide, then act: what one job needs now, as a list of writes with their reasons.
 *
 * job_plan is a pure function of the view. The shell does the actions in their order; where one fails it
 * tells the memo, leaves out the rest and comes back later. The status action is always the last one, and
 * none of the others depends on it: what a decision needs in the status is written by one plan and acted on
 * by the next (status.h tells why). Events go out after the status was written. Doing a plan twice, or half
 * of it, is harmless. A plan prints as text; golden files hold these texts. */
#ifndef RM_OPERATOR_CORE_PLAN_H
#define RM_OPERATOR_CORE_PLAN_H

#include <stdio.h>

#include "operator/core/view.h"

enum op_kind {
    /* POST. 409 AlreadyExists is success where it is a pod, and the one that is there is the job's own:
     * nothing else is ever taken for what we would have made. */
    OP_CREATE,
    OP_DRY_RUN, /* POST ?dryRun=All; 409 is success */
    /* server-side apply, field manager OP_MANAGER, by force: only over what is the job's own. What is not
     * known to be that is tried as a POST, and where that meets its name (409) what is there is read first.
     */
    OP_APPLY,
    OP_DELETE, /* uid precondition, background propagation, the object's own grace; 404 and 409 are success */
    OP_STATUS, /* PUT .../status of the job with the resourceVersion of the view; 409: reconcile again */
};

enum op_resource { OP_PODS, OP_SECRETS, OP_SERVICES, OP_BUDGETS, OP_POLICIES, OP_JOBS, OP_RESOURCES };

struct op_action {
    enum op_kind kind;
    enum op_resource resource;
    char name[OP_NAME_MAX];
    char uid[OP_UID_MAX]; /* DELETE */
    struct str body;      /* JSON; of STATUS the whole object with apiVersion, kind, metadata and status */
    bool wants_key;       /* body holds OP_KEY_PLACE once: put 64 hex characters of 32 random bytes there */
    bool fresh;           /* APPLY: most likely nothing is there to be merged with: a POST in any case */
    uint64_t hash;        /* APPLY: of the body, its OP_NOTE_APPLIED aside */
    uint64_t trial;       /* DRY_RUN: what to tell op_trials_note when the pod was taken */
    char why[RM_WHY_MAX];
};

#define OP_KEY_PLACE  "@key@"
#define OP_NAME_TAKEN "NameTaken" /* reason of a refusal: something that is not the job's bears the name */

struct op_event {
    bool warning;
    char reason[OP_REASON_MAX]; /* CamelCase */
    char action[OP_REASON_MAX]; /* what was done: "Create", "Delete", "Train" */
    char note[RM_WHY_MAX];
};

enum {
    OP_ACTIONS_MAX = 3 * RM_WORKERS_MAX + 16,
    OP_EVENTS_MAX = OP_COORDINATOR_EVENTS_MAX + RM_WORKERS_MAX + 16
};

enum { OP_RELIEF_MAX = 512 };

enum op_change { OP_SAME, OP_TICKING, OP_URGENT }; /* of the status */

struct op_plan {
    int actions_count, events_count, actions_room, events_room;
    struct op_action *action;
    struct op_event *event;
    enum op_change change;        /* TICKING: the STATUS action may wait for its turn (10 s a job) */
    int64_t wake_ms;              /* look again at this moment even if nothing happens; 0: no need */
    char poll_ip[RM_ADDRESS_MAX]; /* ask this coordinator for its status; "": none */
    int poll_term;
    char relief[OP_RELIEF_MAX]; /* and say this: "relieve=2.1,4.3&deleted=5.1&will=4.3.110&stay=3"; "":
                                   nothing */
    int64_t told_sequence;      /* the memo's next value, once the events are out */
    int told_term;
    struct op_cost cost; /* the memo's next reading, at once */
};

/* Allocates bodies; plan_free frees them and the plan. */
struct op_plan *job_plan(const struct op_view *view);
void plan_free(struct op_plan *plan);

/* When a job is to be looked at again, though nobody tells of a change, after the writes of its plan
 * succeeded: 0 at once, for of what was only tried, and of a Secret, no watch tells; else within so many
 * ms. */
int64_t plan_looks_again_ms(const struct op_plan *plan);

/* "create pods gpt-w3-k2v4x  worker 3 is wanted (attempt 2)", a line each; then status, events, wake. With
 * bodies: each body indented below its line. */
void plan_print(const struct op_plan *plan, bool bodies, struct str *out);

const char *op_kind_name(enum op_kind kind);
/* The name is that of the API's paths: "pods". */
const char *op_resource_name(enum op_resource resource);

/* What that of memo.applied is, and its name. */
enum op_resource op_applied_name(const char *job, enum op_applied which, char out[OP_NAME_MAX]);

/* The shell's words to the memo about an action: it was done (true: it had been refused, and the status says
 * so still); it was refused (code 0: no answer). */
bool op_memo_done(struct op_memo *memo, const struct job_view *job, const struct op_action *action);
void op_memo_refused(struct op_memo *memo, const struct job_view *job, const struct op_action *action,
                     int code, const char *reason, const char *message, int64_t now_ms);
/* During a refusal's back-off: is this to be done all the same? The status, and deletes other than what was
 * refused. */
bool op_memo_goes_on(const struct op_memo *memo, const struct op_action *action);
/* Forgets a refusal of what this plan wants no more; true: it did, and the plan may tell of it still. */
bool op_memo_forget(struct op_memo *memo, const struct op_plan *plan);
/* The sentence about a status that was refused, which no status can tell; false: it was none, or it passes by
 * itself (no answer, busy). */
bool op_status_refusal(const struct op_action *action, int code, const char *message,
                       char out[OP_MESSAGE_MAX]);
/* What belongs in memo.applied for an APPLY of this body. */
uint64_t op_body_hash(const struct str *body);

void op_memo_told(struct op_memo *memo, const struct op_plan *plan);
/* Of each plan, whatever comes of its writes. */
void op_memo_metered(struct op_memo *memo, const struct job_view *job, const struct op_plan *plan);

/* The same for all jobs: a pod was taken on trial; was one like it taken less than a minute ago? */
void op_trials_note(struct op_trials *trials, uint64_t trial, int64_t now_ms);
bool op_trials_know(const struct op_trials *trials, uint64_t trial, int64_t now_ms);

#endif
