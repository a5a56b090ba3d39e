/* The parts of a coordinator's page that a TrainingJob has as well, as the operator keeps them: bounded
 * texts, numbers as the TrainingJob shows them. Pure. */
#ifndef RM_OPERATOR_CORE_STATUS_PARTS_H
#define RM_OPERATOR_CORE_STATUS_PARTS_H

#include "operator/core/status.h"

/* *ret is zero before; what is not known leaves it so. */
void take_progress(const struct status_progress *from, struct op_progress *ret);
void take_checkpoint(const struct status_checkpoint *from, struct op_checkpoint *ret);
void take_interval(const struct status_interval *from, struct op_interval *ret);
void take_recovery(const struct status_recovery *from, struct op_recovery *ret);
void take_goodput(const struct status_goodput *from, struct op_goodput *ret);
void take_result(const struct status_result *from, struct op_result *ret);
int take_members(const struct status_workers *from, struct op_member *ret); /* how many */

#endif
