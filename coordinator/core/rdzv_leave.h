/* Leaves, from their announcement to their last word: of an agent whose process was told to end, or whose
 * machine will go, or may. */
#ifndef RM_COORDINATOR_RDZV_LEAVE_H
#define RM_COORDINATOR_RDZV_LEAVE_H

#include "coordinator/core/rdzv_state.h"

/* What becomes of a state that is saved nowhere when those who hold it were told to go. */
enum leave_choice {
    LEAVE_HAND_OVER, /* who stays holds it, and goes on; or who has come is given it in time */
    LEAVE_IS_SAVED,
    LEAVE_SAVE,   /* also where too few stay to go on: they may go too */
    LEAVE_FINISH, /* it would not be whole in time, but one before it, of which a save is under way, may be */
    LEAVE_TOO_LATE, /* nor that: the checkpoint before it stands */
    LEAVE_OFF,      /* the job does not want it saved */
};

/* A worker asks to leave, or says that it will have to. */
void rdzv_leaving(const struct turn *turn, struct rdzv_worker *w, const struct msg_leaving *l);
/* Somebody's machine will go. Those of one type in one zone often go together, and the first word of one is
 * the time to save while all train; once a minute for each pool, and not where the newest is younger than a
 * save takes. A machine of which the pool is not known ("") may be of any. */
void rdzv_leave_save_ahead(const struct turn *turn, const char *pool);
/* From here on it leaves: it asked to, or its time has come (rdzv_will.h), or another one came in its place
 * (rdzv_relief.h). */
void rdzv_leave_announced(const struct turn *turn, struct rdzv_worker *w);
/* True: the ring, which is TRAINING, has to stop now for those who asked. */
bool rdzv_leave_is_due(const struct turn *turn);
/* When it has to; RM_NEVER: no member leaves. */
rm_time rdzv_leave_due_at(const struct rdzv *st);
/* Stops the ring at the next boundary, for them. */
void rdzv_leave_begin(const struct turn *turn);

/* Whether a state that nobody stays to hold is not worth saving. True: it is not, its holders are let go, and
 * the person was told why. */
bool rdzv_leaves_unsaved(const struct turn *turn, const struct msg_state *state);
/* What comes before a ring whose members would have to be given a state: LEAVE_SAVE or LEAVE_FINISH where
 * nobody who holds it has the time for that, else LEAVE_HAND_OVER. */
enum leave_choice rdzv_leave_before_ring(const struct rdzv *st);
/* By when a ring has to be formed that those who go give their state; RM_NEVER: nobody has to. */
rm_time rdzv_leave_forms_by(const struct rdzv *st);
/* When, of a ring that is FORMING, there is just the time left to save what those who go are giving to it,
 * unless it is through before they are killed. RM_NEVER: there is no such moment. */
rm_time rdzv_leave_gives_way_at(const struct rdzv *st);
/* That moment has come, and it can be saved: the ring makes way. */
bool rdzv_leave_gives_way(const struct turn *turn);
/* Who goes so soon that its part of a save of this state would not be there in time. */
struct worker_set rdzv_leave_no_writers(const struct turn *turn, const struct msg_state *state);
/* How fast one worker writes. */
void rdzv_measure_slice(struct rdzv *st, const struct msg_checkpointed *c);
/* How fast a checkpoint is read back. */
void rdzv_measure_publishing(struct rdzv *st, const struct msg_published *p);

/* Its trainer is being started again, or has not answered yet, while its agent holds more in memory than
 * anybody here: forming without it would do several steps again. One step costs less than the wait. Also of
 * one that leaves, as long as it has the time. */
bool rdzv_brings_more(const struct rdzv *st, const struct rdzv_worker *w);
/* Lets go whoever asked and is needed no more. */
void rdzv_release_leavers(const struct turn *turn);
/* When who waits for somebody to give its state to is let go by time; RM_NEVER: nobody is. */
rm_time rdzv_leave_let_go_at(const struct rdzv *st);
/* The run ends: tells of those who asked and were not let go before. */
void rdzv_tell_left(const struct turn *turn);

/* ---- what becomes of a state that is saved nowhere when those who hold it were told to go: pure ---- */

struct leave_facts {
    bool wanted;                  /* checkpoint.onPreemption */
    int64_t step, saved;          /* held; of the newest checkpoint, -1 none */
    int staying;                  /* workers that hold it and stay */
    bool enough;                  /* with those who stay, or have come, a ring goes on */
    bool given_in_time;           /* one of those who go has the time to give it to who has come */
    int going;                    /* workers that hold it and go: they would write it, with who stays */
    rm_time left[RM_WORKERS_MAX]; // (going) until each is killed; RM_NEVER: not known
    int64_t under_way;            /* newest step that is being saved, -1 none */
    struct rdzv_save_speed speed;
};

/* How long saving takes by what was measured, where so many write; 0: not known. */
rm_time leave_takes(const struct rdzv_save_speed *speed, int writers);
/* How many of those who go write it, those with most time first: as many as have the time for their parts, if
 * then one has the time to publish it. -1: it would not be whole in time. */
int leave_writers(const struct leave_facts *f);
enum leave_choice leave_decide(const struct leave_facts *f);
/* Why it is not saved, in one sentence; for LEAVE_FINISH, LEAVE_TOO_LATE and LEAVE_OFF. */
void leave_sentence(const struct leave_facts *f, enum leave_choice choice, char *out, size_t size);

#endif
