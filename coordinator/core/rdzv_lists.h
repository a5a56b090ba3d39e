/* Lists of checkpoints, one from each worker. */
#ifndef RM_COORDINATOR_RDZV_LISTS_H
#define RM_COORDINATOR_RDZV_LISTS_H

#include "coordinator/core/rdzv_state.h"

/* Asks for those that are needed. True: they are here, agree, and fit. */
bool rdzv_ask_lists(const struct turn *turn);
/* Whose folder is not known, or another one than the job's, is asked to list, whether a list is needed or
 * not. */
void rdzv_ask_folders(const struct turn *turn);
/* A list came. */
void rdzv_listed(const struct turn *turn, struct rdzv_worker *w, const struct msg_checkpoints *list);
/* A worker can't list. */
void rdzv_list_fault(const struct turn *turn, struct rdzv_worker *w, const struct msg_fault *f);
/* Whoever has listed is to do it again. */
void rdzv_lists_anew(struct rdzv *st);
/* How many other workers could look at a checkpoint: now (here), or once they come. */
int rdzv_others_load(const struct rdzv *st, const struct rdzv_worker *but, bool here);

#endif
