/* The worker's shell: turns what the coordinator says (contact.h), what the trainer says and what the storage
 * threads report into events of the agent's core (core/agent.h), whose actions it carries out. */
#include "agent/app.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/contact.h"
#include "agent/core/agent.h"
#include "agent/launch/descendants.h"
#include "agent/notice/listener.h"
#include "agent/program/worker_trainer.h"
#include "agent/storage/data_feed.h"
#include "agent/storage/worker_load.h"
#include "agent/storage/worker_store.h"
#include "agent/worker_pages.h"
#include "agent/worker_settings.h"
#include "common/loop/stream.h"
#include "common/net/ws.h"
#include "common/os/clock.h"
#include "common/os/fault.h"
#include "common/os/file.h"
#include "common/os/log.h"

enum {
    LINE_MAX_BYTES = 4096,
    QUEUE_MAX = 8 * RM_FRAME_MAX,
    DEFERRED_MAX = 8,
    STRANGERS_MAX = 16,
    WATCHERS_MAX = 16 /* connections to the pages at a time */
};

static const rm_time calls_return_within = 15 * RM_S; /* those that can be given up have, by then */
/* What a launcher that was killed left behind ends in a moment, unless a call holds it. */
static const rm_time left_ends_within = 50 * RM_MS, left_again = 250 * RM_MS;
static const rm_time goodbye_within = RM_S; /* for the last messages to leave, and the trainer to end */
/* What an image of ours has for data that comes from afar. */
static const char pod_cache[] = "/var/cache/ringmaster";

struct app {
    const struct app_options *options;
    struct loop *loop;
    struct ws *ws;
    struct contact *contact; /* with the coordinator */
    struct loop_timer *timer;
    struct loop_signal *term_signal, *child_signal;
    struct listener *listener; /* NULL: nobody tells of the machine's end */
    struct lines *parent;
    struct agent *agent;
    struct agent_out *out;
    bool stepping;
    struct agent_event deferred[DEFERRED_MAX]; /* came while actions were being done; carry no message */
    int deferred_count;
    struct worker_trainer *trainer;
    struct worker_store *store;
    struct worker_load *load;
    struct data_feed *feed; /* NULL: the data is in a folder */
    bool job_known;         /* trainer and store are there */
    struct {
        struct loop_timer *timer; /* NULL: no launcher */
        bool lives;               /* what the newest launcher left behind, or some of it */
        int code;                 /* how that one ended: not told yet */
        char how[RM_WHY_MAX];
    } left;
    struct worker_pages pages;
    int state_fd, snapshot_fd;
    bool ending;
    rm_time ending_until;
    bool came; /* the trainer has said that it is up */
    int exit_code;
};

static void step_agent(struct app *app, const struct agent_event *event);

static void step_text(struct app *app, enum agent_event_kind kind, int code, const char *text)
{
    struct agent_event event = {.kind = kind, .code = code};
    text_copy_ends(event.text, sizeof event.text, text);
    step_agent(app, &event);
}

static void arm_timer(struct app *app)
{
    loop_timer_set(app->timer, app->ending ? app->ending_until : agent_deadline(app->agent));
}

/* Whether the trainer lives, or anything that it started. */
static bool trainer_up(const struct app *app)
{
    return app->left.lives || (app->trainer && worker_trainer_up(app->trainer));
}

/* --- the coordinator's connection --- */

static int open_job(struct app *app, struct error *err);

/* Where pods have a place for what comes from afar and the job names none. */
static void choose_cache(struct job_spec *spec)
{
    if (!*spec->data.cache && access(pod_cache, W_OK) == 0)
        snprintf(spec->data.cache, sizeof spec->data.cache, "file://%s", pod_cache);
}

/* The first welcome says what the job is. */
static int job_learn(struct app *app, const struct message *message, struct error *err)
{
    struct job_spec *spec = &app->options->files->spec;
    if (app->job_known || message->type != MSG_WELCOME)
        return 0;
    if (job_files_learn(app->options->files, message->welcome.spec, err) < 0)
        return -1;
    choose_cache(spec);
    if (open_job(app, err) < 0)
        return -1;
    log_info("the job is known", "name=%s", spec->name);
    agent_learn(app->agent, spec->name, spec->checkpoint.uri, spec->elasticity.heartbeat, job_restarts(spec));
    if (job_freezes(spec))
        agent_fence(app->agent, spec->elasticity.lost_after, loop_now(app->loop));
    return 0;
}

static void coordinator_greeted(void *ctx)
{
    step_agent(ctx, &(struct agent_event){.kind = AGENT_CONNECTED});
}

