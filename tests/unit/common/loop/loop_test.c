#include "common/loop/loop.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/os/clock.h"

struct desk {
    struct loop *loop;
    struct loop_timer *timer;
    struct loop_watch *watch;
    struct loop_bell *bell;
    int count, events, stop_at, signal;
    rm_time fired_at;
    pthread_t worked_on;
};

static void desk_open(struct desk *d)
{
    struct error err;
    *d = (struct desk){.stop_at = 1};
    cr_assert_eq(loop_open(&d->loop, &err), 0);
}

static void counted(struct desk *d)
{
    if (++d->count == d->stop_at)
        loop_stop(d->loop);
}

static void fired(void *ctx)
{
    struct desk *d = ctx;
    d->fired_at = loop_now(d->loop);
    counted(d);
}

static void ready(void *ctx, int events)
{
    struct desk *d = ctx;
    d->events |= events;
    loop_watch_set(d->watch, 0);
    counted(d);
}

static void came(void *ctx, int signo)
{
    struct desk *d = ctx;
    d->signal = signo;
    counted(d);
}

static void rang(void *ctx)
{
    counted(ctx);
}

Test(loop, a_timer_never_fires_before_its_deadline)
{
    struct desk d;
    desk_open(&d);
    cr_assert_eq(loop_timer_open(&d.timer, d.loop, fired, &d, NULL), 0);
    rm_time deadline = clock_now() + 3 * RM_MS + 300 * RM_US;
    loop_timer_set(d.timer, deadline);
    loop_run(d.loop);
    cr_assert_geq(d.fired_at, deadline);
    loop_timer_free(d.timer);
    loop_free(d.loop);
}

Test(loop, a_deadline_in_the_past_fires_in_the_next_turn_and_once)
{
    struct desk d;
    desk_open(&d);
    cr_assert_eq(loop_timer_open(&d.timer, d.loop, fired, &d, NULL), 0);
    loop_timer_set(d.timer, 1);
    loop_run(d.loop);
    for (int i = 0; i < 5; i++)
        loop_turn(d.loop, false);
    cr_assert_eq(d.count, 1);
    loop_timer_free(d.timer);
    loop_free(d.loop);
}

Test(loop, a_timer_that_is_set_anew_forgets_its_old_deadline)
{
    struct desk d;
    desk_open(&d);
    struct desk other = d;
    cr_assert_eq(loop_timer_open(&d.timer, d.loop, fired, &d, NULL), 0);
    cr_assert_eq(loop_timer_open(&other.timer, d.loop, fired, &other, NULL), 0);
    loop_timer_set(d.timer, clock_now() + RM_MS);
    loop_timer_set(d.timer, RM_NEVER);
    loop_timer_set(other.timer, clock_now() + 4 * RM_MS);
    loop_run(d.loop);
    cr_assert_eq(other.count, 1);
    cr_assert_eq(d.count, 0);
    loop_timer_free(d.timer);
    loop_timer_free(other.timer);
    loop_free(d.loop);
}

/* The reading of the clock that a turn keeps may be from just before the deadline while libuv's own, in whole
 * ms, is past it: the timer then came back in the same turn again and again, and time stood still. */
static void again(void *ctx)
{
    struct desk *d = ctx;
    counted(d);
    if (d->count < d->stop_at)
        loop_timer_set(d->timer, loop_now(d->loop) + d->count % 3 * RM_MS + RM_US - d->count % 1000);
}

Test(loop, a_deadline_just_after_the_kept_time_is_reached, .timeout = 60)
{
    struct desk d;
    desk_open(&d);
    d.stop_at = 3000;
    cr_assert_eq(loop_timer_open(&d.timer, d.loop, again, &d, NULL), 0);
    loop_timer_set(d.timer, clock_now());
    loop_run(d.loop);
    cr_assert_eq(d.count, 3000);
    loop_timer_free(d.timer);
    loop_free(d.loop);
}

Test(loop, a_freed_timer_stays_silent)
{
    struct desk d;
    desk_open(&d);
    cr_assert_eq(loop_timer_open(&d.timer, d.loop, fired, &d, NULL), 0);
    loop_timer_set(d.timer, 1);
    loop_timer_free(d.timer);
    loop_turn(d.loop, false);
    cr_assert_eq(d.count, 0);
    loop_free(d.loop);
}

Test(loop, a_socket_whose_other_side_closes_says_so_while_nobody_reads)
{
    struct desk d;
    int pair[2];
    desk_open(&d);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    cr_assert_eq(loop_watch_open(&d.watch, d.loop, pair[0], ready, &d, NULL), 0);
    loop_watch_set(d.watch, LOOP_CLOSED);
    cr_assert_eq(write(pair[1], "unread", 6), 6);
    close(pair[1]);
    loop_run(d.loop);
    cr_assert(d.events & LOOP_CLOSED);
    loop_watch_free(d.watch);
    close(pair[0]);
    loop_free(d.loop);
}

