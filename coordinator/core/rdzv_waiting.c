/* What the coordinator waits for, in words. */
#include "coordinator/core/rdzv_waiting.h"

#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "coordinator/core/rdzv_base.h"
#include "coordinator/core/rdzv_out.h"
#include "coordinator/core/rdzv_trouble.h"
#include "coordinator/core/rdzv_who.h"

void rdzv_describe_missing(const struct rdzv *st, char *out, size_t size)
{
    RM_ASSERT(size > 32, "who is missing is said in %zu bytes", size);
    int n =
        snprintf(out, size, "workers here: %d, needed: %d", rdzv_candidates(st), st->settings.workers_min);
    for (int i = 0; i < RM_WORKERS_MAX && n < (int)size - 32; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        bool going = w->leaving || w->released;
        int trouble = rdzv_describe_trouble(st, i, out + n, size - (size_t)n);
        n += trouble;
        if (trouble)
            continue;
        if (w->followed || (w->expected >= 0 && !going && !rdzv_candidate(st, w)))
            n += snprintf(out + n, size - (size_t)n, "; worker %d is on its way", i);
        else if (w->quarantine[0])
            n += snprintf(out + n, size - (size_t)n, "; worker %d is in quarantine", i);
    }
}

void rdzv_tell_waiting_for(const struct turn *turn, const char *reason)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->state != RDZV_FINISHED && st->state != RDZV_FAILED, "a run that is over waits: %s", reason);
    rdzv_say(st, "%s", reason);
    if (!strcmp(reason, st->waiting))
        return;
    text_copy(st->waiting, sizeof st->waiting, reason);
    text_copy(rdzv_tell(turn, TELL_WAITING)->text, MSG_DETAIL_MAX, reason);
}

void rdzv_tell_waiting(const struct turn *turn)
{
    char reason[MSG_DETAIL_MAX];
    rdzv_describe_missing(turn->st, reason, sizeof reason);
    rdzv_tell_waiting_for(turn, reason);
}
