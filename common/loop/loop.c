/* The one loop: timers, descriptors, signals, bells, jobs off the loop and child processes over libuv.
 * Nothing else includes uv.h. */
#include "common/loop/loop.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "common/os/clock.h"

enum { FDS_MAX = 16 };

/* libuv gives a handle's memory back only in a later turn, so every object here is freed in uv_close's
 * callback; `dead` keeps a callback from coming after x_free in the turn between. */
struct loop {
    uv_loop_t uv;
    uv_prepare_t turn_end; /* runs before each wait: the next reading of the clock is a fresh one */
    uv_check_t turn_start; /* runs after each wait */
    rm_time now;           /* 0: not read in this turn */
};

struct loop_timer {
    uv_timer_t uv;
    struct loop *loop;
    rm_time deadline;
    void (*fired)(void *ctx);
    void *ctx;
};

struct loop_watch {
    uv_poll_t uv;
    int events; /* that it waits for; 0: none */
    void (*ready)(void *ctx, int events);
    void *ctx;
};

struct loop_signal {
    uv_signal_t uv;
    void (*came)(void *ctx, int signo);
    void *ctx;
};

struct loop_bell {
    uv_async_t uv;
    void (*rang)(void *ctx);
    void *ctx;
};

struct loop_child {
    uv_process_t uv;
    void (*exited)(void *ctx, int code, int signal);
    void *ctx;
    bool ended, forgotten;
};

struct job {
    uv_work_t uv;
    void (*work)(void *ctx);
    void (*done)(void *ctx);
    void *ctx;
};

static int uv_failed(struct error *err, const char *what, int code)
{
    return err_set(err, ERR_MACHINE, "%s: %s", what, uv_strerror(code));
}

static void free_closed(uv_handle_t *handle)
{
    free(handle->data);
}

/* The object that holds `handle` ends with it. */
static void close_and_free(uv_handle_t *handle, void *object)
{
    handle->data = object;
    uv_close(handle, free_closed);
}

static void forget_prepare(uv_prepare_t *handle)
{
    ((struct loop *)handle->data)->now = 0;
}

static void forget_check(uv_check_t *handle)
{
    ((struct loop *)handle->data)->now = 0;
}

int loop_open(struct loop **ret, struct error *err)
{
    struct loop *loop = calloc(1, sizeof *loop);
    if (!loop)
        return err_set(err, ERR_MACHINE, "no memory for a loop");
    int code = uv_loop_init(&loop->uv);
    if (code < 0) {
        free(loop);
        return uv_failed(err, "cannot start an event loop", code);
    }
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error of that write */
    uv_prepare_init(&loop->uv, &loop->turn_end);
    uv_check_init(&loop->uv, &loop->turn_start);
    loop->turn_end.data = loop->turn_start.data = loop;
    uv_prepare_start(&loop->turn_end, forget_prepare);
    uv_check_start(&loop->turn_start, forget_check);
    uv_unref((uv_handle_t *)&loop->turn_end);
    uv_unref((uv_handle_t *)&loop->turn_start);
    *ret = loop;
    return 0;
}

/* Children that were forgotten and still run: nobody waits for them any more. */
static void close_forgotten(uv_handle_t *handle, void *ctx)
{
    (void)ctx;
    if (handle->type == UV_PROCESS && !uv_is_closing(handle))
        close_and_free(handle, handle->data);
}

void loop_free(struct loop *loop)
{
    if (!loop)
        return;
    uv_walk(&loop->uv, close_forgotten, NULL);
    uv_close((uv_handle_t *)&loop->turn_end, NULL);
    uv_close((uv_handle_t *)&loop->turn_start, NULL);
    while (uv_run(&loop->uv, UV_RUN_ONCE))
        ;
    uv_loop_close(&loop->uv);
    free(loop);
}

void loop_run(struct loop *loop)
{
    uv_run(&loop->uv, UV_RUN_DEFAULT);
}

void loop_stop(struct loop *loop)
{
    uv_stop(&loop->uv);
}

void loop_turn(struct loop *loop, bool wait)
{
    uv_run(&loop->uv, wait ? UV_RUN_ONCE : UV_RUN_NOWAIT);
}

rm_time loop_now(struct loop *loop)
{
    if (!loop->now)
        loop->now = clock_now();
    return loop->now;
}

void *loop_native(struct loop *loop)
{
    return &loop->uv;
}

static void timer_arm(struct loop_timer *timer);

static void timer_fired(uv_timer_t *uv)
{
    struct loop_timer *timer = uv->data;
    timer->loop->now = 0; /* a kept reading from before the deadline would fire here for ever */
    if (loop_now(timer->loop) < timer->deadline) {
        timer_arm(timer); /* libuv's clock is in whole ms, ours is not */
        return;
    }
    timer->deadline = RM_NEVER;
    timer->fired(timer->ctx);
}

