/* FORMING: from which step, with whom, in which role. */
#ifndef RM_COORDINATOR_RDZV_FORM_H
#define RM_COORDINATOR_RDZV_FORM_H

#include "coordinator/core/rdzv_state.h"

void rdzv_form(const struct turn *turn);
void rdzv_ready(const struct turn *turn, struct rdzv_worker *w, const struct message *m);
void rdzv_settle_forming(const struct turn *turn);
rm_time rdzv_forming_until(const struct rdzv *st);

#endif
