/* The launcher's shell: link, processes, their snapshots and a timer around the core of core/launch.h. */
#include "agent/launch/launcher.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/freeze/freezing.h"
#include "agent/launch/build.h"
#include "agent/launch/core/environment.h"
#include "agent/launch/core/launch.h"
#include "agent/launch/high_pids.h"
#include "agent/launch/port.h"
#include "agent/launch/processes.h"
#include "agent/launch/standstill.h"
#include "common/job/spec.h"
#include "common/loop/loop.h"
#include "common/net/link.h"
#include "common/net/session.h"
#include "common/os/clock.h"
#include "common/os/config.h"
#include "common/os/crypto.h"
#include "common/os/fault.h"
#include "common/os/log.h"
#include "common/pod/job_files.h"

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
    struct freezing *freezing; /* NULL: the program is not frozen into snapshots */
    struct {
        bool waits, begun;            /* for what is under way; for what comes of the store */
        int out[2];                   /* what a program that lives again is to write to */
        enum launch_action_kind then; /* what it is told as soon as that is over; LAUNCH_START: nothing */
    } start;
    struct standstill *still; /* NULL: nobody is held */
    rm_time still_since;
    bool stepping;
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

/* ---- snapshots ---- */

static void hear_later(struct launcher *l, const struct launch_event *event)
{
    l->later = *event;
    l->later_set = true;
}

static void step_launcher(struct launcher *l, const struct launch_event *event);

static void say_frozen(struct launcher *l, enum msg_frozen_word word, const struct msg_frozen *body)
{
    message_init(l->message, MSG_FROZEN);
    l->message->generation = launch_ring_of(l->core)->generation;
    l->message->frozen = *body;
    l->message->frozen.word = word;
    send_message(l, l->message);
}

static long tool_pid(void *ctx)
{
    const struct launcher *l = ctx;
    return l->freezing ? freezing_pid(l->freezing) : 0;
}

static void begin_start(struct launcher *l)
{
    struct error err;
    l->start.waits = !freezing_is_idle(l->freezing);
    if (l->start.waits) {
        freezing_give_up(l->freezing);
        return;
    }
    if (processes_output(l->processes, l->start.out, &err) < 0) {
        processes_give_up(l->processes, launch_ring_of(l->core), err.text);
        return;
    }
    l->start.begun = true;
    freezing_bring_back(l->freezing, l->start.out);
}

static void start_program(struct launcher *l)
{
    l->start.then = LAUNCH_START;
    if (l->freezing)
        begin_start(l);
    else
        processes_start(l->processes, launch_ring_of(l->core));
}

static bool is_starting(const struct launcher *l)
{
    return l->start.waits || l->start.begun;
}

/* What can't be done to a program that is on its way. */
static bool put_off(struct launcher *l, enum launch_action_kind kind)
{
    if (!is_starting(l))
        return false;
    l->start.then = kind;
    freezing_give_up(l->freezing);
    return true;
}

static void freeze_program(struct launcher *l, bool last, rm_time within)
{
    long pid = is_starting(l) || l->still ? 0 : processes_pid(l->processes, 0);
    if (last && put_off(l, LAUNCH_FREEZE))
        return;
    if (pid)
        freezing_make(l->freezing, pid, last, within);
    else
        hear_later(l, &(struct launch_event){.kind = LAUNCH_FROZEN});
}

static void kill_program(struct launcher *l)
{
    if (put_off(l, LAUNCH_KILL))
        return;
    if (l->freezing)
        freezing_end_tool(l->freezing);
    processes_kill(l->processes);
}

static void terminate_program(struct launcher *l)
{
    if (!put_off(l, LAUNCH_TERM))
        processes_terminate(l->processes);
}

static void hold_anew(struct launcher *l)
{
    struct error err;
    standstill_end(l->still);
    l->still = standstill_begin(tool_pid(l), &err);
    if (l->still)
        return;
    log_warn("the program can't be held, and is ended", "why=\"%s\"", err.text);
    end_launcher(l, EXIT_MACHINE); /* its agent ends what it leaves behind */
}

