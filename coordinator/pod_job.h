/* What has to be known of a job before it is trained in pods: whether it may go on from the checkpoints that
 * are there, and which files its data are. `ringmaster run` looks at that before it starts anything; in a
 * cluster the coordinator does, as far as it lies in object stores: folders are the workers' own.
 *
 * It is done on a thread of its own, and again after a pause (1, 2, 4 .. 30 s) while a store is away, busy,
 * or refuses what a person can set right: a key, a bucket, its region. Pods are not made anew for that, so it
 * has no end but the job's. Only what would be refused again whatever anybody does to the store ends the job
 * at once: a place that can't be one, a job that differs from its checkpoints, data that are none.
 *
 * From then on it keeps the place of the checkpoints in its bucket, and says so when another run has it. */
#ifndef RM_COORDINATOR_POD_JOB_H
#define RM_COORDINATOR_POD_JOB_H

#include "common/loop/loop.h"
#include "common/pod/job_files.h"
#include "common/storage/checkpoint/checkpoint.h"

struct pod_job;

struct pod_job_options {
    struct job_files *files; /* the listing of the data is put in before `ready`; lives longer */
    bool successor;          /* the job has begun: what checkpoints there are may be its own */
    void (*ready)(void *ctx);
    /* Instead of `ready`: the job has been trained to its end, and its final checkpoint is whole. */
    void (*complete)(void *ctx, const struct checkpoint_entry *final);
    /* A store is waited for: before the others, as it is asked again, or after `ready`, as another run has
     * the place of the checkpoints. NULL: no longer, after `ready` alone. */
    void (*waits)(void *ctx, const struct error *why);
    void (*refused)(void *ctx, const struct error *why);
    void *ctx;
};

/* One of the callbacks comes in a later turn; `waits` any number of times. */
int pod_job_open(struct pod_job **ret, struct loop *loop, const struct pod_job_options *options,
                 struct error *err);
/* Once `ready`: does the store of the checkpoints make sure that they have one owner? True of a folder. */
bool pod_job_is_fenced(const struct pod_job *job);
/* Gives the checkpoints free for another job. Waits for what is under way. NULL is fine. */
void pod_job_free(struct pod_job *job);

#endif
