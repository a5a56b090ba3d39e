/* Workers whose machines may go, or will as only their Nodes say, or whose pods are deleted: each leaves when
 * another one has come in its place, and not before.
 *
 * Of them whoever starts workers knows, by cordons and taints, and it makes one more for each and asks here.
 * Whether the leave may be is decided when the members of a ring are chosen, and nowhere else: who will go
 * by another word (rdzv_will.h) has its place taken in that moment, too, and one newcomer is not to be
 * counted for both. So nothing comes of such a word but that a newcomer takes that place rather than one
 * beside it: no ring is smaller by it than the one before, nor has fewer than `stay` of whom no end is known.
 * Who is not chosen leaves once that ring trains; where the ring comes to nothing it is still there.
 *
 * Of a machine that will go by its Node's taint its worker knows nothing. Whoever makes workers says so with
 * the time that is left, deletes the pod when no more of that remains than a leave takes, and asks here how
 * much that is. We let nobody go by time: anybody may ask who reaches the port, and all that comes of a lie
 * is a place that a newcomer takes, and a save a minute.
 *
 * Who has heard the SIGTERM of its pod's end has said that it leaves, and this says nothing of it. But a
 * signal that comes to a container's first process before that has asked for it is lost, as a pod that is
 * deleted while it starts may see: such a worker would join, and go without a word when its grace period is
 * over. */
#ifndef RM_COORDINATOR_RDZV_RELIEF_H
#define RM_COORDINATOR_RDZV_RELIEF_H

#include "coordinator/core/rdzv_state.h"

/* A word of who is eased, in the place of the last one. The first one of a machine that will go begins a save
 * (rdzv_leave_save_ahead). */
void rdzv_relief_asked(const struct turn *turn, const struct rdzv_relief *relief);

/* It is to go when another one has come in its place, and nothing else is known of it. */
bool rdzv_is_eased(const struct rdzv *st, const struct rdzv_worker *w);
/* What its leave would take, with a save where nobody stays who holds what it holds, of one whose machine is
 * told to go; -1: no save was measured. RM_NEVER: nobody tells of it. */
rm_time rdzv_relief_takes(const struct rdzv *st, const struct rdzv_worker *w);
/* What of the time that a worker believes to have left is there, where its machine goes before that is over.
 * A lie keeps nobody from saving: it is as much as its leave takes, as measured, and as it believes where it
 * was not. */
rm_time rdzv_relief_bounds(const struct rdzv *st, const struct rdzv_worker *w, rm_time deadline);
/* How many members of the ring, as it stands, are eased. */
int rdzv_relief_members(const struct rdzv *st);
/* Whether one more that stays would take the place of an eased member. */
bool rdzv_relief_has_place(const struct rdzv *st);
/* Takes those out of the members that were chosen for the next ring whose places others have; before: members
 * of the ring as it stood. */
void rdzv_relief_make_room(struct rdzv *st, int before);

/* Lets go whoever was not chosen, and is not needed beside the ring: while it is TRAINING. */
void rdzv_relief_settle(const struct turn *turn);
/* Whether this worker is eased, outside the ring, and not needed there, as all places are taken. */
bool rdzv_relief_bars(const struct rdzv *st, const struct rdzv_worker *w);

#endif
