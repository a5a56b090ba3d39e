/* Two threads, of which one works at a time: a command comes from the loop's thread, what follows it at
 * once goes from one to the other, and when nothing follows a bell brings the results back to the loop.
 * train_loop.c starts commands and hears of their ends. */
#include "trainer/engine/compute.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/os/cpu.h"

enum { FOLLOWING_MAX = 3 }; /* commands of one start */

struct side {
    struct compute *owner;
    pthread_t thread;
    bool started; /* there is such a thread */
    pthread_cond_t wanted;
    /* Under the owner's lock. */
    bool works, quit;
    enum elastic_command command;
};

struct compute {
    struct compute_options options;
    struct loop_bell *bell;
    pthread_mutex_t lock;
    struct side side[ELASTIC_THREADS];
    struct elastic_action action; /* of whoever works, else control's; likewise: */
    struct elastic_result result[FOLLOWING_MAX];
    int results;
    /* Under the lock. */
    bool over, aborted;    /* all results are there; an abort was asked for */
    bool opened, told;     /* the engine, or it could not be; control knows of it */
    struct engine *engine; /* NULL: could not be opened, or not yet */
    struct error error;
};

/* Under the lock. Who gets it is woken when the lock is free: on another processor it would wait for it at
 * once, be put to sleep and woken once more. */
static struct side *give_command(struct compute *c, enum elastic_thread thread, enum elastic_command command)
{
    struct side *s = &c->side[thread];
    s->command = command;
    s->works = true;
    return s;
}

/* False: the end. */
static bool wait_for_work(struct side *s)
{
    pthread_mutex_lock(&s->owner->lock);
    while (!s->quit && !s->works)
        pthread_cond_wait(&s->wanted, &s->owner->lock);
    bool work = s->works && (!s->quit || s->command == CMD_COMMIT); /* the others may have committed */
    pthread_mutex_unlock(&s->owner->lock);
    return work;
}

static void hand_on(struct side *s, struct elastic_result *result)
{
    struct compute *c = s->owner;
    enum elastic_command next = elastic_follows(result);
    pthread_mutex_lock(&c->lock);
    s->works = false;
    result->followed = next == CMD_COMMIT || (next != CMD_NONE && !c->aborted);
    c->over = !result->followed;
    enum elastic_thread thread = elastic_thread_after(next, engine_words(c->engine));
    struct side *follower = result->followed ? give_command(c, thread, next) : NULL;
    pthread_mutex_unlock(&c->lock);
    if (follower)
        pthread_cond_signal(&follower->wanted);
    else
        loop_wake(c->bell);
}

static void run_commands(struct side *s)
{
    struct compute *c = s->owner;
    while (wait_for_work(s)) {
        struct elastic_result *result = &c->result[c->results++];
        c->action.command = s->command;
        engine_run(c->engine, &c->action, result);
        hand_on(s, result);
    }
}

static void *compute_main(void *arg)
{
    struct side *s = arg;
    struct compute *c = s->owner;
    struct engine *engine = NULL;
    int rc = engine_open(&engine, &c->options.engine, &c->error);
    pthread_mutex_lock(&c->lock);
    c->engine = rc == 0 ? engine : NULL;
    c->opened = true;
    pthread_mutex_unlock(&c->lock);
    loop_wake(c->bell);
    run_commands(s);
    engine_free(engine);
    return NULL;
}

/* What is decided here is decided anew by whoever finishes an update, on a thread that computes: rounded
 * likewise. */
static void *talk_main(void *arg)
{
    cpu_flush_denormals();
    run_commands(arg);
    return NULL;
}

static void tell_opened(struct compute *c)
{
    pthread_mutex_lock(&c->lock);
    bool tell = c->opened && !c->told;
    c->told = c->opened;
    pthread_mutex_unlock(&c->lock);
    if (tell)
        c->options.opened(c->options.ctx, c->engine, c->engine ? NULL : &c->error);
}

