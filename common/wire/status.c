#include "common/wire/status.h"

const char *recovery_key(enum recovery_part part)
{
    static const char *const keys[RECOVERY_PARTS] = {
        [RECOVERY_DETECT] = "detectMs", [RECOVERY_AGREE] = "agreeMs",          [RECOVERY_RING] = "ringMs",
        [RECOVERY_STATE] = "stateMs",   [RECOVERY_FIRST_STEP] = "firstStepMs", [RECOVERY_TOTAL] = "totalMs",
    };
    return keys[part];
}

const char *goodput_key(enum goodput_class which)
{
    static const char *const keys[GOODPUT_CLASSES] = {
        [GOODPUT_PRODUCTIVE] = "productiveSeconds", [GOODPUT_CHECKPOINT] = "checkpointSeconds",
        [GOODPUT_RECOVERY] = "recoverySeconds",     [GOODPUT_WAITING] = "waitingSeconds",
        [GOODPUT_REWORK] = "reworkSeconds",
    };
    return keys[which];
}
