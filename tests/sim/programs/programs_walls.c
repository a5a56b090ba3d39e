/* Walls in the simulator of programs: two workers whose machines are well, and whose ranks can't reach each
 * other, while both reach the coordinator. Nobody of ours calls from one to the other, so that nothing can be
 * known of it but what the programs say: the rank that calls gives up and fails, all others wait for it. What
 * must come of it is what comes of any failure: the generation is ended everywhere, it counts once and puts
 * nobody into quarantine, as which rank says it first is chance; and where the wall falls the job is done. */
#include "common/base/prng.h"
#include "tests/sim/programs/programs.h"

static const rm_time falls_by = 15 * RM_S;

/* In seeds where other things happen, too; for ever where that ends the job soon. */
void wall_draw(struct sim *sim, uint64_t seed)
{
    uint64_t chance = seed ^ 0x77616c6c732c2061u;
    splitmix64(&chance);
    if (sim->notices.calm || prng_below(&chance, 100) >= 15)
        return;
    struct sim_wall *w = &sim->wall;
    w->stands = true;
    w->from = (int)prng_below(&chance, WORKERS);
    w->to = (w->from + 1 + (int)prng_below(&chance, WORKERS - 1)) % WORKERS;
    w->at = prng_below(&chance, 2) ? 0 : (rm_time)prng_below(&chance, (uint64_t)falls_by);
    w->until = w->at + (rm_time)prng_below(&chance, (uint64_t)(falls_by - w->at));
    if (!sim->settings.max_restarts && prng_below(&chance, 2))
        w->until = RM_NEVER;
}

bool wall_parts(const struct sim *sim, int node)
{
    const struct sim_wall *w = &sim->wall;
    const struct launch *launch = sim->node[node].launch;
    bool stands = w->stands && sim->now >= w->at && sim->now < w->until;
    if (!stands || !launch ||
        generation_compare(launch_ring_of(launch)->generation, sim->went.generation) != 0)
        return false;
    return sim->went.has[w->from] && sim->went.has[w->to];
}
