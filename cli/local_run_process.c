/* Starts and ends the processes of a local run: their pipes, what they are handed, their arguments, and the
 * orders that they are sent. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/local_run_state.h"
#include "cli/programs.h"
#include "common/os/crypto.h"
#include "common/os/fault.h"
#include "common/os/file.h"

enum { LINE_MAX_BYTES = 1 << 20, NUMBER_TEXT = 24 };

/* A memory file with this content, readable by this user only, and a path that our children can open. */
static int publish_content(int *ret_fd, char *path, size_t size, const char *name, const struct str *content,
                           struct error *err)
{
    if (file_memory(ret_fd, name, 0, err) < 0)
        return -1;
    snprintf(path, size, "/proc/%d/fd/%d", (int)getpid(), *ret_fd);
    if (fchmod(*ret_fd, 0600) < 0 ||
        pwrite(*ret_fd, content->data, content->length, 0) != (ssize_t)content->length)
        return err_errno(err, ERR_MACHINE, "write %s for the workers", name);
    return 0;
}

static int publish_job(struct local_run *run, struct error *err)
{
    struct str text = str_init(1 << 20);
    job_spec_write(run->spec, &text);
    int status = publish_content(&run->spec_fd, run->spec_path, sizeof run->spec_path, "job", &text, err);
    str_clear(&text);
    return status;
}

static int publish_key(struct local_run *run, struct error *err)
{
    const struct prepared *p = run->options->prepared;
    char hex[2 * sizeof p->key + 1];
    struct str text = str_init(sizeof hex);
    hex_encode(p->key, sizeof p->key, hex);
    str_adds(&text, hex);
    str_adds(&text, "\n");
    int status = publish_content(&run->key_fd, run->key_path, sizeof run->key_path, "key", &text, err);
    explicit_bzero(hex, sizeof hex);
    explicit_bzero(text.data, text.length);
    str_clear(&text);
    return status;
}

