/* Running work over the state's pieces, and what update.c needs of lanes.c. For trainer/backend/cpu/sums
 * only. */
#ifndef RM_TRAINER_PIECES_H
#define RM_TRAINER_PIECES_H

#include "common/os/pool.h"
#include "trainer/backend/cpu/sums/lanes.h"
#include "trainer/state/state_file.h"

/* Calls work(ctx, piece, thread) once for every piece; thread < STATE_THREADS_MAX. pool NULL: here. */
void pieces_run(const struct state *s, struct pool *pool, void (*work)(void *ctx, int piece, int thread),
                void *ctx);

struct state *lanes_state(const struct lanes *l);
struct pool *lanes_pool(const struct lanes *l);
int lanes_buffer_index(const struct lanes *l);

#endif
