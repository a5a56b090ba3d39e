/* The launcher's shell: link, processes and timer around the core of core/launch.h. */
#include "agent/launch/launcher.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/launch/build.h"
#include "agent/launch/core/environment.h"
#include "agent/launch/core/launch.h"
#include "agent/launch/port.h"
#include "agent/launch/processes.h"
#include "common/job/spec.h"
#include "common/loop/loop.h"
#include "common/net/link.h"
#include "common/os/clock.h"
#include "common/os/crypto.h"
#include "common/os/fault.h"
#include "common/os/log.h"

struct launcher {
    bool shared;
    struct loop *loop;
    struct loop_timer *timer;
    struct loop_signal *drilled;
    struct link *link; /* NULL: closed */
    struct job_spec spec;
    char listen[RM_ADDRESS_MAX];
    struct launch *core; /* NULL: `setup` has not come */
    struct launch_out *out;
    struct processes *processes;
    struct message *message;
    struct str text;
    struct launch_event later; /* what an action said at once: heard when the step is over */
    bool later_set;
    bool begun; /* the core knows that nothing of before lives */
    int exit_code;
};

static void end_launcher(struct launcher *l, int exit_code)
{
    l->exit_code = exit_code;
    loop_stop(l->loop);
}

static void send_message(struct launcher *l, const struct message *message)
{
    struct error err;
    if (!l->link)
        return;
    str_reset(&l->text);
    message_write(message, &l->text);
    if (link_send(l->link, str_text(&l->text), l->text.length, &err) < 0)
        log_warn("the agent can't be told", "message=%s why=\"%s\"", msg_type_name(message->type), err.text);
}

/* Told before it ends, so that whoever reads of the end reads why. */
static void tell_why_not(struct launcher *l, const struct error *err)
{
    launch_refuse(l->message, err->text, error_exit_code(err->code));
    send_message(l, l->message);
}

static void choose_port(struct launcher *l)
{
    struct error err;
    l->later = (struct launch_event){.kind = LAUNCH_PORT};
    l->later_set = port_choose(l->listen, l->later.text, sizeof l->later.text, &err) == 0;
    if (l->later_set)
        return;
    log_warn("the launcher ends", "why=\"%s\"", err.text);
    end_launcher(l, EXIT_MACHINE);
}

static void act_on(struct launcher *l, const struct launch_action *action)
{
    switch (action->kind) {
    case LAUNCH_SEND:
        send_message(l, action->message);
        break;
    case LAUNCH_CHOOSE_PORT:
        choose_port(l);
        break;
    case LAUNCH_START:
        processes_start(l->processes, launch_ring_of(l->core));
        break;
    case LAUNCH_TERM:
        processes_terminate(l->processes);
        break;
    case LAUNCH_KILL:
        processes_kill(l->processes);
        break;
    case LAUNCH_EXIT:
        end_launcher(l, EXIT_DONE);
        break;
    }
}

static void step_once(struct launcher *l, const struct launch_event *event)
{
    launch_step(l->core, event, loop_now(l->loop), l->out);
    for (int i = 0; i < l->out->count; i++)
        act_on(l, &l->out->action[i]);
}

static void step_launcher(struct launcher *l, const struct launch_event *event)
{
    step_once(l, event);
    while (l->later_set) {
        struct launch_event next = l->later;
        l->later_set = false;
        step_once(l, &next);
    }
    loop_timer_set(l->timer, launch_deadline(l->core));
}

static void timer_fired(void *ctx)
{
    step_launcher(ctx, &(struct launch_event){.kind = LAUNCH_TICK});
}

/* ---- processes ---- */

static void process_ended(void *ctx, int local, const struct processes_end *end)
{
    struct launch_event event = {.kind = LAUNCH_ENDED,
                                 .local = local,
                                 .code = end->code,
                                 .memory = end->memory,
                                 .output = end->output};
    text_copy(event.text, sizeof event.text, end->why);
    log_info("a process has ended", "local=%d code=%d", local, end->code);
    step_launcher(ctx, &event);
}

static void processes_gone(void *ctx)
{
    struct launcher *l = ctx;
    l->begun = true;
    if (l->core)
        step_launcher(l, &(struct launch_event){.kind = LAUNCH_GONE});
}

static void process_told(void *ctx, const struct launch_progress *progress)
{
    step_launcher(ctx, &(struct launch_event){.kind = LAUNCH_TOLD, .progress = *progress});
}

/* Who comes to a job that runs holds nobody up with its imports: it says that it is here when they are done.
 */
static void processes_warm(void *ctx)
{
    struct launcher *l = ctx;
    if (!l->begun)
        processes_gone(l); /* nothing was started yet */
}

/* --drill hang:W@20s: the program stands still, and its launcher does not. */
static void freeze(void *ctx, int signo)
{
    struct launcher *l = ctx;
    (void)signo;
    if (l->processes)
        processes_freeze(l->processes);
}

