/* FORMING: from which step, with whom, in which role. */
#ifndef RM_COORDINATOR_RDZV_FORM_H
#define RM_COORDINATOR_RDZV_FORM_H

#include "coordinator/core/rdzv_state.h"

void rdzv_form(struct rdzv *st, rm_time now, struct rdzv_out *out);
void rdzv_ready(struct rdzv *st, struct rdzv_worker *w, const struct message *m, rm_time now,
                struct rdzv_out *out);
void rdzv_settle_forming(struct rdzv *st, rm_time now, struct rdzv_out *out);
rm_time rdzv_forming_until(const struct rdzv *st);

#endif
