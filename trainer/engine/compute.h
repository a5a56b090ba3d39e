/* The threads of a trainer, beside the one of its loop: one computes, and one connects, exchanges and pulls
 * (elastic_thread; elastic_thread_after for what follows at once). The first opens the engine, then each
 * carries out one command at a time.
 *
 * The control thread starts a command with compute_start and hears of its end by `done`, which is called on
 * the loop. */
#ifndef RM_TRAINER_COMPUTE_H
#define RM_TRAINER_COMPUTE_H

#include "common/loop/loop.h"
#include "trainer/engine/engine.h"

struct compute;

struct compute_options {
    struct engine_options engine; /* what it points to must live until `opened` */
    /* The engine is open (err NULL), or it could not be. */
    void (*opened)(void *ctx, struct engine *engine, const struct error *err);
    void (*done)(void *ctx, const struct elastic_result *result);
    void *ctx;
};

int compute_open(struct compute **ret, struct loop *loop, const struct compute_options *options,
                 struct error *err);
/* Gives up what is under way and waits for its end; no callback comes any more. NULL is fine. */
void compute_free(struct compute *c);
/* After `opened`, and after the `done` of the command before. Pointers in the action must stay valid. What
 * follows it by elastic_follows is begun at once; `done` is called for each of them after the last. */
void compute_start(struct compute *c, const struct elastic_action *action);
/* Gives up soon what is under way; does nothing where nothing is. */
void compute_abort(struct compute *c);
/* Likewise, but a lane under way is computed to its end. */
void compute_pause(struct compute *c);

#endif
