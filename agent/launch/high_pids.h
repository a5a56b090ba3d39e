/* Numbers of processes that are free wherever a program lives again: those below are taken by whatever a pod
 * starts before it. */
#ifndef RM_LAUNCH_HIGH_PIDS_H
#define RM_LAUNCH_HIGH_PIDS_H

enum { HIGH_PIDS_FROM = 1000 };

/* Whoever starts next, and all that it starts, has a number from there on. The kernel gives them in turn, so
 * the lower ones are used up: takes some milliseconds in a new pod, and nothing afterwards. */
void high_pids_begin(void);

#endif
