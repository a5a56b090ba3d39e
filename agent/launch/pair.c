/* Keeps a trainer and the user's program that computes for it as one: starts both, hands on what trainer and
 * agent say, and ends both when one of them has ended. */
#include "agent/launch/pair.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/launch/error_file.h"
#include "agent/launch/processes.h"
#include "agent/program/trainer_process.h"
#include "common/job/spec.h"
#include "common/loop/loop.h"
#include "common/net/link.h"
#include "common/os/clock.h"
#include "common/os/config.h"
#include "common/os/cores.h"
#include "common/os/file.h"
#include "common/os/log.h"
#include "common/os/memory_kills.h"
#include "common/os/process.h"

/* For a trainer whose link is closed to end: it frees a large memory. */
static const rm_time leaving_patience = 2 * RM_S;
/* For a trainer that refuses its program to say so: the program knows, and may be quicker to end. */
static const rm_time refusing_patience = RM_S;

struct pair {
    const struct pair_options *options;
    struct loop *loop;
    struct loop_timer *timer;
    struct link *agent, *trainer_link; /* NULL: closed */
    struct loop_child *trainer;        /* NULL: none, or it has ended */
    struct processes *processes;       /* NULL: `setup` has not come */
    struct job_spec spec;
    struct message *message;
    struct str text;
    char folder[ERROR_FOLDER_MAX], path[ERROR_PATH_MAX]; /* of the socket; "" none */
    int lock;                                            /* of the folder */
    struct memory_kills kills;                           /* when the trainer was started */
    bool released;
    bool program_up, clearing; /* clearing: all that is left of the program is being ended */
    bool up;                   /* the trainer has said so: it has accepted the program */
    bool undecided; /* the program has ended before that, or was refused, and the trainer may be to end */
    bool trainer_first, failed; /* what came first: the trainer's end, or a failure of the program */
    struct processes_end end;   /* of the program; its texts are these: */
    char why[MSG_DETAIL_MAX], output[MSG_OUTPUT_MAX];
    int exit_code, by_signal; /* as the trainer ended */
};

static void send_message(struct pair *p, const struct message *message)
{
    struct error err;
    if (!p->agent)
        return;
    str_reset(&p->text);
    message_write(message, &p->text);
    if (link_send(p->agent, str_text(&p->text), p->text.length, &err) < 0)
        log_warn("the agent can't be told", "message=%s why=\"%s\"", msg_type_name(message->type), err.text);
}

/* ---- ends ---- */

static void tell_failed(struct pair *p)
{
    struct message *m = p->message;
    message_init(m, MSG_FAULT);
    m->fault.kind = FAULT_PROGRAM;
    m->fault.peer = m->fault.step = m->fault.rank = -1;
    m->fault.exit_code = p->end.code;
    m->fault.memory = p->end.memory;
    text_copy_ends(m->fault.detail, sizeof m->fault.detail, p->why);
    text_copy(m->fault.output, sizeof m->fault.output, p->output);
    send_message(p, m);
}

/* A trainer that refuses its program says it in these words. */
static void tell_refused(struct pair *p, const char *why, int exit_code)
{
    launch_refuse(p->message, why, exit_code);
    send_message(p, p->message);
}

/* Nothing of either is left. */
static void end_if_over(struct pair *p)
{
    if (p->trainer || p->trainer_link || p->program_up || p->clearing)
        return;
    if (p->failed && p->end.refused)
        tell_refused(p, p->why, EXIT_USAGE);
    else if (p->failed)
        tell_failed(p);
    loop_stop(p->loop);
}

static void clear_program(struct pair *p)
{
    if (p->clearing)
        return;
    p->clearing = true;
    processes_kill(p->processes);
}

static void end_trainer(struct pair *p)
{
    if (p->trainer)
        loop_child_kill(p->trainer, SIGKILL);
}

/* Who has lost its trainer has nothing to compute for; but who was released may end as it likes. */
static void trainer_ended(void *ctx, int code, int signo)
{
    struct pair *p = ctx;
    loop_child_free(p->trainer);
    p->trainer = NULL;
    p->undecided = false;
    if (!p->failed) {
        p->trainer_first = true;
        p->exit_code = code;
        p->by_signal = signo;
        if (signo == SIGKILL && memory_kills_grew(p->kills, memory_kills_now()))
            log_warn("the trainer was killed" MEMORY_KILLS_WORDS, "signal=%d", signo);
    }
    if (p->released && p->program_up)
        loop_timer_set(p->timer, loop_now(p->loop) + p->spec.launch.grace_period);
    else
        clear_program(p);
    end_if_over(p);
}

static void blame_program(struct pair *p)
{
    p->failed = true;
    p->undecided = false;
    end_trainer(p);
}

static bool is_exiting(int pid)
{
    struct process_stat stat;
    return process_read_number(pid, &stat) && (stat.flags & PROCESS_EXITING);
}

