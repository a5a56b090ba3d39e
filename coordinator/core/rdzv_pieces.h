/* What is being saved: collections of pieces, one for each checkpoint under way. What membership asks of it
 * stands in rdzv_bridge.h. */
#ifndef RM_COORDINATOR_RDZV_PIECES_H
#define RM_COORDINATOR_RDZV_PIECES_H

#include "coordinator/core/rdzv_state.h"

/* The collection that these pieces belong to. Where there is none, one is begun; an older one may make room
 * for it. */
struct rdzv_collection *rdzv_collection_of(struct rdzv *st, const struct msg_checkpointed *m);
/* Are these pieces of that step and history, but of another state than those that came before? */
bool rdzv_pieces_differ(const struct rdzv *st, const struct msg_checkpointed *m);
/* Drops the collections of that step. */
void rdzv_forget_pieces(struct rdzv *st, int64_t step);
/* The newest step of which all pieces are in and the manifest is not; -1: there is none. */
int64_t rdzv_step_to_publish(const struct rdzv *st);
/* Part of the save under way. */
bool rdzv_part_is_in(const struct rdzv *st, int part);

/* What a worker has to hold in order to save this state; held is false for "whoever has finished". */
struct msg_state rdzv_what_to_save(const struct rdzv *st, const struct msg_state *state, bool final);
/* The worker holds that. */
bool rdzv_holds(const struct rdzv *st, const struct rdzv_worker *w, const struct msg_state *state);
/* What SAVING waits for is published, or something newer is. */
bool rdzv_save_is_done(const struct rdzv *st);

/* Somebody who stays, if possible of the ring; NULL where nobody is here. */
struct rdzv_worker *rdzv_choose_publisher(struct rdzv *st);
/* Sends `publish` for the next collection that is whole. One is published at a time. */
void rdzv_name_publishers(const struct turn *turn);
/* Who was told to publish what SAVING waits for; NULL: nobody. */
struct rdzv_worker *rdzv_awaited_publisher(struct rdzv *st);
/* The store does not take that step from this worker: something else may go before it. */
void rdzv_publishing_waits(const struct turn *turn, const struct rdzv_worker *w, int64_t step);
/* The fault is about a checkpoint that this worker was told to publish, or about a call that does not return
 * and keeps it from publishing. */
bool rdzv_is_published_by(const struct rdzv *st, const struct rdzv_worker *w, const struct msg_fault *f);

#endif
