/* A worker's trainer, or its launcher, as a process of its agent's: its start, its link and its end. */
#include "agent/program/worker_trainer.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/program/trainer_process.h"
#include "common/net/link.h"
#include "common/os/config.h"
#include "common/os/log.h"
#include "common/os/memory_kills.h"
#include "common/os/shelf.h"

/* For the way from closing the link to the end of the process, which frees a large memory on it. */
static const rm_time leaving_patience = 2 * RM_S;

struct worker_trainer {
    struct loop *loop;
    struct loop_timer *leaving; /* kills one whose link is closed and that doesn't end */
    struct worker_trainer_options options;
    struct shelf shelf; /* for what a trainer leaves to the next one; -1, -1: there is none */
    char path[RM_URI_MAX];
    struct loop_child *child; /* NULL: none, or it has exited */
    struct link *link;        /* NULL: none, or it has closed */
    bool up;                  /* from start until `ended` */
    int code;
    char how[96];
    char program[MSG_DETAIL_MAX]; /* how the program ended that it was ended with; "": it was not */
    struct memory_kills kills;    /* when it was started */
    struct message *message;      /* the one being read */
    struct str text;              /* the one being written */
};

/* A trainer and a program, which end together. */
static bool is_pair(const struct worker_trainer *t)
{
    return t->options.launches && t->options.state_fd >= 0;
}

/* What it said last may still lie in the link when its exit is known, so both have to be through. */
static void end_if_over(struct worker_trainer *t)
{
    if (!t->up || t->child || t->link)
        return;
    t->up = false;
    if (*t->program)
        t->options.ended(t->options.ctx, -1, t->program);
    else
        t->options.ended(t->options.ctx, t->code, t->how);
}

static const char *of_memory(const struct worker_trainer *t, int signo)
{
    bool short_of_it = signo == SIGKILL && memory_kills_grew(t->kills, memory_kills_now());
    return short_of_it ? MEMORY_KILLS_WORDS : "";
}

static void trainer_exited(void *ctx, int code, int signo)
{
    struct worker_trainer *t = ctx;
    loop_timer_set(t->leaving, RM_NEVER);
    loop_child_free(t->child);
    t->child = NULL;
    t->code = signo ? -1 : code;
    if (signo)
        snprintf(t->how, sizeof t->how, "killed by signal %d%s", signo, of_memory(t, signo));
    else
        snprintf(t->how, sizeof t->how, "exited with code %d", code);
    end_if_over(t);
}

static void link_closed(void *ctx, const char *why)
{
    struct worker_trainer *t = ctx;
    log_debug("the trainer's link is closed", "why=\"%s\"", why);
    link_free(t->link);
    t->link = NULL;
    if (t->child) /* of no use without its link; but its exit code says whether another one will do better */
        loop_timer_set(t->leaving, loop_now(t->loop) + leaving_patience);
    end_if_over(t);
}

static void still_there(void *ctx)
{
    worker_trainer_kill(ctx);
}

static void link_message(void *ctx, const char *text, size_t length)
{
    struct worker_trainer *t = ctx;
    struct error err;
    if (message_read(t->message, text, length, &err) < 0) {
        log_warn("the trainer's message is refused", "why=\"%s\"", err.text);
        worker_trainer_kill(t);
        return;
    }
    if (t->message->type == MSG_FAULT && t->message->fault.memory)
        t->kills = memory_kills_now(); /* that was one of the program's */
    if (is_pair(t) && t->message->type == MSG_FAULT && t->message->fault.kind == FAULT_PROGRAM) {
        text_print_ends(t->program, sizeof t->program, "ended with its program: %s",
                        t->message->fault.detail);
    }
    t->options.message(t->options.ctx, t->message);
}

int worker_trainer_open(struct worker_trainer **ret, struct loop *loop,
                        const struct worker_trainer_options *options, struct error *err)
{
    struct worker_trainer *t = calloc(1, sizeof *t);
    struct message *message = calloc(1, sizeof *message);
    if (!t || !message) {
        free(t);
        free(message);
        return err_set(err, ERR_MACHINE, "no memory for a trainer");
    }
    *t = (struct worker_trainer){.loop = loop,
                                 .options = *options,
                                 .shelf = {-1, -1},
                                 .message = message,
                                 .text = str_init(RM_FRAME_MAX)};
    int found = options->launches ? (text_copy(t->path, sizeof t->path, "/proc/self/exe") ? 0 : -1)
                                  : trainer_process_find(t->path, sizeof t->path, err);
    if (found == 0 && access(t->path, X_OK) < 0)
        found = err_errno(err, ERR_MACHINE, "the trainer program %s", t->path);
    if (found == 0)
        found = loop_timer_open(&t->leaving, loop, still_there, t, err);
    if (found == 0 && !options->launches && config_get(CONFIG_GPU_KEEPS_STATE))
        found = shelf_open(&t->shelf, err);
    if (found < 0) {
        worker_trainer_free(t);
        return -1;
    }
    *ret = t;
    return 0;
}

