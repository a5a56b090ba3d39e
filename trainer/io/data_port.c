/* The thread behind a trainer's port: it takes callers in, checks who they are, and parks connections of a
 * ring until the compute thread asks for them; a receiver of state gets a thread of its own. */
#include "trainer/io/data_port.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/os/clock.h"
#include "common/os/descriptors.h"

enum { PARKED_MAX = RM_WORKERS_MAX + 2 * HANDSHAKE_STREAMS }; /* of one that calls us, also anew */

/* A connection without proof yet. */
struct caller {
    int fd; /* -1: free slot */
    rm_time deadline;
    uint64_t number; /* in the order in which they came */
    bool answered;
    size_t got; /* bytes of the message that is awaited */
    uint8_t bytes[HANDSHAKE_HELLO];
    struct handshake_called called;
    struct handshake_claim claim;
};

struct parked {
    int fd; /* -1: free slot */
    struct ring_generation generation;
    struct handshake_end from;
    int stream;
};

struct data_port {
    struct data_port_options options;
    char address[RM_ADDRESS_MAX];
    int listener;
    pthread_t thread;
    struct abort_flag closing;               /* ends the thread and every server */
    struct abort_flag arrival;               /* set while a connection was parked that nobody has looked at */
    struct caller caller[DATA_PORT_CALLERS]; /* the port thread's own */
    uint64_t came;                           /* callers so far; the port thread's own */
    rm_time accept_again;                    /* nobody is accepted before; the port thread's own */
    pthread_mutex_t lock;                    /* over all below */
    pthread_cond_t served;
    int servers; /* threads that serve */
    struct ring_generation oldest;
    struct parked parked[PARKED_MAX];
};

struct serving {
    struct data_port *port;
    int fd;
    struct handshake_claim claim;
};

static void refuse_caller(struct data_port *port, struct caller *c, const char *why)
{
    if (port->options.refused)
        port->options.refused(port->options.ctx, why);
    close(c->fd);
    c->fd = -1;
}

static void *serve_thread(void *arg)
{
    struct serving *s = arg;
    struct data_port *port = s->port;
    port->options.serve(port->options.ctx, s->fd, &s->claim, &port->closing);
    close(s->fd);
    free(s);
    pthread_mutex_lock(&port->lock);
    port->servers--;
    pthread_cond_signal(&port->served);
    pthread_mutex_unlock(&port->lock);
    return NULL;
}

/* Takes over the caller's descriptor, or leaves it where it fails. */
static bool start_server(struct data_port *port, struct caller *c)
{
    struct serving *s = malloc(sizeof *s);
    pthread_t thread;
    if (!s)
        return false;
    *s = (struct serving){port, c->fd, c->claim};
    pthread_mutex_lock(&port->lock);
    bool started = port->servers < DATA_PORT_SERVERS && !pthread_create(&thread, NULL, serve_thread, s);
    port->servers += started;
    pthread_mutex_unlock(&port->lock);
    if (!started) {
        free(s);
        return false;
    }
    pthread_detach(thread);
    c->fd = -1;
    return true;
}

static bool same_end(const struct handshake_end *a, const struct handshake_end *b)
{
    return a->worker == b->worker && a->incarnation == b->incarnation;
}

/* A second connection of the same end and generation takes the first one's place. */
static bool park(struct data_port *port, struct caller *c)
{
    struct parked *slot = NULL;
    pthread_mutex_lock(&port->lock);
    bool old = ring_generation_compare(c->claim.generation, port->oldest) < 0;
    for (int i = 0; i < PARKED_MAX && !old; i++) {
        struct parked *p = &port->parked[i];
        bool again = p->fd >= 0 && p->stream == c->claim.stream && same_end(&p->from, &c->claim.from) &&
                     !ring_generation_compare(p->generation, c->claim.generation);
        if (again || (p->fd < 0 && !slot))
            slot = p;
        if (again)
            break;
    }
    if (slot) {
        if (slot->fd >= 0)
            close(slot->fd);
        *slot = (struct parked){c->fd, c->claim.generation, c->claim.from, c->claim.stream};
        c->fd = -1;
    }
    pthread_mutex_unlock(&port->lock);
    if (slot)
        abort_flag_set(&port->arrival);
    return slot != NULL;
}

