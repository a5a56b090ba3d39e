/* FORMING: from which step, with whom, in which role. */
#ifndef RM_COORDINATOR_RDZV_FORM_H
#define RM_COORDINATOR_RDZV_FORM_H

#include "coordinator/core/rdzv_state.h"

/* Names the members of the next ring, and what each has to do for it; ends where every checkpoint is damaged.
 */
void rdzv_form(const struct turn *turn);
/* When somebody may give the newest state: later than now where all who hold it gave something else of late.
 */
rm_time rdzv_given_from(const struct rdzv *st);
/* A worker is ready to train. */
void rdzv_ready(const struct turn *turn, struct rdzv_worker *w, const struct message *m);
/* Sends `go` when all are ready on one state; stops the ring where that can't be. */
void rdzv_settle_forming(const struct turn *turn);
/* When a member is late. */
rm_time rdzv_forming_until(const struct rdzv *st);

#endif