static int make_pipe(int *ret_read, int *ret_write, struct error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_errno(err, ERR_MACHINE, "make a pipe");
    *ret_read = ends[0];
    *ret_write = ends[1];
    return 0;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void errors_closed(void *ctx, const char *why)
{
    struct local_run *run = ctx;
    (void)why;
    lines_free(run->errors);
    run->errors = NULL;
    local_run_check_end(run);
}

static void events_closed(void *ctx, const char *why)
{
    struct local_run *run = ctx;
    (void)why;
    lines_free(run->events);
    run->events = NULL;
    local_run_check_end(run);
}

/* Its end is seen by the exit of the process; a command that can't be sent any more is of no use. */
static void commands_closed(void *ctx, const char *why)
{
    (void)ctx;
    (void)why;
}

static int listen_lines(struct local_run *run, struct lines **ret, int fd,
                        void (*line)(void *, char *, size_t), void (*closed)(void *, const char *),
                        struct error *err)
{
    struct lines_options options = {
        .fd = fd, .ceiling = LINE_MAX_BYTES, .line = line, .closed = closed, .ctx = run};
    return lines_open(ret, run->loop, &options, err);
}

int local_run_open(struct local_run *run, struct error *err)
{
    int errors_in = -1;
    run->spec_fd = run->key_fd = run->idle_in = run->idle_keep = run->errors_out = -1;
    if (loop_open(&run->loop, err) < 0 || publish_job(run, err) < 0 || publish_key(run, err) < 0 ||
        make_pipe(&run->idle_in, &run->idle_keep, err) < 0 ||
        make_pipe(&errors_in, &run->errors_out, err) < 0)
        return -1;
    if (listen_lines(run, &run->errors, errors_in, local_run_error_line, errors_closed, err) < 0) {
        close(errors_in);
        return -1;
    }
    return 0;
}

void local_run_close(struct local_run *run)
{
    for (size_t i = 0; i < sizeof run->signals / sizeof *run->signals; i++)
        loop_signal_free(run->signals[i]);
    if (run->interrupted)
        signal(SIGINT, SIG_IGN); /* one more would take the exit code along */
    loop_timer_free(run->patience);
    loop_timer_free(run->watch);
    loop_timer_free(run->drill_timer);
    stream_free(run->commands);
    lines_free(run->events);
    lines_free(run->errors);
    loop_child_free(run->coordinator);
    for (int w = 0; w < RM_WORKERS_MAX; w++)
        loop_child_free(run->worker[w].child);
    str_clear(&run->acts);
    close_fd(&run->spec_fd);
    close_fd(&run->key_fd);
    close_fd(&run->idle_in);
    close_fd(&run->idle_keep);
    close_fd(&run->errors_out);
    loop_free(run->loop);
}

void local_run_no_more_children(struct local_run *run)
{
    close_fd(&run->errors_out);
}

static int open_coordinator_pipes(struct local_run *run, int commands_out, int events_in, struct error *err)
{
    struct stream_options commands = {
        .fd = commands_out, .ceiling = LINE_MAX_BYTES, .closed = commands_closed, .ctx = run};
    if (stream_open(&run->commands, run->loop, &commands, err) < 0) {
        close(commands_out);
        close(events_in);
        return -1;
    }
    if (listen_lines(run, &run->events, events_in, local_run_event_line, events_closed, err) < 0) {
        close(events_in);
        return -1;
    }
    return 0;
}

/* A successor listens where its predecessor did: that is where the workers look for it. */
static int port_of(const struct local_run *run)
{
    const char *colon = strrchr(run->address, ':');
    return colon ? (int)strtol(colon + 1, NULL, 10) : run->options->port;
}

enum { FIVE_TEXT = 5 * NUMBER_TEXT };
_Static_assert(EVENT_SPENT == 5 && EVENT_SAVES == 5, "both are five numbers");

struct predecessor_text {
    char number[5][NUMBER_TEXT], spent[FIVE_TEXT], saves[FIVE_TEXT];
};

static const char *print_five(const int64_t number[5], char out[FIVE_TEXT])
{
    snprintf(out, FIVE_TEXT, "%lld,%lld,%lld,%lld,%lld", (long long)number[0], (long long)number[1],
             (long long)number[2], (long long)number[3], (long long)number[4]);
    return out;
}

/* Adds what a successor has to know to its arguments; the rest the workers tell it. */
static void tell_of_predecessor(const struct local_run *run, struct predecessor_text *text, const char **args)
{
    const struct local_run_told *t = &run->told;
    static const char *const names[] = {"--told", "--evaluated", "--saved", "--lost-at", "--spent-at"};
    const int64_t values[] = {t->step, t->evaluated, t->saved, t->lost_at, t->spent_at};
    for (int i = 0; i < 5 && run->term > 1; i++) {
        if (values[i] < 0)
            continue;
        snprintf(text->number[i], sizeof text->number[i], "%lld", (long long)values[i]);
        *args++ = names[i];
        *args++ = text->number[i];
    }
    if (run->term > 1) {
        *args++ = "--spent";
        *args++ = print_five(t->spent, text->spent);
    }
    if (run->term > 1 && t->saves[0] >= 0) {
        *args++ = "--saves";
        *args++ = print_five(t->saves, text->saves);
    }
    *args = NULL;
}

int local_run_start_coordinator(struct local_run *run, struct error *err)
{
    char agent[RM_URI_MAX], parent[NUMBER_TEXT], port[NUMBER_TEXT], term[NUMBER_TEXT];
    struct predecessor_text predecessor;
    int commands_in = -1, commands_out = -1, events_in = -1, events_out = -1;
    snprintf(parent, sizeof parent, "%d", (int)getpid());
    snprintf(port, sizeof port, "%d", port_of(run));
    snprintf(term, sizeof term, "%lld", (long long)++run->term);
    const char *args[28] = {"ringmaster-agent", "coordinate", "--job", run->spec_path, "--key-file",
                            run->key_path,      "--term",     term,    "--port",       port,
                            "--parent",         parent,       NULL};
    tell_of_predecessor(run, &predecessor, args + 12);
    stream_free(run->commands);
    run->commands = NULL;
    run->silent = -1;
    if (program_agent(agent, sizeof agent, err) < 0 || make_pipe(&commands_in, &commands_out, err) < 0)
        return -1;
    if (make_pipe(&events_in, &events_out, err) < 0) {
        close(commands_in);
        close(commands_out);
        return -1;
    }
    const int fds[] = {commands_in, events_out, run->errors_out};
    struct loop_child_options child = {.path = agent,
                                       .args = args,
                                       .fds = fds,
                                       .fd_count = 3,
                                       .exited = local_run_coordinator_exited,
                                       .ctx = run};
    int status = open_coordinator_pipes(run, commands_out, events_in, err);
    if (status == 0)
        status = loop_child_open(&run->coordinator, run->loop, &child, err);
    FAULT("coordinator-started");
    close(commands_in);
    close(events_out);
    return status;
}

int local_run_start_worker(struct local_run *run, int worker, struct error *err)
{
    char agent[RM_URI_MAX], parent[NUMBER_TEXT], index[NUMBER_TEXT], attempt[NUMBER_TEXT];
    struct local_run_worker *w = &run->worker[worker];
    snprintf(parent, sizeof parent, "%d", (int)getpid());
    snprintf(index, sizeof index, "%d", worker);
    snprintf(attempt, sizeof attempt, "%d", run->supervisor.member[worker].attempt);
    const char *const args[] = {
        "ringmaster-agent", "work",       "--worker", index,          "--attempt",  attempt,
        "--coordinator",    run->address, "--job",    run->spec_path, "--key-file", run->key_path,
        "--parent",         parent,       NULL};
    /* Standard output is for events alone: what a worker writes there goes where its errors go. */
    const int fds[] = {run->idle_in, run->errors_out, run->errors_out};
    struct loop_child_options child = {
        .args = args, .path = agent, .fds = fds, .fd_count = 3, .exited = local_run_worker_exited, .ctx = w};
    if (program_agent(agent, sizeof agent, err) < 0)
        return -1;
    loop_child_free(w->child);
    w->child = NULL;
    w->stopped = false;
    w->trainer_pid = 0;
    int status = loop_child_open(&w->child, run->loop, &child, err);
    FAULT("worker-started");
    return status;
}

void local_run_command(struct local_run *run, const char *line)
{
    if (run->commands && run->coordinator)
        stream_send(run->commands, line, strlen(line), NULL);
}

void local_run_tell(struct local_run *run, const struct command *command)
{
    struct str line = str_init(1 << 16);
    command_print(command, &line);
    local_run_command(run, str_text(&line));
    str_clear(&line);
}

void local_run_act(struct local_run *run, const struct command *command)
{
    bool doomed = !run->coordinator || run->coordinator_drilled;
    if (doomed)
        command_print(command, &run->acts);
    else
        local_run_tell(run, command);
}

void local_run_expect(struct local_run *run)
{
    struct str line = str_init(1 << 16);
    supervisor_expect(&run->supervisor, &line);
    local_run_command(run, str_text(&line));
    str_clear(&line);
}

void local_run_kill_all(struct local_run *run)
{
    run->killing = true;
    local_run_no_more_children(run);
    for (int w = 0; w < RM_WORKERS_MAX; w++)
        if (run->worker[w].child)
            loop_child_kill(run->worker[w].child, SIGKILL);
    if (run->coordinator)
        loop_child_kill(run->coordinator, SIGKILL);
}
