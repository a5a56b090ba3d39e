/* What a plan looks at: one job and all that the caches hold of it, at one moment.
 *
 * pod_project and node_project turn an object of the API into a small struct without pointers. An
 * op_view only borrows; whoever makes it keeps what it shows alive until the plan is made. Pure. */
#ifndef RM_OPERATOR_CORE_VIEW_H
#define RM_OPERATOR_CORE_VIEW_H

#include "operator/core/coordinator.h"
#include "operator/core/job.h"
#include "operator/core/labels.h"
#include "operator/core/prices.h"
#include "operator/core/resources.h"

enum pod_role { OP_WORKER, OP_COORDINATOR };
enum pod_phase { OP_PENDING, OP_RUNNING, OP_SUCCEEDED, OP_POD_FAILED, OP_PHASE_UNKNOWN };

struct pod_view {
    char name[OP_NAME_MAX];
    char uid[OP_UID_MAX];
    char owner[OP_NAME_MAX];    /* the TrainingJob that controls it, from ownerReferences: its name... */
    char owner_uid[OP_UID_MAX]; /* ...and uid; its namespace is the pod's own */
    char node[OP_NODE_MAX];     /* "" while not scheduled */
    char ip[RM_ADDRESS_MAX];
    enum pod_role role;
    int index;     /* of a worker; -1 for a coordinator */
    int attempt;   /* of a worker; the term of a coordinator */
    bool base;     /* made to go to no spot machine */
    bool fallback; /* made to go to a spot machine where there is no other alone */
    enum pod_phase phase;
    bool ready; /* our container is, whatever the others do */
    int64_t created_ms;
    int64_t taken_ms;               /* when its kubelet took it up; 0: not yet */
    bool unprepared;                /* its kubelet says that volumes or network are not there yet */
    int64_t deletion_ms;            /* deletionTimestamp: when the grace is over; 0: not Terminating */
    char disruption[OP_REASON_MAX]; /* reason of DisruptionTarget=True; "" */
    char reason[OP_REASON_MAX];     /* status.reason: Evicted, NodeShutdown, OutOfcpu ... */
    char unschedulable[RM_WHY_MAX]; /* the scheduler's sentence; "" */
    char gates[RM_WHY_MAX / 2];     /* that keep it from the scheduler: "a, b"; "" where none does */
    char waiting[OP_REASON_MAX];    /* of the first container that waits: ImagePullBackOff ...; "" */
    char waiting_message[RM_WHY_MAX];
    char image[OP_IMAGE_MAX]; /* what the container runs or ran, by digest where that is told; "": nothing ran
                               */
    char bundle[OP_IMAGE_MAX];    /* likewise of the init container that brings the bundle; "": it has none */
    char failed_init[RM_WHY_MAX]; /* which init container failed, and why, as a sentence; "": none did */
    bool terminated;              /* the container `trainer` or `coordinator` has ended: */
    int exit_code;
    char terminated_reason[OP_REASON_MAX]; /* OOMKilled, Error, Completed, ContainerStatusUnknown */
    int64_t ended_ms;                      /* when it ended; 0 where nobody says */
    bool left;                             /* its last word was {"left": true}: it was told to go, and went */
    bool elsewhere;                        /* it says that its machine does not fit the job: */
    char unfit[RM_WHY_MAX * 2 / 3];
    struct op_last_word
        last_word;  /* a coordinator's; of a worker's its exit code and reason mean something */
    bool undrained; /* it tolerates Karpenter's taint: Karpenter evicts no such pod, and the next one may be
                       put on a machine that goes */
    int64_t deletion_cost;  /* controller.kubernetes.io/pod-deletion-cost; 0 */
    struct resources asked; /* by all of it together */
    int64_t bound_ms;       /* when it got its node; 0: it has none */
    int64_t finished_ms;    /* when the last of its containers that have ended did; where it is spent and none
                             * says so, when its conditions told of that; 0: nobody says */
};

/* ERR_NOT_FOUND where it is no pod of the operator (labels, a TrainingJob that controls it). Whose it is,
 * is for the caller to compare in full: namespace, name and uid. A uid alone can be learnt and written into a
 * pod of another namespace, by people who have no right in the job's. */
int pod_project(const struct js *object, struct pod_view *ret, struct error *err);
/* Name and uid of the TrainingJob that controls an object, whatever its kind; "" where none does. */
void object_controller(const struct js *object, char name[OP_NAME_MAX], char uid[OP_UID_MAX]);
/* Whether an object in the job's namespace is the job's. */
bool object_is_of(const struct js *object, const struct job_view *job);

/* Our container has ended, for good: containers of the template beside it may run on, and say nothing about
 * the job. */
