/* How many lanes are this rank's, as headers say how fast all are; and whether this worker is slow, with what
 * keeps it from its processors. */
#include <string.h>

#include "common/base/assert.h"
#include "common/os/log.h"
#include "trainer/engine/engine_parts.h"
#include "trainer/exact/header.h"

void engine_pace_ring(struct engine *e)
{
    pace_begin(&e->pace.ring, e->spec->batch.lanes, e->ring->world, e->spec->reduction != JOB_FAST);
}

static void find_cause(struct engine *e)
{
    static const enum msg_slow_by causes[] = {[HELD_CPU_BY_NONE] = SLOW_BY_UNKNOWN,
                                              [HELD_CPU_BY_LIMIT] = SLOW_BY_CPU_LIMIT,
                                              [HELD_CPU_BY_HOST] = SLOW_BY_STOLEN_TIME};
    struct held_cpu now;
    held_cpu_read(&now);
    e->pace.by = causes[held_cpu_by(&e->pace.doubted, &now)];
}

static void watch_self(struct engine *e, int percent)
{
    enum pace_turn turn = pace_watch_hear(&e->pace.watch, percent);
    bool slow = e->pace.watch.slow;
    e->pace.percent = slow && percent ? percent : slow ? e->pace.percent : 0;
    if (turn == PACE_DOUBTED)
        held_cpu_read(&e->pace.doubted);
    if (turn != PACE_TURNS)
        return;
    if (slow)
        find_cause(e);
    log_info(slow ? "this worker is slower than most" : "this worker is as fast as most again", "percent=%d",
             percent);
}

void engine_pace_hear(struct engine *e)
{
    uint32_t us[RM_WORKERS_MAX] = {0};
    struct header_rank said;
    struct pace *pace = &e->pace.ring;
    RM_ASSERT(pace->shares.world == e->ring->world, "%d ranks are heard, of %d", pace->shares.world,
              e->ring->world);
    for (int r = 0; r < e->ring->world; r++)
        if (header_rank_read(e->pass.sums.header_to, e->layout.tensors, e->spec->batch.lanes, r, &said))
            us[r] = said.lane_us;
    if (pace_hear(pace, us))
        log_info("lanes are shared out anew, by how fast workers are", "lanes=%d of=%d",
                 pace->shares.count[e->ring->rank], e->spec->batch.lanes);
}

void engine_pace_watch(struct engine *e)
{
    watch_self(e, pace_percent(&e->pace.ring, e->ring->rank));
}

void engine_pace_tell(const struct engine *e, struct msg_pace *ret)
{
    struct header_rank said = {0};
    if (e->ring && e->pass.sums.header)
        header_rank_read(e->pass.sums.header, e->layout.tensors, e->spec->batch.lanes, e->ring->rank, &said);
    *ret = (struct msg_pace){.lanes = lane_set_count(&e->pass.done),
                             .lane_us = said.lane_us,
                             .slow = e->pace.percent,
                             .by = e->pace.percent ? e->pace.by : SLOW_BY_UNKNOWN};
}
