/* A fixed set of threads that share the pieces of one job at a time.
 *
 * pool_run calls work(ctx, piece, thread) once for each piece in [0, pieces), on any thread, in any order,
 * and returns when all are done. The caller is thread 0 and works too. A piece must not depend on which
 * thread runs it (scratch memory may: index it by `thread`). Waits spin 20 us at most, then sleep. Each
 * thread runs with flush-to-zero set and one OpenMP thread (oneDNN on Debian runs on OpenMP). */
#ifndef RM_OS_POOL_H
#define RM_OS_POOL_H

#include <stdatomic.h>

#include "common/base/error.h"

struct pool;

int pool_open(struct pool **ret, int threads, struct error *err); /* threads >= 1, the caller included */
void pool_free(struct pool *pool);
/* From now on *pulse (borrowed) grows with each job, so that who watches sees that the caller gets on. */
void pool_pulse(struct pool *pool, atomic_llong *pulse);
int pool_threads(const struct pool *pool);
void pool_run(struct pool *pool, int pieces, void (*work)(void *ctx, int piece, int thread), void *ctx);

#endif