static void coordinator_heard(void *ctx, struct message *message)
{
    struct app *app = ctx;
    struct error err;
    if (job_learn(app, message, &err) < 0)
        step_text(app, AGENT_REFUSED, 0, err.text);
    else
        step_agent(app, &(struct agent_event){.kind = AGENT_CONTROL, .message = message});
}

static void coordinator_refused(void *ctx)
{
    struct app *app = ctx;
    char text[MSG_DETAIL_MAX];
    snprintf(text, sizeof text,
             "the program at %.200s is not the coordinator of job %s: it does not have the job's key",
             app->options->coordinator, app->job_known ? app->options->files->spec.name : "that was meant");
    step_text(app, AGENT_REFUSED, 0, text);
}

static void coordinator_gone(void *ctx, const char *why)
{
    struct app *app = ctx;
    if (!app->ending)
        step_text(app, AGENT_DISCONNECTED, 0, why);
    else if (!trainer_up(app))
        loop_stop(app->loop);
}

/* Who calls here wants the pages; the one call made from here is to the coordinator. */
static void conn_opened(void *ctx, struct ws_conn *conn)
{
    struct app *app = ctx;
    if (!contact_opened(app->contact, conn))
        ws_close(conn, "there are only pages here");
}

static void conn_message(void *ctx, struct ws_conn *conn, const char *frame, size_t length)
{
    struct app *app = ctx;
    contact_message(app->contact, conn, frame, length);
}

static void conn_closed(void *ctx, struct ws_conn *conn, const char *why)
{
    struct app *app = ctx;
    contact_closed(app->contact, conn, why);
}

/* --- the trainer --- */

static void trainer_message(void *ctx, const struct message *message)
{
    struct app *app = ctx;
    worker_pages_hear(&app->pages, message);
    app->came = app->came || message->type == MSG_UP;
    if (message->type == MSG_UP && app->store) {
        worker_store_know(app->store, &message->up);
        worker_load_know(app->load, &message->up);
    }
    step_agent(app, &(struct agent_event){.kind = AGENT_LINK, .message = message});
}

static void trainer_is_over(struct app *app, int code, const char *text)
{
    if (app->options->pod)
        pod_reap(NULL, 0);
    if (app->ending && !contact_up(app->contact))
        loop_stop(app->loop);
    if (!app->ending)
        step_text(app, AGENT_TRAINER_EXIT, code, text);
}

/* Of a launcher that was killed nothing may run on when its end is told: the next generation begins then. The
 * loop goes on meanwhile, or the coordinator would take this agent for lost. */
static void end_what_is_left(void *ctx)
{
    struct app *app = ctx;
    descendants_end(left_ends_within);
    app->left.lives = !descendants_none();
    if (app->left.lives)
        loop_timer_set(app->left.timer, loop_now(app->loop) + left_again);
    else
        trainer_is_over(app, app->left.code, app->left.how);
}

static void trainer_ended(void *ctx, int code, const char *text)
{
    struct app *app = ctx;
    if (!app->left.timer) {
        trainer_is_over(app, code, text);
        return;
    }
    app->left.code = code;
    text_copy_ends(app->left.how, sizeof app->left.how, text);
    end_what_is_left(app);
    if (app->left.lives)
        log_warn("processes of the program do not end yet", "worker=%d", app->options->worker);
}

static int data_socket(void *ctx, int *ret_fd, struct error *err)
{
    const struct app *app = ctx;
    return data_feed_start(app->feed, ret_fd, err);
}

static void spawn_trainer(struct app *app)
{
    struct error err;
    app->came = false;
    if (worker_trainer_start(app->trainer, &err) < 0)
        step_text(app, AGENT_TRAINER_EXIT, -1, err.text);
    else
        app->pages.trainers++;
    FAULT("trainer-started");
}

static void send_link(struct app *app, struct message *message)
{
    if (message->type == MSG_SETUP) {
        /* else a launcher has no use for it: it makes no ring, and no snapshots */
        if (!job_restarts(&app->options->files->spec) || job_freezes(&app->options->files->spec))
            hex_encode(app->options->files->key, JOB_KEY_BYTES, message->setup.key);
        text_copy(message->setup.spec, sizeof message->setup.spec, str_text(&app->options->files->spec_text));
        text_copy(message->setup.listen, sizeof message->setup.listen, app->options->listen);
    }
    worker_trainer_send(app->trainer, message);
    if (message->type == MSG_SETUP)
        explicit_bzero(message->setup.key, sizeof message->setup.key);
}

