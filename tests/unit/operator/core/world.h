/* A small cluster for one job: an API server with revisions, kubelets, nodes, a coordinator that trains when
 * enough workers run, and an operator with lagging caches that can be killed between any two writes. Driven
 * by a seed; what must always hold is checked after every write (world_check). */
#ifndef RM_TESTS_OPERATOR_WORLD_H
#define RM_TESTS_OPERATOR_WORLD_H

#include "operator/core/plan.h"

enum { WORLD_PODS = 1024, WORLD_NODES = 8, WORLD_SECRETS = 64, WORLD_LOG = 60000, WORLD_STEPS = 60 };

struct world_pod {
    bool exists;
    struct pod_view view;
    bool is_told;             /* its process had SIGTERM */
    bool hung;                /* a coordinator that does nothing any more, and does not end */
    bool sidecar;             /* another container runs on when ours has ended, until the pod is deleted */
    bool waits;               /* a worker's: beside the ring, and not in it */
    bool barred[WORLD_NODES]; /* nodes that it is not to be put on */
    enum { TOLD_NOTHING, TOLD_MAY, TOLD_WILL } told; /* a worker's, by its machine's metadata... */
    int64_t goes_ms;                                 /* ...for then */
};

struct world_node {
    bool exists;
    struct node_view view;
};

struct world_job {
    bool exists;
    int revision;
    int64_t generation;
    int target, min, max;
    bool suspend;
    char status[8192];
};

/* One change as a watch tells it: the object after it. */
struct world_change {
    enum { CHANGE_JOB, CHANGE_POD, CHANGE_NODE } kind;
    int index;
    union {
        struct world_job job;
        struct world_pod pod;
        struct world_node node;
    } after;
};

struct world_truth {
    struct world_job job;
    int pods_count;
    struct world_pod pod[WORLD_PODS];
    struct world_node node[WORLD_NODES];
};

struct world {
    uint64_t random;
    int64_t now_ms;
    struct world_truth truth, told; /* as it is, and as it was when each thing was last told of */
    int log_count;
    struct world_change *log[WORLD_LOG];
    char key[OP_NAME_MAX]; /* the Secret that the first pod of the job refers to; "": there was no pod */
    char secret[WORLD_SECRETS][OP_NAME_MAX]; /* that were made */
    int secrets_count;
    uint64_t chance; /* what names are drawn from */
    int service_term;
    int step;      /* committed; survives everything: it stands for the checkpoints */
    bool released; /* training is done */
    bool mixed;    /* on node-3 all workers are refused: it computes other bits */
    bool launched; /* its workers run a program of the user's, in mode Restart */
    bool elastic;  /* they do in mode Elastic, with steps and weights */
    bool spot;     /* it prefers spot machines (nodes 0 to 5), but for one worker, and falls back */
    bool sidecars; /* half of all pods have one */
    bool idles;    /* it has cost.idleAfter */
    bool beside;   /* who comes waits beside the ring until the coordinator makes another one */
    char relief[OP_RELIEF_MAX]; /* what it was asked last */
    int told_will;              /* so often that named machines that will go */
    bool single;                /* no node takes more than one worker, or one that is not to be put on it */
    int refused, hung, fell, idled;
    bool lies;           /* node-0 tells each worker on it, again and again, that it may go */
    int relieved_pod;    /* the newest from there that was relieved, -1 none... */
    int64_t relieved_ms; /* ...and when */
    int relieved;        /* so many were */
    int left, late; /* workers told that their machines will go, that went; of them without a replacement */
    struct op_gone lost[RM_WORKERS_MAX];
    int lost_count;
    int creates, deletes, status_writes, conflicts;
    char wrong[256]; /* the first broken rule; "" */
};

/* The operator's process: caches and memory. */
struct process {
    struct world_truth cache;
    int seen[3]; /* changes taken up, by kind: streams of different resources lag differently */
    struct op_memo memo;
    struct op_silence silence;
    int silent_term; /* whose that is */
    int64_t expect_until_ms;
    int expect_log; /* own writes up to here must be seen before the next plan */
    /* What a leader that was replaced had begun: the rest of its plan, done after some more turns of the
     * others. */
    struct op_plan *late;
    int late_from, late_turns;
};

struct world *world_open(uint64_t seed, int workers, int min);
void world_free(struct world *w);
uint64_t world_draw(struct world *w, uint64_t bound);
void world_note(struct world *w, int kind, int index); /* logs the object's present state as a change */
void world_take(struct world_truth *truth, const struct world_change *change);
void world_check(struct world *w);

/* Kubelets, scheduler and the coordinator's program do one thing or several. */
void world_kubelets(struct world *w);
/* Something bad happens. */
void world_fault(struct world *w);
void world_repair_nodes(struct world *w);
void world_cordon(struct world *w, int node, bool on);
void world_taint(struct world *w, int node, bool on); /* it will go, in 40 minutes */
void world_take_node(struct world *w, int node);
/* One worker that trains hears that its machine may go, will in so many ms, or does not after all. */
void world_tell(struct world *w, int told, int64_t in_ms);
/* node-0's metadata says to who trains there that it may go, or that it does not. */
void world_lie(struct world *w);
/* An event of the operator's: nobody is relieved of node-0 who came there after another one was, less than a
 * minute before. */
void world_check_relieved(struct world *w, const struct op_event *event);
void world_lose_one(struct world *w);       /* somebody deletes a worker by force */
void world_delete_pending(struct world *w); /* somebody deletes a worker that waits for a node */
int world_training(struct world *w);        /* how many workers do */
int world_wanted(const struct world *w, enum pod_role role); /* how many pods are there and not to end */
bool world_is(const struct world *w, const char *state);     /* as status.state has it */
void world_user(struct world *w);                            /* scales, suspends or resumes */
void world_delete_job(struct world *w);
void world_collect(struct world *w); /* the garbage collector */

/* What the coordinator would answer now; false where none runs under that term. */
bool world_view(const struct world *w, int term, struct coordinator_view *ret);

void process_start(struct world *w, struct process *o); /* lists everything; what comes late still comes */
void process_catch_up(struct world *w, struct process *o, bool all);
void process_end(struct process *o);
/* Plans and acts; dies before write `die_before` (-1: lives), or is only replaced: then its last writes come
 * late. */
void process_reconcile(struct world *w, struct process *o, int die_before, bool replaced);
void process_late_writes(struct world *w, struct process *o);
/* Does one action on the server; 0 or an HTTP code of refusal. */
int world_do(struct world *w, const struct op_action *action);

#endif