/* What is told may begin something new. */
static void tell_done(struct compute *c)
{
    struct elastic_result result[FOLLOWING_MAX];
    int results = c->results;
    memcpy(result, c->result, sizeof result);
    for (int i = 0; i < results; i++)
        c->options.done(c->options.ctx, &result[i]);
}

static void bell_rang(void *ctx)
{
    struct compute *c = ctx;
    tell_opened(c);
    pthread_mutex_lock(&c->lock);
    bool over = c->over;
    c->over = false;
    pthread_mutex_unlock(&c->lock);
    if (over)
        tell_done(c);
}

static int start_side(struct compute *c, enum elastic_thread which, void *(*main)(void *), struct error *err)
{
    struct side *s = &c->side[which];
    if (pthread_create(&s->thread, NULL, main, s))
        return err_set(err, ERR_MACHINE, "no thread for the trainer");
    s->started = true;
    return 0;
}

int compute_open(struct compute **ret, struct loop *loop, const struct compute_options *options,
                 struct error *err)
{
    struct compute *c = calloc(1, sizeof *c);
    if (!c)
        return err_set(err, ERR_MACHINE, "no memory for the trainer's threads");
    c->options = *options;
    pthread_mutex_init(&c->lock, NULL);
    for (int i = 0; i < ELASTIC_THREADS; i++) {
        c->side[i].owner = c;
        pthread_cond_init(&c->side[i].wanted, NULL);
    }
    if (loop_bell_open(&c->bell, loop, bell_rang, c, err) < 0 ||
        start_side(c, ELASTIC_COMPUTES, compute_main, err) < 0 ||
        start_side(c, ELASTIC_TALKS, talk_main, err) < 0) {
        compute_free(c);
        return -1;
    }
    *ret = c;
    return 0;
}

static void end_side(struct compute *c, enum elastic_thread which)
{
    struct side *s = &c->side[which];
    if (!s->started)
        return;
    pthread_mutex_lock(&c->lock);
    s->quit = true;
    if (c->engine)
        engine_abort(c->engine, which);
    pthread_cond_signal(&s->wanted);
    pthread_mutex_unlock(&c->lock);
    pthread_join(s->thread, NULL);
}

/* The one that computes last: the engine ends with it. */
void compute_free(struct compute *c)
{
    if (!c)
        return;
    end_side(c, ELASTIC_TALKS);
    end_side(c, ELASTIC_COMPUTES);
    loop_bell_free(c->bell);
    for (int i = 0; i < ELASTIC_THREADS; i++)
        pthread_cond_destroy(&c->side[i].wanted);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

void compute_start(struct compute *c, const struct elastic_action *action)
{
    for (int i = 0; i < ELASTIC_THREADS; i++)
        engine_clear_abort(c->engine, (enum elastic_thread)i);
    pthread_mutex_lock(&c->lock);
    for (int i = 0; i < ELASTIC_THREADS; i++)
        RM_ASSERT(!c->side[i].works, "command %s is started while %s runs",
                  elastic_command_name(action->command), elastic_command_name(c->side[i].command));
    c->action = *action;
    c->results = 0;
    c->aborted = false;
    struct side *s = give_command(c, elastic_thread(action->command), action->command);
    pthread_mutex_unlock(&c->lock);
    pthread_cond_signal(&s->wanted);
}

/* Both threads are told: what is under way may just be handed on. */
void compute_abort(struct compute *c)
{
    pthread_mutex_lock(&c->lock);
    c->aborted = true;
    for (int i = 0; i < ELASTIC_THREADS; i++)
        engine_abort(c->engine, (enum elastic_thread)i);
    pthread_mutex_unlock(&c->lock);
}

/* The lanes may just be handed on to the exchange: that one is given up. */
void compute_pause(struct compute *c)
{
    pthread_mutex_lock(&c->lock);
    c->aborted = true;
    engine_pause(c->engine);
    engine_abort(c->engine, ELASTIC_TALKS);
    pthread_mutex_unlock(&c->lock);
}
