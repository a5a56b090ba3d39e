/* Threads that wait for the next job of pool_run, by spinning for a moment and then on a futex, and take
 * its pieces by a shared counter. What computes on CPUs stands on it: the model (crew.c), sums and updates
 * (pieces.c). */
#include "common/os/pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/os/clock.h"
#include "common/os/cpu.h"

enum {
    SPIN_NS = 20000,        /* longer waits go to sleep, so that idle trainers leave the cores to others */
    SPINS_PER_READING = 32, /* of the clock */
};

struct pool_thread {
    struct pool *pool;
    int index;
    pthread_t id;
};

/* `ticket` is the job's number in the high half and the pieces that nobody has claimed yet in the low half.
 * A claim is a compare-and-swap of the whole word, so a thread that wakes late can't take a piece of a job
 * other than the one whose fields it has read: while a claim can succeed, the job is not over and its fields
 * don't change. `turn` changes after each new ticket; it is what idle threads sleep on. */
struct pool {
    int threads;
    _Atomic uint64_t ticket;
    _Atomic(void (*)(void *, int, int)) work;
    _Atomic(void *) ctx;
    atomic_int pieces;
    _Atomic uint32_t unfinished; /* pieces; the caller sleeps on it */
    _Atomic uint32_t turn;
    atomic_int asleep;
    atomic_bool caller_asleep;
    atomic_bool stop;
    int started;
    atomic_llong *pulse;
    struct pool_thread thread[];
};

static void futex_wait(_Atomic uint32_t *word, uint32_t seen)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* Watches *word for 20 us at most; true as soon as it differs from seen. */
static bool spin_for_change(_Atomic uint32_t *word, uint32_t seen)
{
    rm_time end = clock_now() + SPIN_NS;
    do {
        for (int i = 0; i < SPINS_PER_READING; i++) {
            if (atomic_load_explicit(word, memory_order_acquire) != seen)
                return true;
            cpu_pause();
        }
    } while (clock_now() < end);
    return false;
}

static void finish_piece(struct pool *pool)
{
    if (atomic_fetch_sub(&pool->unfinished, 1) == 1 && atomic_load(&pool->caller_asleep))
        futex_wake(&pool->unfinished);
}

static void work_on(struct pool *pool, int thread)
{
    for (;;) {
        uint64_t ticket = atomic_load(&pool->ticket);
        uint32_t unclaimed = (uint32_t)ticket;
        if (!unclaimed)
            return;
        void (*work)(void *, int, int) = atomic_load_explicit(&pool->work, memory_order_relaxed);
        void *ctx = atomic_load_explicit(&pool->ctx, memory_order_relaxed);
        int piece = atomic_load_explicit(&pool->pieces, memory_order_relaxed) - (int)unclaimed;
        if (!atomic_compare_exchange_strong(&pool->ticket, &ticket, ticket - 1))
            continue;
        work(ctx, piece, thread);
        finish_piece(pool);
    }
}

static void wait_for_turn(struct pool *pool, uint32_t turn)
{
    if (spin_for_change(&pool->turn, turn))
        return;
    atomic_fetch_add(&pool->asleep, 1);
    while (atomic_load(&pool->turn) == turn)
        futex_wait(&pool->turn, turn);
    atomic_fetch_sub(&pool->asleep, 1);
}

static void *thread_main(void *arg)
{
    struct pool_thread *self = arg;
    struct pool *pool = self->pool;
    cpu_flush_denormals();
    prctl(PR_SET_NAME, "pool"); /* by which they are counted from outside */
    for (;;) {
        uint32_t turn = atomic_load(&pool->turn);
        if (atomic_load(&pool->stop))
            return NULL;
        work_on(pool, self->index);
        wait_for_turn(pool, turn);
    }
}

static void next_turn(struct pool *pool)
{
    atomic_fetch_add(&pool->turn, 1);
    if (atomic_load(&pool->asleep))
        futex_wake(&pool->turn);
}

int pool_open(struct pool **ret, int threads, struct error *err)
{
    struct pool *pool = calloc(1, sizeof *pool + (size_t)threads * sizeof *pool->thread);
    if (!pool)
        return err_set(err, ERR_MACHINE, "no memory for a pool of %d threads", threads);
    pool->threads = threads;
    for (int i = 1; i < threads; i++) {
        struct pool_thread *t = &pool->thread[i];
        *t = (struct pool_thread){.pool = pool, .index = i};
        int code = pthread_create(&t->id, NULL, thread_main, t);
        if (code) {
            pool_free(pool);
            return err_set(err, ERR_MACHINE, "thread %d of %d can't be started (error %d)", i, threads, code);
        }
        pool->started = i;
    }
    *ret = pool;
    return 0;
}

void pool_free(struct pool *pool)
{
    if (!pool)
        return;
    atomic_store(&pool->stop, true);
    next_turn(pool);
    for (int i = 1; i <= pool->started; i++)
        pthread_join(pool->thread[i].id, NULL);
    free(pool);
}

void pool_pulse(struct pool *pool, atomic_llong *pulse)
{
    pool->pulse = pulse;
}

int pool_threads(const struct pool *pool)
{
    return pool->threads;
}

static void publish_work(struct pool *pool, int pieces, void (*work)(void *, int, int), void *ctx)
{
    uint64_t number = (atomic_load(&pool->ticket) >> 32) + 1;
    atomic_store_explicit(&pool->work, work, memory_order_relaxed);
    atomic_store_explicit(&pool->ctx, ctx, memory_order_relaxed);
    atomic_store_explicit(&pool->pieces, pieces, memory_order_relaxed);
    atomic_store_explicit(&pool->unfinished, (uint32_t)pieces, memory_order_relaxed);
    atomic_store(&pool->ticket, number << 32 | (uint32_t)pieces);
    next_turn(pool);
}

static void wait_for_the_rest(struct pool *pool)
{
    rm_time end = clock_now() + SPIN_NS;
    while (atomic_load(&pool->unfinished) != 0) {
        if (clock_now() < end) {
            cpu_pause();
            continue;
        }
        atomic_store(&pool->caller_asleep, true);
        uint32_t left = atomic_load(&pool->unfinished);
        if (left)
            futex_wait(&pool->unfinished, left);
        atomic_store(&pool->caller_asleep, false);
    }
}

void pool_run(struct pool *pool, int pieces, void (*work)(void *ctx, int piece, int thread), void *ctx)
{
    cpu_flush_denormals();
    if (pool->pulse)
        atomic_fetch_add_explicit(pool->pulse, 1, memory_order_relaxed);
    if (pool->threads == 1 || pieces <= 1) {
        for (int i = 0; i < pieces; i++)
            work(ctx, i, 0);
        return;
    }
    publish_work(pool, pieces, work, ctx);
    work_on(pool, 0);
    wait_for_the_rest(pool);
}
