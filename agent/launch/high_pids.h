/* Numbers of processes that are free wherever a program lives again: those below are taken by whatever a pod
 * starts before it. */
#ifndef RM_LAUNCH_HIGH_PIDS_H
#define RM_LAUNCH_HIGH_PIDS_H

enum { HIGH_PIDS_FROM = 1000, HIGH_PIDS_MOST = 30000 };

/* Whoever starts next, and all that it starts, has a number from there on, and one above `beyond` (as far as
 * HIGH_PIDS_MOST). The kernel gives them in turn, so the lower ones are used up, by a thread each:
 * milliseconds in a new pod, and nothing afterwards. */
void high_pids_begin(long beyond);
/* The highest number that this process or one below it has: who starts when they have ended must not have
 * one of theirs, or they could not live again. */
long high_pids_of(long root);

#endif