static void proven(struct data_port *port, struct caller *c)
{
    if (c->claim.purpose == HANDSHAKE_PROBE) { /* it knows what it wanted to */
        close(c->fd);
        c->fd = -1;
        return;
    }
    bool taken = c->claim.purpose == HANDSHAKE_RING ? park(port, c) : start_server(port, c);
    if (!taken)
        refuse_caller(port, c,
                      c->claim.purpose == HANDSHAKE_RING
                          ? "a ring connection of an older generation, or one too many"
                          : "more transfers at once than this trainer serves");
}

static void hello_arrived(struct data_port *port, struct caller *c)
{
    uint8_t answer[HANDSHAKE_ANSWER];
    struct error err = {0};
    if (handshake_answer(&c->called, &port->options.secret, c->bytes, &c->claim, answer, &err) < 0) {
        refuse_caller(port, c, err.text);
        return;
    }
    if (!same_end(&c->claim.to, &port->options.self)) {
        refuse_caller(port, c, "a caller wanted another worker, or an earlier process of this one");
        return;
    }
    /* A fresh connection's buffer takes these few bytes at once, or the caller is no good. */
    if (send(c->fd, answer, sizeof answer, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)sizeof answer) {
        refuse_caller(port, c, "a caller went away before the answer");
        return;
    }
    c->answered = true;
    c->got = 0;
}

static void caller_readable(struct data_port *port, struct caller *c)
{
    size_t want = c->answered ? (size_t)HANDSHAKE_CONFIRM : (size_t)HANDSHAKE_HELLO;
    ssize_t n = recv(c->fd, c->bytes + c->got, want - c->got, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        refuse_caller(port, c, "a caller went away in the middle of the handshake");
        return;
    }
    c->got += (size_t)n;
    if (c->got < want)
        return;
    if (!c->answered)
        hello_arrived(port, c);
    else if (handshake_confirmed(&c->called, &port->options.secret, c->bytes))
        proven(port, c);
    else
        refuse_caller(port, c, "a caller does not hold this job's key");
}

/* Whether a has to go before b where there is no room for both. */
static bool goes_first(const struct caller *a, const struct caller *b)
{
    return a->answered != b->answered ? b->answered : a->number < b->number;
}

static struct caller *free_place(struct data_port *port)
{
    struct caller *first = &port->caller[0];
    for (int i = 0; i < DATA_PORT_CALLERS; i++) {
        if (port->caller[i].fd < 0)
            return &port->caller[i];
        if (goes_first(&port->caller[i], first))
            first = &port->caller[i];
    }
    refuse_caller(port, first, "too many callers without proof: the oldest is dropped");
    return first;
}

