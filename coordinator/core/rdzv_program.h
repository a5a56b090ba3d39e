/* What is different where the workers run a user's program (spec.launch, mode Restart) and no trainer: there
 * are no steps and there is nothing to save, and a failure of one process stops the whole generation, which
 * is one failure, whoever else fails by it. */
#ifndef RM_COORDINATOR_RDZV_PROGRAM_H
#define RM_COORDINATOR_RDZV_PROGRAM_H

#include "coordinator/core/rdzv_state.h"

/* A process failed. The first of a generation is kept, until it is known whether a machine went with it. One
 * that a connection kept back counts like one that is told at once, where it was before its ring was told to
 * stop. */
void rdzv_program_fault(const struct turn *turn, struct rdzv_worker *w, const struct message *m);
/* Mode Elastic: the program beside a trainer has failed. The trainer is ended with it, and that is told next:
 * then it counts, or ends the job, as the rules say, or is let pass. Where both happened while nobody heard
 * of it one word tells both; what is said of one trainer again is passed over. */
void rdzv_beside_failed(const struct turn *turn, struct rdzv_worker *w, const struct msg_fault *f);
/* A trainer has ended by itself, or with its program: why says how. */
void rdzv_beside_over(const struct turn *turn, struct rdzv_worker *w, const char *why);
/* Its end is known, whatever it counts as. */
void rdzv_beside_ended(struct rdzv_worker *w, const struct msg_fault *f);
/* A member says hello, and its generation is over there, for a reason that it is about to tell: all stop,
 * this one too, as its answer comes after its reason. */
void rdzv_program_over(const struct turn *turn, struct rdzv_worker *w);
/* The same for one that stands still, as its own reports say: it has no exit code, so that it counts whatever
 * the rules are. */
void rdzv_program_hangs(const struct turn *turn, struct rdzv_worker *w, const char *why);
/* All have stopped: what is kept counts, unless a worker was lost meanwhile. Its processes' neighbours fail
 * by that, and nobody is to blame. */
void rdzv_program_stopped(const struct turn *turn);
/* Whether processes of a generation may live there that is not the one at work: the worker was cut off with
 * them, or its launcher was given up. Nobody may start beside it, until it says that nothing lives there or
 * is lost itself. */
bool rdzv_program_lives_on(const struct rdzv *st, const struct rdzv_worker *w);
/* Whether processes of any generation may live there: who has such may be reached again, and is no more lost
 * than one whose ring runs. */
bool rdzv_program_may_live(const struct rdzv *st, const struct rdzv_worker *w);
/* Its launcher is killed. What it started is its agent's to end, which says so by the launcher's end. Before
 * the worker loses its place in the ring. */
void rdzv_program_accused(const struct rdzv *st, struct rdzv_worker *w);
bool rdzv_program_lives_on_anywhere(const struct rdzv *st);
/* Another process takes a worker's place: what that one ran is its agent's to end, which may not hear of it.
 */
void rdzv_program_replaced(const struct turn *turn);
/* A worker says hello: what lives on there is ended. With it goes a ring that forms, and one of a predecessor
 * that is older than what lives there: it was taken for the newest, as nobody had told otherwise. */
void rdzv_program_again(const struct turn *turn, struct rdzv_worker *w);
/* A predecessor's ring goes on: what lives on beside it is ended. */
void rdzv_program_adopted(const struct turn *turn);
/* All have ended well: the run is complete, as far as it is about what is told and saved. */
void rdzv_program_finished(struct rdzv *st);

#endif
