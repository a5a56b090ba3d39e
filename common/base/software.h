/* What a fingerprint says of the programs that computed, beside what it says of their machine. It is
 * "numerics ID, ...the machine..., LIBRARY": at both ends stands what a program was built of, which is the
 * same on all machines of one image. Pure. */
#ifndef RM_BASE_SOFTWARE_H
#define RM_BASE_SOFTWARE_H

#include <stdbool.h>

#include "common/base/limits.h"

/* "numerics ID, LIBRARY" of a fingerprint; "" where it is none of that form. */
void software_of(const char *fingerprint, char out[RM_FINGERPRINT_MAX]);

/* Whether two fingerprints are of other builds of what computes, as whose software `a` and `b` are then
 * given. Not so where one of them has no such form, nor where they name libraries of other names: a GPU and a
 * CPU differ in any build. */
bool software_differs(const char *one, const char *other, char a[RM_FINGERPRINT_MAX],
                      char b[RM_FINGERPRINT_MAX]);

#endif