static void wanted_again(void *ctx, int events)
{
    struct desk *d = ctx;
    d->events |= events;
    loop_watch_set(d->watch, LOOP_WRITABLE);
    counted(d);
}

/* After an error the system waits no longer, so that what was wanted before has to be said to it anew. */
Test(loop, who_wants_the_same_after_an_error_is_called_again)
{
    struct desk d;
    int ends[2];
    desk_open(&d);
    d.stop_at = 2;
    cr_assert_eq(pipe(ends), 0);
    cr_assert_eq(loop_watch_open(&d.watch, d.loop, ends[1], wanted_again, &d, NULL), 0);
    loop_watch_set(d.watch, LOOP_WRITABLE);
    close(ends[0]);
    loop_run(d.loop);
    cr_assert_eq(d.count, 2);
    cr_assert_eq(d.events, LOOP_READABLE | LOOP_WRITABLE | LOOP_CLOSED);
    loop_watch_free(d.watch);
    close(ends[1]);
    loop_free(d.loop);
}

Test(loop, only_the_wanted_events_come)
{
    struct desk d;
    int pair[2];
    desk_open(&d);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    cr_assert_eq(loop_watch_open(&d.watch, d.loop, pair[0], ready, &d, NULL), 0);
    loop_turn(d.loop, false);
    cr_assert_eq(d.count, 0);
    loop_watch_set(d.watch, LOOP_READABLE);
    cr_assert_eq(write(pair[1], "x", 1), 1);
    loop_run(d.loop);
    cr_assert_eq(d.events, LOOP_READABLE);
    loop_watch_free(d.watch);
    close(pair[0]);
    close(pair[1]);
    loop_free(d.loop);
}

Test(loop, signals_come_as_callbacks)
{
    struct desk d;
    struct loop_signal *usr1;
    desk_open(&d);
    cr_assert_eq(loop_signal_open(&usr1, d.loop, SIGUSR1, came, &d, NULL), 0);
    kill(getpid(), SIGUSR1);
    loop_run(d.loop);
    cr_assert_eq(d.signal, SIGUSR1);
    loop_signal_free(usr1);
    loop_free(d.loop);
}

Test(loop, a_signal_that_comes_before_anybody_takes_it_is_kept)
{
    struct desk d;
    struct loop_signal *term;
    loop_signal_hold(SIGTERM);
    kill(getpid(), SIGTERM);
    desk_open(&d);
    cr_assert_eq(loop_signal_open(&term, d.loop, SIGTERM, came, &d, NULL), 0);
    loop_run(d.loop);
    cr_assert_eq(d.signal, SIGTERM);
    loop_signal_free(term);
    loop_free(d.loop);
}

static void *ring(void *ctx)
{
    struct desk *d = ctx;
    loop_wake(d->bell);
    return NULL;
}

Test(loop, another_thread_rings_the_bell)
{
    struct desk d;
    pthread_t thread;
    desk_open(&d);
    cr_assert_eq(loop_bell_open(&d.bell, d.loop, rang, &d, NULL), 0);
    cr_assert_eq(pthread_create(&thread, NULL, ring, &d), 0);
    loop_run(d.loop);
    pthread_join(thread, NULL);
    cr_assert_eq(d.count, 1);
    loop_bell_free(d.bell);
    loop_free(d.loop);
}

static void work(void *ctx)
{
    struct desk *d = ctx;
    d->worked_on = pthread_self();
}

static void done(void *ctx)
{
    counted(ctx);
}

Test(loop, background_work_runs_elsewhere_and_ends_here)
{
    struct desk d;
    desk_open(&d);
    cr_assert_eq(loop_work(d.loop, work, done, &d, NULL), 0);
    loop_run(d.loop);
    cr_assert_eq(d.count, 1);
    cr_assert_not(pthread_equal(d.worked_on, pthread_self()));
    loop_free(d.loop);
}

Test(loop, freeing_a_loop_waits_for_its_background_work)
{
    struct desk d;
    desk_open(&d);
    cr_assert_eq(loop_work(d.loop, work, done, &d, NULL), 0);
    loop_free(d.loop);
    cr_assert_eq(d.count, 1);
}

Test(loop, now_stands_still_within_a_turn)
{
    struct desk d;
    desk_open(&d);
    cr_assert_eq(loop_bell_open(&d.bell, d.loop, rang, &d, NULL), 0);
    rm_time now = loop_now(d.loop);
    while (clock_now() == now)
        ;
    cr_assert_eq(loop_now(d.loop), now);
    loop_turn(d.loop, false);
    cr_assert_gt(loop_now(d.loop), now);
    loop_bell_free(d.bell);
    loop_free(d.loop);
}