/* A program that finds its trainer gone may be reaped before it. */
static bool trainer_is_dead(const struct pair *p)
{
    siginfo_t info = {0};
    int pid = p->trainer ? loop_child_pid(p->trainer) : 0;
    if (!pid)
        return false;
    bool reapable = waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
    return reapable || is_exiting(pid);
}

/* Also with code 0: without its program a worker is none. */
static void program_ended(void *ctx, int local, const struct processes_end *end)
{
    struct pair *p = ctx;
    (void)local;
    p->program_up = false;
    log_info("the program has ended", "code=%d", end->code);
    if (!p->released && !p->trainer_first && !trainer_is_dead(p)) {
        p->end = *end;
        text_copy(p->output, sizeof p->output, end->output);
        if (!p->up && !end->code)
            text_copy(p->why, sizeof p->why,
                      "it ended without ringmaster.connect(): call it, or write mode: Restart");
        else
            snprintf(p->why, sizeof p->why, "%s%s", end->why,
                     end->code ? "" : ", before the job's last step");
        p->undecided = (!p->up || end->refused) && p->trainer;
        if (p->undecided)
            loop_timer_set(p->timer, loop_now(p->loop) + refusing_patience);
        else
            blame_program(p);
    }
    clear_program(p);
}

static void program_gone(void *ctx)
{
    struct pair *p = ctx;
    p->clearing = false;
    end_if_over(p);
}

/* The grace is over; or a trainer without its link has had its time. */
static void time_is_over(void *ctx)
{
    struct pair *p = ctx;
    if (p->undecided)
        blame_program(p);
    else if (p->trainer)
        end_trainer(p);
    else
        clear_program(p);
}

static long spared(void *ctx)
{
    const struct pair *p = ctx;
    return p->trainer ? loop_child_pid(p->trainer) : 0;
}

/* ---- messages ---- */

/* What it says when its program has failed is only that. */
static void from_trainer(void *ctx, const char *text, size_t length)
{
    struct pair *p = ctx;
    struct error err;
    if (p->failed || !p->agent)
        return;
    if (!p->up)
        p->up = message_read(p->message, text, length, &err) == 0 && p->message->type == MSG_UP;
    if (link_send(p->agent, text, length, &err) < 0) {
        log_warn("the agent can't be told", "why=\"%s\"", err.text);
        end_trainer(p);
    }
}

static void trainer_link_closed(void *ctx, const char *why)
{
    struct pair *p = ctx;
    log_debug("the trainer's link is closed", "why=\"%s\"", why);
    link_free(p->trainer_link);
    p->trainer_link = NULL;
    if (p->trainer)
        loop_timer_set(p->timer, loop_now(p->loop) + leaving_patience);
    end_if_over(p);
}

static int listen_for_program(struct pair *p, int *ret_fd, struct error *err)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    if (error_file_folder(p->folder, sizeof p->folder, &p->lock, err) < 0)
        return -1;
    int length = snprintf(p->path, sizeof p->path, "%s/program", p->folder);
    if (length >= (int)sizeof at.sun_path)
        return err_set(err, ERR_USAGE, "%s is too long for a socket's path; set it to a shorter one",
                       config_name(CONFIG_TMPDIR));
    memcpy(at.sun_path, p->path, (size_t)length + 1);
    *ret_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (*ret_fd < 0 || bind(*ret_fd, (const struct sockaddr *)&at, sizeof at) < 0 || listen(*ret_fd, 1) < 0)
        return err_errno(err, ERR_MACHINE, "%s: a socket for the program", p->path);
    return 0;
}

static int spawn_trainer(struct pair *p, int link_fd, int program_fd, struct error *err)
{
    char path[RM_URI_MAX];
    const struct trainer_process process = {.path = path,
                                            .link_fd = link_fd,
                                            .state_fd = p->options->state_fd,
                                            .snapshot_fd = p->options->snapshot_fd,
                                            .alone = !p->options->shared,
                                            .more = "--program-fd",
                                            .more_fd = program_fd,
                                            .exited = trainer_ended,
                                            .ctx = p};
    if (trainer_process_find(path, sizeof path, err) < 0)
        return -1;
    p->kills = memory_kills_now();
    return trainer_process_start(&p->trainer, p->loop, &process, err);
}

static int start_trainer(struct pair *p, struct error *err)
{
    int ends[2], program_fd = -1;
    if (link_pair(ends, err) < 0)
        return -1;
    struct link_options link = {
        .fd = ends[0], .message = from_trainer, .closed = trainer_link_closed, .ctx = p};
    int result = link_open(&p->trainer_link, p->loop, &link, err);
    if (result < 0)
        close(ends[0]);
    if (result == 0)
        result = listen_for_program(p, &program_fd, err);
    if (result == 0)
        result = spawn_trainer(p, ends[1], program_fd, err);
    if (program_fd >= 0)
        close(program_fd);
    close(ends[1]);
    return result;
}

