#include "common/os/pool.h"

#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/os/cpu.h"

enum { MANY = 1000 };

struct tally {
    atomic_int visits[MANY];
    atomic_int thread_out_of_range;
    atomic_int without_flush;
    int threads;
};

static void visit(void *ctx, int piece, int thread)
{
    struct tally *t = ctx;
    atomic_fetch_add(&t->visits[piece], 1);
    if (thread < 0 || thread >= t->threads)
        atomic_fetch_add(&t->thread_out_of_range, 1);
    if (!cpu_flushes_denormals())
        atomic_fetch_add(&t->without_flush, 1);
}

static struct pool *pool_of(int threads)
{
    struct pool *pool = NULL;
    struct error err = {0};
    cr_assert_eq(pool_open(&pool, threads, &err), 0, "%s", err.text);
    cr_assert_eq(pool_threads(pool), threads);
    return pool;
}

Test(pool, each_piece_runs_exactly_once_on_any_number_of_threads)
{
    for (int threads = 1; threads <= 5; threads++) {
        struct pool *pool = pool_of(threads);
        struct tally *t = calloc(1, sizeof *t);
        t->threads = threads;
        pool_run(pool, MANY, visit, t);
        for (int i = 0; i < MANY; i++)
            cr_assert_eq(t->visits[i], 1, "piece %d ran %d times on %d threads", i, t->visits[i], threads);
        cr_assert_eq(t->thread_out_of_range, 0);
        pool_free(pool);
        free(t);
    }
}

Test(pool, every_thread_flushes_denormals)
{
    struct pool *pool = pool_of(3);
    struct tally *t = calloc(1, sizeof *t);
    t->threads = 3;
    pool_run(pool, MANY, visit, t);
    cr_assert_eq(t->without_flush, 0);
    pool_free(pool);
    free(t);
}

Test(pool, the_pulse_grows_with_each_job)
{
    for (int threads = 1; threads <= 2; threads++) {
        struct pool *pool = pool_of(threads);
        struct tally t = {.threads = threads};
        atomic_llong pulse = 0;
        pool_run(pool, 4, visit, &t);
        pool_pulse(pool, &pulse);
        for (int i = 0; i < 3; i++)
            pool_run(pool, 4, visit, &t);
        cr_assert_eq(atomic_load(&pulse), 3);
        pool_free(pool);
    }
}

struct sum {
    atomic_long total;
    int wanted;
};

static void add(void *ctx, int piece, int thread)
{
    (void)thread;
    struct sum *s = ctx;
    atomic_fetch_add(&s->total, piece + s->wanted);
}

/* Jobs of changing size, one right behind the other: a thread that comes late from one job must not touch
 * the next one's pieces with the old function or context. */
Test(pool, jobs_one_behind_the_other_never_mix)
{
    struct pool *pool = pool_of(4);
    for (int job = 0; job < 20000; job++) {
        struct sum s = {.wanted = job};
        int pieces = job % 7;
        pool_run(pool, pieces, add, &s);
        cr_assert_eq(s.total, (long)pieces * (pieces - 1) / 2 + (long)pieces * job, "job %d", job);
    }
    pool_free(pool);
}

Test(pool, a_pool_that_never_ran_can_be_freed)
{
    pool_free(pool_of(3));
    pool_free(NULL);
}