static void timer_arm(struct loop_timer *timer)
{
    rm_time wait = timer->deadline - clock_now();
    uint64_t ms = wait <= 0 ? 0 : (uint64_t)((wait + RM_MS - 1) / RM_MS);
    uv_update_time(timer->uv.loop);
    uv_timer_start(&timer->uv, timer_fired, ms, 0);
}

int loop_timer_open(struct loop_timer **ret, struct loop *loop, void (*fired)(void *ctx), void *ctx,
                    struct error *err)
{
    struct loop_timer *timer = calloc(1, sizeof *timer);
    if (!timer)
        return err_set(err, ERR_MACHINE, "no memory for a timer");
    *timer = (struct loop_timer){.loop = loop, .deadline = RM_NEVER, .fired = fired, .ctx = ctx};
    uv_timer_init(&loop->uv, &timer->uv);
    timer->uv.data = timer;
    *ret = timer;
    return 0;
}

void loop_timer_set(struct loop_timer *timer, rm_time deadline)
{
    if (deadline == timer->deadline)
        return;
    timer->deadline = deadline;
    if (deadline == RM_NEVER)
        uv_timer_stop(&timer->uv);
    else
        timer_arm(timer);
}

void loop_timer_free(struct loop_timer *timer)
{
    if (timer)
        close_and_free((uv_handle_t *)&timer->uv, timer);
}

static void watch_ready(uv_poll_t *uv, int status, int events)
{
    struct loop_watch *watch = uv->data;
    int ready = (events & UV_READABLE ? LOOP_READABLE : 0) | (events & UV_WRITABLE ? LOOP_WRITABLE : 0) |
                (events & UV_DISCONNECT ? LOOP_CLOSED : 0);
    if (status < 0) { /* libuv waits no longer then */
        watch->events = 0;
        ready = LOOP_READABLE | LOOP_WRITABLE | LOOP_CLOSED;
    }
    watch->ready(watch->ctx, ready);
}

int loop_watch_open(struct loop_watch **ret, struct loop *loop, int fd, void (*ready)(void *ctx, int events),
                    void *ctx, struct error *err)
{
    struct loop_watch *watch = calloc(1, sizeof *watch);
    if (!watch)
        return err_set(err, ERR_MACHINE, "no memory to watch a descriptor");
    *watch = (struct loop_watch){.ready = ready, .ctx = ctx};
    int code = uv_poll_init(&loop->uv, &watch->uv, fd);
    if (code < 0) {
        free(watch);
        return uv_failed(err, "cannot watch a descriptor", code);
    }
    watch->uv.data = watch;
    *ret = watch;
    return 0;
}

/* libuv takes a descriptor out and puts it in again, two calls of the kernel, also where nothing changes:
 * and who sends asks after each message. */
void loop_watch_set(struct loop_watch *watch, int events)
{
    if (events == watch->events)
        return;
    watch->events = events;
    int wanted = (events & LOOP_READABLE ? UV_READABLE : 0) | (events & LOOP_WRITABLE ? UV_WRITABLE : 0) |
                 (events & LOOP_CLOSED ? UV_DISCONNECT : 0);
    if (wanted)
        uv_poll_start(&watch->uv, wanted, watch_ready);
    else
        uv_poll_stop(&watch->uv);
}

void loop_watch_free(struct loop_watch *watch)
{
    if (watch)
        close_and_free((uv_handle_t *)&watch->uv, watch);
}

static void signal_came(uv_signal_t *uv, int signo)
{
    struct loop_signal *signal = uv->data;
    signal->came(signal->ctx, signo);
}

static void mask(int how, int signo)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signo);
    pthread_sigmask(how, &set, NULL);
}

void loop_signal_hold(int signo)
{
    mask(SIG_BLOCK, signo);
}

int loop_signal_open(struct loop_signal **ret, struct loop *loop, int signo,
                     void (*came)(void *ctx, int signo), void *ctx, struct error *err)
{
    struct loop_signal *signal = calloc(1, sizeof *signal);
    if (!signal)
        return err_set(err, ERR_MACHINE, "no memory for a signal");
    *signal = (struct loop_signal){.came = came, .ctx = ctx};
    uv_signal_init(&loop->uv, &signal->uv);
    signal->uv.data = signal;
    int code = uv_signal_start(&signal->uv, signal_came, signo);
    if (code < 0) {
        loop_signal_free(signal);
        return uv_failed(err, "cannot take a signal", code);
    }
    mask(SIG_UNBLOCK, signo);
    *ret = signal;
    return 0;
}

void loop_signal_free(struct loop_signal *signal)
{
    if (signal)
        close_and_free((uv_handle_t *)&signal->uv, signal);
}

