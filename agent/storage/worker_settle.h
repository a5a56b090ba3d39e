/* Reads back what this agent has published, and deletes the checkpoints that it replaces (checkpoint_settle),
 * on a thread of its own that takes only what others leave: training feels nothing of it.
 *
 * One at a time; who publishes again gives the last one up, for the new one's deletes what that one's would.
 * A thread that has hardly any time is not waited for: it ends by itself, or with the process. */
#ifndef RM_AGENT_WORKER_SETTLE_H
#define RM_AGENT_WORKER_SETTLE_H

#include <stdbool.h>

#include "common/job/spec.h"

struct worker_settle;

/* spec: lives as long as the caller. run: as checkpoint_settling. NULL: no memory. */
struct worker_settle *worker_settle_open(const struct job_spec *spec, const char *run);
/* Works in the background, called from any thread, one at a time. What goes wrong is logged: all checkpoints
 * stay then. */
void worker_settle_begin(struct worker_settle *settle, int64_t step);
/* What is under way is given up. */
void worker_settle_stop(struct worker_settle *settle);
void worker_settle_free(struct worker_settle *settle);
/* Whether threads of this process are still at it, given up or not. */
bool worker_settle_goes_on(void);
/* Before a process ends: where such a thread goes on it ends here, and nothing is taken down, a library's
 * memory say, which that uses until its end. */
void worker_settle_end_process(int code);

#endif
