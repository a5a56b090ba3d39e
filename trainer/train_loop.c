/* Hands what agent, ring and threads tell to the elastic core, and has done what it decides; the trainer's
 * only loop. */
#include "trainer/train_loop.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/net/link.h"
#include "common/os/clock.h"
#include "common/os/fault.h"
#include "common/os/log.h"
#include "common/os/shelf.h"
#include "trainer/engine/compute.h"
#include "trainer/prober.h"

enum {
    EARLY_MAX = 16,     /* messages that may come before the engine is open */
    STRANGERS_TOLD = 20 /* lines about them in the log: they must not fill a disk */
};
#define LAST_WORDS (2 * RM_S) /* for the agent to read what is still to be said at the end */

struct train_loop;

struct ring_watch {
    struct train_loop *owner;
    struct loop_watch *watch;
    int worker; /* at the other end */
};

struct train_loop {
    const struct train_loop_options *options;
    struct loop *loop;
    struct link *link;
    struct loop_timer *pulse;
    struct shelf shelf;          /* its ends' numbers */
    struct loop_signal *drilled; /* NULL in a pod: `ringmaster run` alone has drills */
    struct job_spec spec;
    struct msg_setup setup;
    bool set_up;
    struct compute *compute;
    struct engine *engine; /* NULL until open */
    struct prober *prober; /* NULL until the engine is open */
    struct elastic *core;
    struct elastic_out out;
    struct message message;          /* being read, or told by `up` */
    struct message early[EARLY_MAX]; /* waits for the engine */
    int early_count;
    struct str text;
    struct ring_watch watch[2];
    int watches;
    int gone;       /* worker whose ring connection ended during an exchange; -1 */
    bool ring_over; /* the planned last step of this ring is done: who leaves it may go */
    int exit_code;
};

static void end_loop(struct train_loop *t, int code)
{
    t->exit_code = code;
    loop_stop(t->loop);
}

static void send_message(struct train_loop *t, const struct message *message)
{
    struct error err;
    FAULT("trainer-send");
    str_reset(&t->text);
    message_write(message, &t->text);
    if (link_send(t->link, str_text(&t->text), t->text.length, &err) < 0) {
        log_warn("the agent can't be told", "message=%s why=\"%s\"", msg_type_name(message->type), err.text);
        end_loop(t, EXIT_MACHINE);
    }
}

/* Ends this process with a sentence that the agent passes on. */
static void fail_loop(struct train_loop *t, const struct error *err)
{
    struct message *m = &t->message;
    log_warn("the trainer ends", "why=\"%s\"", err->text);
    *m = (struct message){.type = MSG_FAULT};
    m->fault.kind = err->code == ERR_DATA ? FAULT_DATA : FAULT_MACHINE;
    m->fault.class = err->class;
    m->fault.person = err->person;
    m->fault.exit_code = error_exit_code(err->code);
    m->fault.peer = -1;
    m->fault.step = -1;
    text_copy(m->fault.detail, sizeof m->fault.detail, err->text);
    send_message(t, m);
    end_loop(t, error_exit_code(err->code));
}

/* ---- watching the ring ---- */

static void feed(struct train_loop *t, const struct elastic_event *event);

static void tell_gone(struct train_loop *t, int worker)
{
    if (t->ring_over)
        return;
    struct elastic_event event = {.kind = ELASTIC_PEER_GONE, .peer = worker};
    feed(t, &event);
}

/* During an exchange a neighbour may be done and gone before us, and the exchange itself finds out what is
 * wrong; what is still wrong after it is told then. */
static void ring_ended(void *ctx, int events)
{
    struct ring_watch *w = ctx;
    struct train_loop *t = w->owner;
    int worker = w->worker;
    (void)events;
    loop_watch_set(w->watch, 0);
    if (engine_exchanging(t->engine))
        t->gone = worker;
    else
        tell_gone(t, worker);
}

