/* Whose folder of checkpoints is another one than the job's.
 *
 * A volume that is not mounted on one machine leaves an empty folder of the same name there: it would list
 * nothing, and what it writes nobody else would find. Each list says which folder it is of; the job's is the
 * one that its checkpoints lie in, and before there are any the one that most see. Who sees another is in
 * trouble of its own (rdzv_fault.h): it takes no part, is asked again, and is left out in the end. */
#ifndef RM_COORDINATOR_RDZV_FOLDERS_H
#define RM_COORDINATOR_RDZV_FOLDERS_H

#include "coordinator/core/rdzv_state.h"

/* Nobody holds a state, and all have listed: says which folder is the job's. What one alone lists sends
 * nobody away but that one. */
void rdzv_folders_settle(struct rdzv *st);
/* Nobody sees it any more, and nothing was saved in it: another one will do. */
void rdzv_folders_forget(struct rdzv *st);
/* There is a worker that sees another one. */
bool rdzv_folders_differ(const struct rdzv *st);
/* What is wrong with the folder of such a worker, as a sentence. */
void rdzv_folders_describe(const struct rdzv *st, int worker, char *out, size_t size);

#endif
