#include "trainer/backend/cpu/sums/pieces.h"

enum { GROUP = 16 }; /* pieces handed out at a time: a claim must be cheap beside the work */

struct group_job {
    int pieces;
    void (*work)(void *ctx, int piece, int thread);
    void *ctx;
};

static void run_group(void *ctx, int group, int thread)
{
    const struct group_job *job = ctx;
    int end = (group + 1) * GROUP;
    if (end > job->pieces)
        end = job->pieces;
    for (int i = group * GROUP; i < end; i++)
        job->work(job->ctx, i, thread);
}

void pieces_run(const struct state *s, struct pool *pool, void (*work)(void *ctx, int piece, int thread),
                void *ctx)
{
    struct group_job job = {s->pieces, work, ctx};
    int groups = (s->pieces + GROUP - 1) / GROUP;
    if (pool && pool_threads(pool) <= STATE_THREADS_MAX) {
        pool_run(pool, groups, run_group, &job);
        return;
    }
    for (int g = 0; g < groups; g++)
        run_group(&job, g, 0);
}