/* No snapshot of it is published either: another pod may be about to. */
static void hold_program(struct launcher *l)
{
    if (l->still)
        return;
    if (l->freezing && !is_starting(l))
        freezing_give_up(l->freezing);
    l->still_since = loop_now(l->loop);
    hold_anew(l);
    if (!l->still)
        return;
    log_warn("the program stands still", "why=\"no coordinator has answered for lostAfter\"");
    step_launcher(l, &(struct launch_event){.kind = LAUNCH_HELD, .held = true});
}

static void let_program_go(struct launcher *l)
{
    if (!l->still)
        return;
    standstill_end(l->still);
    l->still = NULL;
    rm_time stood = loop_now(l->loop) - l->still_since;
    log_info("the program goes on", "stood_still_ms=%.0f", rm_ms(stood));
    say_frozen(l, FROZEN_HELD, &(struct msg_frozen){.frozen = stood});
    step_launcher(l, &(struct launch_event){.kind = LAUNCH_HELD});
}

/* There it is, or not; and what it was to be told meanwhile. What is tried once more behind a failure has the
 * numbers before those of the program as long as nobody has used them up. */
static void come_back(struct launcher *l, const struct freezing_back *back)
{
    const struct launch_ring *ring = launch_ring_of(l->core);
    bool stops = l->start.then != LAUNCH_START;
    if (back->why) {
        processes_give_up(l->processes, ring, back->why->text);
    } else if (back->pid) {
        processes_adopt(l->processes, ring, back->pid);
        say_frozen(l, FROZEN_RESTORED, &(struct msg_frozen){.number = back->number, .took = back->took});
        log_info("the program goes on", "snapshot=%lld pid=%ld", (long long)back->number, back->pid);
        high_pids_begin(high_pids_of(back->pid));
    } else if (stops) {
        processes_give_up(l->processes, ring, "told to stop before it began");
    } else {
        high_pids_begin(0);
        processes_start(l->processes, ring);
    }
}

static void program_is_back(void *ctx, const struct freezing_back *back)
{
    struct launcher *l = ctx;
    l->start.begun = false;
    close(l->start.out[0]);
    close(l->start.out[1]);
    come_back(l, back);
    if (l->still)
        hold_anew(l);
    if (l->start.then == LAUNCH_TERM)
        processes_terminate(l->processes);
    else if (l->start.then == LAUNCH_KILL)
        processes_kill(l->processes);
    else if (l->start.then == LAUNCH_FREEZE && l->stepping)
        hear_later(l, &(struct launch_event){.kind = LAUNCH_FROZEN});
    else if (l->start.then == LAUNCH_FREEZE)
        step_launcher(l, &(struct launch_event){.kind = LAUNCH_FROZEN});
}

/* Whoever was to stop before it began has nothing that could be brought back. */
static void start_at_last(struct launcher *l)
{
    l->start.waits = false;
    if (l->start.then == LAUNCH_START) {
        begin_start(l);
        return;
    }
    struct freezing_back none = {.pid = 0};
    l->start.out[0] = l->start.out[1] = -1;
    program_is_back(l, &none);
}

static void freezing_is_over(void *ctx, const struct freezing_made *made)
{
    struct launcher *l = ctx;
    struct msg_frozen body = {
        .number = made->number, .bytes = made->bytes, .frozen = made->frozen, .took = made->took};
    text_copy_ends(body.why, sizeof body.why, made->why);
    if (made->ok || *made->why || made->frozen)
        say_frozen(l, made->ok ? FROZEN_SAVED : FROZEN_NOT_SAVED, &body);
    if (*made->why)
        log_warn("no snapshot was made", "why=\"%s\"", made->why);
    struct launch_event over = {.kind = LAUNCH_FROZEN, .every = freezing_every(l->freezing)};
    if (!made->more && l->stepping)
        hear_later(l, &over);
    else if (!made->more)
        step_launcher(l, &over);
    if (l->start.waits && !made->more)
        start_at_last(l);
}

/* Nothing is said to be up before it is known that what it holds can be frozen, and that what there is is its
 * own.
 */
