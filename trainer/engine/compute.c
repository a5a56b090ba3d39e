#include "trainer/engine/compute.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

enum turn {
    TURN_OPENING,
    TURN_OPENED, /* the control thread has not looked yet */
    TURN_IDLE,
    TURN_WORKING,
    TURN_DONE, /* the control thread has not looked yet */
};

struct compute {
    struct compute_options options;
    struct loop_bell *bell;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wanted;
    /* Under the lock. What else is here belongs to the compute thread while it works, else to control. */
    enum turn turn;
    bool quit;
    struct engine *engine; /* NULL: could not be opened, or not yet */
    struct error error;
    struct elastic_action action;
    struct elastic_result result;
};

static void finish_turn(struct compute *c, enum turn turn)
{
    pthread_mutex_lock(&c->lock);
    c->turn = turn;
    pthread_mutex_unlock(&c->lock);
    loop_wake(c->bell);
}

/* False: the end. */
static bool wait_for_work(struct compute *c)
{
    pthread_mutex_lock(&c->lock);
    while (!c->quit && c->turn != TURN_WORKING)
        pthread_cond_wait(&c->wanted, &c->lock);
    bool work = !c->quit;
    pthread_mutex_unlock(&c->lock);
    return work;
}

static void *compute_main(void *arg)
{
    struct compute *c = arg;
    struct engine *engine = NULL;
    if (engine_open(&engine, &c->options.engine, &c->error) == 0) {
        pthread_mutex_lock(&c->lock);
        c->engine = engine;
        pthread_mutex_unlock(&c->lock);
    }
    finish_turn(c, TURN_OPENED);
    while (wait_for_work(c)) {
        engine_run(engine, &c->action, &c->result);
        finish_turn(c, TURN_DONE);
    }
    engine_free(engine);
    return NULL;
}

static void bell_rang(void *ctx)
{
    struct compute *c = ctx;
    pthread_mutex_lock(&c->lock);
    enum turn turn = c->turn;
    if (turn == TURN_OPENED || turn == TURN_DONE)
        c->turn = TURN_IDLE;
    pthread_mutex_unlock(&c->lock);
    if (turn == TURN_OPENED)
        c->options.opened(c->options.ctx, c->engine, c->engine ? NULL : &c->error);
    else if (turn == TURN_DONE)
        c->options.done(c->options.ctx, &c->result);
}

int compute_open(struct compute **ret, struct loop *loop, const struct compute_options *options,
                 struct error *err)
{
    struct compute *c = calloc(1, sizeof *c);
    if (!c)
        return err_set(err, ERR_MACHINE, "no memory for the compute thread");
    c->options = *options;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->wanted, NULL);
    int rc = loop_bell_open(&c->bell, loop, bell_rang, c, err);
    if (rc == 0 && pthread_create(&c->thread, NULL, compute_main, c)) {
        loop_bell_free(c->bell);
        rc = err_set(err, ERR_MACHINE, "no compute thread");
    }
    if (rc < 0) {
        free(c);
        return -1;
    }
    *ret = c;
    return 0;
}

void compute_free(struct compute *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->quit = true;
    if (c->engine)
        engine_abort(c->engine);
    pthread_cond_signal(&c->wanted);
    pthread_mutex_unlock(&c->lock);
    pthread_join(c->thread, NULL);
    loop_bell_free(c->bell);
    pthread_cond_destroy(&c->wanted);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

void compute_start(struct compute *c, const struct elastic_action *action)
{
    c->action = *action;
    c->result = (struct elastic_result){0};
    engine_clear_abort(c->engine);
    pthread_mutex_lock(&c->lock);
    c->turn = TURN_WORKING;
    pthread_cond_signal(&c->wanted);
    pthread_mutex_unlock(&c->lock);
}
