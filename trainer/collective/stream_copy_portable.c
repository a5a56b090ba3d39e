#include "trainer/collective/stream_copy.h"

#include <string.h>

void stream_copy(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}
