/* Why a worker or coordinator is over, and what that counts as. The operator alone counts, once per slot and
 * attempt, and in the status, before it acts on it. Pure. */
#ifndef RM_OPERATOR_CORE_ACCOUNT_H
#define RM_OPERATOR_CORE_ACCOUNT_H

#include "operator/core/view.h"

enum op_class {
    OP_COUNT_NOTHING,
    OP_COUNT_PREEMPTION,
    OP_COUNT_INFRASTRUCTURE,
    OP_COUNT_FAILURE,
    OP_COUNT_MISFIT /* refused here, by the coordinator or where others train: another is wanted elsewhere */
};

struct op_ending {
    enum op_class counted;
    bool fails_job;     /* a rule or an exit code (2, 3) says that another attempt would end the same */
    bool refused;       /* so it says of a user's program, whose trainer in this worker refuses it */
    bool spares_budget; /* a failure that a rule lets pass without spending maxRestarts; never OOMKilled */
    char reason[OP_REASON_MAX]; /* Evicted, NodeGone, OOMKilled, ExitCode ... */
    char message[RM_WHY_MAX];   /* "worker 3 was evicted from node-2 (TerminationByKubelet)" */
};

/* Of a pod that is over, Terminating, or on a node that is going or gone; node NULL where it is not known.
 * pod NULL: it vanished from the cache without a word. */
void account_pod(const struct job_view *job, const struct pod_view *pod, const struct node_view *node,
                 int index, struct op_ending *ret);

/* One that is `refused` while others train with that program, or have: no failure, and not the job's end. */
void account_refused_alone(struct op_ending *ending);

/* Notes on which node a worker failed soon after its start. true: it is that machine's, for there the last
 * worker that did so failed, too, and others train on other machines: no failure then, and another is wanted
 * elsewhere. Not what used too much memory, which would be too little on the next machine as well. */
bool account_blames_node(struct job_status *status, const struct pod_view *pod, bool others_train,
                         struct op_ending *ending);

/* Our container ended with 0, of itself: its work is done. */
bool account_is_done(const struct pod_view *pod);

/* Of a pod that the coordinator has lost, or whose node is gone. */
void account_lost(const struct pod_view *pod, int index, struct op_ending *ret);

/* Of a coordinator that runs and gives no answer. */
void account_mute(const char *why, struct op_ending *ret);

/* Adds it to the status: counts, window of failures. true where maxRestarts is spent. */
bool account_add(struct job_status *status, const struct job_view *job, const struct op_ending *ending,
                 int64_t now_ms);

/* All that were taken away (preemptions, lost nodes), and all that ended by themselves (failures, misfits).
 */
int64_t account_interruptions(const struct job_status *status);
int64_t account_restarts(const struct job_status *status);

/* Remembers a machine or kind that does not fit; the oldest is forgotten where there are too many. */
void account_unfit(struct op_names *names, const char *name);

/* Notes that this attempt is over: whether soon after its pod was made (0: nobody knows when), whatever it
 * counts as. What is refused by a kubelet, evicted or crashes at once would else be made anew without end, as
 * fast as pods can be made. */
void account_end(struct op_slot *slot, int64_t created_ms, int64_t now_ms);
/* When the next attempt may start for that: 1 s doubled for each in a row, 5 min at most; 0: at once. */
int64_t account_quick_until(const struct op_slot *slot);

/* When the next attempt may start after the last failure: 1 s doubled for each in the window, 5 min at most;
 * after the last misfit: 1 s doubled for each, 1 min at most. */
int64_t account_backoff_until(const struct job_status *status);

const char *op_class_name(enum op_class counted); /* "preemption" */

#endif
