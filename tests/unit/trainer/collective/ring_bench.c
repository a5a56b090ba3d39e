/* What a sum over all ranks takes: processes on this machine, over loopback TCP or in memory that they share.
 *     ring_bench tcp|shm WORLD BYTES...
 * One line a size: bytes, seconds of a sum (the median, as rank 0 sees it), and CPU seconds of all ranks for
 * a GB of sums of one rank. tools/bench ring has the same lines of peers (tools/mpi_allreduce.c and the
 * like), which measure likewise. */
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/os/clock.h"
#include "trainer/collective/shm_ring.h"
#include "trainer/collective/socket.h"
#include "trainer/collective/tcp_ring.h"

enum { WORLD_MAX = 16, SUMS_MAX = 20000, SUMS_LEAST = 5 };

/* What the ranks tell each other beside the ring. */
struct shared {
    double cpu[WORLD_MAX];
    int sums; /* of the size at hand, by rank 0's first one */
};

struct wires {
    int next[WORLD_MAX], prev[WORLD_MAX];
    int fd[WORLD_MAX][WORLD_MAX];
    struct board board[WORLD_MAX][WORLD_MAX];
};

static void die(const struct error *err)
{
    fprintf(stderr, "ring_bench: %s\n", err->text);
    _exit(4);
}

static void connect_tcp(struct wires *w, int world)
{
    struct patience patience = {NULL, RM_NEVER};
    struct error err;
    for (int r = 0; r < world; r++) {
        char address[RM_ADDRESS_MAX];
        int listener, next = (r + 1) % world;
        if (socket_listen(&listener, "127.0.0.1", address, &err) < 0 ||
            socket_connect(&w->next[r], address, &patience, &err) < 0 ||
            socket_wait(listener, POLLIN, &patience, &err) < 0)
            die(&err);
        w->prev[next] = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        socket_tune(w->prev[next]);
        close(listener);
    }
}

static void connect_shm(struct wires *w, int world)
{
    struct error err;
    for (int r = 0; r < world; r++)
        if (board_make(&w->board[r][r], &err) < 0)
            die(&err);
    for (int r = 0; r < world; r++) {
        w->fd[r][r] = -1;
        for (int other = 0; other < r; other++) {
            int pair[2];
            if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0 ||
                board_map(&w->board[r][other], dup(w->board[other][other].fd), &err) < 0 ||
                board_map(&w->board[other][r], dup(w->board[r][r].fd), &err) < 0)
                die(&err);
            w->fd[r][other] = pair[0];
            w->fd[other][r] = pair[1];
        }
    }
}

static struct collective *open_ring(const struct wires *w, bool shm, int world, int rank)
{
    static struct abort_flag abort;
    struct collective *ring;
    struct error err;
    struct tcp_ring_options tcp = {
        .rank = rank, .world = world, .next_fd = w->next[rank], .prev_fd = w->prev[rank], .abort = &abort};
    struct shm_ring_options boards = {
        .rank = rank, .world = world, .fd = w->fd[rank], .board = w->board[rank], .abort = &abort};
    if (abort_flag_init(&abort, &err) < 0)
        die(&err);
    if ((shm ? shm_ring_open(&ring, &boards, &err) : tcp_ring_open(&ring, &tcp, &err)) < 0)
        die(&err);
    return ring;
}

static double sum_once(struct collective *ring, const uint32_t *from, uint32_t *to, int64_t count)
{
    struct collective_segment segment = {.from = from, .to = to, .count = count};
    struct error err;
    rm_time begun = clock_now();
    if (ring->ops->reduce(ring, &segment, 1, NULL, &err) < 0)
        die(&err);
    return (double)(clock_now() - begun) / RM_S;
}

static double cpu_seconds(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* About a third of a second of them. */
static int sums_for(double once)
{
    int sums = once > 0 ? (int)(0.3 / once) : SUMS_MAX;
    return sums < SUMS_LEAST ? SUMS_LEAST : sums > SUMS_MAX ? SUMS_MAX : sums;
}

static void time_size(struct collective *ring, struct shared *shared, int64_t bytes)
{
    static double took[SUMS_MAX];
    int64_t count = bytes / 4;
    uint32_t *from = malloc((size_t)bytes), *to = malloc((size_t)bytes), word = 0;
    memset(from, 1, (size_t)bytes);
    memset(to, 1, (size_t)bytes);
    double once = 0;
    for (int i = 0; i < 3; i++)
        once = sum_once(ring, from, to, count);
    if (ring->rank == 0)
        shared->sums = sums_for(once);
    sum_once(ring, &word, to, 1); /* all know of it then */
    int sums = shared->sums;
    double cpu = cpu_seconds();
    for (int i = 0; i < sums; i++)
        took[i] = sum_once(ring, from, to, count);
    shared->cpu[ring->rank] = cpu_seconds() - cpu;
    sum_once(ring, &word, to, 1);
    for (int r = 1; r < ring->world && ring->rank == 0; r++)
        shared->cpu[0] += shared->cpu[r];
    qsort(took, (size_t)sums, sizeof *took, ascending);
    if (ring->rank == 0)
        printf("%lld %.9f %.4f\n", (long long)bytes, took[sums / 2],
               shared->cpu[0] / ((double)sums * (double)bytes * 1e-9));
    fflush(stdout);
    sum_once(ring, &word, to, 1);
    free(from);
    free(to);
}

int main(int argc, char **argv)
{
    bool shm = argc > 1 && !strcmp(argv[1], "shm");
    int world = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0, status, bad = 0;
    static struct wires w;
    struct shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (world < 2 || world > WORLD_MAX || (!shm && strcmp(argv[1], "tcp") != 0)) {
        fprintf(stderr, "ring_bench tcp|shm WORLD BYTES...\n");
        return 2;
    }
    if (shm)
        connect_shm(&w, world);
    else
        connect_tcp(&w, world);
    for (int r = 0; r < world; r++) {
        if (fork() > 0)
            continue;
        struct collective *ring = open_ring(&w, shm, world, r);
        for (int i = 3; i < argc; i++)
            time_size(ring, shared, strtoll(argv[i], NULL, 10));
        _exit(0);
    }
    while (wait(&status) > 0)
        bad |= status;
    return bad ? 4 : 0;
}
