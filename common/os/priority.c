#include "common/os/priority.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Linux names these nowhere for programs. */
enum { IOPRIO_WHO_THREAD = 1, IOPRIO_IDLE = 3 << 13 };

void priority_lowest(void)
{
    struct sched_param none = {0};
    sched_setscheduler(0, SCHED_IDLE, &none); /* of this thread: Linux counts each by itself */
    syscall(SYS_ioprio_set, IOPRIO_WHO_THREAD, 0, IOPRIO_IDLE);
}
