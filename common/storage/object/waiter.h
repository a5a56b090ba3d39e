/* A loop of one's own for calls that block: HTTP requests run on it while the caller waits in waiter_turn. */
#ifndef RM_OBJECT_WAITER_H
#define RM_OBJECT_WAITER_H

#include <stdatomic.h>

#include "common/net/http.h"

struct waiter {
    struct loop *loop;
    struct http *http;
    struct loop_timer *alarm;
    const atomic_int *cancel; /* NULL: never given up */
    void (*tick)(void *ctx);  /* NULL, or called in each turn */
    void *ctx;
};

int waiter_init(struct waiter *waiter, const atomic_int *cancel, struct error *err);
void waiter_clear(struct waiter *waiter);

/* Waits until something has happened, `until` (RM_NEVER: no such moment) is over, or a short while is over.
 * ERR_ABORTED where *cancel says so. */
int waiter_turn(struct waiter *waiter, rm_time until, struct error *err);
int waiter_sleep(struct waiter *waiter, rm_time duration, struct error *err);

#endif
