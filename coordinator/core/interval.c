/* The time between two checkpoints from what saves and losses cost, and the sentence that says why. */
#include "coordinator/core/interval.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "common/base/assert.h"

static rm_time best(const struct interval_facts *f)
{
    double stall = f->stall > 0 ? (double)f->stall : 0;
    double rate = (1 + (double)f->losses) / ((double)f->believed + (double)f->observed);
    RM_ASSERT(rate > 0, "%lld losses in %lld ns", (long long)f->losses, (long long)f->observed);
    return (rm_time)sqrt(2 * stall / rate);
}

rm_time interval_choose(const struct interval_facts *f, enum interval_limit *ret_limit)
{
    RM_ASSERT(f->least > 0 && f->most >= f->least && f->believed > 0, "%lld to %lld ns, one loss in %lld",
              (long long)f->least, (long long)f->most, (long long)f->believed);
    RM_ASSERT(f->losses >= 0 && f->observed >= 0, "%lld losses in %lld ns", (long long)f->losses,
              (long long)f->observed);
    rm_time every = f->measured ? best(f) : f->least;
    *ret_limit = f->measured ? INTERVAL_FREE : INTERVAL_FIRST;
    if (f->measured && every < f->safe) {
        every = f->safe;
        *ret_limit = INTERVAL_SAFE;
    }
    if (every < f->least) {
        every = f->least;
        *ret_limit = INTERVAL_LEAST;
    }
    if (every > f->most) {
        every = f->most;
        *ret_limit = INTERVAL_MOST;
    }
    every = every > RM_S ? every / RM_S * RM_S : every;
    RM_ASSERT(every > 0 && every <= f->most, "%lld ns between two checkpoints, of %lld at most",
              (long long)every, (long long)f->most);
    return every;
}

/* "95 s", "7.5 min", "3.2 h" */
static void span(rm_time t, char out[24])
{
    double seconds = (double)t / RM_S;
    if (seconds < 120)
        snprintf(out, 24, "%.0f s", seconds);
    else if (seconds < 7200)
        snprintf(out, 24, "%.3g min", seconds / 60);
    else
        snprintf(out, 24, "%.3g h", seconds / 3600);
}

static void how_often(int64_t losses, char out[40])
{
    RM_ASSERT(losses >= 0, "all were lost %lld times", (long long)losses);
    if (losses == 1)
        snprintf(out, 40, "once");
    else
        snprintf(out, 40, "%" PRId64 " times", losses);
}

void interval_sentence(const struct interval_facts *f, char *out, size_t size)
{
    enum interval_limit limit;
    char every[24], seen[24], safe[24], times[40], more[64] = "";
    span(interval_choose(f, &limit), every);
    span(f->observed, seen);
    span(f->safe, safe);
    how_often(f->losses, times);
    RM_ASSERT((limit == INTERVAL_FIRST) == !f->measured, "limit %d, and a save costs %lld ns", (int)limit,
              (long long)f->stall);
    if (limit == INTERVAL_FIRST) {
        snprintf(out, size, "every %s: what a save costs is not known yet", every);
        return;
    }
    if (limit == INTERVAL_LEAST)
        snprintf(more, sizeof more, "; a minute is the least");
    else if (limit == INTERVAL_SAFE)
        snprintf(more, sizeof more, "; a save is safe after %s", safe);
    else if (limit == INTERVAL_MOST)
        snprintf(more, sizeof more, "; checkpoint.maxLoss is the most");
    snprintf(out, size,
             "every %s: a save stalls training for %.2f s, and all workers together were lost %s in %s%s",
             every, f->stall > 0 ? (double)f->stall / RM_S : 0.0, times, seen, more);
}
