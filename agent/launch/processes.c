/* Starts a program's processes, tells them to go, kills what is left of them, and tells who ended how. */
#include "agent/launch/processes.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/launch/core/environment.h"
#include "agent/launch/descendants.h"
#include "agent/launch/error_file.h"
#include "agent/launch/exec.h"
#include "agent/launch/output.h"
#include "agent/launch/reports.h"
#include "agent/launch/standbys.h"
#include "common/os/file.h"
#include "common/os/log.h"
#include "common/os/memory_kills.h"

enum { PROCESSES_MAX = 64 };

static const rm_time look_at_most = RM_S;       /* between looks for what is still to die */
static const rm_time next_one_after = 5 * RM_S; /* not while a generation comes up itself */
static const rm_time last_lines = 200 * RM_MS;  /* for the output of one that has failed */

extern char **environ;

struct process {
    struct processes *all;
    struct loop_child *child; /* NULL: none, or it has ended */
    long adopted;             /* the same of one that was taken in; 0 */
    bool unheard;             /* `ended` is still to be told: it could not be started */
    int group, code;          /* it went as told, and others of its group have not yet; 0: none */
};

struct processes {
    struct processes_options options;
    struct loop *loop;
    struct loop_timer *timer;
    struct loop_signal *child_signal;
    struct output *output;
    struct standbys *standbys;              /* NULL: nothing is imported ahead */
    struct launch_environment standby_said; /* what standby_environment points into */
    char **standby_environment;
    int lock;                      /* of the folder */
    char folder[ERROR_FOLDER_MAX]; /* of the error files and the reports' socket, 0700 */
    char python[PATH_MAX];         /* the Python package's folder; "": there is none */
    struct reports *reports;       /* NULL: none can be taken */
    bool killing;
    rm_time look_again;               /* grows while something does not die */
    bool stopping;                    /* its processes were told to go, or killed */
    bool worded;                      /* the first failure of this generation has its last word */
    struct memory_kills kills;        /* when this generation began */
    const struct launch_ring *ring;   /* of this generation; the core's */
    char not_started[MSG_DETAIL_MAX]; /* why; "": it is not known here */
    struct process process[PROCESSES_MAX];
};

static long pid_of(const struct process *one)
{
    return one->child ? loop_child_pid(one->child) : one->adopted;
}

/* Whoever is about to be taken in may have ended by then, and is to be told of. */
static bool is_awaited(const struct processes *p)
{
    return !p->killing && p->options.awaited && p->options.awaited(p->options.ctx);
}

static enum descendant who_is(const void *ctx, long pid)
{
    const struct processes *p = ctx;
    for (int i = 0; i < PROCESSES_MAX; i++)
        if (pid_of(&p->process[i]) == pid)
            return DESCENDANT_OURS;
    if (p->options.tool && p->options.tool(p->options.ctx) == pid)
        return DESCENDANT_OURS;
    if (is_awaited(p))
        return DESCENDANT_SPARED;
    if (p->options.spared && p->options.spared(p->options.ctx) == pid)
        return DESCENDANT_SPARED;
    return standbys_have(p->standbys, pid) ? DESCENDANT_SPARED : DESCENDANT_STRANGER;
}

/* ---- ends ---- */

/* A letter, a digit, or a byte of a longer character: a row of equal signs says nothing. */
static bool says_something(char c)
{
    return isalnum((unsigned char)c) || (unsigned char)c >= 0x80;
}

/* The last line that says something; control characters in it become spaces. */
static void add_last_line(const char *lines, struct str *out)
{
    size_t end = strlen(lines);
    while (end && !says_something(lines[end - 1]))
        end--;
    end += strcspn(lines + end, "\n");
    size_t begin = end;
    while (begin && lines[begin - 1] != '\n')
        begin--;
    for (size_t i = begin; i < end; i++)
        str_add(out, (unsigned char)lines[i] < ' ' ? " " : &lines[i], 1);
}

/* Torch's own account of how a process ended, else the last of what it wrote: its end into `output`, and what
 * its last word is looked for in into `lines`. */
