/* Finds out in a ring's first reduce whether its ranks reach each other's memory, and sums by boards or over
 * TCP from then on. */
#include "trainer/io/ring_boards.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/os/clock.h"
#include "common/os/crypto.h"
#include "trainer/collective/shm_ring.h"

enum { NAME = 16 };
#define BEAT (100 * RM_MS)
/* For all to call each other, which takes no longer than it takes to be put on a processor. */
#define CALL_PATIENCE (2 * RM_S)

/* What a rank says first. */
struct offer {
    uint8_t name[NAME]; /* where it listens */
    uint64_t able;      /* 1: it does, and has a board */
};

struct boards {
    struct collective base;
    struct ring_boards_options options;
    struct handshake_end member[RM_WORKERS_MAX];
    struct collective *shm; /* NULL: over TCP */
    pthread_mutex_t lock;   /* over that pointer: any thread may abort it */
    bool settled, broken;
};

/* While that is found out. */
struct meeting {
    struct boards *boards;
    int listener;
    struct offer offer[RM_WORKERS_MAX];
    int fd[RM_WORKERS_MAX];
    struct board board[RM_WORKERS_MAX];
    struct error why; /* it will not be */
};

static struct boards *boards_of(struct collective *self)
{
    return (struct boards *)(void *)self;
}

/* ---- words over TCP ---- */

static int wait_for_previous(const struct boards *b, struct error *err)
{
    for (;;) {
        struct patience patience = {b->options.abort, clock_now() + BEAT};
        if (b->options.pulse)
            atomic_fetch_add_explicit(b->options.pulse, 1, memory_order_relaxed);
        if (socket_wait(b->options.prev_fd, POLLIN, &patience, err) == 0)
            return 0;
        if (err->code != ERR_PEER || clock_now() < patience.deadline)
            return -1;
    }
}

/* word (world, size): each rank's own one goes all the way round. */
static int gather(const struct boards *b, void *word, size_t size, int *ret_peer, struct error *err)
{
    struct patience patience = {b->options.abort, RM_NEVER};
    int world = b->base.world, rank = b->base.rank;
    for (int i = 0; i < world - 1; i++) {
        char *out = (char *)word + (size_t)((rank - i + world) % world) * size;
        char *in = (char *)word + (size_t)((rank - 1 - i + world) % world) * size;
        if (socket_send(b->options.next_fd, out, size, &patience, err) < 0) {
            *ret_peer = (rank + 1) % world;
            return -1;
        }
        if (wait_for_previous(b, err) < 0 ||
            socket_receive(b->options.prev_fd, in, size, &patience, err) < 0) {
            *ret_peer = (rank + world - 1) % world;
            return -1;
        }
    }
    return 0;
}

/* ---- sockets of this machine ---- */

static socklen_t address_of(const struct offer *offer, struct sockaddr_un *ret)
{
    static const char prefix[] = "ringmaster-";
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    char *at = ret->sun_path + 1; /* behind a zero: abstract, of no file */
    memcpy(at, prefix, sizeof prefix - 1);
    for (int i = 0; i < NAME; i++)
        snprintf(at + sizeof prefix - 1 + 2 * i, 3, "%02x", offer->name[i]);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof prefix + 2 * NAME);
}

static int unix_socket(int *ret, struct error *err)
{
    *ret = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    return *ret < 0 ? err_errno(err, ERR_MACHINE, "open a socket") : 0;
}

static int listen_here(struct meeting *m, struct offer *offer, struct error *err)
{
    struct sockaddr_un at;
    crypto_random(offer->name, sizeof offer->name);
    socklen_t size = address_of(offer, &at);
    if (unix_socket(&m->listener, err) < 0)
        return -1;
    if (bind(m->listener, (const struct sockaddr *)(const void *)&at, size) < 0 ||
        listen(m->listener, RM_WORKERS_MAX) < 0)
        return err_errno(err, ERR_MACHINE, "listen for ranks on this machine");
    return 0;
}

/* What this process needs of its own. */
static void make_offer(struct meeting *m)
{
    int rank = m->boards->base.rank;
    struct offer *offer = &m->offer[rank];
    offer->able = board_make(&m->board[rank], &m->why) == 0 && listen_here(m, offer, &m->why) == 0;
}

static int swap_boards(struct meeting *m, int rank, bool first, const struct patience *patience,
                       struct error *err)
{
    int own = m->board[m->boards->base.rank].fd, fd;
    if ((first && socket_send_fd(m->fd[rank], own, patience, err) < 0) ||
        socket_receive_fd(m->fd[rank], &fd, patience, err) < 0 || board_map(&m->board[rank], fd, err) < 0)
        return -1;
    return first ? 0 : socket_send_fd(m->fd[rank], own, patience, err);
}

