/* Finds the folder that most see, and who sees another one; called when all have listed. */
#include "coordinator/core/rdzv_folders.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "coordinator/core/rdzv_resume.h"
#include "coordinator/core/rdzv_who.h"

static bool is_here(const struct rdzv_worker *w)
{
    return w->presence == PRESENT && w->trainer_pid && !w->leaving && !w->released;
}

static bool sees(const struct rdzv_worker *w, const char *folder)
{
    return folder[0] && is_here(w) && !strcmp(w->list.folder, folder);
}

static int64_t newest_of(const struct rdzv *st, const struct rdzv_worker *w)
{
    RM_ASSERT(w->list.count >= 0 && w->list.count <= RM_CHECKPOINTS_LISTED, "a list of %d checkpoints",
              w->list.count);
    int64_t newest = -1;
    for (int i = 0; i < w->list.count; i++) {
        const struct msg_checkpoint *c = &w->list.checkpoint[i];
        if (rdzv_may_load(st, c) && c->step > newest)
            newest = c->step;
    }
    return newest;
}

struct weight {
    int workers;    /* that see it */
    int64_t newest; /* checkpoint in it; -1: none */
    bool ours;      /* so far */
};

static struct weight weigh(const struct rdzv *st, const char *folder)
{
    struct weight sum = {.newest = -1, .ours = !strcmp(folder, st->folder)};
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        if (!sees(w, folder))
            continue;
        int64_t newest = newest_of(st, w);
        sum.workers++;
        sum.newest = newest > sum.newest ? newest : sum.newest;
    }
    RM_ASSERT(sum.workers || sum.newest < 0, "nobody sees a folder, and step %" PRId64 " is in it",
              sum.newest);
    return sum;
}

/* Where there are checkpoints the job does not begin anew for a folder that is empty, however many see that
 * one. */
static bool is_heavier(struct weight a, struct weight b)
{
    if ((a.newest >= 0) != (b.newest >= 0))
        return a.newest >= 0;
    if (a.workers != b.workers)
        return a.workers > b.workers;
    if (a.newest != b.newest)
        return a.newest > b.newest;
    return a.ours && !b.ours;
}

void rdzv_folders_settle(struct rdzv *st)
{
    const char *best = st->folder;
    struct weight most = weigh(st, best);
    if (st->saved > 0 && most.workers)
        return; /* what it has saved lies there */
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        struct weight this = weigh(st, w->list.folder);
        if (!sees(w, w->list.folder) || (most.workers && !is_heavier(this, most)))
            continue;
        best = w->list.folder;
        most = this;
    }
    if (best != st->folder)
        text_copy(st->folder, sizeof st->folder, best);
}

void rdzv_folders_forget(struct rdzv *st)
{
    if (st->saved <= 0 && !weigh(st, st->folder).workers)
        st->folder[0] = 0;
}

bool rdzv_folders_differ(const struct rdzv *st)
{
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        if (is_here(&st->worker[i]) && rdzv_sees_another_folder(st, &st->worker[i]))
            return true;
    return false;
}

void rdzv_folders_describe(const struct rdzv *st, int worker, char *out, size_t size)
{
    int64_t newest = newest_of(st, &st->worker[worker]);
    int other = 0;
    RM_ASSERT(rdzv_sees_another_folder(st, &st->worker[worker]), "worker %d sees the job's folder", worker);
    while (other < RM_WORKERS_MAX && !sees(&st->worker[other], st->folder))
        other++;
    int n = snprintf(out, size, "the folder of checkpoints on its machine is another one than the job's");
    if (other < RM_WORKERS_MAX)
        n += snprintf(out + n, size - (size_t)n, ", which worker %d sees", other);
    if (newest >= 0)
        n += snprintf(out + n, size - (size_t)n, " (a checkpoint of step %" PRId64 " is in it)", newest);
    snprintf(out + n, size - (size_t)n, ": is the volume that all share mounted there?");
}
