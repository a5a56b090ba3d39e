/* A copy to memory that nobody reads soon: past the cache where the processor can, so that it neither reads
 * what it writes over nor drives out what lies there. */
#ifndef RM_COLLECTIVE_STREAM_COPY_H
#define RM_COLLECTIVE_STREAM_COPY_H

#include <stddef.h>

/* As memcpy, also for whoever is told of it afterwards. */
void stream_copy(void *to, const void *from, size_t bytes);

#endif
