/* Named fault points: places where a crash would hurt, compiled in only with RM_FAULTS (test builds).
 *
 * FAULT_FAILS("file-read", EIO) is true, with errno set, where RINGMASTER_FAULT names it with "/fails" behind
 * it: a call that the system refuses from the N-th time on; "/fails-3": for three times.
 *
 * FAULT_FLIP("words-added", words, bytes) changes a bit in their midst where RINGMASTER_FAULT names it with
 * "/flips" behind it, as a memory does that is not sound.
 *
 * FAULT("update-slot-valid") kills this process with SIGKILL when RINGMASTER_FAULT names it, after a line on
 * standard error that says so; with "/stop" behind it, it stands still there instead (SIGSTOP), until
 * somebody ends it or lets it go on; with "/hangs" only the thread that got there does, as one does in a call
 * to a server that has gone. Format: NAME[:N][@WHO][/stop or /hangs], for the N-th time (default 1) that the
 * point is reached, in that process only: a worker's number for its agent and its trainer, or `coordinator`
 * (default: whoever gets there; a process says who it is with fault_worker or fault_who). A process that
 * replaces one that died keeps clear of them all: a worker's next attempt, a restarted trainer, a successor
 * coordinator. A setting of another form ends whoever reads it first, with a sentence. Where a process that
 * read it ends and neither it nor one that it started got to that point in time, it says that, too: the first
 * alone, as `ringmaster run`.
 *
 * A new point is a line FAULT("name") in the code and a row in tests/e2e/fault_points.py, which has a case
 * for each; a layout test sees that none is missing there. */
#ifndef RM_OS_FAULT_H
#define RM_OS_FAULT_H

#include <stdbool.h>
#include <stddef.h>

#ifdef RM_FAULTS
void fault_who(const char *who);
void fault_worker(int worker);
void fault_disarm(void); /* this process keeps clear of all fault points */
void fault_point(const char *name);
bool fault_fails(const char *name, int number);
void fault_flip(const char *name, void *bytes, size_t count);
#define FAULT(name)                    fault_point(name)
#define FAULT_FLIP(name, bytes, count) fault_flip(name, bytes, count)
#define FAULT_FAILS(name, number)      fault_fails(name, number)
#else
static inline void fault_who(const char *who)
{
    (void)who;
}
static inline void fault_worker(int worker)
{
    (void)worker;
}
static inline void fault_disarm(void)
{
}
#define FAULT(name)                    ((void)0)
#define FAULT_FLIP(name, bytes, count) ((void)0)
#define FAULT_FAILS(name, number)      false
#endif

#endif
