#include "trainer/backend/cpu/model/crew.h"

struct order {
    struct crew *crew;
    void (*work)(void *, int, int);
    void *ctx;
};

bool crew_is_over(const struct crew *crew)
{
    return atomic_load_explicit(&crew->failed, memory_order_relaxed) ||
           (crew->stop && atomic_load_explicit(crew->stop, memory_order_relaxed));
}

static void run_piece(void *ctx, int piece, int thread)
{
    struct order *order = ctx;
    if (!crew_is_over(order->crew))
        order->work(order->ctx, piece, thread);
}

int crew_run(struct crew *crew, int pieces, void (*work)(void *ctx, int piece, int thread), void *ctx)
{
    struct order order = {crew, work, ctx};
    if (crew_is_over(crew))
        return -1;
    pool_run(crew->pool, pieces, run_piece, &order);
    return crew_is_over(crew) ? -1 : 0;
}

void crew_matmul(struct crew *crew, const struct product *p)
{
    if (matmul(p) < 0)
        atomic_store(&crew->failed, 1);
}
