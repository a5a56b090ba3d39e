/* What becomes of a state that is saved nowhere when those who hold it were told to go. Pure. */
#ifndef RM_COORDINATOR_LEAVE_H
#define RM_COORDINATOR_LEAVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/time.h"

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
