/* A collective for segments in far memory, over any other: each window of a sum goes through memory of this
 * process, so that what a device needs of host memory does not grow with the model. The bits are those of the
 * collective below, for words; of floats, the order depends on the window, too, so all ranks have the same.
 */
#ifndef RM_COLLECTIVE_STAGED_H
#define RM_COLLECTIVE_STAGED_H

#include "trainer/collective/collective.h"

enum { STAGED_WINDOW = 64 << 20, /* bytes, where there is no reason for another */ STAGED_SEGMENTS = 8 };

/* Owns `below` from here on, also where it fails. window: bytes, at least 4; twice as much memory is taken.
 * In a reduction of at most STAGED_SEGMENTS segments each lies in this process's memory or in a far one. */
int staged_open(struct collective **ret, struct collective *below, int64_t window, struct error *err);

#endif
