/* How much of a processor and a disk a thread may have. */
#ifndef RM_OS_PRIORITY_H
#define RM_OS_PRIORITY_H

/* The calling thread takes from now on only what others leave, of processors and of disks: for good, as there
 * is no way back without rights. Where the system refuses, it stays as it is. */
void priority_lowest(void);

/* The same, but that it has a small share where others want all: for work that somebody waits for. */
void priority_low(void);

#endif
