/* What is being saved. rdzv_boundary.h has what membership asks of it. */
#ifndef RM_COORDINATOR_RDZV_PIECES_H
#define RM_COORDINATOR_RDZV_PIECES_H

#include "coordinator/core/rdzv_state.h"

/* The one that these pieces belong to, begun where there is none. */
struct rdzv_collection *rdzv_collection_of(struct rdzv *st, const struct msg_checkpointed *m);
void rdzv_forget_pieces(struct rdzv *st, int64_t step);
bool rdzv_part_is_in(const struct rdzv *st, int part); /* of the save under way */

struct msg_state rdzv_what_to_save(const struct rdzv *st, const struct msg_state *state, bool final);
bool rdzv_holds(const struct rdzv *st, const struct rdzv_worker *w, const struct msg_state *state);
bool rdzv_save_is_done(const struct rdzv *st);

struct rdzv_worker *rdzv_choose_publisher(struct rdzv *st);
void rdzv_name_publishers(const struct turn *turn);
void rdzv_publishing_waits(struct rdzv *st, const struct rdzv_worker *w, int64_t step);
bool rdzv_is_published_by(const struct rdzv *st, const struct rdzv_worker *w, const struct msg_fault *f);

#endif
