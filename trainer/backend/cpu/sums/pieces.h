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
/* The buffer that holds the words of the update. */
int lanes_update_buffer(const struct lanes *l);
/* Are words with that sum (proof.h) those that the lanes made, as their checksums in the header say? Asked of
 * integers in a world of 1 alone, for now; true elsewhere. */
bool lanes_prove(const struct lanes *l, uint64_t proof, uint64_t *ret_wanted);

#endif