/* A hello that is there already is read at once: nobody who has said it is taken for a stranger. */
static void accept_all(struct data_port *port, rm_time now)
{
    int fd;
    while ((fd = accept4(port->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        socket_tune(fd);
        struct caller *c = free_place(port);
        *c = (struct caller){.fd = fd, .deadline = now + DATA_PORT_PATIENCE, .number = port->came++};
        caller_readable(port, c);
    }
    if (!descriptors_short(errno))
        return;
    if (port->options.refused)
        port->options.refused(port->options.ctx, "a caller waits: this process may open no more files");
    port->accept_again = now + DESCRIPTORS_PAUSE;
}

static void drop_late(struct data_port *port, rm_time now)
{
    for (int i = 0; i < DATA_PORT_CALLERS; i++)
        if (port->caller[i].fd >= 0 && port->caller[i].deadline <= now)
            refuse_caller(port, &port->caller[i], "a caller said nothing for too long");
}

static int next_timeout(const struct data_port *port, rm_time now)
{
    rm_time next = port->accept_again > now ? port->accept_again : RM_NEVER;
    for (int i = 0; i < DATA_PORT_CALLERS; i++)
        if (port->caller[i].fd >= 0 && port->caller[i].deadline < next)
            next = port->caller[i].deadline;
    return next == RM_NEVER ? -1 : (int)((next - now) / RM_MS) + 1;
}

static void *port_thread(void *arg)
{
    struct data_port *port = arg;
    struct pollfd fds[DATA_PORT_CALLERS + 2];
    while (!abort_flag_is_set(&port->closing)) {
        for (int i = 0; i < DATA_PORT_CALLERS; i++)
            fds[i] = (struct pollfd){.fd = port->caller[i].fd, .events = POLLIN};
        bool accepts = clock_now() >= port->accept_again;
        fds[DATA_PORT_CALLERS] = (struct pollfd){.fd = accepts ? port->listener : -1, .events = POLLIN};
        fds[DATA_PORT_CALLERS + 1] = (struct pollfd){.fd = port->closing.event_fd, .events = POLLIN};
        poll(fds, DATA_PORT_CALLERS + 2, next_timeout(port, clock_now()));
        for (int i = 0; i < DATA_PORT_CALLERS; i++)
            if (fds[i].fd >= 0 && fds[i].revents)
                caller_readable(port, &port->caller[i]);
        rm_time now = clock_now();
        drop_late(port, now);
        if (fds[DATA_PORT_CALLERS].revents)
            accept_all(port, now);
    }
    return NULL;
}

static void port_clear(struct data_port *port)
{
    for (int i = 0; i < DATA_PORT_CALLERS; i++)
        if (port->caller[i].fd >= 0)
            close(port->caller[i].fd);
    for (int i = 0; i < PARKED_MAX; i++)
        if (port->parked[i].fd >= 0)
            close(port->parked[i].fd);
    if (port->listener >= 0)
        close(port->listener);
    abort_flag_clear(&port->closing);
    abort_flag_clear(&port->arrival);
    pthread_mutex_destroy(&port->lock);
    pthread_cond_destroy(&port->served);
    free(port);
}

int data_port_open(struct data_port **ret, const struct data_port_options *options, struct error *err)
{
    struct data_port *port = calloc(1, sizeof *port);
    if (!port)
        return err_set(err, ERR_MACHINE, "no memory for the data port");
    port->options = *options;
    port->listener = port->closing.event_fd = port->arrival.event_fd = -1;
    for (int i = 0; i < DATA_PORT_CALLERS; i++)
        port->caller[i].fd = -1;
    for (int i = 0; i < PARKED_MAX; i++)
        port->parked[i].fd = -1;
    pthread_mutex_init(&port->lock, NULL);
    pthread_cond_init(&port->served, NULL);
    int rc = abort_flag_init(&port->closing, err);
    if (rc == 0)
        rc = abort_flag_init(&port->arrival, err);
    if (rc == 0)
        rc = socket_listen(&port->listener, options->listen, port->address, err);
    if (rc == 0 && pthread_create(&port->thread, NULL, port_thread, port))
        rc = err_set(err, ERR_MACHINE, "no thread for the data port");
    if (rc < 0) {
        port_clear(port);
        return -1;
    }
    *ret = port;
    return 0;
}

void data_port_free(struct data_port *port)
{
    if (!port)
        return;
    abort_flag_set(&port->closing);
    pthread_join(port->thread, NULL);
    pthread_mutex_lock(&port->lock);
    while (port->servers)
        pthread_cond_wait(&port->served, &port->lock);
    pthread_mutex_unlock(&port->lock);
    port_clear(port);
}

const char *data_port_address(const struct data_port *port)
{
    return port->address;
}

void data_port_advance(struct data_port *port, struct ring_generation generation)
{
    pthread_mutex_lock(&port->lock);
    if (ring_generation_compare(generation, port->oldest) > 0)
        port->oldest = generation;
    for (int i = 0; i < PARKED_MAX; i++) {
        struct parked *p = &port->parked[i];
        if (p->fd >= 0 && ring_generation_compare(p->generation, port->oldest) < 0) {
            close(p->fd);
            p->fd = -1;
        }
    }
    pthread_mutex_unlock(&port->lock);
}

static int take_parked(struct data_port *port, struct ring_generation generation,
                       const struct handshake_end *from, int stream)
{
    int fd = -1;
    pthread_mutex_lock(&port->lock);
    for (int i = 0; i < PARKED_MAX && fd < 0; i++) {
        struct parked *p = &port->parked[i];
        if (p->fd >= 0 && p->stream == stream && same_end(&p->from, from) &&
            !ring_generation_compare(p->generation, generation)) {
            fd = p->fd;
            p->fd = -1;
        }
    }
    pthread_mutex_unlock(&port->lock);
    return fd;
}

int data_port_take(struct data_port *port, struct ring_generation generation,
                   const struct handshake_end *from, int stream, const struct patience *patience, int *ret_fd,
                   struct error *err)
{
    for (;;) {
        abort_flag_reset(&port->arrival);
        int fd = take_parked(port, generation, from, stream);
        if (fd >= 0) {
            *ret_fd = fd;
            return 0;
        }
        if (socket_wait(port->arrival.event_fd, POLLIN, patience, err) < 0)
            return err_wrap(err, "wait for worker %d's ring connection", from->worker);
    }
}