static void stop_watching(struct train_loop *t)
{
    for (int i = 0; i < t->watches; i++)
        loop_watch_free(t->watch[i].watch);
    t->watches = 0;
    t->gone = -1;
}

static void start_watching(struct train_loop *t)
{
    int fds[2], workers[2], n = engine_watch(t->engine, fds, workers);
    struct error err;
    t->ring_over = false;
    for (int i = 0; i < n; i++) {
        struct ring_watch *w = &t->watch[t->watches];
        *w = (struct ring_watch){.owner = t, .worker = workers[i]};
        if (loop_watch_open(&w->watch, t->loop, fds[i], ring_ended, w, &err) < 0) {
            fail_loop(t, &err);
            return;
        }
        t->watches++;
        loop_watch_set(w->watch, LOOP_CLOSED);
    }
}

/* ---- what the core decides ---- */

static void run_command(struct train_loop *t, const struct elastic_action *action)
{
    if (action->command == CMD_CONNECT)
        stop_watching(t); /* its descriptors are about to be closed */
    compute_start(t->compute, action);
}

/* It is said in full here: who hears of it has room for a part of a long sentence. */
static void log_own_fault(const struct message *m)
{
    if (m->type == MSG_FAULT && m->fault.kind == FAULT_MACHINE)
        log_warn("this trainer can't work", "why=\"%s\"", m->fault.detail);
}

static void act_on(struct train_loop *t, const struct elastic_action *action)
{
    switch (action->kind) {
    case ELASTIC_RUN:
        run_command(t, action);
        break;
    case ELASTIC_ABORT:
        compute_abort(t->compute);
        break;
    case ELASTIC_PAUSE:
        compute_pause(t->compute);
        break;
    case ELASTIC_RAISE_STOP:
        engine_raise_stop(t->engine);
        break;
    case ELASTIC_SAVE_EVERY:
        engine_save_every(t->engine, action->every);
        break;
    case ELASTIC_RAISE_SAVE:
        engine_raise_save(t->engine);
        break;
    case ELASTIC_SEND:
        log_own_fault(action->message);
        send_message(t, action->message);
        break;
    case ELASTIC_PROBE:
        prober_start(t->prober, &action->message->probe);
        break;
    case ELASTIC_EXIT:
        end_loop(t, action->exit_code);
        break;
    }
}

static void feed(struct train_loop *t, const struct elastic_event *event)
{
    elastic_step(t->core, event, &t->out);
    for (int i = 0; i < t->out.count; i++)
        act_on(t, &t->out.action[i]);
}

/* ---- the threads ---- */

static bool uses_ring(enum elastic_command command)
{
    return command == CMD_LANES || command == CMD_EXCHANGE || command == CMD_EVALUATE ||
           command == CMD_COMPARE;
}

/* A ring that failed is known to; its other ends close one by one now, and that is no news. One whose pass
 * has to be made again stands, and is not over before that pass is. */
static void ring_used(struct train_loop *t, const struct elastic_result *result)
{
    if (result->outcome != OUTCOME_OK && result->outcome != OUTCOME_RESCALE)
        stop_watching(t);
    else if (result->outcome == OUTCOME_OK && result->stop)
        t->ring_over = true;
}

static void command_done(void *ctx, const struct elastic_result *result)
{
    struct train_loop *t = ctx;
    struct elastic_event event = {.kind = ELASTIC_DONE, .result = result, .peer = -1};
    log_debug("command done", "command=%d outcome=%d took_ms=%.3f why=\"%s\"", (int)result->command,
              (int)result->outcome, rm_ms(result->took), result->text);
    if (result->command == CMD_CONNECT && result->outcome == OUTCOME_OK)
        start_watching(t);
    if (uses_ring(result->command))
        ring_used(t, result);
    bool in_step = elastic_follows(result) != CMD_NONE;
    int gone = in_step ? -1 : t->gone;
    t->gone = in_step ? t->gone : -1;
    if (!in_step)
        engine_exchange_over(t->engine);
    feed(t, &event);
    /* Nothing is told where that began a new ring: what ended belongs to the old one. */
    if (gone >= 0 && t->watches)
        tell_gone(t, gone);
}

