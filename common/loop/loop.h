/* The one place where a program waits (libuv stays inside loop.c).
 *
 * A loop belongs to the thread that runs it; of all functions here only loop_wake may be called from
 * another thread. Callbacks run on that thread, one at a time, and may open and free anything, the object
 * that called them too. What x_open made ends with x_free (NULL is fine), and after that its callback never
 * comes again. Everything opened on a loop is freed before the loop is. loop_open makes the process ignore
 * SIGPIPE: a broken connection is an error of write, not a death.
 *
 * Time: loop_now reads the clock once per turn; hand that value down instead of reading again. Timers take
 * absolute deadlines and never fire early; they are for grace times and heartbeats and are exact to about a
 * millisecond. */
#ifndef RM_LOOP_LOOP_H
#define RM_LOOP_LOOP_H

#include <stdbool.h>

#include "common/base/error.h"
#include "common/base/time.h"

struct loop;

int loop_open(struct loop **ret, struct error *err);
void loop_free(struct loop *loop); /* waits for background work that is under way */
void loop_run(struct loop *loop);  /* until loop_stop; may be called again */
void loop_stop(struct loop *loop); /* loop_run returns after this turn's callbacks */
/* One turn: waits for something to happen where `wait` is set and nothing is ready, and handles it. */
void loop_turn(struct loop *loop, bool wait);
rm_time loop_now(struct loop *loop);
void *loop_native(struct loop *loop); /* the uv_loop_t, for a library that brings its own use of libuv */

/* A timer: at most one deadline at a time. */
struct loop_timer;
int loop_timer_open(struct loop_timer **ret, struct loop *loop, void (*fired)(void *ctx), void *ctx,
                    struct error *err);
void loop_timer_set(struct loop_timer *timer, rm_time deadline); /* RM_NEVER: off; the past: next turn */
void loop_timer_free(struct loop_timer *timer);

/* A watched descriptor (socket, pipe, eventfd; not a regular file). It is set non-blocking, stays the
 * caller's, and must stay open until loop_watch_free. At most one watch per descriptor. LOOP_CLOSED tells
 * that the other side has closed, also while nobody wants to read; errors come as readable and writable so
 * that the next call finds them. */
enum loop_events { LOOP_READABLE = 1, LOOP_WRITABLE = 2, LOOP_CLOSED = 4 };
struct loop_watch;
int loop_watch_open(struct loop_watch **ret, struct loop *loop, int fd, void (*ready)(void *ctx, int events),
                    void *ctx, struct error *err);
void loop_watch_set(struct loop_watch *watch, int events); /* 0: none; starts with none */
void loop_watch_free(struct loop_watch *watch);

/* A signal, delivered as a callback. */
struct loop_signal;
int loop_signal_open(struct loop_signal **ret, struct loop *loop, int signo,
                     void (*came)(void *ctx, int signo), void *ctx, struct error *err);
void loop_signal_free(struct loop_signal *signal);
/* A signal that comes before loop_signal_open waits for it. Call it first thing in main: the first process of
 * a pod has no default actions, a SIGTERM that it is not ready for would be lost, and is sent only once. */
void loop_signal_hold(int signo);

/* A bell that other threads ring. Several rings before the callback runs may come as one. */
struct loop_bell;
int loop_bell_open(struct loop_bell **ret, struct loop *loop, void (*rang)(void *ctx), void *ctx,
                   struct error *err);
void loop_wake(struct loop_bell *bell); /* from any thread, also from a signal handler */
void loop_bell_free(struct loop_bell *bell);

/* Background work: work(ctx) on another thread, then done(ctx) on the loop. Several run at once, in no
 * order; whoever needs an order starts the next in done. There is no taking back: ctx lives until done. */
int loop_work(struct loop *loop, void (*work)(void *ctx), void (*done)(void *ctx), void *ctx,
              struct error *err);

/* Child processes. fds[i] becomes descriptor i of the child; -1 is /dev/null. The caller keeps its own
 * copies and closes them. All other descriptors must have close-on-exec (everything in this tree has). The
 * child starts with default signals and this process's working folder. */
struct loop_child;
struct loop_child_options {
    const char *path;        /* of the program, not searched for in PATH */
    const char *const *args; /* args[0] is the name; NULL-terminated */
    const int *fds;
    int fd_count;                                    /* 3 to 16 */
    char *const *environment;                        /* NULL: this process's */
    void (*exited)(void *ctx, int code, int signal); /* signal 0: it exited by itself with code */
    void *ctx;
};
int loop_child_open(struct loop_child **ret, struct loop *loop, const struct loop_child_options *options,
                    struct error *err);
int loop_child_pid(const struct loop_child *child);
bool loop_child_kill(struct loop_child *child, int signo); /* false where it has already exited */
/* From here on its end is told to that one. */
void loop_child_pass(struct loop_child *child, void (*exited)(void *ctx, int code, int signal), void *ctx);
/* Forgets it (the process goes on where it has not exited, and is still reaped). */
void loop_child_free(struct loop_child *child);

#endif
