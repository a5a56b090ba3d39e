/* failurePolicy.rules as JSON: [{"action": "FailJob", "onExitCodes": [3, 42]}], and back. */
#ifndef RM_JOB_RULES_H
#define RM_JOB_RULES_H

#include "common/job/spec.h"

struct js;

/* ERR_USAGE with a sentence that begins with "has": the caller puts the field's path in front. *ret is
 * untouched on failure. */
int job_rules_read(struct job_rules *ret, const struct js *list, struct error *err);
/* To be freed. */
struct js *job_rules_json(const struct job_rules *rules);

#endif