/* --- the core --- */

static void happened(void *ctx, const struct agent_event *event)
{
    step_agent(ctx, event);
}

static void last_word(const struct app *app, int exit_code, const char *why)
{
    struct error err;
    const struct pod *pod = app->options->pod;
    bool left = !exit_code && agent_is_leaving(app->agent);
    int result = left                               ? pod_say_left(pod, &err)
                 : agent_fits_elsewhere(app->agent) ? pod_say_elsewhere(pod, exit_code, why, &err)
                                                    : pod_say_why(pod, exit_code, why, &err);
    if (result < 0)
        log_warn("no last word can be left behind", "why=\"%s\"", err.text);
}

static void end_app(struct app *app, int exit_code, const char *why)
{
    FAULT("agent-end");
    if (*why)
        log_warn("ending", "code=%d why=\"%s\"", exit_code, why);
    app->exit_code = exit_code;
    app->ending = true;
    app->ending_until = loop_now(app->loop) + goodbye_within;
    bool elastic = job_is_elastic(&app->options->files->spec);
    if (!exit_code && elastic && app->came) /* what the program does after its last step */
        app->ending_until += app->options->files->spec.launch.grace_period;
    if (app->options->pod)
        last_word(app, exit_code, why);
    if (app->trainer && (exit_code || (elastic && !app->came))) /* one that never came was in no step */
        worker_trainer_kill(app->trainer);
    contact_end(app->contact, "the agent ends");
    if (!contact_up(app->contact) && !trainer_up(app))
        loop_stop(app->loop);
}

static void act_on(struct app *app, struct agent_action *action)
{
    switch (action->kind) {
    case AGENT_CONNECT:
        contact_try(app->contact);
        return;
    case AGENT_HANG_UP:
        contact_hang_up(app->contact, "nothing comes from the coordinator");
        return;
    case AGENT_SEND_CONTROL:
        contact_send(app->contact, action->message);
        return;
    case AGENT_SEND_LINK:
        send_link(app, action->message);
        return;
    case AGENT_SPAWN:
        spawn_trainer(app);
        return;
    case AGENT_KILL:
        worker_trainer_kill(app->trainer);
        return;
    case AGENT_LIST:
    case AGENT_LOAD:
        worker_load_ask(app->load, action->kind, action->message);
        return;
    case AGENT_LOAD_STOP:
        worker_load_stop(app->load);
        return;
    case AGENT_WRITE:
    case AGENT_PUBLISH:
        worker_store_ask(app->store, action->kind, action->message);
        return;
    case AGENT_YIELD:
        worker_store_yield(app->store);
        return;
    case AGENT_EXIT:
        end_app(app, action->exit_code, action->text);
        return;
    }
}

static void step_once(struct app *app, const struct agent_event *event)
{
    struct agent_event heard = *event;
    heard.read_signs = app->load ? worker_load_signs(app->load) : 0;
    heard.write_signs = app->store ? worker_store_signs(app->store) : 0;
    agent_step(app->agent, &heard, loop_now(app->loop), app->out);
    for (int i = 0; i < app->out->count && !app->ending; i++)
        act_on(app, &app->out->action[i]);
}

/* An action may fail at once; what it says then is heard after the other actions. */
static void step_agent(struct app *app, const struct agent_event *event)
{
    if (app->ending)
        return;
    if (app->stepping) {
        if (app->deferred_count < DEFERRED_MAX)
            app->deferred[app->deferred_count++] = *event;
        return;
    }
    app->stepping = true;
    step_once(app, event);
    while (app->deferred_count && !app->ending) {
        struct agent_event next = app->deferred[0];
        app->deferred_count--;
        memmove(app->deferred, app->deferred + 1, (size_t)app->deferred_count * sizeof next);
        step_once(app, &next);
    }
    app->stepping = false;
    arm_timer(app);
}

static void timer_fired(void *ctx)
{
    struct app *app = ctx;
    if (app->ending) {
        loop_stop(app->loop);
        return;
    }
    step_agent(app, &(struct agent_event){.kind = AGENT_TICK});
}

static void asked_to_leave(void *ctx, int signo)
{
    struct app *app = ctx;
    const struct pod *pod = app->options->pod;
    (void)signo;
    step_agent(app, &(struct agent_event){.kind = AGENT_TERM, .deadline = pod ? pod_leave_within(pod) : 0});
}

/* This is the pod's first process: children whose parents have gone end here. */
static void child_ended(void *ctx, int signo)
{
    const struct app *app = ctx;
    (void)signo;
    int own = app->trainer ? worker_trainer_pid(app->trainer) : 0;
    pod_reap(&own, 1);
}

