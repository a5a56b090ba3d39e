/* Leaves, announced by an agent whose process was told to end. */
#ifndef RM_COORDINATOR_RDZV_LEAVE_H
#define RM_COORDINATOR_RDZV_LEAVE_H

#include "coordinator/core/rdzv_state.h"

void rdzv_leaving(const struct turn *turn, struct rdzv_worker *w, const struct msg_leaving *l);
bool rdzv_leave_is_due(const struct turn *turn); /* in TRAINING: the ring stops for those who asked */
rm_time rdzv_leave_due_at(const struct rdzv *st);
void rdzv_leave_begin(const struct turn *turn);

/* True: the state is not saved, those who hold it are let go, and the person knows why. */
bool rdzv_leaves_unsaved(const struct turn *turn, const struct msg_state *state);
void rdzv_measure_slice(struct rdzv *st, const struct msg_checkpointed *c);
void rdzv_measure_publishing(struct rdzv *st, const struct msg_published *p);

void rdzv_release_leavers(const struct turn *turn); /* who is needed no more */
void rdzv_tell_left(const struct turn *turn);

/* ---- what becomes of a state that is saved nowhere when those who hold it were told to go: pure ---- */

struct leave_facts {
    bool wanted;         /* checkpoint.onPreemption */
    int64_t step, saved; /* held; of the newest checkpoint, -1 none */
    int staying;         /* workers that hold it and stay */
    int going;           /* workers that hold it and go: they would write it */
    rm_time left;        /* until the first of them is killed; RM_NEVER: not known */
    /* of a whole checkpoint; bytes a second that one worker writes, and that whoever publishes reads back; 0:
     * not measured yet */
    int64_t bytes;
    double writer, publisher;
};

enum leave_choice {
    LEAVE_HAND_OVER, /* who stays holds it */
    LEAVE_IS_SAVED,
    LEAVE_SAVE,
    LEAVE_TOO_LATE, /* it would not be whole in time: the checkpoint before it stands */
    LEAVE_OFF,      /* the job does not want it saved */
};

/* How long saving takes by what was measured; 0: not known. */
rm_time leave_takes(const struct leave_facts *f);
enum leave_choice leave_decide(const struct leave_facts *f);
/* Why nothing is saved, in one sentence; for LEAVE_TOO_LATE and LEAVE_OFF. */
void leave_sentence(const struct leave_facts *f, enum leave_choice choice, char *out, size_t size);

#endif
