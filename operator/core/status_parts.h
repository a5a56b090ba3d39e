/* Parts of a status that a coordinator's answer and a TrainingJob have in common: read by one function each.
 * Pure. */
#ifndef RM_OPERATOR_CORE_STATUS_PARTS_H
#define RM_OPERATOR_CORE_STATUS_PARTS_H

#include "operator/core/status.h"

struct js;

/* Of an object; what it lacks stays as it is in *ret. */
void read_progress(const struct js *from, struct op_progress *ret);
void read_recovery(const struct js *from, struct op_recovery *ret);
void read_result(const struct js *from, struct op_result *ret);
/* All but `savedTime`, which the coordinator counts in ms and a TrainingJob writes as an instant. */
void read_checkpoint(const struct js *from, struct op_checkpoint *ret);
/* All but `ratio`: the coordinator's is rounded to what a TrainingJob shows. */
void read_goodput(const struct js *from, struct op_goodput *ret);

#endif