static int page(void *ctx, const struct ws_get *get, struct str *body, const char **type)
{
    const struct app *app = ctx;
    return worker_pages_get(&app->pages, get, body, type);
}

static void parent_line(void *ctx, char *text, size_t length)
{
    (void)ctx, (void)text, (void)length; /* nothing is said on this pipe; only its end matters */
}

static void parent_closed(void *ctx, const char *why)
{
    struct app *app = ctx;
    (void)why;
    app->ending = true;
    loop_stop(app->loop);
}

/* --- start and end --- */

static int open_memory(struct app *app, struct error *err)
{
    uint64_t bytes = (uint64_t)worker_store_snapshot_bytes(&app->options->files->spec);
    if (file_memory(&app->state_fd, "ringmaster-state", 0, err) < 0)
        return -1;
    return file_memory(&app->snapshot_fd, "ringmaster-snapshot", bytes, err);
}

/* Whatever a launcher that is killed leaves behind becomes this process's, and is ended by it. */
static int open_leftovers(struct app *app, struct error *err)
{
    if (descendants_take_in(err) < 0)
        return -1;
    return loop_timer_open(&app->left.timer, app->loop, end_what_is_left, app, err);
}

/* A program keeps its state itself. */
static int open_launch(struct app *app, struct error *err)
{
    struct worker_trainer_options launcher = {.state_fd = -1,
                                              .snapshot_fd = -1,
                                              .launches = true,
                                              .alone = app->options->pod != NULL,
                                              .message = trainer_message,
                                              .ended = trainer_ended,
                                              .ctx = app};
    if (open_leftovers(app, err) < 0 || worker_trainer_open(&app->trainer, app->loop, &launcher, err) < 0)
        return -1;
    app->job_known = true;
    return 0;
}

/* What needs to know the job. */
static int open_job(struct app *app, struct error *err)
{
    bool elastic = job_is_elastic(&app->options->files->spec);
    contact_know(app->contact, app->options->files->spec.elasticity.lost_after);
    if (job_restarts(&app->options->files->spec))
        return open_launch(app, err);
    if (open_memory(app, err) < 0 || (elastic && open_leftovers(app, err) < 0))
        return -1;
    struct worker_trainer_options trainer = {.state_fd = app->state_fd,
                                             .snapshot_fd = app->snapshot_fd,
                                             .launches = elastic,
                                             .alone = app->options->pod != NULL,
                                             .message = trainer_message,
                                             .ended = trainer_ended,
                                             .data_socket = elastic ? NULL : data_socket,
                                             .ctx = app};
    struct worker_store_options store = {.spec = &app->options->files->spec,
                                         .key = app->options->files->key,
                                         .snapshot_fd = app->snapshot_fd,
                                         .done = happened,
                                         .ctx = app};
    struct worker_load_options load = {.spec = &app->options->files->spec,
                                       .state_fd = app->state_fd,
                                       .snapshot_fd = app->snapshot_fd,
                                       .done = happened,
                                       .ctx = app};
    if (data_feed_open(&app->feed, &app->options->files->spec, err) < 0 ||
        worker_trainer_open(&app->trainer, app->loop, &trainer, err) < 0 ||
        worker_store_open(&app->store, app->loop, &store, err) < 0 ||
        worker_load_open(&app->load, app->loop, &load, err) < 0)
        return -1;
    app->job_known = true;
    return 0;
}

static int open_parent(struct app *app, struct error *err)
{
    struct lines_options parent = {.fd = STDIN_FILENO,
                                   .ceiling = LINE_MAX_BYTES,
                                   .line = parent_line,
                                   .closed = parent_closed,
                                   .ctx = app};
    if (lines_open(&app->parent, app->loop, &parent, err) < 0)
        return err_wrap(err, "stdin must be a pipe that lives as long as the job");
    return 0;
}

static int open_contact(struct app *app, struct error *err)
{
    struct contact_options contact = {.loop = app->loop,
                                      .ws = app->ws,
                                      .address = app->options->coordinator,
                                      .job_key = app->options->files->key,
                                      .greeted = coordinator_greeted,
                                      .heard = coordinator_heard,
                                      .refused = coordinator_refused,
                                      .gone = coordinator_gone,
                                      .ctx = app};
    return contact_open(&app->contact, &contact, err);
}

