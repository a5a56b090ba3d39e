/* Names, labels and hashes of what the operator makes. Those of pods are functions of the job's uid and a
 * count, so that an operator that starts again makes the same names, and a second POST of one pod is a 409,
 * whose pod can be looked at. Secrets the operator may create and not read: what stood under a name that
 * somebody can foresee could have been put there by anybody who may create such things. So their names have a
 * part that is drawn when they are made, and a 409 is a failure. Pure. */
#ifndef RM_OPERATOR_CORE_NAMES_H
#define RM_OPERATOR_CORE_NAMES_H

#include <stddef.h>
#include <stdint.h>

enum {
    OP_NAME_MAX = 64,      /* a DNS label with its NUL */
    OP_NAMESPACE_MAX = 64, /* likewise */
    OP_UID_MAX = 48,       /* a UUID with its NUL, and some to spare */
    OP_NODE_MAX = 256,     /* a DNS subdomain with its NUL */
    OP_VERSION_MAX = 32,   /* resourceVersion */
    OP_HASH_TEXT = 6,      /* five characters and the NUL */
    OP_CHANCE_TEXT = 17,   /* sixteen characters, 76 bits of chance, and the NUL */
    OP_SELECTOR_MAX = 160, /* a label selector */
};

#define OP_GROUP   "ringmaster.dev"
#define OP_VERSION "ringmaster.dev/v1alpha1"
#define OP_MANAGER                                                                                           \
    "ringmaster.dev/operator" /* spec.managedBy when the job is ours; field manager of applies */

/* On every object that the operator makes. A reflector lists its pods with OP_LABEL_JOB (exists). */
#define OP_LABEL_JOB     "ringmaster.dev/job"     /* the job's name */
#define OP_LABEL_UID     "ringmaster.dev/job-uid" /* and its uid: a namesake's pods are not ours */
#define OP_LABEL_ROLE    "ringmaster.dev/role"    /* worker, coordinator */
#define OP_LABEL_WORKER  "ringmaster.dev/worker"  /* the index, from 0 */
#define OP_LABEL_ATTEMPT "ringmaster.dev/attempt" /* from 1 */
/* On workers that go to no spot machine (spec.spot.onDemandBase of them), and on those that rather don't
 * while spot machines go again and again (spec.spot.onDemandFallback). */
#define OP_LABEL_CAPACITY    "ringmaster.dev/capacity"
#define OP_CAPACITY_BASE     "on-demand"
#define OP_CAPACITY_FALLBACK "fallback"
#define OP_LABEL_TERM        "ringmaster.dev/term" /* of a coordinator, from 1 */

/* Annotations: on what is applied, its op_body_hash in hex; on a coordinator's pod, the job's effective spec.
 */
#define OP_NOTE_APPLIED "ringmaster.dev/applied"
#define OP_NOTE_SPEC    "ringmaster.dev/spec"

/* The init container of a program's worker, which brings the bundle. */
#define OP_INSTALLER "ringmaster-install"

/* Characters that spell no words, from random bytes. */
void name_chance(const uint8_t random[OP_CHANCE_TEXT - 1], char out[OP_CHANCE_TEXT]);

/* Five such characters from a hash of the parts. */
void name_hash(const char *uid, const char *what, int64_t a, int64_t b, char out[OP_HASH_TEXT]);

void name_worker(const char *job, const char *uid, int index, int attempt, char out[OP_NAME_MAX]);
void name_coordinator(const char *job, const char *uid, int term, char out[OP_NAME_MAX]);
/* chance: of name_chance, for this object alone. */
void name_key(const char *job, const char *chance, char out[OP_NAME_MAX]);
/* The key's Secret of jobs that began under an operator that drew no names. */
void name_key_of_old(const char *job, const char *uid, char out[OP_NAME_MAX]);
/* What the job's coordinators call it to whoever asks: namesakes differ by it, and it tells no uid. */
void name_identity(const char *job, const char *uid, char out[OP_NAME_MAX]);
void name_service(const char *job, char out[OP_NAME_MAX]);       /* <job>-coordinator */
void name_budget(const char *job, char out[OP_NAME_MAX]);        /* the PodDisruptionBudget: <job>-workers */
void name_policy_worker(const char *job, char out[OP_NAME_MAX]); /* NetworkPolicies: <job>-workers */
void name_policy_coordinator(const char *job, char out[OP_NAME_MAX]); /* <job>-coordinator */

/* status.workers.selector, for the scale subresource. */
void name_selector(const char *job, char out[OP_SELECTOR_MAX]);

#endif
