#include "common/os/priority.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Linux names these nowhere for programs. */
enum { IOPRIO_WHO_THREAD = 1, IOPRIO_LEAST = 2 << 13 | 7, IOPRIO_IDLE = 3 << 13 };

enum { NICE_LOW = 10 }; /* about a tenth of a processor that somebody else wants, too */

/* Linux counts each thread by itself. */
static void set_classes(int policy, int disk)
{
    struct sched_param none = {0};
    sched_setscheduler(0, policy, &none);
    syscall(SYS_ioprio_set, IOPRIO_WHO_THREAD, 0, disk);
}

void priority_lowest(void)
{
    set_classes(SCHED_IDLE, IOPRIO_IDLE);
}

void priority_low(void)
{
    set_classes(SCHED_BATCH, IOPRIO_LEAST);
    setpriority(PRIO_PROCESS, (id_t)gettid(), NICE_LOW);
}