static int open_parts(struct app *app, struct error *err)
{
    bool pages = app->options->port >= 0;
    struct ws_options ws = {.address = pages ? app->options->listen : NULL,
                            .port = pages ? app->options->port : 0,
                            .strangers_max = STRANGERS_MAX,
                            .watchers_max = WATCHERS_MAX,
                            .queue_max = QUEUE_MAX,
                            .opened = conn_opened,
                            .message = conn_message,
                            .closed = conn_closed,
                            .get = page,
                            .ctx = app};
    if (loop_timer_open(&app->timer, app->loop, timer_fired, app, err) < 0 ||
        loop_signal_open(&app->term_signal, app->loop, SIGTERM, asked_to_leave, app, err) < 0 ||
        ws_open(&app->ws, app->loop, &ws, err) < 0 || open_contact(app, err) < 0)
        return -1;
    struct listener_options listener = {.happened = happened, .ctx = app};
    if (app->options->pod && listener_open(&app->listener, app->loop, &listener, err) < 0)
        return -1;
    if (app->options->pod)
        return loop_signal_open(&app->child_signal, app->loop, SIGCHLD, child_ended, app, err);
    return open_job(app, err) < 0 ? -1 : open_parent(app, err);
}

static int app_open(struct app *app, const struct app_options *options, struct error *err)
{
    struct agent_settings settings = worker_settings(options);
    *app = (struct app){.options = options, .state_fd = -1, .snapshot_fd = -1, .exit_code = EXIT_MACHINE};
    signal(SIGINT, SIG_IGN); /* Ctrl-C reaches the whole process group; who started us decides */
    fault_worker(options->worker);
    if (options->attempt > 0)
        fault_disarm();
    if (loop_open(&app->loop, err) < 0)
        return -1;
    app->agent = agent_open(&settings);
    app->out = calloc(1, sizeof *app->out);
    if (!app->agent || !app->out)
        return err_set(err, ERR_MACHINE, "no memory for the agent");
    return open_parts(app, err);
}

static void time_is_over(void *ctx)
{
    *(bool *)ctx = true;
}

/* A thread that is in a call to a store which has gone can't be ended, and this process waits for no such
 * thread longer than for this. */
static bool store_calls_return(struct app *app)
{
    bool over = false, returned = false;
    struct loop_timer *timer = NULL;
    struct error err;
    if (!app->store || !app->load || loop_timer_open(&timer, app->loop, time_is_over, &over, &err) < 0)
        return true;
    loop_timer_set(timer, loop_now(app->loop) + calls_return_within);
    for (;;) {
        bool writes = !worker_store_end(app->store), reads = !worker_load_end(app->load);
        returned = !writes && !reads;
        if (returned || over)
            break;
        loop_turn(app->loop, true);
    }
    loop_timer_free(timer);
    return returned;
}

/* A program that runs on may be saving what it alone knows of. */
static bool has_left(const struct app *app)
{
    return !app->exit_code && agent_has_left(app->agent) && !(app->left.timer && trainer_up(app));
}

static void leave_calls_behind(struct app *app, int exit_code)
{
    contact_free(app->contact);
    ws_free(app->ws); /* who waits for this process knows at once */
    worker_trainer_free(app->trainer);
    log_warn("ending with a call to the store under way", "code=%d", exit_code);
    fflush(NULL);
    _exit(exit_code);
}

static void app_close(struct app *app)
{
    listener_free(app->listener);
    contact_free(app->contact);
    ws_free(app->ws);
    worker_trainer_free(app->trainer);
    data_feed_free(app->feed);
    worker_store_free(app->store);
    worker_load_free(app->load);
    lines_free(app->parent);
    loop_signal_free(app->term_signal);
    loop_signal_free(app->child_signal);
    loop_timer_free(app->timer);
    loop_timer_free(app->left.timer);
    agent_free(app->agent);
    free(app->out);
    if (app->state_fd >= 0)
        close(app->state_fd);
    if (app->snapshot_fd >= 0)
        close(app->snapshot_fd);
    loop_free(app->loop);
}

int app_run(const struct app_options *options, struct error *err)
{
    struct app *app = calloc(1, sizeof *app);
    if (!app)
        return err_set(err, ERR_MACHINE, "no memory for the agent");
    int result = app_open(app, options, err);
    if (result == 0) {
        step_agent(app, &(struct agent_event){.kind = AGENT_START});
        loop_run(app->loop);
        result = app->exit_code;
        if (!store_calls_return(app))
            leave_calls_behind(app, result);
        if (has_left(app))
            listener_let_machine_go(app->listener);
    }
    app_close(app);
    free(app);
    return result;
}
