/* Who is here, who may take part, and who may yet come. Nobody is chosen here, and nothing changes. */
#ifndef RM_COORDINATOR_RDZV_WHO_H
#define RM_COORDINATOR_RDZV_WHO_H

#include "coordinator/core/rdzv_state.h"

bool rdzv_held_back(const struct rdzv *st,
                    const struct rdzv_worker *w); /* it fails at something: asked nothing for a while */
bool rdzv_usable(const struct rdzv *st,
                 const struct rdzv_worker *w); /* at rest, may be formed or saved from */
bool rdzv_candidate(const struct rdzv *st, const struct rdzv_worker *w); /* usable and stays */
int rdzv_candidates(const struct rdzv *st);
int rdzv_members_max(const struct rdzv *st); /* as many as the job and its lanes take */
int rdzv_left(const struct rdzv *st);        /* workers that train, or may yet */
bool rdzv_ring_runs(const struct rdzv *st);  /* it trains, or is to stop at the next boundary */

/* Where nobody says who is expected (settings.unsupervised) what is known is how many there were to be. */
bool rdzv_at_target(const struct rdzv *st, int workers); /* no more are worth waiting for */
bool rdzv_more_may_come(const struct rdzv *st);
bool rdzv_on_its_way(const struct rdzv *st); /* somebody is, as far as is known */

#endif
