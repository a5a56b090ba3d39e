/* Members that several pages and events share: the coordinator writes them (its status page, the event
 * `recovered`), `run` and the operator read them, and the operator writes them on into the TrainingJob. */
#ifndef RM_WIRE_STATUS_H
#define RM_WIRE_STATUS_H

/* How long each part of a recovery took, in ms. */
enum recovery_part {
    RECOVERY_DETECT,
    RECOVERY_AGREE,
    RECOVERY_RING,
    RECOVERY_STATE,
    RECOVERY_FIRST_STEP,
    RECOVERY_TOTAL,
    RECOVERY_PARTS
};

/* What the time of a job went into, in s. */
enum goodput_class {
    GOODPUT_PRODUCTIVE,
    GOODPUT_CHECKPOINT,
    GOODPUT_RECOVERY,
    GOODPUT_WAITING,
    GOODPUT_REWORK,
    GOODPUT_CLASSES
};

const char *recovery_key(enum recovery_part part); /* "detectMs" */
const char *goodput_key(enum goodput_class which); /* "productiveSeconds" */

#endif
