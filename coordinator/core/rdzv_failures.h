/* Failures against failurePolicy.maxRestarts. */
#ifndef RM_COORDINATOR_RDZV_FAILURES_H
#define RM_COORDINATOR_RDZV_FAILURES_H

#include "coordinator/core/rdzv_state.h"

/* Counts one against this worker and the job. May put the worker into quarantine, which loses it, or end the
 * run. */
void rdzv_count_failure(const struct turn *turn, struct rdzv_worker *w, const char *why);
/* One of a user's program: which of its processes fails first is chance, so it counts against the job alone.
 */
void rdzv_count_program_failure(const struct turn *turn, struct rdzv_worker *w, const char *why);
/* Its trainer says that a step's numbers are not finite: the ring stops, and who else saw it says so, too. */
void rdzv_not_finite(const struct turn *turn, struct rdzv_worker *w, const struct msg_fault *f);
/* All have stopped. What two saw, or the only one, would come out the same again, and ends the job; what one
 * alone saw is a failure of its machine, for the others saw the same header. */
void rdzv_not_finite_stopped(const struct turn *turn);

#endif
