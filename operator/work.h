/* Carries out one plan: its writes in their order: all that lies around the pods at once, then the pods at
 * once. The first refusal ends it, after the answers to what is under way have come. Every answer that shows
 * an object goes to the cache at once, every outcome to the memo. */
#ifndef RM_OPERATOR_WORK_H
#define RM_OPERATOR_WORK_H

#include "common/kube/client.h"
#include "operator/cache.h"

enum work_end {
    WORK_DONE,     /* all of it, or all that was allowed */
    WORK_REFUSED,  /* something was not done; the memo knows what */
    WORK_CONFLICT, /* the status had changed meanwhile: look again */
    WORK_STOPPED,  /* we may not write any more, or the job is gone */
};

struct work_result {
    enum work_end end;
    enum kube_outcome outcome;   /* REFUSED: how */
    rm_time retry_after;         /* REFUSED: the server's wish */
    int writes;                  /* that succeeded */
    bool healed;                 /* something was done that had been refused: the status says so still */
    char untold[OP_MESSAGE_MAX]; /* REFUSED: what no status can tell, as it is what was refused; "" */
    rm_time first_sent;          /* clock_now() when the first was given to its connection; 0: none was */
};

struct work;
struct work_options {
    struct kube *kube;
    struct cache *cache;
    struct loop *loop;
    struct job_entry *job;
    struct op_plan *plan; /* taken over */
    struct op_trials *trials;
    bool quiet;          /* a refusal is fresh: the status alone, and deletes of what was not refused */
    bool without_status; /* its turn has not come */
    bool (*may_write)(void *ctx);
    /* Once, at once or in a later turn; plan lives until it returns. */
    void (*done)(void *ctx, struct job_entry *job, const struct op_plan *plan,
                 const struct work_result *result);
    void *ctx;
};

void work_begin(const struct work_options *options);
/* Given up, without done: the answers to what is under way must come no more. NULL is fine. */
void work_abandon(struct work *work);

const struct kube_resource *work_resource(enum op_resource resource);

#endif
