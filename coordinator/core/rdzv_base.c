/* What every file of the core uses: why it did what it did, why it ends, and the two words for one worker. */
#include "coordinator/core/rdzv_base.h"

#include <stdarg.h>
#include <stdio.h>

#include "common/base/assert.h"

void rdzv_say(struct rdzv *st, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(st->why, sizeof st->why, format, args);
    va_end(args);
}

/* The first reason to end counts. */
void rdzv_give_up(struct rdzv *st, int exit_code, const char *format, ...)
{
    RM_ASSERT(exit_code != EXIT_DONE, "a run is given up with %d, as one that is complete", exit_code);
    if (st->ending.set)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(st->ending.text, sizeof st->ending.text, format, args);
    va_end(args);
    st->ending.set = true;
    st->ending.exit_code = exit_code;
    rdzv_say(st, "%s", st->ending.text);
}

const char *rdzv_reason(const char *told)
{
    return told[0] ? told : "no reason was told";
}

int rdzv_index(const struct rdzv *st, const struct rdzv_worker *w)
{
    RM_ASSERT(w >= st->worker && w < st->worker + RM_WORKERS_MAX, "no worker of this job: place %lld",
              (long long)(w - st->worker));
    return (int)(w - st->worker);
}

void rdzv_ring_moved(const struct turn *turn)
{
    RM_ASSERT(turn->st->turned <= turn->now, "the ring moved last %lld ns from now",
              (long long)(turn->st->turned - turn->now));
    turn->st->turned = turn->now;
}