static void feed_link(struct train_loop *t, const struct message *message)
{
    struct elastic_event event = {.kind = ELASTIC_LINK, .message = message};
    feed(t, &event);
}

static void probed(void *ctx, const struct msg_probed *answer)
{
    struct train_loop *t = ctx;
    message_init(&t->message, MSG_PROBED);
    t->message.probed = *answer;
    send_message(t, &t->message);
}

static int open_prober(struct train_loop *t, struct error *err)
{
    struct prober_options options = {.probed = probed, .ctx = t};
    engine_identity(t->engine, &options.secret, &options.self);
    return prober_open(&t->prober, t->loop, &options, err);
}

static void engine_is_open(void *ctx, struct engine *engine, const struct error *err)
{
    struct train_loop *t = ctx;
    struct elastic_event event;
    if (err) {
        fail_loop(t, err);
        return;
    }
    struct error no_prober;
    t->engine = engine;
    if (open_prober(t, &no_prober) < 0) {
        fail_loop(t, &no_prober);
        return;
    }
    engine_opened(engine, &t->message, &event);
    feed(t, &event);
    for (int i = 0; i < t->early_count; i++)
        feed_link(t, &t->early[i]);
    t->early_count = 0;
    loop_timer_set(t->pulse, clock_now());
}

/* On the data port's thread, which is the only one that calls it. */
static void stranger(const char *why)
{
    static int told;
    if (told < STRANGERS_TOLD)
        log_warn("a caller at the data port was sent away", "why=\"%s\"%s", why,
                 told == STRANGERS_TOLD - 1 ? " more=\"will not be told\"" : "");
    told += told < STRANGERS_TOLD;
}

/* ---- the link ---- */

static int start_core(struct train_loop *t, struct error *err)
{
    struct elastic_settings settings = {
        .worker = t->setup.worker,
        .steps = t->spec.steps,
        .evaluation_every = t->spec.evaluation.every_steps,
        .checkpoint_every = t->spec.checkpoint.every_steps,
        .snapshot_busy = t->setup.snapshot_busy,
        .load_busy = t->setup.load_busy,
    };
    t->core = elastic_open(&settings);
    return t->core ? 0 : err_set(err, ERR_MACHINE, "no memory for the trainer's core");
}

static int set_up(struct train_loop *t, const struct msg_setup *setup, struct error *err)
{
    char name[32];
    t->setup = *setup;
    t->set_up = true;
    snprintf(name, sizeof name, "trainer %d", setup->worker);
    log_name(name);
    fault_worker(setup->worker);
    if (setup->restarts > 0 || setup->attempt > 0)
        fault_disarm();
    FAULT("trainer-setup");
    if (job_spec_read(&t->spec, setup->spec, strlen(setup->spec), err) < 0)
        return err_wrap(err, "setup");
    if (start_core(t, err) < 0)
        return -1;
    struct compute_options options = {
        .engine = {.spec = &t->spec,
                   .setup = &t->setup,
                   .state_fd = t->options->state_fd,
                   .snapshot_fd = t->options->snapshot_fd,
                   .data_fd = t->options->data_fd,
                   .program_fd = t->options->program_fd,
                   .shelf = t->options->shelf_fd < 0 ? NULL : &t->shelf,
                   .alone = t->options->alone == 1,
                   .refused = stranger},
        .opened = engine_is_open,
        .done = command_done,
        .ctx = t,
    };
    loop_timer_set(t->pulse, clock_now());
    return compute_open(&t->compute, t->loop, &options, err);
}

