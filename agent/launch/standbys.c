/* Keeps one process for each place that has its imports done, and hands it over when a generation begins. */
#include "agent/launch/standbys.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/launch/core/aside.h"
#include "agent/launch/standby_source.h"
#include "common/base/assert.h"
#include "common/job/python.h"
#include "common/os/log.h"
#include "common/os/process.h"

enum { STANDBYS_MAX = 64, FDS = 3, WORDS_MAX = JOB_LIST_MAX + 12 };

/* Nobody trains while the first are waited for, and an import that hangs is a program that would hang, too.
 */
static const rm_time patience = 60 * RM_S;

struct standby {
    struct standbys *all;
    struct loop_child *child; /* NULL: none */
    struct loop_watch *watch;
    int door;  /* our end of its descriptor 3; -1: none */
    int taken; /* that of the one before it, which was told to go; -1: none */
    bool ready;
};

struct standbys {
    struct standbys_options options;
    struct loop *loop;
    struct loop_timer *timer, *patience;
    bool given_up, told_warm;
    struct standby standby[STANDBYS_MAX];
};

/* ---- who is ready ---- */

static void look_whether_warm(struct standbys *s)
{
    bool all = true;
    for (int i = 0; i < s->options.count; i++)
        all = all && s->standby[i].ready;
    if (s->told_warm || !(all || s->given_up))
        return;
    s->told_warm = true;
    loop_timer_set(s->patience, RM_NEVER);
    s->options.warm(s->options.ctx);
}

static void close_door(struct standby *one)
{
    loop_watch_free(one->watch);
    if (one->door >= 0)
        close(one->door);
    one->watch = NULL;
    one->door = -1;
    one->ready = false;
}

static void close_taken(struct standby *one)
{
    if (one->taken >= 0)
        close(one->taken);
    one->taken = -1;
}

static void door_ready(void *ctx, int events)
{
    struct standby *one = ctx;
    char byte;
    (void)events;
    loop_watch_set(one->watch, 0); /* one byte is all it says; its end is told by its exit */
    if (read(one->door, &byte, 1) != 1)
        return;
    one->ready = true;
    int pid = loop_child_pid(one->child);
    log_info("the next process waits with its modules imported", "local=%d pid=%d mebibytes=%lld",
             (int)(one - one->all->standby), pid, (long long)(process_resident(pid) >> 20));
    look_whether_warm(one->all);
}

/* Those that still import would fail in the program's name. */
static void give_up(struct standbys *s)
{
    s->given_up = true;
    for (int i = 0; i < s->options.count; i++)
        if (s->standby[i].child && !s->standby[i].ready)
            loop_child_kill(s->standby[i].child, SIGKILL);
    look_whether_warm(s);
}

static void waited_enough(void *ctx)
{
    log_warn("the modules of launch.preload are not imported yet; the program starts without them",
             "after_seconds=%d", (int)(patience / RM_S));
    give_up(ctx);
}

static void standby_ended(void *ctx, int code, int signo)
{
    struct standby *one = ctx;
    loop_child_free(one->child);
    one->child = NULL;
    close_door(one);
    if (one->all->given_up)
        return;
    log_warn("a process that was to wait with its modules imported has ended; the program starts without",
             "code=%d signal=%d", code, signo);
    give_up(one->all);
}

/* ---- making them ---- */

/* The interpreter with its own options, this file's code in place of the script, and what it needs to become
 * that. */
static void make_args(const struct job_spec *spec, const char *parent, const char *modules,
                      const char *args[WORDS_MAX])
{
    static const char *const kinds[] = {
        [PYTHON_FILE] = "file", [PYTHON_MODULE] = "module", [PYTHON_CODE] = "code"};
    const struct job_list *command = &spec->launch.command;
    struct python_command python;
    bool known = python_command_read(command, &python);
    RM_ASSERT(known, "launch.preload with a command of %d words that is no Python", command->count);
    const char *word = NULL, *begin[] = {"ringmaster-agent", "exec", "--parent", parent, "--"};
    int n = 0;
    for (size_t i = 0; i < sizeof begin / sizeof *begin; i++)
        args[n++] = begin[i];
    for (int i = 0; i < python.options; i++)
        args[n++] = word = job_list_next(command, word);
    word = python_script(command, &python);
    const char *rest[] = {"-c", standby_source, kinds[python.what], word, modules, "--"};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        args[n++] = rest[i];
    while ((word = job_list_next(command, word)))
        args[n++] = word;
    args[n] = NULL;
}

static int spawn_standby(struct standby *one, int door, struct error *err)
{
    struct standbys *s = one->all;
    const char *args[WORDS_MAX];
    char parent[16];
    int fds[] = {-1, -1, STDERR_FILENO, door};
    struct str modules = str_init(JOB_LIST_BYTES);
    for (const char *at = NULL; (at = job_list_next(&s->options.spec->launch.preload, at));)
        str_addf(&modules, "%s%s", modules.length ? "," : "", at);
    snprintf(parent, sizeof parent, "%d", (int)getpid());
    make_args(s->options.spec, parent, str_text(&modules), args);
    struct loop_child_options child = {.path = s->options.agent,
                                       .args = args,
                                       .environment = s->options.environment,
                                       .fds = fds,
                                       .fd_count = sizeof fds / sizeof *fds,
                                       .exited = standby_ended,
                                       .ctx = one};
    int result = loop_child_open(&one->child, s->loop, &child, err);
    str_clear(&modules);
    return result;
}