static void hear_out(struct processes *p, int local, int pid, struct processes_end *e, struct str *lines,
                     struct str *output)
{
    bool there = error_file_read(p->folder, local, e->signo ? 0 : pid, lines, output, &e->refused);
    if (!p->options.spec->launch.tell_output) {
        if (!e->refused) /* else it is a sentence of ours */
            str_reset(lines);
        str_reset(output);
        return;
    }
    if (there)
        return;
    output_drain(p->output, local, last_lines);
    output_tail(p->output, local, lines);
    str_adds(output, str_text(lines));
}

/* What a person reads of a failure: how it ended, and the last line of torch's own account of it, else of
 * what the process wrote. */
static void last_word(struct processes *p, int local, int pid, struct processes_end *e, char *out,
                      size_t size, struct str *output)
{
    struct str text = str_init(size - 1), lines = str_init(MSG_OUTPUT_MAX - 1);
    bool first = e->code && !p->worded && !p->stopping; /* nobody asks the others: it takes time */
    p->worded = p->worded || first;
    if (e->signo)
        str_addf(&text, "killed by signal %d", e->signo);
    else
        str_addf(&text, "exit code %d", e->code);
    if (e->memory)
        str_adds(&text, MEMORY_KILLS_WORDS);
    if (first)
        hear_out(p, local, pid, e, &lines, output);
    if (lines.length) {
        str_adds(&text, ": ");
        add_last_line(str_text(&lines), &text);
    }
    str_clear(&lines);
    text_copy(out, size, str_text(&text));
    str_clear(&text);
}

/* A shell says 137 of a child that was killed. What is killed by us needs no reason. */
static bool was_short_of_memory(const struct processes *p, int code)
{
    bool killed = code == SHELL_BY_SIGNAL + SIGKILL, told = p->kills.kills >= 0;
    return code && (killed || told) && !p->killing && memory_kills_grew(p->kills, memory_kills_now());
}

static void start_or_tell(struct processes *p, int local);

static void process_ended(struct process *one, int pid, int code, int signo)
{
    struct processes *p = one->all;
    int local = (int)(one - p->process);
    char why[MSG_DETAIL_MAX];
    if (standbys_never_became(p->standbys, local) && !p->stopping) {
        log_warn(
            "a process that was to become the program has ended before; it is started without imports ahead",
            "local=%d code=%d signal=%d", local, code, signo);
        start_or_tell(p, local);
        return;
    }
    reports_hear(p->reports);
    if (p->stopping && !p->killing && kill(-pid, 0) == 0) {
        one->group = pid; /* the number is not given to another one while its group has members */
        one->code = signo ? SHELL_BY_SIGNAL + signo : code;
        return;
    }
    struct processes_end end = {.code = signo ? SHELL_BY_SIGNAL + signo : code, .signo = signo, .why = why};
    end.memory = was_short_of_memory(p, end.code);
    struct str output = str_init(MSG_OUTPUT_MAX - 1);
    last_word(p, local, pid, &end, why, sizeof why, &output);
    end.output = str_text(&output);
    p->options.ended(p->options.ctx, local, &end);
    str_clear(&output);
}

static void child_ended(void *ctx, int code, int signo)
{
    struct process *one = ctx;
    int pid = loop_child_pid(one->child);
    loop_child_free(one->child);
    one->child = NULL;
    process_ended(one, pid, code, signo);
}

