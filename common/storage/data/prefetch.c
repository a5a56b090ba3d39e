/* One thread that reads lanes of samples into a ring of slots ahead of those who compute, and tries again
 * what failed in passing. The engine aims it at its lanes of each step and takes them from it
 * (engine_step.c). */
#include "common/storage/data/prefetch.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "common/os/clock.h"

/* A disk that did not answer is asked again, with pauses that double, for less time than a step may take
 * before it counts as a hang; after that it is this machine's disk. */
static const rm_time pause_first = 20 * RM_MS, pause_most = 2 * RM_S, patience = 20 * RM_S;

/* Places are counted from the step aimed at: place q is lane first + q % count of step + q / count. It lies
 * in slot q % slots. Places [base, next) are read; the thread reads on while next - base < slots. */
struct prefetch {
    struct prefetch_options options;
    pthread_t thread;
    bool started;
    pthread_mutex_t corpus_lock; /* over the corpus */
    pthread_mutex_t lock;        /* over all below */
    pthread_cond_t work, done;
    int32_t *room; /* (slots, lane_sequences, context + 1) */
    int64_t slots;
    bool aimed, ending, failed;
    int64_t aims; /* a lane read for an older aim is dropped */
    int64_t step, first, count;
    int64_t base, next;
    int64_t told; /* places before it have been wanted */
    int64_t pass; /* place of the pass's first lane */
    struct error err;
    rm_time failing_since, pause; /* 0: the last read was good */
    rm_time waited;               /* the caller's thread only */
};

static int64_t sample_tokens(const struct prefetch *p)
{
    return p->options.context + 1;
}

static int64_t lane_tokens(const struct prefetch *p)
{
    return sample_tokens(p) * p->options.lane_sequences;
}

static int32_t *slot_of(const struct prefetch *p, int64_t place)
{
    return p->room + place % p->slots * lane_tokens(p);
}

static bool may_read(const struct prefetch *p)
{
    if (!p->aimed || p->failed || p->count < 1 || p->next - p->base >= p->slots)
        return false;
    return p->next < p->pass + p->count || p->step + p->next / p->count < p->options.steps;
}

int prefetch_sample(struct prefetch *p, int64_t i, int32_t *tokens, struct error *err)
{
    pthread_mutex_lock(&p->corpus_lock);
    int status = corpus_read(p->options.corpus, i, tokens, err);
    pthread_mutex_unlock(&p->corpus_lock);
    return status;
}

static int read_lane(struct prefetch *p, int64_t step, int lane, int32_t *out, struct error *err)
{
    for (int j = 0; j < p->options.lane_sequences; j++, out += sample_tokens(p))
        if (prefetch_sample(p, p->options.sample(p->options.ctx, step, lane, j), out, err) < 0)
            return -1;
    return 0;
}

/* Called and left with the lock held. The samples of the places behind `next` are asked for, so that a source
 * that is far away has many of them under way at once. */
static void want_ahead(struct prefetch *p)
{
    const struct prefetch_options *o = &p->options;
    int64_t ahead = (o->wanted + o->lane_sequences - 1) / o->lane_sequences, aims = p->aims;
    int64_t from = p->told > p->next ? p->told : p->next, to = p->next + ahead;
    int64_t step = p->step, first = p->first, count = p->count;
    if (from >= to)
        return;
    pthread_mutex_unlock(&p->lock);
    pthread_mutex_lock(&p->corpus_lock);
    for (int64_t place = from; place < to && step + place / count < o->steps; place++)
        for (int j = 0; j < o->lane_sequences; j++)
            corpus_want(o->corpus, o->sample(o->ctx, step + place / count, (int)(first + place % count), j));
    pthread_mutex_unlock(&p->corpus_lock);
    pthread_mutex_lock(&p->lock);
    if (aims == p->aims)
        p->told = to;
}

/* Called and left with the lock held. Until then, or until something else is wanted. */
static void rest(struct prefetch *p, rm_time until, int64_t aims)
{
    struct timespec at = {(time_t)(until / RM_S), (long)(until % RM_S)};
    while (!p->ending && aims == p->aims && pthread_cond_timedwait(&p->work, &p->lock, &at) == 0)
        continue;
}

