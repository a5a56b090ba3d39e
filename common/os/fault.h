/* Named fault points: places where a crash would hurt, compiled in only with RM_FAULTS (test builds).
 *
 * FAULT("update-slot-valid") kills this process with SIGKILL when RINGMASTER_FAULT names it. Format:
 * NAME[:N][@WORKER], for the N-th time (default 1) that the point is reached, in that worker only (default
 * any; a process says who it is with fault_worker). Each point is tried by a test. A fault fires in an
 * attempt-0 process only where the caller arranges so; the trainer that is restarted gets no fault. */
#ifndef RM_OS_FAULT_H
#define RM_OS_FAULT_H

#ifdef RM_FAULTS
void fault_worker(int worker);
void fault_disarm(void); /* this process keeps clear of all fault points */
void fault_point(const char *name);
#define FAULT(name) fault_point(name)
#else
static inline void fault_worker(int worker)
{
    (void)worker;
}
static inline void fault_disarm(void)
{
}
#define FAULT(name) ((void)0)
#endif

#endif
