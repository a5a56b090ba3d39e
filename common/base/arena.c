/* Memory of a turn. */
#include "common/base/arena.h"

#include <stdint.h>
#include <string.h>

#include "common/base/assert.h"

struct arena arena_over(void *memory, size_t room)
{
    RM_ASSERT((uintptr_t)memory % ARENA_UNIT == 0, "an arena at %p", memory);
    return (struct arena){.memory = memory, .room = room};
}

void *arena_take(struct arena *arena, size_t size)
{
    size_t takes = arena_size(size);
    RM_ASSERT(takes <= arena->room - arena->used, "%zu of %zu bytes are taken, and %zu more are asked for",
              arena->used, arena->room, size);
    void *taken = arena->memory + arena->used;
    arena->used += takes;
    RM_ASSERT(arena->used <= arena->room, "%zu of %zu bytes are taken", arena->used, arena->room);
    memset(taken, 0, takes);
    return taken;
}

const char *arena_text(struct arena *arena, const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(arena_take(arena, size), text, size);
}