static int call_rank(struct meeting *m, int rank, const struct patience *patience, struct error *err)
{
    const struct boards *b = m->boards;
    struct handshake_claim claim = {HANDSHAKE_RING, b->options.generation, b->member[b->base.rank],
                                    b->member[rank], 0};
    struct sockaddr_un at;
    socklen_t size = address_of(&m->offer[rank], &at);
    if (unix_socket(&m->fd[rank], err) < 0)
        return -1;
    if (connect(m->fd[rank], (const struct sockaddr *)(const void *)&at, size) < 0)
        return err_errno(err, ERR_PEER, "reach worker %d's socket", b->member[rank].worker);
    if (handshake_call(m->fd[rank], &b->options.secret, &claim, patience, err) < 0)
        return -1;
    return swap_boards(m, rank, true, patience, err);
}

static bool same_user(int fd)
{
    struct ucred who;
    socklen_t size = sizeof who;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.uid == geteuid();
}

static bool same_end(const struct handshake_end *a, const struct handshake_end *b)
{
    return a->worker == b->worker && a->incarnation == b->incarnation;
}

/* The rank above this one that claims to call, and has not called yet; -1: nobody of this ring. */
static int rank_of(const struct meeting *m, const struct handshake_claim *claim)
{
    const struct boards *b = m->boards;
    if (claim->purpose != HANDSHAKE_RING ||
        ring_generation_compare(claim->generation, b->options.generation) ||
        !same_end(&claim->to, &b->member[b->base.rank]))
        return -1;
    for (int r = b->base.rank + 1; r < b->base.world; r++)
        if (m->fd[r] < 0 && same_end(&claim->from, &b->member[r]))
            return r;
    return -1;
}

/* Takes fd, or closes it. */
static int answer_caller(struct meeting *m, int fd, const struct patience *patience, struct error *err)
{
    const struct handshake_secret *secret = &m->boards->options.secret;
    uint8_t hello[HANDSHAKE_HELLO], answer[HANDSHAKE_ANSWER], confirm[HANDSHAKE_CONFIRM];
    struct handshake_called called;
    struct handshake_claim claim;
    int rank = -1;
    if (same_user(fd) && socket_receive(fd, hello, sizeof hello, patience, err) == 0 &&
        handshake_answer(&called, secret, hello, &claim, answer, err) == 0 &&
        (rank = rank_of(m, &claim)) >= 0 && socket_send(fd, answer, sizeof answer, patience, err) == 0 &&
        socket_receive(fd, confirm, sizeof confirm, patience, err) == 0 &&
        handshake_confirmed(&called, secret, confirm)) {
        m->fd[rank] = fd;
        return swap_boards(m, rank, false, patience, err);
    }
    close(fd);
    return 0; /* a stranger: the one who is due may still come */
}

static bool all_called(const struct meeting *m)
{
    for (int r = m->boards->base.rank + 1; r < m->boards->base.world; r++)
        if (m->fd[r] < 0)
            return false;
    return true;
}

