/* Large pages for large memory, and how much there is.
 *
 * Large pages: fewer page faults, and fewer walks through the page tables where rows of a
 * matrix lie far apart. A wish only: where the kernel has none to give, the memory has small ones. */
#ifndef RM_OS_PAGES_H
#define RM_OS_PAGES_H

#include <stddef.h>

/* Memory on a border of large pages, for free(); NULL where there is none. Not zeroed. */
void *pages_alloc(size_t bytes);

/* Bytes that this program may still take: what the kernel says is available, or what the memory limits of its
 * control group leave, where that is less. 0: not known. */
size_t pages_available(void);

#endif
