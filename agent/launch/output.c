/* Reads what processes write on a thread of its own, passes it on by lines, and keeps the last ones. */
#include "agent/launch/output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/os/clock.h"

enum {
    PROCESSES_MAX = 64,
    PIPES_MAX = 2 * OUTPUT_STREAMS * PROCESSES_MAX, /* two generations: the older one's last bytes */
    LINE_MOST = 32 * 1024,                          /* a longer one is passed on in parts */
    TAIL_BYTES = 4096,
    PREFIX_MAX = 16
};

/* An agent waits a second for its launcher's end. */
static const rm_time last_bytes = 500 * RM_MS;

struct pipe_end {
    int fd, to, index, rank;
    size_t length;
    char line[PREFIX_MAX + LINE_MOST + 1];
};

struct output {
    pthread_t thread;
    int bell;
    atomic_bool quit;
    pthread_mutex_t lock; /* over what follows; never held while a byte is passed on */
    pthread_cond_t moved;
    struct pipe_end *pipe[PIPES_MAX]; /* the thread reads and frees them; NULL: no pipe */
    bool ended;                       /* the thread */
    int open[PROCESSES_MAX];          /* pipes of each process that have not ended */
    struct str tail[PROCESSES_MAX];
};

/* ---- the thread ---- */

static void write_all(int fd, const char *bytes, size_t length)
{
    while (length) {
        ssize_t n = write(fd, bytes, length);
        struct pollfd full = {fd, POLLOUT, 0};
        if (n < 0 && errno == EAGAIN)
            poll(&full, 1, -1);
        else if (n < 0 && errno != EINTR)
            return; /* nobody listens any more */
        bytes += n > 0 ? n : 0;
        length -= n > 0 ? (size_t)n : 0;
    }
}

/* A NUL would end whatever is made of the text. */
static void add_text(struct str *tail, const char *bytes, size_t length)
{
    size_t from = tail->length;
    str_add(tail, bytes, length);
    for (char *at; (at = memchr(tail->data + from, 0, tail->length - from));)
        *at = ' ';
}

/* Drops from the front, up to the next line, what passes the bound. */
static void keep_tail(struct str *tail, const char *bytes, size_t length)
{
    add_text(tail, bytes, length);
    if (tail->length <= TAIL_BYTES)
        return;
    char *from = tail->data + tail->length - TAIL_BYTES;
    char *line = memchr(from, '\n', TAIL_BYTES - 1);
    from = line ? line + 1 : from;
    size_t rest = tail->length - (size_t)(from - tail->data);
    memmove(tail->data, from, rest + 1);
    tail->length = rest;
}

/* Passes `length` bytes of the line on, which stand behind the room for the prefix. */
static void pass_on(struct output *o, struct pipe_end *p, size_t length)
{
    char prefix[PREFIX_MAX + 1];
    char *text = p->line + PREFIX_MAX;
    size_t n = p->rank < 0 ? 0 : (size_t)snprintf(prefix, sizeof prefix, "[%d] ", p->rank);
    bool whole = length && (text[length - 1] == '\n' || text[length - 1] == '\r');
    char after = text[length];
    if (n)
        memcpy(text - n, prefix, n);
    if (!whole)
        text[length] = '\n'; /* lines of others come next */
    write_all(p->to, text - n, n + length + !whole);
    pthread_mutex_lock(&o->lock);
    keep_tail(&o->tail[p->index], text, length + !whole);
    pthread_mutex_unlock(&o->lock);
    text[length] = after;
    memmove(text, text + length, p->length - length);
    p->length -= length;
}

static void pass_lines(struct output *o, struct pipe_end *p)
{
    for (;;) {
        char *text = p->line + PREFIX_MAX;
        size_t at = 0;
        while (at < p->length && text[at] != '\n' && text[at] != '\r')
            at++;
        if (at < p->length)
            pass_on(o, p, at + 1);
        else if (p->length == LINE_MOST)
            pass_on(o, p, LINE_MOST);
        else
            return;
    }
}

/* False: it has ended. One read a turn, so that none of many is left out. */
static bool take_bytes(struct output *o, struct pipe_end *p)
{
    ssize_t n = read(p->fd, p->line + PREFIX_MAX + p->length, LINE_MOST - p->length);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    p->length += (size_t)n;
    pass_lines(o, p);
    if (n == 0 && p->length)
        pass_on(o, p, p->length);
    return n > 0;
}

static void drop(struct output *o, int slot)
{
    struct pipe_end *p = o->pipe[slot];
    pthread_mutex_lock(&o->lock);
    o->pipe[slot] = NULL;
    o->open[p->index]--;
    pthread_cond_broadcast(&o->moved);
    pthread_mutex_unlock(&o->lock);
    close(p->fd);
    free(p);
}

static int watched(struct output *o, struct pollfd *fds, int *slots)
{
    int n = 1;
    fds[0] = (struct pollfd){o->bell, POLLIN, 0};
    pthread_mutex_lock(&o->lock);
    for (int i = 0; i < PIPES_MAX; i++) {
        if (!o->pipe[i])
            continue;
        slots[n] = i;
        fds[n++] = (struct pollfd){o->pipe[i]->fd, POLLIN, 0};
    }
    pthread_mutex_unlock(&o->lock);
    return n;
}