/* Each calls those below it and is called by those above it: rank 0 answers at once, and so all do. */
static int meet_all(struct meeting *m, struct error *err)
{
    struct patience patience = {m->boards->options.abort, clock_now() + CALL_PATIENCE};
    for (int r = 0; r < m->boards->base.rank; r++)
        if (call_rank(m, r, &patience, err) < 0)
            return -1;
    while (!all_called(m)) {
        if (socket_wait(m->listener, POLLIN, &patience, err) < 0)
            return -1;
        int fd = accept4(m->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            return err_errno(err, ERR_MACHINE, "take a rank's call");
        if (fd >= 0 && answer_caller(m, fd, &patience, err) < 0)
            return -1;
    }
    return 0;
}

static void leave_meeting(struct meeting *m)
{
    if (m->listener >= 0)
        close(m->listener);
    for (int r = 0; r < m->boards->base.world; r++) {
        if (m->fd[r] >= 0)
            close(m->fd[r]);
        board_free(&m->board[r]);
    }
}

/* ---- deciding ---- */

static int open_shm(struct meeting *m, struct error *err)
{
    struct boards *b = m->boards;
    struct shm_ring_options options = {.rank = b->base.rank,
                                       .world = b->base.world,
                                       .fd = m->fd,
                                       .board = m->board,
                                       .abort = b->options.abort,
                                       .pulse = b->options.pulse,
                                       .place = b->options.place};
    struct collective *shm;
    int rc = shm_ring_open(&shm, &options, err);
    for (int r = 0; r < b->base.world; r++) {
        m->fd[r] = -1;
        m->board[r] = (struct board){.fd = -1};
    }
    if (rc < 0)
        return -1;
    pthread_mutex_lock(&b->lock);
    b->shm = shm;
    pthread_mutex_unlock(&b->lock);
    return 0;
}

static bool all_able(const struct meeting *m)
{
    for (int r = 0; r < m->boards->base.world; r++)
        if (!m->offer[r].able)
            return false;
    return true;
}

static int settle_at(struct meeting *m, int *ret_peer, struct error *err)
{
    struct boards *b = m->boards;
    make_offer(m);
    if (gather(b, m->offer, sizeof *m->offer, ret_peer, err) < 0)
        return -1;
    if (all_able(m)) {
        m->offer[b->base.rank].able = meet_all(m, &m->why) == 0;
        if (gather(b, m->offer, sizeof *m->offer, ret_peer, err) < 0)
            return -1;
        if (all_able(m) && open_shm(m, err) < 0)
            return -1;
    }
    if (b->options.settled)
        b->options.settled(b->options.ctx, b->shm != NULL, m->offer[b->base.rank].able ? "" : m->why.text);
    return 0;
}

static int settle_boards(struct boards *b, int *ret_peer, struct error *err)
{
    struct meeting *m = calloc(1, sizeof *m);
    if (!m)
        return err_set(err, ERR_MACHINE, "no memory to meet other ranks");
    m->boards = b;
    m->listener = -1;
    for (int r = 0; r < b->base.world; r++) {
        m->fd[r] = -1;
        m->board[r].fd = -1;
    }
    int rc = settle_at(m, ret_peer, err);
    leave_meeting(m);
    free(m);
    b->settled = rc == 0;
    b->broken = rc < 0;
    return rc;
}

static int boards_reduce(struct collective *self, const struct collective_segment *segments, int n,
                         int *ret_peer, struct error *err)
{
    struct boards *b = boards_of(self);
    struct error ignored;
    int nobody;
    ret_peer = ret_peer ? ret_peer : &nobody;
    err = err ? err : &ignored;
    *ret_peer = -1;
    int rc = b->broken ? err_set(err, ERR_PEER, "this ring is broken") : 0;
    if (!b->settled && !b->broken && !abort_flag_is_set(b->options.abort))
        rc = settle_boards(b, ret_peer, err);
    if (abort_flag_is_set(b->options.abort)) {
        *ret_peer = -1;
        return err_set(err, ERR_ABORTED, "aborted");
    }
    if (rc < 0)
        return -1;
    struct collective *over = b->shm ? b->shm : b->options.below;
    rc = over->ops->reduce(over, segments, n, ret_peer, err);
    self->sent = over->sent;
    return rc;
}

static void boards_abort(struct collective *self)
{
    struct boards *b = boards_of(self);
    b->options.below->ops->abort(b->options.below);
    pthread_mutex_lock(&b->lock);
    if (b->shm)
        b->shm->ops->abort(b->shm);
    pthread_mutex_unlock(&b->lock);
}

static void boards_close(struct collective *self)
{
    struct boards *b = boards_of(self);
    if (b->shm)
        b->shm->ops->close(b->shm);
    b->options.below->ops->close(b->options.below);
    pthread_mutex_destroy(&b->lock);
    free(b);
}

static int boards_watch(struct collective *self, int fds[2], int peers[2])
{
    struct collective *below = boards_of(self)->options.below;
    return below->ops->watch(below, fds, peers);
}

static const struct collective_ops boards_ops = {boards_reduce, boards_abort, boards_close, boards_watch};

int ring_boards_open(struct collective **ret, const struct ring_boards_options *options, struct error *err)
{
    struct boards *b = calloc(1, sizeof *b);
    struct collective *below = options->below;
    RM_ASSERT(below->world >= 2 && below->world <= RM_WORKERS_MAX, "a ring of %d", below->world);
    if (!b) {
        below->ops->close(below);
        return err_set(err, ERR_MACHINE, "no memory for a ring");
    }
    b->base = (struct collective){.ops = &boards_ops, .rank = below->rank, .world = below->world};
    b->options = *options;
    memcpy(b->member, options->member, (size_t)below->world * sizeof *b->member);
    b->options.member = b->member;
    pthread_mutex_init(&b->lock, NULL);
    *ret = &b->base;
    return 0;
}
