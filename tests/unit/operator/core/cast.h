/* Jobs, pods, nodes and coordinators for the operator's unit tests, made in a line each; and golden files. */
#ifndef RM_TESTS_OPERATOR_CAST_H
#define RM_TESTS_OPERATOR_CAST_H

#include "operator/core/plan.h"

enum { CAST_PODS = 176, CAST_NODES = 8 };

#define CAST_NOW ((int64_t)1790000000000)

struct cast {
    struct job_view job;
    struct pod_view pod[CAST_PODS];
    const struct pod_view *pods[CAST_PODS];
    int pods_count;
    struct node_view node[CAST_NODES];
    struct coordinator_view coordinator;
    bool coordinator_answers;
    int64_t answered_ms, in_vain_ms;
    struct op_silence silence;
    bool deaf;
    bool snapshots; /* jobs may have snapshots made of their processes */
    struct op_memo memo;
    struct op_trials trials;
    struct prices prices;
    int64_t now_ms;
    bool nodes_known;
};

/* The job of golden/job.json (3 workers, 2 to 5) with `spec` members merged over it: "{\"suspend\":true}". */
struct cast *cast_open(const char *changes);
void cast_free(struct cast *c);

/* As if the operator had run for a while: all slots PRESENT at attempt 1 with ready pods on node-0, node-1
 * ..., coordinator of term 1 on node-0 training at step 812. */
void cast_train(struct cast *c);
struct cast *cast_training(const char *changes); /* cast_open and cast_train */
struct pod_view *cast_pod(struct cast *c, enum pod_role role, int index, int attempt);
struct pod_view *cast_worker(struct cast *c, int index); /* the newest of that index */

struct op_plan *cast_plan(struct cast *c);
/* Plans, and gives the status that was written back to the job, as a server and a watch would. */
void cast_settle(struct cast *c);
void cast_settle_status_only(struct cast *c); /* the other writes are not done */
/* Lines of plan_print; the caller clears it. */
struct str cast_text(struct cast *c);
bool cast_says(struct cast *c, const char *wanted); /* whether that is in them; shows them where it is not */
bool plan_has(const struct op_plan *plan, enum op_kind kind, enum op_resource resource);

/* How a pod of worker 3's second attempt begins, as the API server gives it; "},\"status\":.." follows. */
#define CAST_POD_BEGINS                                                                                      \
    "{\"metadata\":{\"name\":\"p\",\"uid\":\"u\",\"labels\":{\"ringmaster.dev/role\":\"worker\","            \
    "\"ringmaster.dev/worker\":\"3\",\"ringmaster.dev/attempt\":\"2\"},\"ownerReferences\":[{"               \
    "\"apiVersion\":\"ringmaster.dev/v1alpha1\",\"kind\":\"TrainingJob\",\"name\":\"tiny\",\"uid\":\"j\","   \
    "\"controller\":true}]"

/* Compares with golden/NAME; says where the text that it got lies if it differs. */
void golden(const char *name, const char *text);
/* The file's text. */
struct str slurp(const char *path);

#endif