bool pod_is_over(const struct pod_view *pod);
bool pod_is_spent(const struct pod_view *pod); /* nothing of it runs: phase Succeeded or Failed */

struct node_view {
    char name[OP_NODE_MAX];
    bool ready;
    int64_t unseen_ms; /* nobody saw it alive after that, as far as is known; 0: its kubelet speaks */
    char leave[2 * OP_REASON_MAX]; /* "has the taint T", "is being deleted": it will go; "" where nobody says
                                      so */
    int64_t lead_ms; /* what is promised from its taint on; 0: no taint says it, or nothing is */
    char may_leave[2 * OP_REASON_MAX]; /* "has the taint T", "is cordoned": it may go; "" where nobody says
                                          so */
    struct price_machine machine;      /* by its labels */
    struct resources allocatable;
};

/* When a machine was there last, of which the API server says since told_ms that it is silent, and that it
 * said at heard_ms how it is (0: never); 0: nobody knows. */
int64_t node_last_seen(int64_t told_ms, int64_t heard_ms);
int node_project(const struct js *object, struct node_view *ret, struct error *err);

enum { OP_TRIALS = 32, OP_TRIAL_HOLDS_MS = 60 * 1000 };

enum op_applied {
    OP_APPLIED_SERVICE,
    OP_APPLIED_BUDGET,
    OP_APPLIED_WORKERS,
    OP_APPLIED_COORDINATOR,
    OP_APPLIED
};

/* What the operator's process remembers of a job between reconciles; lost with the process, and then found
 * out again. Zero at first. The shell owns it and tells it what came of the plan's actions (plan.h). */
struct op_memo {
    char key[OP_NAME_MAX];  /* the Secret that was made and stands in no status yet; "": none */
    int64_t dry_generation; /* the API server took this generation's pod on trial */
    /* Hash of what was applied last: Service, budget, workers' policy, coordinator's policy. The shell zeroes
     * one when it sees that object deleted. */
    uint64_t applied[OP_APPLIED];
    int64_t told_sequence; /* coordinator's events up to here were handed on... */
    int told_term;         /* ...of this term */
    /* The meter as of the last plan, and the reading in the status that it went on from: exact where a pod
     * went and a status was not written yet. */
    struct op_cost cost;
    int64_t cost_from_ms;
    struct op_sum cost_from;
    struct {
        int64_t at_ms, generation; /* at_ms 0: nothing was refused since the last success */
        int code;                  /* HTTP status; 0: no answer */
        char what[OP_REASON_MAX];  /* "create pods" */
        char reason[OP_REASON_MAX];
        char message[OP_REFUSAL_MAX];
    } refusal;
};

/* Pods that the API server has just taken on trial, whichever job's: a sweep over a hundred settings makes a
 * hundred jobs of one template, and the answer is the same for all. Zero at first. */
struct op_trials {
    struct {
        uint64_t hash; /* of namespace and pod, its name aside */
        int64_t at_ms;
    } taken[OP_TRIALS];
    int next;
};

struct op_view {
    const struct job_view *job;
    const struct pod_view *const *pods; /* those that the job controls, in its namespace; any order */
    int pods_count;
    /* Node of that name; NULL: not in the cache. nodes_known false: the operator may not see nodes. */
    const struct node_view *(*node)(void *nodes, const char *name);
    void *nodes;
    bool nodes_known;
    const struct coordinator_view *coordinator; /* last answer of the current term's; NULL */
    int64_t
        answered_ms;    /* when the current term's coordinator gave its last answer; 0: it gave us none yet */
    int64_t in_vain_ms; /* since when it has been asked in vain; 0: no question to it is without an answer */
    const struct op_silence *silence; /* of the current term's coordinator; NULL: none */
    bool deaf; /* others are asked as well, and none of all coordinators answers: it is our own network */
    const struct op_memo *memo;
    const struct op_trials *trials; /* NULL: none */
    const struct prices *prices;    /* NULL: there are none */
    int64_t now_ms;
    const char *chance; /* of name_chance: another one for each view */
    void (*sha256)(const void *bytes, size_t length, uint8_t out[RM_HASH_BYTES]);
    struct op_settings {
        const char *worker_image;       /* for templates that name none; "" */
        const char *operator_namespace; /* for the NetworkPolicy; "" : no rule for the operator */
        bool leave_uid; /* the namespace says as which user and groups pods run, as on OpenShift */
        int node_port;  /* where `ringmaster-agent node` answers on each machine; 0: it runs nowhere */
        bool network_policies;
        bool metrics_open; /* the NetworkPolicies admit scrapes: the ports for metrics, and no other one */
        const struct op_labels *metrics_from; /* from pods of namespaces with these; NULL: from everywhere */
        bool process_snapshots; /* jobs with checkpoint.process: CRIU are made, and not refused */
    } settings;
};

#endif
