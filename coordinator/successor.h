/* A coordinator in a pod that was told to go looks whether its successor is there: the agents' name for the
 * coordinator is asked for its status, again and again, until somebody of a higher term answers to it who
 * takes agents. Then nobody gains from a predecessor that stays, and whoever came to the successor waits for
 * those who are still with it.
 *
 * That a successor is there also tells a drained machine from a job that is deleted or suspended: those get
 * none, and their agents need the one they have. */
#ifndef RM_COORDINATOR_SUCCESSOR_H
#define RM_COORDINATOR_SUCCESSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/loop/loop.h"

struct successor;

struct successor_options {
    const char *address;      /* HOST:PORT, as agents have it; borrowed until successor_free */
    const char *job;          /* what its status names as `job`; borrowed likewise */
    int64_t term;             /* our own */
    void (*there)(void *ctx); /* once; may not free the successor */
    void *ctx;
};

int successor_watch(struct successor **ret, struct loop *loop, const struct successor_options *options,
                    struct error *err);
/* NULL is fine. Not from its callback. */
void successor_free(struct successor *successor);

/* Whether this answer to GET /v1/status is a successor's that takes agents. Pure. */
bool successor_answers(const char *text, size_t length, const char *job, int64_t term);

#endif
