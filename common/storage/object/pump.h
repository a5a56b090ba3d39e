/* A loop of one's own for calls that block: HTTP requests run on it while the caller waits in pump_turn. */
#ifndef RM_OBJECT_PUMP_H
#define RM_OBJECT_PUMP_H

#include <stdatomic.h>

#include "common/net/http.h"

struct pump {
    struct loop *loop;
    struct http *http;
    struct loop_timer *alarm;
    const atomic_int *cancel; /* NULL: never given up */
    void (*tick)(void *ctx);  /* NULL, or called in each turn */
    void *ctx;
};

int pump_init(struct pump *pump, const atomic_int *cancel, struct error *err);
void pump_clear(struct pump *pump);

/* Waits until something has happened, `until` (RM_NEVER: no such moment) is over, or a short while is over.
 * ERR_ABORTED where *cancel says so. */
int pump_turn(struct pump *pump, rm_time until, struct error *err);
int pump_sleep(struct pump *pump, rm_time duration, struct error *err);

#endif
