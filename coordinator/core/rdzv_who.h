/* Who is here, who may take part, and who may yet come. These functions only look. */
#ifndef RM_COORDINATOR_RDZV_WHO_H
#define RM_COORDINATOR_RDZV_WHO_H

#include "coordinator/core/rdzv_state.h"

/* Its newest list is of another folder than the job's (rdzv_folders.h). */
bool rdzv_sees_another_folder(const struct rdzv *st, const struct rdzv_worker *w);
/* It failed at something a moment ago, and is asked again later. */
bool rdzv_trouble_pauses(const struct rdzv *st, const struct rdzv_trouble *t);
bool rdzv_pauses(const struct rdzv *st, const struct rdzv_worker *w);
/* One of the two: it takes part in nothing for now. A member that sees another folder goes on in its ring. */
bool rdzv_held_back(const struct rdzv *st, const struct rdzv_worker *w);
/* A write of this worker's does not return, as it said a moment ago. */
bool rdzv_is_stuck(const struct rdzv *st, const struct rdzv_worker *w);
/* It could not write what all stand still for, and has written nothing since. */
bool rdzv_fails_to_save(const struct rdzv_worker *w);
/* The worker is at rest in this round: a ring may be formed from its state, or a checkpoint saved. */
bool rdzv_usable(const struct rdzv *st, const struct rdzv_worker *w);
/* It has not got yet, as far as it has said, what the others of its ring hold (ROLE_FOLLOW). */
bool rdzv_follows(const struct rdzv *st, const struct rdzv_worker *w);
/* It does nothing any more of what it was asked for, nor will its trainer. */
bool rdzv_has_gone(const struct rdzv_worker *w);
/* It leaves, or will have to (merely eased is not going: rdzv_relief.h). Who stays is preferred to it. */
bool rdzv_is_going(const struct rdzv_worker *w);
/* It gives what it holds to somebody else before it is killed, by what that took so far. Of nobody whose end
 * is not known this is doubted, nor where nothing was measured as long as it lives. */
bool rdzv_gives_in_time(const struct rdzv *st, const struct rdzv_worker *w);
/* The worker is usable, stays, and is held back by neither: also of the members only those may form the next
 * ring. */
bool rdzv_candidate(const struct rdzv *st, const struct rdzv_worker *w);
/* How many of those there are. */
int rdzv_candidates(const struct rdzv *st);
/* As many members as the job and its lanes take. */
int rdzv_members_max(const struct rdzv *st);
/* How many workers train, or may yet. */
int rdzv_left(const struct rdzv *st);
/* A ring trains, or trains on to the boundary at which it is to stop. */
bool rdzv_ring_runs(const struct rdzv *st);
/* It was told to stop wherever it is, and nothing more comes of it. */
bool rdzv_stops_now(const struct rdzv *st);
bool rdzv_all_finished(const struct rdzv *st); /* all members said so, and are here */

/* With so many workers no more are worth waiting for. Where nobody says who is expected
 * (settings.unsupervised) what is known is how many there were to be. */
bool rdzv_at_target(const struct rdzv *st, int workers);
/* Whether somebody is here who is no candidate yet, or the job is not at its target: an unsupervised
 * coordinator knows no more. */
bool rdzv_more_may_come(const struct rdzv *st);
/* Somebody else may become a candidate, as far as is known. */
bool rdzv_on_its_way(const struct rdzv *st);

#endif
