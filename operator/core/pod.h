/* The pods that the operator wants, as JSON: the job's template completed (docs/kubernetes.md tells with
 * what).
 *
 * Where the template is silent it gets the restricted security context, the scratch volumes, tolerations and
 * a grace; where it speaks it wins. The container `trainer` (`coordinator`) is ours in command, ports,
 * RINGMASTER_* environment and our mounts: a template that sets those is refused. Pure. */
#ifndef RM_OPERATOR_CORE_POD_H
#define RM_OPERATOR_CORE_POD_H

#include "operator/core/job.h"
#include "operator/core/view.h"

enum {
    OP_COORDINATOR_PORT = 7070,
    OP_WORKER_METRICS_PORT = 7071,
    /* It is not that of a worker: with hostNetwork both may be on one node. */
    OP_COORDINATOR_METRICS_PORT = 7072,
    OP_WORKER_GRACE_S = 120, /* at least */
    OP_RESERVE_S = 15, /* more for the agent than for its program, and for the coordinator than for both */
    OP_POD_TEXT_MAX = 256 * 1024,
};

/* The effective spec (job.h), which a coordinator's pod brings along as an annotation and finds as a file.
 * Zero: of a pod that is made to be looked at only. */
struct op_spec {
    const char *text;         /* the caller's */
    char sha256[RM_HASH_HEX]; /* of it: the coordinator takes no other */
};

/* Where a worker's pod should rather not be put, and on which nodes not at all. Borrowed. */
struct op_elsewhere {
    const struct op_unfit *unfit; /* NULL: none are known */
    int barred_count;
    const char *barred[RM_WORKERS_MAX]; /* names of nodes */
    bool base;                          /* on no spot machine */
    bool fallback; /* on one where there is no other alone, though the job prefers them */
};

/* ERR_USAGE with a sentence that names the field of the template at fault. elsewhere NULL: anywhere. */
int pod_worker(const struct job_view *job, const struct op_settings *settings,
               const struct op_elsewhere *elsewhere, int index, int attempt, struct str *out,
               struct error *err);
int pod_coordinator(const struct job_view *job, const struct op_settings *settings,
                    const struct op_spec *spec, int term, struct str *out, struct error *err);

/* Does the worker template mount a volume at this absolute path or above it? A volume that lives and dies
 * with its pod (emptyDir) counts where scratch is true: an init container may have filled it. */
bool pod_template_holds(const struct job_view *job, const char *path, bool scratch);
/* Would a worker keep what it writes there on a volume, the template's or one that each pod gets? A mount
 * that is read-only keeps nothing, and of several the deepest is where it would lie. */
bool pod_keeps(const struct job_view *job, const char *path);

#endif
