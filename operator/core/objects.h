/* The objects around the pods, as JSON: key Secret, Service, PodDisruptionBudget, NetworkPolicies.
 * All have the job as their owner (blockOwnerDeletion false), so that the garbage collector takes them. Pure.
 */
#ifndef RM_OPERATOR_CORE_OBJECTS_H
#define RM_OPERATOR_CORE_OBJECTS_H

#include "operator/core/job.h"
#include "operator/core/view.h"

/* metadata with name, namespace, the job's labels and the owner reference, for every object made here. */
struct js *object_metadata(const struct job_view *job, const char *name);

/* Holds OP_KEY_PLACE (plan.h) where the key belongs. */
void object_key(const struct job_view *job, const char *name, struct str *out);
/* Its selector holds the term: it moves to a successor. */
void object_service(const struct job_view *job, int term, struct str *out);
void object_budget(const struct job_view *job, struct str *out);
void object_policy_worker(const struct job_view *job, const struct op_settings *settings, struct str *out);
void object_policy_coordinator(const struct job_view *job, const struct op_settings *settings,
                               struct str *out);

#endif
