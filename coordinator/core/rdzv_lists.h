/* Lists of checkpoints. */
#ifndef RM_COORDINATOR_RDZV_LISTS_H
#define RM_COORDINATOR_RDZV_LISTS_H

#include "coordinator/core/rdzv_state.h"

bool rdzv_ask_lists(const struct turn *turn); /* true: all that are needed are here, and agree */
void rdzv_listed(struct rdzv_worker *w, const struct msg_checkpoints *list, rm_time now);
void rdzv_list_fault(const struct turn *turn, struct rdzv_worker *w, const struct msg_fault *f);
void rdzv_lists_anew(struct rdzv *st);
int rdzv_others_load(const struct rdzv *st, const struct rdzv_worker *but,
                     bool here); /* how many others could look; here: now */

#endif
