/* A job's status: read from the object, changed by the plan, written back as a whole.
 *
 * The status is the operator's write-ahead log. What it decides stands there before it acts: which worker
 * indices are wanted under which attempt, the coordinator's term, what has been counted. An operator that is
 * killed between any two writes goes on from it, and a status write carries the resourceVersion it was made
 * from, so that that of a leader that was replaced is refused. Plain data without pointers, but for `result`
 * texts of fixed size; copy it with =. Unknown fields are dropped: nobody else writes here. Pure. */
#ifndef RM_OPERATOR_CORE_STATUS_H
#define RM_OPERATOR_CORE_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/limits.h"
#include "common/base/str.h"
#include "common/wire/status.h"
#include "operator/core/names.h"
#include "operator/core/prices.h"

struct js;

enum {
    OP_REASON_MAX = 48,
    OP_MESSAGE_MAX = 384,
    OP_REFUSAL_MAX = 300, /* the API server's words, which have others in front of them in a message */
    OP_CAUSE_MAX = 24,
    OP_NUMBER_MAX = 24, /* a decimal as text: "2.1043" */
    OP_IMAGE_MAX = 320, /* a reference with its digest and NUL; a longer one is not pinned */
    OP_STATUS_TEXT_MAX = 64 * 1024,
    OP_COUNT_MAX = 1 << 30, /* of anything that is counted on from what was read */
};

enum op_condition_type {
    OP_ADMITTED,
    OP_PODS_READY,
    OP_RING_FORMED,
    OP_TRAINING,
    OP_STORE_READY,
    OP_DEGRADED,
    OP_STOPPING,
    OP_SUSPENDED,
    OP_COMPLETE,
    OP_FAILED,
    OP_FINISHED,
    OP_REACHABLE, /* of the coordinator */
    OP_IDLE,
    OP_CONDITIONS
};

enum op_truth { OP_UNSET, OP_FALSE, OP_TRUE, OP_UNKNOWN }; /* UNSET: the condition is not in the list */

struct op_condition {
    enum op_truth status;
    char reason[OP_REASON_MAX];
    char message[OP_MESSAGE_MAX];
    int64_t transition_ms;
    int64_t generation; /* observedGeneration */
};

/* What the operator wants of one worker index, or of the coordinator (its attempt is the term).
 *
 *     FREE --allocate--> WANTED --pod seen--> PRESENT --over or to be over--> ENDED --allocate--> WANTED
 *                          \--withdrawn before a pod was seen--> SKIPPED --allocate, same attempt--> WANTED
 *
 * A pod whose attempt is not the one of a WANTED or PRESENT slot is deleted. */
enum op_slot_state { OP_SLOT_FREE, OP_SLOT_WANTED, OP_SLOT_PRESENT, OP_SLOT_ENDED, OP_SLOT_SKIPPED };

struct op_slot {
    enum op_slot_state state;
    int attempt;      /* highest ever allocated; 0 while FREE */
    int quick;        /* attempts in a row that ended soon after their start... */
    bool asked;       /* its coordinator is asked to let it go when another one has come in its place */
    int64_t quick_ms; /* ...the last of them then */
    int64_t told_ms; /* when it was told that its Node says that it may go, or will; 0: that does not stand */
    int64_t until_ms; /* when its machine goes by its Node's taint; 0: it only may, or nobody says */
};

struct op_progress {
    bool known;
    int64_t step, steps;                                        /* steps 0: a program does not say how many */
    int64_t tokens_per_second, samples_per_second, eta_seconds; /* negative: not known */
    char steps_per_second[OP_NUMBER_MAX];                       /* "": not known */
    char loss[OP_NUMBER_MAX];                                   /* "" before the first step */
    char held_out[OP_NUMBER_MAX], norm[OP_NUMBER_MAX], clip[OP_NUMBER_MAX],
        rate[OP_NUMBER_MAX]; /* likewise, and where nobody says them */
};

struct op_checkpoint {
    bool known;
    int64_t step;
    int64_t bytes, saved_ms; /* 0: not known */
    char uri[RM_URI_MAX];
};

struct op_recovery {
    bool known;
    char cause[OP_CAUSE_MAX];
    int64_t ms[RECOVERY_PARTS], steps_redone;
};

/* How long is trained between two checkpoints, where the coordinator chooses it, and what that follows from.
 */
struct op_interval {
    bool known;
    char reason[RM_WHY_MAX];
    int64_t every_seconds, losses, observed_seconds, stall_ms, safe_ms;
};

