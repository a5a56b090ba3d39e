/* How many files, sockets and pipes this process may have open at once. */
#ifndef RM_OS_DESCRIPTORS_H
#define RM_OS_DESCRIPTORS_H

#include <stdbool.h>

#include "common/base/time.h"

/* As many as the system lets it have (the hard limit), whatever shell or runtime started it: called first
 * thing in main. Nothing here uses select(), for which the lower limit is meant. */
void descriptors_raise(void);

/* How many may be open beside `kept` of them, by the limit as it is now; half, where that is not even twice
 * as much. */
int descriptors_beside(int kept);

/* Whether an accept or open that failed with this errno did so because there are no more to be had. It stays
 * ready to be tried again, so whoever waits for it must not look before DESCRIPTORS_PAUSE is over. */
bool descriptors_short(int code);
#define DESCRIPTORS_PAUSE (100 * RM_MS)

#endif