static void *output_main(void *arg)
{
    struct output *o = arg;
    static _Thread_local struct pollfd fds[PIPES_MAX + 1];
    static _Thread_local int slots[PIPES_MAX + 1];
    while (!atomic_load(&o->quit)) {
        uint64_t rung;
        int n = watched(o, fds, slots);
        if (poll(fds, (nfds_t)n, -1) < 0)
            continue;
        if (fds[0].revents)
            (void)!read(o->bell, &rung, sizeof rung);
        for (int i = 1; i < n && !atomic_load(&o->quit); i++)
            if (fds[i].revents && !take_bytes(o, o->pipe[slots[i]]))
                drop(o, slots[i]);
    }
    pthread_mutex_lock(&o->lock);
    o->ended = true;
    pthread_cond_broadcast(&o->moved);
    pthread_mutex_unlock(&o->lock);
    return NULL;
}

static void ring(struct output *o)
{
    uint64_t one = 1;
    (void)!write(o->bell, &one, sizeof one);
}

/* ---- for the launcher ---- */

int output_open(struct output **ret, struct error *err)
{
    struct output *o = calloc(1, sizeof *o);
    pthread_condattr_t attributes;
    if (!o)
        return err_set(err, ERR_MACHINE, "no memory for a program's output");
    for (int i = 0; i < PROCESSES_MAX; i++)
        o->tail[i] = str_init(TAIL_BYTES + LINE_MOST + 1);
    pthread_mutex_init(&o->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&o->moved, &attributes);
    pthread_condattr_destroy(&attributes);
    o->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (o->bell < 0 || pthread_create(&o->thread, NULL, output_main, o)) {
        if (o->bell >= 0)
            close(o->bell);
        free(o);
        return err_set(err, ERR_MACHINE, "no thread for a program's output");
    }
    *ret = o;
    return 0;
}

int output_add(struct output *o, int index, int fd, int to, int rank, struct error *err)
{
    struct pipe_end *p = malloc(sizeof *p);
    int slot = 0, flags = fcntl(fd, F_GETFL);
    if (!p || flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) {
        free(p);
        close(fd);
        return err_set(err, ERR_MACHINE, "no memory for a program's output");
    }
    p->fd = fd;
    p->to = to;
    p->index = index;
    p->rank = rank;
    p->length = 0;
    pthread_mutex_lock(&o->lock);
    while (slot < PIPES_MAX && o->pipe[slot])
        slot++;
    if (slot < PIPES_MAX) {
        o->pipe[slot] = p;
        o->open[index]++;
    }
    pthread_mutex_unlock(&o->lock);
    if (slot == PIPES_MAX) {
        close(fd);
        free(p);
        return err_set(err, ERR_MACHINE, "the output of too many processes is passed on already");
    }
    ring(o);
    return 0;
}

void output_drain(struct output *o, int index, rm_time within)
{
    rm_time until = clock_now() + within;
    struct timespec at = {until / RM_S, until % RM_S};
    int waited = 0;
    pthread_mutex_lock(&o->lock);
    while (o->open[index] > 0 && !waited)
        waited = pthread_cond_timedwait(&o->moved, &o->lock, &at);
    pthread_mutex_unlock(&o->lock);
}

void output_tail(struct output *o, int index, struct str *out)
{
    pthread_mutex_lock(&o->lock);
    const struct str *tail = &o->tail[index];
    size_t skip = tail->length > out->ceiling ? tail->length - out->ceiling : 0;
    const char *from = str_text(tail) + skip, *line = skip ? strchr(from, '\n') : NULL;
    str_adds(out, line && line[1] ? line + 1 : from);
    pthread_mutex_unlock(&o->lock);
}

void output_forget(struct output *o, int index)
{
    pthread_mutex_lock(&o->lock);
    str_reset(&o->tail[index]);
    pthread_mutex_unlock(&o->lock);
}

static bool ends_within(struct output *o, rm_time within)
{
    rm_time until = clock_now() + within;
    struct timespec at = {until / RM_S, until % RM_S};
    int waited = 0;
    pthread_mutex_lock(&o->lock);
    while (!o->ended && !waited)
        waited = pthread_cond_timedwait(&o->moved, &o->lock, &at);
    bool ended = o->ended;
    pthread_mutex_unlock(&o->lock);
    return ended;
}

void output_free(struct output *o)
{
    if (!o)
        return;
    rm_time until = clock_now() + last_bytes; /* those that wrote have ended, and may have said why */
    for (int i = 0; i < PROCESSES_MAX && clock_now() < until; i++)
        output_drain(o, i, until - clock_now());
    atomic_store(&o->quit, true);
    ring(o);
    if (!ends_within(o, last_bytes / 2))
        return; /* nobody takes what it passes on; it ends with this process */
    pthread_join(o->thread, NULL);
    for (int i = 0; i < PIPES_MAX; i++) {
        if (!o->pipe[i])
            continue;
        close(o->pipe[i]->fd);
        free(o->pipe[i]);
    }
    for (int i = 0; i < PROCESSES_MAX; i++)
        str_clear(&o->tail[i]);
    pthread_cond_destroy(&o->moved);
    pthread_mutex_destroy(&o->lock);
    close(o->bell);
    free(o);
}