static void bell_rang(uv_async_t *uv)
{
    struct loop_bell *bell = uv->data;
    bell->rang(bell->ctx);
}

int loop_bell_open(struct loop_bell **ret, struct loop *loop, void (*rang)(void *ctx), void *ctx,
                   struct error *err)
{
    struct loop_bell *bell = calloc(1, sizeof *bell);
    if (!bell)
        return err_set(err, ERR_MACHINE, "no memory for a bell");
    *bell = (struct loop_bell){.rang = rang, .ctx = ctx};
    int code = uv_async_init(&loop->uv, &bell->uv, bell_rang);
    if (code < 0) {
        free(bell);
        return uv_failed(err, "cannot make a bell", code);
    }
    bell->uv.data = bell;
    *ret = bell;
    return 0;
}

void loop_wake(struct loop_bell *bell)
{
    uv_async_send(&bell->uv);
}

void loop_bell_free(struct loop_bell *bell)
{
    if (bell)
        close_and_free((uv_handle_t *)&bell->uv, bell);
}

static void job_work(uv_work_t *uv)
{
    struct job *job = uv->data;
    job->work(job->ctx);
}

static void job_done(uv_work_t *uv, int status)
{
    (void)status; /* nothing here cancels work */
    struct job *job = uv->data;
    job->done(job->ctx);
    free(job);
}

int loop_work(struct loop *loop, void (*work)(void *ctx), void (*done)(void *ctx), void *ctx,
              struct error *err)
{
    struct job *job = calloc(1, sizeof *job);
    if (!job)
        return err_set(err, ERR_MACHINE, "no memory for background work");
    *job = (struct job){.work = work, .done = done, .ctx = ctx};
    job->uv.data = job;
    int code = uv_queue_work(&loop->uv, &job->uv, job_work, job_done);
    if (code < 0) {
        free(job);
        return uv_failed(err, "cannot start background work", code);
    }
    return 0;
}

static void child_exited(uv_process_t *uv, int64_t code, int signo)
{
    struct loop_child *child = uv->data;
    child->ended = true;
    if (child->forgotten)
        close_and_free((uv_handle_t *)&child->uv, child);
    else
        child->exited(child->ctx, (int)code, signo);
}

/* libuv opens no /dev/null for descriptors above 2, and none where the process runs without one below;
 * UV_IGNORE does it for 0 to 2, which is all that needs it. */
static void child_describe(uv_process_options_t *out, uv_stdio_container_t stdio[FDS_MAX],
                           const struct loop_child_options *options)
{
    for (int i = 0; i < options->fd_count; i++) {
        stdio[i].flags = options->fds[i] < 0 ? UV_IGNORE : UV_INHERIT_FD;
        stdio[i].data.fd = options->fds[i];
    }
    *out = (uv_process_options_t){.exit_cb = child_exited,
                                  .file = options->path,
                                  .args = (char **)(uintptr_t)options->args,
                                  .env = (char **)(uintptr_t)options->environment,
                                  .stdio = stdio,
                                  .stdio_count = options->fd_count};
}

int loop_child_open(struct loop_child **ret, struct loop *loop, const struct loop_child_options *options,
                    struct error *err)
{
    if (options->fd_count < 3 || options->fd_count > FDS_MAX)
        return err_set(err, ERR_MACHINE, "a child gets 3 to %d descriptors, not %d", FDS_MAX,
                       options->fd_count);
    struct loop_child *child = calloc(1, sizeof *child);
    if (!child)
        return err_set(err, ERR_MACHINE, "no memory for a child process");
    *child = (struct loop_child){.exited = options->exited, .ctx = options->ctx};
    child->uv.data = child;
    uv_stdio_container_t stdio[FDS_MAX];
    uv_process_options_t uv;
    child_describe(&uv, stdio, options);
    int code = uv_spawn(&loop->uv, &child->uv, &uv);
    if (code < 0) {
        close_and_free((uv_handle_t *)&child->uv, child);
        return err_set(err, ERR_MACHINE, "cannot start %s: %s", options->path, uv_strerror(code));
    }
    *ret = child;
    return 0;
}

int loop_child_pid(const struct loop_child *child)
{
    return child->uv.pid;
}

bool loop_child_kill(struct loop_child *child, int signo)
{
    return !child->ended && uv_process_kill(&child->uv, signo) == 0;
}

void loop_child_pass(struct loop_child *child, void (*exited)(void *ctx, int code, int signal), void *ctx)
{
    child->exited = exited;
    child->ctx = ctx;
}

void loop_child_free(struct loop_child *child)
{
    if (!child)
        return;
    if (child->ended)
        close_and_free((uv_handle_t *)&child->uv, child);
    else {
        child->forgotten = true;
        uv_unref((uv_handle_t *)&child->uv); /* loop_free does not wait for it */
    }
}