static int spawn_trainer(struct worker_trainer *t, int link_fd, int data_fd, struct error *err)
{
    const struct trainer_process process = {.path = t->path,
                                            .link_fd = link_fd,
                                            .state_fd = t->options.state_fd,
                                            .snapshot_fd = t->options.snapshot_fd,
                                            .alone = t->options.alone,
                                            .shelf = t->shelf.in < 0 ? NULL : &t->shelf,
                                            .more = data_fd < 0 ? NULL : "--data-fd",
                                            .more_fd = data_fd,
                                            .exited = trainer_exited,
                                            .ctx = t};
    return trainer_process_start(&t->child, t->loop, &process, err);
}

/* It is not tied to this process's life by the kernel: where its link ends it has a program to end first.
 * What it starts has the whole environment, as the user's own code reads its own data. */
static int spawn_launcher(struct worker_trainer *t, int link_fd, struct error *err)
{
    bool pair = is_pair(t);
    const char *const args[] = {
        "ringmaster-agent",         "launch", "--link-fd",     "3", "--shared", t->options.alone ? "0" : "1",
        pair ? "--state-fd" : NULL, "4",      "--snapshot-fd", "5", NULL};
    int fds[] = {-1, STDOUT_FILENO, STDERR_FILENO, link_fd, t->options.state_fd, t->options.snapshot_fd};
    struct loop_child_options child = {.path = t->path,
                                       .args = args,
                                       .fds = fds,
                                       .fd_count = pair ? 6 : 4,
                                       .exited = trainer_exited,
                                       .ctx = t};
    return loop_child_open(&t->child, t->loop, &child, err);
}

static int spawn_program(struct worker_trainer *t, int link_fd, int data_fd, struct error *err)
{
    return t->options.launches ? spawn_launcher(t, link_fd, err) : spawn_trainer(t, link_fd, data_fd, err);
}

int worker_trainer_start(struct worker_trainer *t, struct error *err)
{
    int pair[2];
    if (t->up)
        return err_set(err, ERR_MACHINE, "a trainer is up already");
    if (link_pair(pair, err) < 0)
        return -1;
    struct link_options link = {.fd = pair[0], .message = link_message, .closed = link_closed, .ctx = t};
    if (link_open(&t->link, t->loop, &link, err) < 0) {
        close(pair[0]);
        close(pair[1]);
        return -1;
    }
    int data_fd = -1, result = 0;
    if (t->options.data_socket)
        result = t->options.data_socket(t->options.ctx, &data_fd, err);
    if (result == 0)
        result = spawn_program(t, pair[1], data_fd, err);
    if (data_fd >= 0)
        close(data_fd);
    close(pair[1]);
    if (result < 0) {
        link_free(t->link);
        t->link = NULL;
        return -1;
    }
    t->up = true;
    *t->program = 0;
    t->kills = memory_kills_now();
    return 0;
}

bool worker_trainer_up(const struct worker_trainer *t)
{
    return t->up;
}

int worker_trainer_pid(const struct worker_trainer *t)
{
    return t->child ? loop_child_pid(t->child) : 0;
}

void worker_trainer_send(struct worker_trainer *t, const struct message *message)
{
    struct error err;
    if (!t->link)
        return;
    str_reset(&t->text);
    message_write(message, &t->text);
    if (link_send(t->link, str_text(&t->text), t->text.length, &err) < 0) {
        log_warn("the trainer can't be told", "message=%s why=\"%s\"", msg_type_name(message->type),
                 err.text);
        worker_trainer_kill(t);
    }
}

void worker_trainer_kill(struct worker_trainer *t)
{
    if (t->child)
        loop_child_kill(t->child, SIGKILL);
}

void worker_trainer_free(struct worker_trainer *t)
{
    if (!t)
        return;
    worker_trainer_kill(t);
    loop_child_free(t->child);
    loop_timer_free(t->leaving);
    link_free(t->link);
    shelf_clear(&t->shelf);
    str_clear(&t->text);
    free(t->message);
    free(t);
}