/* Called and left with the lock held. Is what failed worth another try now? */
static bool try_again(struct prefetch *p, int64_t aims, struct error *err)
{
    rm_time now = clock_now();
    if (err->class != CLASS_PASSING || err->person)
        return false;
    if (!p->failing_since) {
        p->failing_since = now;
        p->pause = pause_first;
    }
    if (now - p->failing_since >= patience) {
        err_class(err, CLASS_MACHINE);
        return false;
    }
    rest(p, now + p->pause, aims);
    p->pause = 2 * p->pause < pause_most ? 2 * p->pause : pause_most;
    return true;
}

/* Called and left with the lock held; without it while the disk is at work. */
static void read_next(struct prefetch *p)
{
    int64_t place = p->next, aims = p->aims, step = p->step + place / p->count;
    int lane = (int)(p->first + place % p->count);
    struct error err = {0};
    pthread_mutex_unlock(&p->lock);
    int status = read_lane(p, step, lane, slot_of(p, place), &err);
    pthread_mutex_lock(&p->lock);
    if (aims != p->aims || (status < 0 && try_again(p, aims, &err)))
        return;
    p->failing_since = 0;
    p->failed = status < 0;
    p->err = err;
    p->next += status == 0;
    pthread_cond_signal(&p->done);
}

static void *read_ahead(void *ctx)
{
    struct prefetch *p = ctx;
    pthread_mutex_lock(&p->lock);
    while (!p->ending)
        if (may_read(p)) {
            want_ahead(p);
            if (may_read(p))
                read_next(p);
        } else
            pthread_cond_wait(&p->work, &p->lock);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static int64_t slots_for(const struct prefetch *p)
{
    int64_t fit = p->options.room / (lane_tokens(p) * (int64_t)sizeof(int32_t));
    int64_t wanted = 2 * (int64_t)p->options.lanes;
    return fit < 2 ? 2 : fit < wanted ? fit : wanted;
}

int prefetch_open(struct prefetch **ret, const struct prefetch_options *options, struct error *err)
{
    struct prefetch *p = calloc(1, sizeof *p);
    if (!p)
        return err_set(err, ERR_MACHINE, "no memory to read data ahead");
    p->options = *options;
    p->slots = slots_for(p);
    pthread_mutex_init(&p->corpus_lock, NULL);
    pthread_mutex_init(&p->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&p->work, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_cond_init(&p->done, NULL);
    p->room = calloc((size_t)(p->slots * lane_tokens(p)), sizeof *p->room);
    p->started = p->room && !pthread_create(&p->thread, NULL, read_ahead, p);
    if (p->started) {
        *ret = p;
        return 0;
    }
    prefetch_free(p);
    return err_set(err, ERR_MACHINE, "no memory or no thread to read data ahead");
}

void prefetch_free(struct prefetch *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->ending = true;
    pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->lock);
    if (p->started)
        pthread_join(p->thread, NULL);
    pthread_cond_destroy(&p->done);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
    pthread_mutex_destroy(&p->corpus_lock);
    free(p->room);
    free(p);
}

void prefetch_aim(struct prefetch *p, int64_t step, int first, int count)
{
    pthread_mutex_lock(&p->lock);
    int64_t place = (step - p->step) * p->count;
    bool foreseen =
        p->aimed && first == p->first && count == p->count && place >= p->base && place <= p->next;
    if (foreseen) {
        p->pass = p->base = place;
    } else {
        p->aims++;
        p->aimed = true;
        p->step = step;
        p->first = first;
        p->count = count;
        p->pass = p->base = p->next = p->told = 0;
    }
    p->failed = false;
    pthread_mutex_unlock(&p->lock);
    pthread_cond_signal(&p->work);
}

const int32_t *prefetch_lane(struct prefetch *p, int lane, struct error *err)
{
    pthread_mutex_lock(&p->lock);
    int64_t place = p->pass + lane - p->first;
    if (p->slots < 2 * p->count && place > p->base) {
        p->base = place; /* there is no room to keep this step and read the next */
        pthread_cond_signal(&p->work);
    }
    rm_time begun = p->next <= place ? clock_now() : 0;
    while (p->next <= place && !p->failed)
        pthread_cond_wait(&p->done, &p->lock);
    if (begun)
        p->waited += clock_now() - begun;
    const int32_t *tokens = p->next > place ? slot_of(p, place) : NULL;
    if (!tokens)
        *err = p->err;
    pthread_mutex_unlock(&p->lock);
    return tokens;
}

rm_time prefetch_waited(const struct prefetch *p)
{
    return p->waited;
}