/* Of those that were taken in nobody else hears. */
static void reap_adopted(struct processes *p)
{
    for (int i = 0; i < PROCESSES_MAX; i++) {
        struct process *one = &p->process[i];
        int status = 0;
        pid_t pid = (pid_t)one->adopted;
        if (!pid || waitpid(pid, &status, WNOHANG) != pid)
            continue;
        one->adopted = 0;
        process_ended(one, pid, WIFEXITED(status) ? WEXITSTATUS(status) : 0,
                      WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    }
}

static void tell_not_started(struct processes *p)
{
    for (int i = 0; i < PROCESSES_MAX; i++) {
        if (!p->process[i].unheard)
            continue;
        p->process[i].unheard = false;
        p->options.ended(
            p->options.ctx, i,
            &(struct processes_end){.code = SHELL_NOT_RUN,
                                    .why = *p->not_started ? p->not_started : "it could not be started",
                                    .output = ""});
    }
}

/* A shell goes at once; the program below it, which may be saving, has the time that is left. */
static void tell_left(struct processes *p)
{
    for (int i = 0; i < PROCESSES_MAX; i++) {
        struct process *one = &p->process[i];
        if (!one->group || (!p->killing && kill(-one->group, 0) == 0))
            continue;
        one->group = 0;
        p->options.ended(p->options.ctx, i,
                         &(struct processes_end){.code = one->code, .why = "", .output = ""});
    }
}

static bool any_lives(const struct processes *p)
{
    for (int i = 0; i < PROCESSES_MAX; i++)
        if (pid_of(&p->process[i]))
            return true;
    return false;
}

/* The first look reaps what has ended; only one that sees nothing says that nothing is left. */
static bool nothing_is_left(struct processes *p)
{
    bool none = descendants_look(who_is, p, true) == 0;
    return !any_lives(p) && (none || descendants_look(who_is, p, true) == 0);
}

static void time_to_look(void *ctx)
{
    struct processes *p = ctx;
    tell_not_started(p);
    reap_adopted(p);
    if (!p->killing)
        descendants_look(who_is, p, false); /* reaps, and with the last of a group the group is gone */
    tell_left(p);
    if (!p->killing)
        return;
    if (!nothing_is_left(p)) {
        loop_timer_set(p->timer, loop_now(p->loop) + p->look_again);
        p->look_again = rm_earlier(p->look_again * 5 / 4, look_at_most);
        return;
    }
    p->killing = false;
    p->options.gone(p->options.ctx);
}

static void child_signalled(void *ctx, int signo)
{
    struct processes *p = ctx;
    (void)signo;
    loop_timer_set(p->timer, 0); /* once for many */
}

/* ---- starts ---- */

static void standbys_are_warm(void *ctx)
{
    struct processes *p = ctx;
    p->options.warm(p->options.ctx);
}

/* What the next processes know before they know their place: what is the same in each generation. */
static int open_standbys(struct processes *p, struct error *err)
{
    const struct job_spec *spec = p->options.spec;
    if (!spec->launch.preload.count)
        return 0;
    struct launch_process process = {
        .job = spec->name, .processes = spec->launch.processes, .python = p->python};
    p->standby_environment = launch_environment_make(&process, environ, &p->standby_said);
    if (!p->standby_environment)
        return err_set(err, ERR_MACHINE, "no memory for a program's environment");
    struct standbys_options options = {.spec = spec,
                                       .agent = p->options.agent,
                                       .count = launch_processes(spec),
                                       .environment = p->standby_environment,
                                       .warm = standbys_are_warm,
                                       .ctx = p};
    if (standbys_open(&p->standbys, p->loop, &options, err) < 0)
        return -1;
    standbys_make(p->standbys, 0);
    return 0;
}

/* Beside the program's own place, as it is built and as it is installed: ../share/ringmaster/python. */
static void find_python(char *ret, size_t size)
{
    struct error err;
    char *end = file_sibling("", ret, size, &err) == 0 ? strrchr(ret, '/') : NULL;
    if (end)
        *end = 0;
    end = end ? strrchr(ret, '/') : NULL;
    if (!end || (size_t)(end - ret) + sizeof "/share/ringmaster/python" > size) {
        *ret = 0;
        return;
    }
    memcpy(end, "/share/ringmaster/python", sizeof "/share/ringmaster/python");
    if (access(ret, R_OK | X_OK) < 0) {
        log_debug("there is no Python package beside this program", "folder=%s", ret);
        *ret = 0;
    }
}

/* Without it the program runs as well: it tells nothing. */
static void open_reports(struct processes *p)
{
    struct error err;
    struct reports_options options = {.folder = p->folder, .told = p->options.told, .ctx = p->options.ctx};
    if (reports_open(&p->reports, p->loop, &options, &err) < 0)
        log_warn("the program can't report its progress", "why=\"%s\"", err.text);
}

int processes_open(struct processes **ret, struct loop *loop, const struct processes_options *options,
                   struct error *err)
{
    struct processes *p = calloc(1, sizeof *p);
    if (!p)
        return err_set(err, ERR_MACHINE, "no memory for a program's processes");
    p->options = *options;
    p->loop = loop;
    p->lock = -1;
    for (int i = 0; i < PROCESSES_MAX; i++)
        p->process[i].all = p;
    int result = descendants_take_in(err);
    if (result == 0)
        result = error_file_folder(p->folder, sizeof p->folder, &p->lock, err);
    if (result == 0)
        result = loop_timer_open(&p->timer, loop, time_to_look, p, err);
    if (result == 0)
        result = loop_signal_open(&p->child_signal, loop, SIGCHLD, child_signalled, p, err);
    if (result == 0)
        result = output_open(&p->output, err);
    if (result == 0) {
        find_python(p->python, sizeof p->python);
        if (options->told)
            open_reports(p);
        result = open_standbys(p, err);
    }
    if (result < 0) {
        processes_free(p);
        return -1;
    }
    *ret = p;
    return 0;
}

/* A pipe whose reading end the output has; *ret_fd is what the process writes to. */
static int open_pipe(struct processes *p, int local, int to, int rank, int *ret_fd, struct error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_errno(err, ERR_MACHINE, "a pipe for a program's output");
    *ret_fd = ends[1];
    if (output_add(p->output, local, ends[0], to, rank, err) == 0)
        return 0;
    close(ends[1]);
    return -1;
}

static int spawn_process(struct processes *p, int local, char **environment, const int out[OUTPUT_STREAMS],
                         struct error *err)
{
    const struct job_list *command = &p->options.spec->launch.command;
    const char *args[JOB_LIST_MAX + 6] = {"ringmaster-agent", "exec", "--parent", NULL, "--"};
    char parent[16];
    int n = 5, fds[] = {-1, out[0], out[1]};
    snprintf(parent, sizeof parent, "%d", p->options.freezes ? 0 : (int)getpid());
    args[3] = parent;
    for (const char *at = NULL; (at = job_list_next(command, at));)
        args[n++] = at;
    struct loop_child_options child = {.path = p->options.agent,
                                       .args = args,
                                       .environment = environment,
                                       .fds = fds,
                                       .fd_count = 3,
                                       .exited = child_ended,
                                       .ctx = &p->process[local]};
    return loop_child_open(&p->process[local].child, p->loop, &child, err);
}

static int take_or_spawn(struct processes *p, int local, char **environment, const int out[OUTPUT_STREAMS],
                         struct error *err)
{
    struct loop_child *waiting = standbys_take(p->standbys, local, environment, out);
    if (!waiting)
        return spawn_process(p, local, environment, out, err);
    p->process[local].child = waiting;
    loop_child_pass(waiting, child_ended, &p->process[local]);
    return 0;
}

static int start_one(struct processes *p, const struct launch_ring *ring, int local, bool torchrun,
                     struct error *err)
{
    int out[OUTPUT_STREAMS] = {-1, -1}, result = 0, each = launch_processes(p->options.spec);
    int rank = p->options.shared || each > 1 ? (ring ? ring->rank * each : p->options.worker) + local : -1;
    char error_path[ERROR_PATH_MAX];
    struct launch_environment said;
    struct launch_process process = {.ring = ring,
                                     .job = p->options.spec->name,
                                     .worker = p->options.worker,
                                     .local = local,
                                     .processes = p->options.spec->launch.processes,
                                     .threads = p->options.threads,
                                     .torchrun = torchrun,
                                     .socket =
                                         p->options.socket ? p->options.socket : reports_path(p->reports),
                                     .python = p->python,
                                     .error_file = error_path};
    error_file_fresh(p->folder, local, error_path, sizeof error_path);
    output_forget(p->output, local);
    char **environment = launch_environment_make(&process, environ, &said);
    if (!environment)
        result = err_set(err, ERR_MACHINE, "no memory for a program's environment");
    for (int i = 0; result == 0 && i < OUTPUT_STREAMS; i++)
        result = open_pipe(p, local, i == 0 ? STDOUT_FILENO : STDERR_FILENO, rank, &out[i], err);
    if (result == 0)
        result = take_or_spawn(p, local, environment, out, err);
    for (int i = 0; i < OUTPUT_STREAMS; i++)
        if (out[i] >= 0)
            close(out[i]);
    free(environment);
    launch_environment_clear(&said);
    return result;
}

/* Who can't be started has ended. */
static void start_or_tell(struct processes *p, int local)
{
    struct error err;
    if (start_one(p, p->ring, local, launch_is_torchrun(&p->options.spec->launch.command), &err) == 0)
        return;
    log_warn("a process can't be started", "local=%d why=\"%s\"", local, err.text);
    p->process[local].unheard = true;
    loop_timer_set(p->timer, 0);
}

static void begin_generation(struct processes *p, const struct launch_ring *ring)
{
    p->ring = ring;
    p->stopping = p->worded = false;
    p->kills = memory_kills_now();
    *p->not_started = 0;
    reports_forget(p->reports);
}

void processes_start(struct processes *p, const struct launch_ring *ring)
{
    begin_generation(p, ring);
    for (int i = 0; i < launch_processes(p->options.spec); i++)
        start_or_tell(p, i);
    standbys_make(p->standbys, next_one_after);
}

/* ---- one that was made elsewhere ---- */

int processes_output(struct processes *p, int ret_out[2], struct error *err)
{
    int rank = p->options.shared ? p->options.worker : -1;
    ret_out[0] = ret_out[1] = -1;
    output_forget(p->output, 0);
    for (int i = 0; i < OUTPUT_STREAMS; i++)
        if (open_pipe(p, 0, i == 0 ? STDOUT_FILENO : STDERR_FILENO, rank, &ret_out[i], err) < 0) {
            if (i)
                close(ret_out[0]);
            return -1;
        }
    return 0;
}

void processes_adopt(struct processes *p, const struct launch_ring *ring, long pid)
{
    begin_generation(p, ring);
    p->process[0].adopted = pid;
    loop_timer_set(p->timer, 0); /* it may have ended before */
}

void processes_give_up(struct processes *p, const struct launch_ring *ring, const char *why)
{
    begin_generation(p, ring);
    text_copy_ends(p->not_started, sizeof p->not_started, why);
    p->process[0].unheard = true;
    loop_timer_set(p->timer, 0);
}

long processes_pid(const struct processes *p, int local)
{
    return pid_of(&p->process[local]);
}

/* ---- stops ---- */

static void signal_all(struct processes *p, int signo)
{
    for (int i = 0; i < PROCESSES_MAX; i++) {
        pid_t pid = (pid_t)pid_of(&p->process[i]);
        if (pid && kill(-pid, signo) < 0) /* it has no group of its own yet */
            kill(pid, signo);
    }
}

void processes_terminate(struct processes *p)
{
    p->stopping = true;
    signal_all(p, SIGTERM);
}

void processes_freeze(struct processes *p)
{
    signal_all(p, SIGSTOP);
}

void processes_kill(struct processes *p)
{
    p->killing = p->stopping = true;
    p->look_again = 10 * RM_MS;
    signal_all(p, SIGKILL);
    loop_timer_set(p->timer, 0);
}

void processes_free(struct processes *p)
{
    if (!p)
        return;
    for (int i = 0; i < PROCESSES_MAX; i++)
        loop_child_free(p->process[i].child);
    standbys_free(p->standbys);
    free(p->standby_environment);
    launch_environment_clear(&p->standby_said);
    loop_signal_free(p->child_signal);
    loop_timer_free(p->timer);
    output_free(p->output);
    reports_free(p->reports);
    error_file_remove(p->folder, p->lock);
    free(p);
}
