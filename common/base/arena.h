/* Memory of a turn: what a state machine says in one step lies in one piece of memory, and goes with it.
 *
 * The memory is the caller's. Nothing is given back by itself: whoever owns the arena begins anew with
 * arena_over, and everything that was taken is void from then on. There is no way to run out of it quietly:
 * the room is chosen so that no step fills it, and one that does has a bug, which ends the program. */
#ifndef RM_BASE_ARENA_H
#define RM_BASE_ARENA_H

#include <stddef.h>

enum { ARENA_UNIT = 8 }; /* everything taken begins at a multiple of it: no type here needs more */

struct arena {
    unsigned char *memory;
    size_t room, used;
};

/* Empty, over memory that begins at a multiple of ARENA_UNIT. */
struct arena arena_over(void *memory, size_t room);
/* That many bytes, all zero; never NULL. */
void *arena_take(struct arena *arena, size_t size);
/* What arena_take takes for them. */
static inline size_t arena_size(size_t size)
{
    return (size + ARENA_UNIT - 1) / ARENA_UNIT * ARENA_UNIT;
}
/* A copy of the text. */
const char *arena_text(struct arena *arena, const char *text);

#endif
