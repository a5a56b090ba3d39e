#include "operator/core/need.h"

#include "common/base/assert.h"

enum {
    HEARD_MS = 60 * 1000,
    SOON_S = 60, /* a worker hardly comes in less */
};

/* Seconds until the job should be done; negative: it should be already. */
static int64_t time_left(const struct job_view *job, int64_t now_ms)
{
    RM_ASSERT(job->active_deadline_s > 0 && job->status.active_ms, "job %s is done by no time", job->name);
    int64_t wanted_s = job->active_deadline_s * 9 / 10;
    return wanted_s - job->status.active_seconds - (now_ms - job->status.active_ms) / 1000;
}

static bool is_known(const struct job_view *job, const struct coordinator_view *view)
{
    const struct job_status *status = &job->status;
    return job->active_deadline_s && job->lanes && !job->suspend && status->active_ms &&
           !condition_is(status, OP_FINISHED) && !condition_is(status, OP_STOPPING) && view &&
           view->ring_size > 0 && view->progress.known && view->progress.eta_seconds >= 0;
}

static int64_t of_busiest(int64_t lanes, int64_t workers)
{
    RM_ASSERT(workers > 0 && lanes > 0, "%lld lanes of %lld workers", (long long)lanes, (long long)workers);
    return (lanes + workers - 1) / workers;
}

/* The most that a worker may have. now: of the busiest of this ring, with which the rest takes that long. */
static int64_t lanes_each(int64_t lanes, int64_t now, int64_t takes, int64_t left)
{
    int64_t most = lanes;
    RM_ASSERT(now >= 1 && takes >= 0, "%lld lanes take %lld s", (long long)now, (long long)takes);
    if (takes > 0)
        most = left > 0 ? left * now * 9 / 10 / takes : 0;
    if (most < now && (takes <= left || takes <= SOON_S))
        most = now;
    return most < 1 ? 1 : most > lanes ? lanes : most;
}

int need_workers(const struct job_view *job, const struct coordinator_view *view, int64_t answered_ms,
                 int64_t now_ms)
{
    if (!is_known(job, view) || now_ms - answered_ms > HEARD_MS)
        return 0;
    int64_t now = of_busiest(job->lanes, view->ring_size), takes = view->progress.eta_seconds;
    int64_t needed = of_busiest(job->lanes, lanes_each(job->lanes, now, takes, time_left(job, now_ms)));
    RM_ASSERT(needed >= 1 && needed <= job->lanes, "%lld workers for %d lanes", (long long)needed,
              job->lanes);
    return (int)needed;
}