struct op_goodput {
    bool known;
    char ratio[OP_NUMBER_MAX];
    int64_t seconds[GOODPUT_CLASSES];
    int term;                         /* whose answer is in it; 0: of before that was noted */
    int64_t earlier[GOODPUT_CLASSES]; /* of the terms before that one */
};

struct op_result {
    bool known;
    bool program;  /* of a user's program: exit_code is all there is */
    int exit_code; /* what it ended with */
    bool exact;    /* what any machines of that kind would have come to */
    int64_t step;
    char loss[OP_NUMBER_MAX];
    char weights_sha256[RM_HASH_HEX];
    char uri[RM_URI_MAX];
};

struct op_member {
    int worker, attempt;
};

enum { OP_AVOIDED_MAX = 8 };

struct op_names {
    int count;
    char name[OP_AVOIDED_MAX][OP_NODE_MAX]; /* the newest last */
};

/* Machines on which workers were refused, by their kind where nobody trains on that kind, else by name: new
 * workers are rather put elsewhere. */
struct op_unfit {
    struct op_names types, nodes;
};

/* Of a job of whose processes snapshots are made: workers that are wanted no more, and of which nobody has
 * seen that their programs ended. */
struct op_stray {
    bool answered;     /* a coordinator may still give one of them answers */
    int64_t silent_ms; /* since then it can't have; 0: there are none, or one may be answered */
};

/* What the job's containers run, from the first of them that ran until the job is suspended: by digest where
 * the kubelet told it. "": not known yet. Pods that come later run the same, whatever image the template's
 * tag, or the operator, stands for by then. bundle: out of which Ringmaster's programs came into the workers'
 * containers; "" where they are in the image. */
struct op_images {
    char trainer[OP_IMAGE_MAX], coordinator[OP_IMAGE_MAX], bundle[OP_IMAGE_MAX];
};

enum { OP_SPOT_ENDS_MAX = 16 };

/* Ends of workers by their spot machines, which are counted together. */
struct op_spot_end {
    int64_t at_ms; /* when the first of them was */
    int count;
};

enum { OP_METERS_MAX = 160 };

/* A pod that has a node, while the API server has the pod. */
struct op_meter {
    int index;               /* of a worker; -1: a coordinator */
    int attempt;             /* the term of a coordinator */
    int64_t rate, on_demand; /* of its share of its machine an hour, in millionths; -1: not known */
    int share;               /* of the machine, in millionths */
    bool over;               /* all of it has ended, and is accounted for */
    bool away;               /* its node is gone: nobody pays for it */
    int64_t
        unseen_ms; /* it is charged up to then, after which nobody saw its machine; 0: its machine is seen */
};

/* Where a sum stands still, rather than overflow. */
#define OP_SUM_MOST ((int64_t)4 * 1000 * 1000 * 1000 * 1000 * 1000 * 1000)
enum { OP_HOUR_S = 3600 };

/* Millionths, and what is left of them: 3600ths of one. */
struct op_sum {
    int64_t micros;
    int rest;
};

/* What the job's pods have cost up to a moment, each from the second that it got its node. hours: of whole
 * machines. */
struct op_cost {
    int64_t accounted_ms; /* a whole second; 0: no pod ever had a node */
    char currency[PRICE_CURRENCY_MAX];
    char per_million[PRICE_TEXT_MAX];                /* tokens; "": not known */
    struct op_sum spent, on_demand, hours, unpriced; /* unpriced: those hours for which no price is known */
    int meters_count;
    struct op_meter meter[OP_METERS_MAX];
};

/* What was said of the cost, so that it is said once; and what the budget stopped at. */
struct op_cost_told {
    bool unknown, whole;
    bool currency;          /* that the table of prices is in another one */
    bool full;              /* that there are more pods than are counted */
    int64_t warned_micros;  /* the budget of which a warning was given; 0: none */
    int64_t stopped_micros; /* the budget that is spent: nothing runs until it is higher; 0: none */
    int64_t reserve_micros; /* what was kept of it for the end: as much is wanted to go on */
    int64_t
        stopped_ms; /* when it was spent: from then on a save is waited for; 0: none is, or not any more */
};

