#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/fleet_state.h"
#include "cli/programs.h"
#include "common/os/crypto.h"
#include "common/os/fault.h"
#include "common/os/file.h"

enum { LINE_MAX_BYTES = 1 << 20, NUMBER_TEXT = 24 };

/* A memory file with this content, readable by this user only, and a path that our children can open. */
static int publish(int *ret_fd, char *path, size_t size, const char *name, const struct str *content,
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

static int publish_job(struct fleet *fleet, struct error *err)
{
    struct str text = str_init(1 << 20);
    job_spec_write(fleet->spec, &text);
    int status = publish(&fleet->spec_fd, fleet->spec_path, sizeof fleet->spec_path, "job", &text, err);
    str_clear(&text);
    return status;
}

static int publish_key(struct fleet *fleet, struct error *err)
{
    const struct prepared *p = fleet->options->prepared;
    char hex[2 * sizeof p->key + 1];
    struct str text = str_init(sizeof hex);
    hex_encode(p->key, sizeof p->key, hex);
    str_adds(&text, hex);
    str_adds(&text, "\n");
    int status = publish(&fleet->key_fd, fleet->key_path, sizeof fleet->key_path, "key", &text, err);
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
    struct fleet *fleet = ctx;
    (void)why;
    lines_free(fleet->errors);
    fleet->errors = NULL;
    fleet_check_end(fleet);
}

static void events_closed(void *ctx, const char *why)
{
    struct fleet *fleet = ctx;
    (void)why;
    lines_free(fleet->events);
    fleet->events = NULL;
    fleet_check_end(fleet);
}

/* Its end is seen by the exit of the process; a command that can't be sent any more is of no use. */
static void commands_closed(void *ctx, const char *why)
{
    (void)ctx;
    (void)why;
}

static int listen_lines(struct fleet *fleet, struct lines **ret, int fd, void (*line)(void *, char *, size_t),
                        void (*closed)(void *, const char *), struct error *err)
{
    struct lines_options options = {
        .fd = fd, .ceiling = LINE_MAX_BYTES, .line = line, .closed = closed, .ctx = fleet};
    return lines_open(ret, fleet->loop, &options, err);
}

int fleet_open(struct fleet *fleet, struct error *err)
{
    int errors_in = -1;
    fleet->spec_fd = fleet->key_fd = fleet->idle_in = fleet->idle_keep = fleet->errors_out = -1;
    if (loop_open(&fleet->loop, err) < 0 || publish_job(fleet, err) < 0 || publish_key(fleet, err) < 0 ||
        make_pipe(&fleet->idle_in, &fleet->idle_keep, err) < 0 ||
        make_pipe(&errors_in, &fleet->errors_out, err) < 0)
        return -1;
    if (listen_lines(fleet, &fleet->errors, errors_in, fleet_error_line, errors_closed, err) < 0) {
        close(errors_in);
        return -1;
    }
    return 0;
}

void fleet_close(struct fleet *fleet)
{
    for (size_t i = 0; i < sizeof fleet->signals / sizeof *fleet->signals; i++)
        loop_signal_free(fleet->signals[i]);
    if (fleet->interrupted)
        signal(SIGINT, SIG_IGN); /* one more would take the exit code along */
    loop_timer_free(fleet->patience);
    loop_timer_free(fleet->watch);
    loop_timer_free(fleet->drill_timer);
    stream_free(fleet->commands);
    lines_free(fleet->events);
    lines_free(fleet->errors);
    loop_child_free(fleet->coordinator);
    for (int w = 0; w < RM_WORKERS_MAX; w++)
        loop_child_free(fleet->worker[w].child);
    str_clear(&fleet->acts);
    close_fd(&fleet->spec_fd);
    close_fd(&fleet->key_fd);
    close_fd(&fleet->idle_in);
    close_fd(&fleet->idle_keep);
    close_fd(&fleet->errors_out);
    loop_free(fleet->loop);
}

void fleet_no_more_children(struct fleet *fleet)
{
    close_fd(&fleet->errors_out);
}

static int open_coordinator_pipes(struct fleet *fleet, int commands_out, int events_in, struct error *err)
{
    struct stream_options commands = {
        .fd = commands_out, .ceiling = LINE_MAX_BYTES, .closed = commands_closed, .ctx = fleet};
    if (stream_open(&fleet->commands, fleet->loop, &commands, err) < 0) {
        close(commands_out);
        close(events_in);
        return -1;
    }
    if (listen_lines(fleet, &fleet->events, events_in, fleet_event_line, events_closed, err) < 0) {
        close(events_in);
        return -1;
    }
    return 0;
}

/* A successor listens where its predecessor did: that is where the workers look for it. */
static int port_of(const struct fleet *fleet)
{
    const char *colon = strrchr(fleet->address, ':');
    return colon ? (int)strtol(colon + 1, NULL, 10) : fleet->options->port;
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
static void tell_of_predecessor(const struct fleet *fleet, struct predecessor_text *text, const char **args)
{
    const struct fleet_told *t = &fleet->told;
    static const char *const names[] = {"--told", "--evaluated", "--saved", "--lost-at", "--spent-at"};
    const int64_t values[] = {t->step, t->evaluated, t->saved, t->lost_at, t->spent_at};
    for (int i = 0; i < 5 && fleet->term > 1; i++) {
        if (values[i] < 0)
            continue;
        snprintf(text->number[i], sizeof text->number[i], "%lld", (long long)values[i]);
        *args++ = names[i];
        *args++ = text->number[i];
    }
    if (fleet->term > 1) {
        *args++ = "--spent";
        *args++ = print_five(t->spent, text->spent);
    }
    if (fleet->term > 1 && t->saves[0] >= 0) {
        *args++ = "--saves";
        *args++ = print_five(t->saves, text->saves);
    }
    *args = NULL;
}

int fleet_start_coordinator(struct fleet *fleet, struct error *err)
{
    char agent[RM_URI_MAX], parent[NUMBER_TEXT], port[NUMBER_TEXT], term[NUMBER_TEXT];
    struct predecessor_text predecessor;
    int commands_in = -1, commands_out = -1, events_in = -1, events_out = -1;
    snprintf(parent, sizeof parent, "%d", (int)getpid());
    snprintf(port, sizeof port, "%d", port_of(fleet));
    snprintf(term, sizeof term, "%lld", (long long)++fleet->term);
    const char *args[28] = {"ringmaster-agent", "coordinate", "--job", fleet->spec_path, "--key-file",
                            fleet->key_path,    "--term",     term,    "--port",         port,
                            "--parent",         parent,       NULL};
    tell_of_predecessor(fleet, &predecessor, args + 12);
    stream_free(fleet->commands);
    fleet->commands = NULL;
    fleet->silent = -1;
    if (program_agent(agent, sizeof agent, err) < 0 || make_pipe(&commands_in, &commands_out, err) < 0)
        return -1;
    if (make_pipe(&events_in, &events_out, err) < 0) {
        close(commands_in);
        close(commands_out);
        return -1;
    }
    const int fds[] = {commands_in, events_out, fleet->errors_out};
    struct loop_child_options child = {.path = agent,
                                       .args = args,
                                       .fds = fds,
                                       .fd_count = 3,
                                       .exited = fleet_coordinator_exited,
                                       .ctx = fleet};
    int status = open_coordinator_pipes(fleet, commands_out, events_in, err);
    if (status == 0)
        status = loop_child_open(&fleet->coordinator, fleet->loop, &child, err);
    FAULT("coordinator-started");
    close(commands_in);
    close(events_out);
    return status;
}

int fleet_start_worker(struct fleet *fleet, int worker, struct error *err)
{
    char agent[RM_URI_MAX], parent[NUMBER_TEXT], index[NUMBER_TEXT], attempt[NUMBER_TEXT];
    struct fleet_worker *w = &fleet->worker[worker];
    snprintf(parent, sizeof parent, "%d", (int)getpid());
    snprintf(index, sizeof index, "%d", worker);
    snprintf(attempt, sizeof attempt, "%d", fleet->supervisor.member[worker].attempt);
    const char *const args[] = {"ringmaster-agent",
                                "work",
                                "--worker",
                                index,
                                "--attempt",
                                attempt,
                                "--coordinator",
                                fleet->address,
                                "--job",
                                fleet->spec_path,
                                "--key-file",
                                fleet->key_path,
                                "--parent",
                                parent,
                                NULL};
    /* Standard output is for events alone: what a worker writes there goes where its errors go. */
    const int fds[] = {fleet->idle_in, fleet->errors_out, fleet->errors_out};
    struct loop_child_options child = {
        .args = args, .path = agent, .fds = fds, .fd_count = 3, .exited = fleet_worker_exited, .ctx = w};
    if (program_agent(agent, sizeof agent, err) < 0)
        return -1;
    loop_child_free(w->child);
    w->child = NULL;
    w->stopped = false;
    w->trainer_pid = 0;
    int status = loop_child_open(&w->child, fleet->loop, &child, err);
    FAULT("worker-started");
    return status;
}

void fleet_command(struct fleet *fleet, const char *line)
{
    if (fleet->commands && fleet->coordinator)
        stream_send(fleet->commands, line, strlen(line), NULL);
}

void fleet_tell(struct fleet *fleet, const struct command *command)
{
    struct str line = str_init(1 << 16);
    command_print(command, &line);
    fleet_command(fleet, str_text(&line));
    str_clear(&line);
}

void fleet_act(struct fleet *fleet, const struct command *command)
{
    bool doomed = !fleet->coordinator || fleet->coordinator_drilled;
    if (doomed)
        command_print(command, &fleet->acts);
    else
        fleet_tell(fleet, command);
}

void fleet_expect(struct fleet *fleet)
{
    struct str line = str_init(1 << 16);
    supervisor_expect(&fleet->supervisor, &line);
    fleet_command(fleet, str_text(&line));
    str_clear(&line);
}

void fleet_kill_all(struct fleet *fleet)
{
    fleet->killing = true;
    fleet_no_more_children(fleet);
    for (int w = 0; w < RM_WORKERS_MAX; w++)
        if (fleet->worker[w].child)
            loop_child_kill(fleet->worker[w].child, SIGKILL);
    if (fleet->coordinator)
        loop_child_kill(fleet->coordinator, SIGKILL);
}
