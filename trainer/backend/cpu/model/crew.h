/* The pool's threads at work on one caller's operations, stoppable between pieces. */
#ifndef RM_TRAINER_CREW_H
#define RM_TRAINER_CREW_H

#include <stdatomic.h>
#include <stdbool.h>

#include "common/os/pool.h"
#include "trainer/backend/cpu/model/matmul.h"

struct crew {
    struct pool *pool;
    const atomic_int *stop; /* NULL: never */
    atomic_int failed;      /* a product could not be computed */
    float *const *scratch;  /* one buffer for each thread, as large as attention needs (attention.h) */
};

/* Runs work on all pieces. -1 where stop or failed was set before the end: the results are undefined then. */
int crew_run(struct crew *crew, int pieces, void (*work)(void *ctx, int piece, int thread), void *ctx);

/* To be asked within a piece that takes long. */
bool crew_is_over(const struct crew *crew);

/* The product, on the calling thread; sets failed where oneDNN can't. */
void crew_matmul(struct crew *crew, const struct product *p);

/* Pieces of `size` that cover total. */
static inline int crew_pieces(int64_t total, int64_t size)
{
    return (int)((total + size - 1) / size);
}

#endif