static int begin_pair(struct pair *p, const struct msg_setup *setup, struct error *err)
{
    if (job_spec_read(&p->spec, setup->spec, strlen(setup->spec), err) < 0)
        return -1;
    if (!job_is_elastic(&p->spec))
        return err_set(err, ERR_PROTOCOL, "the job has no program of mode Elastic");
    struct processes_options options = {.spec = &p->spec,
                                        .agent = "/proc/self/exe",
                                        .shared = p->options->shared,
                                        .worker = setup->worker,
                                        .threads = p->options->shared ? 0 : cores_usable(),
                                        .socket = p->path,
                                        .spared = spared,
                                        .ended = program_ended,
                                        .gone = program_gone,
                                        .ctx = p};
    if (processes_open(&p->processes, p->loop, &options, err) < 0 || start_trainer(p, err) < 0)
        return -1;
    p->program_up = true;
    processes_start(p->processes, NULL);
    return 0;
}

static void fail_pair(struct pair *p, const char *why, int exit_code)
{
    log_warn("the launcher ends", "why=\"%s\"", why);
    p->exit_code = exit_code;
    loop_stop(p->loop);
}

static void to_trainer(struct pair *p, const char *text, size_t length)
{
    struct error err;
    if (p->trainer_link && link_send(p->trainer_link, text, length, &err) < 0)
        end_trainer(p);
}

static void from_agent(void *ctx, const char *text, size_t length)
{
    struct pair *p = ctx;
    struct error err;
    if (message_read(p->message, text, length, &err) < 0) {
        fail_pair(p, err.text, EXIT_MACHINE);
        return;
    }
    bool first = !p->processes && p->message->type == MSG_SETUP;
    if (first && begin_pair(p, &p->message->setup, &err) < 0) {
        tell_refused(p, err.text, error_exit_code(err.code));
        fail_pair(p, err.text, error_exit_code(err.code));
        return;
    }
    p->released = p->released || p->message->type == MSG_RELEASE;
    to_trainer(p, text, length);
}

static void agent_gone(void *ctx, const char *why)
{
    struct pair *p = ctx;
    log_debug("the agent is gone", "why=\"%s\"", why);
    link_free(p->agent);
    p->agent = NULL;
    if (!p->processes) {
        loop_stop(p->loop);
        return;
    }
    end_trainer(p);
    clear_program(p);
}

/* ---- beginning and end ---- */

static int open_parts(struct pair *p, struct error *err)
{
    struct link_options link = {
        .fd = p->options->link_fd, .message = from_agent, .closed = agent_gone, .ctx = p};
    p->message = calloc(1, sizeof *p->message);
    if (!p->message)
        return err_set(err, ERR_MACHINE, "no memory for the launcher");
    if (loop_open(&p->loop, err) < 0 || loop_timer_open(&p->timer, p->loop, time_is_over, p, err) < 0)
        return -1;
    return link_open(&p->agent, p->loop, &link, err);
}

static void close_all(struct pair *p)
{
    if (p->agent)
        link_drain(p->agent, clock_now() + RM_S);
    end_trainer(p);
    link_free(p->agent);
    link_free(p->trainer_link);
    loop_child_free(p->trainer);
    processes_free(p->processes);
    loop_timer_free(p->timer);
    error_file_remove(p->folder, p->lock);
    str_clear(&p->text);
    free(p->message);
    loop_free(p->loop);
}

/* This process ends as its trainer did: so does whoever started it hear of it. */
static void end_as(int signo)
{
    if (signo) {
        signal(signo, SIG_DFL);
        raise(signo);
    }
}

int pair_run(const struct pair_options *options)
{
    struct error err = {0};
    struct pair *p = calloc(1, sizeof *p);
    if (!p)
        return EXIT_MACHINE;
    p->options = options;
    p->exit_code = EXIT_MACHINE;
    p->lock = -1;
    p->text = str_init(RM_FRAME_MAX);
    signal(SIGINT, SIG_IGN); /* Ctrl-C reaches everybody in the terminal; what it means others decide */
    const int fds[] = {options->link_fd, options->state_fd, options->snapshot_fd};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        fcntl(fds[i], F_SETFD, FD_CLOEXEC); /* or the program would keep it open */
    if (open_parts(p, &err) < 0)
        log_warn("the launcher ends", "why=\"%s\"", err.text);
    else
        loop_run(p->loop);
    bool refused = p->failed && p->end.refused;
    int exit_code = refused ? EXIT_USAGE : p->exit_code, signo = refused     ? 0
                                                                 : p->failed ? SIGKILL
                                                                             : p->by_signal;
    close_all(p);
    free(p);
    end_as(signo);
    return exit_code;
}