/* ---- the agent ---- */

static int begin_launch(struct launcher *l, const struct msg_setup *setup, struct error *err)
{
    struct launch_settings settings = {.worker = setup->worker, .pid = getpid()};
    if (setup->protocol != MSG_PROTOCOL)
        return err_set(err, ERR_PROTOCOL, "the agent speaks protocol %d, this launcher %d", setup->protocol,
                       MSG_PROTOCOL);
    if (job_spec_read(&l->spec, setup->spec, strlen(setup->spec), err) < 0)
        return -1;
    if (!l->spec.launched)
        return err_set(err, ERR_PROTOCOL, "the job has no program to launch");
    if (launch_build(settings.build, err) < 0)
        return -1;
    fault_worker(setup->worker);
    if (setup->restarts > 0 || setup->attempt > 0)
        fault_disarm();
    settings.processes = launch_processes(&l->spec);
    settings.torchrun = launch_is_torchrun(&l->spec.launch.command);
    settings.grace = l->spec.launch.grace_period;
    settings.heartbeat = l->spec.elasticity.heartbeat;
    sha256_once(l->spec.launch.command.text, sizeof l->spec.launch.command.text, settings.lineage);
    text_copy(l->listen, sizeof l->listen, setup->listen);
    struct processes_options options = {.spec = &l->spec,
                                        .agent = "/proc/self/exe",
                                        .shared = l->shared,
                                        .ended = process_ended,
                                        .told = process_told,
                                        .warm = processes_warm,
                                        .gone = processes_gone,
                                        .ctx = l};
    l->core = launch_open(&settings, loop_now(l->loop));
    if (!l->core)
        return err_set(err, ERR_MACHINE, "no memory for the launcher");
    return processes_open(&l->processes, l->loop, &options, err);
}

static void hear_reports(struct launcher *l)
{
    struct error err;
    if (l->core) {
        step_launcher(l, &(struct launch_event){.kind = LAUNCH_LINK, .message = l->message});
    } else if (l->message->type == MSG_SETUP && begin_launch(l, &l->message->setup, &err) < 0) {
        log_warn("the launcher ends", "why=\"%s\"", err.text);
        tell_why_not(l, &err);
        end_launcher(l, error_exit_code(err.code));
    } else if (l->core && !l->spec.launch.preload.count) {
        processes_gone(l); /* nothing was started yet */
    }
}

static void link_message(void *ctx, const char *text, size_t length)
{
    struct launcher *l = ctx;
    struct error err;
    if (message_read(l->message, text, length, &err) == 0) {
        hear_reports(l);
        return;
    }
    log_warn("the agent's message is refused", "why=\"%s\"", err.text);
    end_launcher(l, EXIT_MACHINE);
}

static void link_closed(void *ctx, const char *why)
{
    struct launcher *l = ctx;
    log_debug("the agent is gone", "why=\"%s\"", why);
    link_free(l->link);
    l->link = NULL;
    if (l->core)
        step_launcher(l, &(struct launch_event){.kind = LAUNCH_CLOSED});
    else
        end_launcher(l, EXIT_MACHINE);
}

static int open_parts(struct launcher *l, int link_fd, struct error *err)
{
    struct link_options link = {.fd = link_fd, .message = link_message, .closed = link_closed, .ctx = l};
    l->out = calloc(1, sizeof *l->out);
    l->message = calloc(1, sizeof *l->message);
    l->text = str_init(RM_FRAME_MAX);
    if (!l->out || !l->message)
        return err_set(err, ERR_MACHINE, "no memory for the launcher");
    if (loop_open(&l->loop, err) < 0 || loop_timer_open(&l->timer, l->loop, timer_fired, l, err) < 0 ||
        loop_signal_open(&l->drilled, l->loop, SIGUSR1, freeze, l, err) < 0)
        return -1;
    return link_open(&l->link, l->loop, &link, err);
}

int launcher_run(int link_fd, bool shared)
{
    struct launcher *l = calloc(1, sizeof *l);
    struct error err = {0};
    if (!l)
        return EXIT_MACHINE;
    l->shared = shared;
    l->exit_code = EXIT_MACHINE;
    signal(SIGINT, SIG_IGN); /* Ctrl-C reaches everybody in the terminal; what it means others decide */
    fcntl(link_fd, F_SETFD, FD_CLOEXEC); /* or the program would keep it open */
    if (open_parts(l, link_fd, &err) < 0)
        log_warn("the launcher ends", "why=\"%s\"", err.text);
    else
        loop_run(l->loop);
    int exit_code = l->exit_code;
    if (l->link)
        link_drain(l->link, clock_now() + RM_S);
    link_free(l->link);
    processes_free(l->processes);
    loop_signal_free(l->drilled);
    loop_timer_free(l->timer);
    launch_free(l->core);
    str_clear(&l->text);
    free(l->message);
    free(l->out);
    loop_free(l->loop);
    free(l);
    return exit_code;
}