static int make_one(struct standby *one, struct error *err)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return err_errno(err, ERR_MACHINE, "a socket for the next process");
    int result = spawn_standby(one, ends[1], err);
    close(ends[1]);
    one->door = ends[0];
    if (result == 0)
        result = loop_watch_open(&one->watch, one->all->loop, one->door, door_ready, one, err);
    if (result == 0)
        loop_watch_set(one->watch, LOOP_READABLE);
    else
        close_door(one);
    return result;
}

static void time_to_make(void *ctx)
{
    struct standbys *s = ctx;
    struct error err;
    for (int i = 0; i < s->options.count && !s->given_up; i++) {
        if (s->standby[i].child || make_one(&s->standby[i], &err) == 0)
            continue;
        log_warn("the next process can't be started ahead", "why=\"%s\"", err.text);
        give_up(s);
    }
}

void standbys_make(struct standbys *s, rm_time in)
{
    if (s && !s->given_up)
        loop_timer_set(s->timer, loop_now(s->loop) + in);
}

int standbys_open(struct standbys **ret, struct loop *loop, const struct standbys_options *options,
                  struct error *err)
{
    RM_ASSERT(options->count <= STANDBYS_MAX, "%d processes", options->count);
    struct standbys *s = calloc(1, sizeof *s);
    if (!s)
        return err_set(err, ERR_MACHINE, "no memory for the processes to come");
    s->options = *options;
    s->loop = loop;
    for (int i = 0; i < STANDBYS_MAX; i++)
        s->standby[i] = (struct standby){.all = s, .door = -1, .taken = -1};
    if (loop_timer_open(&s->timer, loop, time_to_make, s, err) < 0 ||
        loop_timer_open(&s->patience, loop, waited_enough, s, err) < 0) {
        standbys_free(s);
        return -1;
    }
    loop_timer_set(s->patience, loop_now(loop) + patience);
    *ret = s;
    return 0;
}

/* ---- using them ---- */

/* It finds what exec would have given it: the image's own names are its own again. A copy, since whoever has
 * none that waits starts it by exec, whose own loader must not read them. */
static char **given_back(char *const *environment)
{
    size_t n = 0;
    while (environment[n])
        n++;
    char **copy = calloc(n + 1, sizeof *copy);
    for (size_t i = 0; copy && i < n; i++)
        copy[i] = environment[i];
    if (copy)
        aside_give_back(copy);
    return copy;
}

/* A file without a name that holds the environment; -1: no. */
static int environment_file(char *const *environment)
{
    int fd = memfd_create("environment", MFD_CLOEXEC);
    char **given = given_back(environment);
    bool whole = fd >= 0 && given;
    for (char **at = given; whole && *at; at++) {
        size_t size = strlen(*at) + 1;
        whole = write(fd, *at, size) == (ssize_t)size;
    }
    free(given);
    if (whole && lseek(fd, 0, SEEK_SET) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static bool hand_over(int door, const int out[2], int environment)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(FDS * sizeof(int))];
    } control = {0};
    const int fds[FDS] = {out[0], out[1], environment};
    struct iovec byte = {.iov_base = (char[]){'g'}, .iov_len = 1};
    struct msghdr message = {.msg_iov = &byte,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = sizeof control.room};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof fds);
    memcpy(CMSG_DATA(head), fds, sizeof fds);
    return sendmsg(door, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

struct loop_child *standbys_take(struct standbys *s, int local, char *const *environment, const int out[2])
{
    struct standby *one = s ? &s->standby[local] : NULL;
    if (!one || !one->child || (s->given_up && !one->ready))
        return NULL;
    int said = environment_file(environment);
    bool gone = said < 0 || !hand_over(one->door, out, said);
    if (said >= 0)
        close(said);
    if (gone)
        return NULL; /* its exit is on its way */
    struct loop_child *child = one->child;
    if (!one->ready) /* it imports in the background, and is needed now */
        (void)setpriority(PRIO_PROCESS, (id_t)loop_child_pid(child), getpriority(PRIO_PROCESS, 0));
    one->child = NULL;
    close_taken(one);
    one->taken = one->door; /* it says there when it is the program */
    one->door = -1;
    close_door(one);
    return child;
}

bool standbys_never_became(struct standbys *s, int local)
{
    struct standby *one = s ? &s->standby[local] : NULL;
    char said[8];
    if (!one || one->taken < 0)
        return false;
    ssize_t n = recv(one->taken, said, sizeof said, MSG_DONTWAIT); /* "!", "+", or both */
    bool became = n > 0 && memchr(said, '+', (size_t)n);
    close_taken(one);
    if (!became)
        give_up(s);
    return !became;
}

bool standbys_have(const struct standbys *s, long pid)
{
    for (int i = 0; s && i < s->options.count; i++)
        if (s->standby[i].child && loop_child_pid(s->standby[i].child) == pid)
            return true;
    return false;
}

bool standbys_any(const struct standbys *s)
{
    for (int i = 0; s && i < s->options.count; i++)
        if (s->standby[i].child)
            return true;
    return false;
}

void standbys_free(struct standbys *s)
{
    if (!s)
        return;
    for (int i = 0; i < STANDBYS_MAX; i++) {
        if (s->standby[i].child)
            loop_child_kill(s->standby[i].child, SIGKILL);
        loop_child_free(s->standby[i].child);
        close_door(&s->standby[i]);
        close_taken(&s->standby[i]);
    }
    loop_timer_free(s->patience);
    loop_timer_free(s->timer);
    free(s);
}