static void freezing_works(void *ctx, const struct error *why)
{
    struct launcher *l = ctx;
    if (!why) {
        l->begun = true;
        step_launcher(l, &(struct launch_event){.kind = LAUNCH_GONE});
        return;
    }
    log_warn("the launcher ends", "why=\"%s\"", why->text);
    tell_why_not(l, why);
    end_launcher(l, error_exit_code(why->code));
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
        start_program(l);
        break;
    case LAUNCH_TERM:
        terminate_program(l);
        break;
    case LAUNCH_KILL:
        kill_program(l);
        break;
    case LAUNCH_DUMP:
        freeze_program(l, false, RM_NEVER);
        break;
    case LAUNCH_FREEZE:
        freeze_program(l, true, action->within);
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
    l->stepping = true;
    step_once(l, event);
    while (l->later_set) {
        struct launch_event next = l->later;
        l->later_set = false;
        step_once(l, &next);
    }
    l->stepping = false;
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

/* Where the job leaves it to us the first one shows what it costs. */
static rm_time first_every(const struct job_spec *spec)
{
    static const rm_time to_learn = 60 * RM_S;
    return spec->checkpoint.every == JOB_AUTO ? rm_earlier(to_learn, spec->checkpoint.max_loss)
                                              : spec->checkpoint.every;
}

/* What a job may ask for, and no launcher does yet. */
static int refuse_too_much(const struct job_spec *spec, struct error *err)
{
    if (launch_processes(spec) > 1)
        return err_set(
            err, ERR_USAGE,
            "spec.launch.numProcPerNode is %d beside checkpoint.process: CRIU, but a snapshot is of one "
            "process and all below it; have one program start the others",
            launch_processes(spec));
    return 0;
}

static int open_freezing(struct launcher *l, const struct msg_setup *setup, struct error *err)
{
    uint8_t key[JOB_KEY_BYTES], older[JOB_KEY_BYTES];
    const char *of_older = config_get(CONFIG_POD_OLDER_KEY);
    struct freezing_options options = {.spec = &l->spec,
                                       .key = key,
                                       .older = of_older ? older : NULL,
                                       .ready = freezing_works,
                                       .back = program_is_back,
                                       .made = freezing_is_over,
                                       .ctx = l};
    if (!job_freezes(&l->spec))
        return 0;
    if (refuse_too_much(&l->spec, err) < 0)
        return -1;
    if (of_older && job_key_read(older, of_older, err) < 0)
        return -1;
    if (!hex_decode(setup->key, key, sizeof key))
        return err_set(err, ERR_PROTOCOL, "the agent does not tell the job's key");
    int result = freezing_open(&l->freezing, l->loop, &options, err);
    explicit_bzero(key, sizeof key);
    explicit_bzero(older, sizeof older);
    return result;
}

static bool brings_back(void *ctx)
{
    const struct launcher *l = ctx;
    return l->freezing && freezing_brings_back(l->freezing);
}

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
    settings.freezes = job_freezes(&l->spec);
    settings.every = first_every(&l->spec);
    sha256_once(l->spec.launch.command.text, sizeof l->spec.launch.command.text, settings.lineage);
    text_copy(l->listen, sizeof l->listen, setup->listen);
    struct processes_options options = {.spec = &l->spec,
                                        .agent = "/proc/self/exe",
                                        .shared = l->shared,
                                        .freezes = settings.freezes,
                                        .tool = tool_pid,
                                        .awaited = brings_back,
                                        .ended = process_ended,
                                        .told = process_told,
                                        .warm = processes_warm,
                                        .gone = processes_gone,
                                        .ctx = l};
    l->core = launch_open(&settings, loop_now(l->loop));
    if (!l->core)
        return err_set(err, ERR_MACHINE, "no memory for the launcher");
    if (processes_open(&l->processes, l->loop, &options, err) < 0)
        return -1;
    return open_freezing(l, setup, err);
}

static void hear_reports(struct launcher *l)
{
    struct error err;
    if (l->core && l->message->type == MSG_HOLD) {
        if (l->message->hold.holds)
            hold_program(l);
        else
            let_program_go(l);
    } else if (l->core) {
        step_launcher(l, &(struct launch_event){.kind = LAUNCH_LINK, .message = l->message});
    } else if (l->message->type == MSG_SETUP && begin_launch(l, &l->message->setup, &err) < 0) {
        log_warn("the launcher ends", "why=\"%s\"", err.text);
        tell_why_not(l, &err);
        end_launcher(l, error_exit_code(err.code));
    } else if (l->freezing) {
        freezing_probe(l->freezing);
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
    l->link = NULL; /* the loop may turn once more, below */
    freezing_free(l->freezing);
    processes_free(l->processes);
    standstill_end(l->still);
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
