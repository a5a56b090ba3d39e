/* What a job file says of patience, places and lanes. In each of these things half of all seeds say what most
 * jobs say, and half something of their own, within what a job file may say (common/job/check.c). Chance of
 * its own, so that a seed's harms come at the same moments. */
#include "tests/sim/sim.h"

enum setting {
    SETTING_MAX,
    SETTING_LANES,
    SETTING_HEARTBEAT,
    SETTING_LOST_AFTER,
    SETTING_JOIN_WINDOW,
    SETTING_FIRST_WINDOW,
    SETTING_FORM_TIMEOUT,
    SETTING_START_TIMEOUT,
    SETTING_STEP_TIMEOUT,
    SETTING_END_TIMEOUT,
    SETTING_SAVE_PATIENCE,
    SETTING_PROBE_FIRST,
    SETTING_PROBE_MOST,
    SETTING_WITHIN,
};

static uint64_t drawn(const struct sim *sim, enum setting setting)
{
    return sim_hash(sim->seed, 22, (uint64_t)setting);
}

static bool is_own(const struct sim *sim, enum setting setting)
{
    return drawn(sim, setting) % 2;
}

/* From least to most. */
static int64_t between(const struct sim *sim, enum setting setting, int64_t least, int64_t most)
{
    return least + (int64_t)((drawn(sim, setting) >> 1) % (uint64_t)(most - least + 1));
}

static void vary_time(const struct sim *sim, enum setting setting, rm_time least, rm_time most, rm_time *at)
{
    if (is_own(sim, setting))
        *at = between(sim, setting, least, most);
}

/* A crowd has all the places that there are. */
static void vary_places(const struct sim *sim, struct rdzv_settings *s)
{
    if (sim->crowd)
        return;
    if (is_own(sim, SETTING_MAX))
        s->workers_max = (int)between(sim, SETTING_MAX, s->workers_target, 16);
    s->lanes = is_own(sim, SETTING_LANES) ? (int)between(sim, SETTING_LANES, s->workers_max, 48) : 16;
}

void settings_vary(const struct sim *sim, struct rdzv_settings *s)
{
    vary_places(sim, s);
    vary_time(sim, SETTING_HEARTBEAT, 50 * RM_MS, 500 * RM_MS, &s->heartbeat);
    vary_time(sim, SETTING_LOST_AFTER, RM_S, 3 * RM_S, &s->lost_after);
    vary_time(sim, SETTING_JOIN_WINDOW, RM_MS, 2 * RM_S, &s->join_window);
    vary_time(sim, SETTING_FIRST_WINDOW, 0, 2 * RM_S, &s->first_window);
    vary_time(sim, SETTING_FORM_TIMEOUT, RM_S, 8 * RM_S, &s->form_timeout);
    vary_time(sim, SETTING_START_TIMEOUT, 25 * RM_S, 60 * RM_S, &s->start_timeout);
    vary_time(sim, SETTING_STEP_TIMEOUT, RM_S, 8 * RM_S, &s->step_timeout);
    vary_time(sim, SETTING_END_TIMEOUT, 10 * RM_S, 80 * RM_S, &s->end_timeout);
    vary_time(sim, SETTING_SAVE_PATIENCE, 100 * RM_S, 200 * RM_S, &s->save_patience);
    vary_time(sim, SETTING_PROBE_FIRST, 50 * RM_MS, 2 * RM_S, &s->probe_first);
    vary_time(sim, SETTING_PROBE_MOST, 2 * RM_S, 10 * RM_S, &s->probe_most);
    if (sim->scenario.strict) /* else too many failures are none */
        vary_time(sim, SETTING_WITHIN, RM_S, 60 * RM_S, &s->within);
}