static int take_message(struct train_loop *t, const char *text, size_t length, struct error *err)
{
    if (message_read(&t->message, text, length, err) < 0)
        return -1;
    if (t->message.type == MSG_RELEASE) {
        end_loop(t, 0);
        return 0;
    }
    if (!t->set_up && t->message.type != MSG_SETUP)
        return err_set(err, ERR_PROTOCOL, "the agent must send setup first");
    if (!t->set_up)
        return set_up(t, &t->message.setup, err);
    if (t->engine) {
        feed_link(t, &t->message);
        return 0;
    }
    if (t->early_count == EARLY_MAX)
        return err_set(err, ERR_PROTOCOL, "the agent sends too much before this trainer is up");
    t->early[t->early_count++] = t->message;
    return 0;
}

static void link_message(void *ctx, const char *text, size_t length)
{
    struct train_loop *t = ctx;
    struct error err;
    if (take_message(t, text, length, &err) < 0)
        fail_loop(t, &err);
}

static void link_closed(void *ctx, const char *why)
{
    struct train_loop *t = ctx;
    log_debug("the link has ended", "why=\"%s\"", why);
    end_loop(t, EXIT_MACHINE);
}

/* --drill corrupt:W@S; one that comes before there is anything to flip is for nothing. */
static void corrupt(void *ctx, int signo)
{
    struct train_loop *t = ctx;
    (void)signo;
    if (t->engine)
        engine_raise_corrupt(t->engine);
}

/* Also while the engine opens, which may read all of the data, fill the memory, or wait for a user's program:
 * the agent ends a trainer that says nothing. */
static void send_pulse(void *ctx)
{
    struct train_loop *t = ctx;
    struct engine_pulse pulse = {.waiting_for = -1};
    if (t->engine)
        pulse = engine_pulse(t->engine);
    struct message *m = &t->message;
    *m = (struct message){.type = MSG_HEARTBEAT};
    m->heartbeat.step = elastic_held_step(t->core);
    m->heartbeat.counter = pulse.counter;
    m->heartbeat.phase = elastic_phase(t->core);
    m->heartbeat.waiting_for = pulse.waiting_for;
    m->heartbeat.bytes = pulse.bytes;
    send_message(t, m);
    loop_timer_set(t->pulse, loop_now(t->loop) + t->spec.elasticity.heartbeat);
}

/* ---- beginning and end ---- */

static int open_all(struct train_loop *t, struct error *err)
{
    struct link_options link = {
        .fd = t->options->link_fd, .message = link_message, .closed = link_closed, .ctx = t};
    if (loop_open(&t->loop, err) < 0 || loop_timer_open(&t->pulse, t->loop, send_pulse, t, err) < 0)
        return -1;
    if (t->options->alone != 1 && loop_signal_open(&t->drilled, t->loop, SIGUSR1, corrupt, t, err) < 0)
        return -1;
    return link_open(&t->link, t->loop, &link, err);
}

static void close_all(struct train_loop *t)
{
    if (t->link)
        link_drain(t->link, clock_now() + LAST_WORDS);
    stop_watching(t);
    compute_free(t->compute);
    elastic_free(t->core);
    link_free(t->link);
    loop_timer_free(t->pulse);
    loop_signal_free(t->drilled);
    prober_stop(t->prober);
    loop_free(t->loop);
    prober_free(t->prober);
    str_clear(&t->text);
    free(t);
}

int train_loop_run(const struct train_loop_options *options)
{
    struct train_loop *t = calloc(1, sizeof *t);
    struct error err;
    if (!t)
        return EXIT_MACHINE;
    t->options = options;
    t->shelf = (struct shelf){options->shelf_fd, options->shelf_fd + 1};
    t->gone = -1;
    t->text = str_init(RM_FRAME_MAX);
    if (open_all(t, &err) < 0) {
        log_warn("the trainer can't start", "why=\"%s\"", err.text);
        t->exit_code = error_exit_code(err.code);
    } else {
        loop_run(t->loop);
    }
    int code = t->exit_code;
    close_all(t);
    return code;
}