struct job_status {
    int64_t observed_generation;
    char state[OP_REASON_MAX];
    char message[OP_MESSAGE_MAX];
    struct op_condition condition[OP_CONDITIONS];
    int64_t start_ms, completion_ms;
    int64_t active_ms;      /* since when it is not suspended; 0: it is */
    int64_t active_seconds; /* spent unsuspended before that */
    struct {
        int ready, current, target;
        int surge; /* how many more than the target are wanted, until others can leave machines that may go */
        int64_t resize_ms; /* when target last changed */
        int64_t short_ms;  /* since when fewer than min have a node, and others wait for one; 0 */
        int64_t retry_ms;  /* too few were scheduled in time: none is made before this; 0 */
        struct op_unfit unfit;
        struct op_names left; /* machines that workers left because these were told that they may go */
        struct op_stray stray;
        struct op_slot slot[RM_WORKERS_MAX];
    } workers;
    struct {
        int generation, size;
        int64_t begun;              /* generations of a user's program that began, under all coordinators */
        struct op_slot coordinator; /* attempt: the term */
        char key[OP_NAME_MAX];      /* the Secret by which its programs know each other; "": none yet */
        int64_t heard_ms;           /* when it gave its last answer, to whichever operator; 0: never */
        int64_t formed_ms;
        struct op_member member[RM_WORKERS_MAX]; /* `size` of them */
    } ring;
    struct {
        int preemption, failure, infrastructure, misfit;
        int64_t misfit_ms;      /* the last misfit */
        int64_t failure_ms;     /* the last failure */
        int64_t window_ms;      /* begin of the window that failures are counted in */
        int window_failures;    /* in it, those that spend maxRestarts */
        char node[OP_NODE_MAX]; /* where workers failed soon after their start, the newest of them... */
        int node_failures;      /* ...and how often in a row there */
    } restarts;
    struct {
        int interruptions; /* of workers on spot machines, no longer apart than the job says, at the last...
                            */
        int64_t window_ms; /* ...the first of them */
        int64_t last_ms;   /* the last one */
        int64_t fell_ms;   /* since when other machines are preferred; 0: they are not */
        int ends_count;    /* 0 beside interruptions: a status of before each was noted */
        struct op_spot_end end[OP_SPOT_ENDS_MAX]; /* the newest last */
    } spot;
    struct {
        int64_t short_ms;     /* since when fewer than min have had a node, over all attempts to start; 0 */
        int64_t since_ms;     /* since when no pods are wanted but one that waits for a node; 0: all are */
        bool base;            /* those that waited were of spot.onDemandBase: so is that one */
        struct op_names left; /* machines that workers had when they were too few */
    } idle;                   /* of jobs with cost.idleAfter */
    bool unfenced;            /* its store does not make sure that the checkpoints have one owner */
    struct op_images images;
    struct op_progress progress;
    struct op_checkpoint checkpoint;
    struct op_interval interval;
    struct op_recovery last_recovery;
    struct op_goodput goodput;
    struct op_cost cost;
    struct op_cost_told cost_told;
    struct op_result result;
};

/* Reads the object's `status` (NULL: none yet). Never fails: a value of another kind is as if it were absent.
 */
void status_read(const struct js *object, struct job_status *ret);

/* The value of `status` as compact JSON, in one order: equal texts are equal statuses. */
void status_write(const struct job_status *status, const char *job_name, struct str *out);

/* As status_write without what ticks (message, progress, ready counts of a moment ago, goodput, that a wanted
 * pod is there): a change in it is written at once, any other change when its turn comes. */
void status_write_urgent(const struct job_status *status, const char *job_name, struct str *out);

/* Sets a condition; its transition time moves when status changes. reason and message are cut to fit. */
void condition_set(struct job_status *status, enum op_condition_type type, bool truth, const char *reason,
                   const char *message, int64_t generation, int64_t now_ms);
/* As condition_set, where nobody can say. */
void condition_unknown(struct job_status *status, enum op_condition_type type, const char *reason,
                       const char *message, int64_t generation, int64_t now_ms);
bool condition_is(const struct job_status *status, enum op_condition_type type);
const char *condition_name(enum op_condition_type type); /* "PodsReady" */

const char *slot_state_name(enum op_slot_state state); /* "Wanted" */
bool slot_is_live(const struct op_slot *slot);         /* WANTED or PRESENT */

/* The members, for whoever lists them. A member's own members follow it; depth says how far it is down. */
struct job_status_listed {
    const char *key;
    int depth;
    bool list; /* of objects, whose members follow */
};
int job_status_list(struct job_status_listed *ret, int most);

/* `status.cost` alone. */
struct js *status_cost_json(const struct job_status *status);
/* "12.34 USD", or "1.50 h" where no price is known; "" before the first pod. */
void status_cost_column(const struct op_cost *cost, char out[OP_REASON_MAX]);

#endif
