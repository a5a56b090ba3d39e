/* Ranks as processes, of which one is killed, stands still, or goes on when the others have long made another
 * ring: at every turn that a ring over TCP, and one in shared memory, takes in a sum. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collective_rig.h"
#include "trainer/collective/shm_ring.h"
#include "trainer/collective/tcp_ring.h"

/* Sockets, and boards where there are any, of a ring of processes: made before they are. */
struct wires {
    int fds[WORLD_MAX][2];
    struct boards *boards;
};

static struct wires wires_make(int kind, int world)
{
    struct wires w = {.boards = kind == KIND_SHM ? boards_make(world) : NULL};
    if (!w.boards)
        socket_pairs(world, w.fds);
    return w;
}

static void wires_close_rank(struct wires *w, int world, int rank)
{
    if (!w->boards) {
        close(w->fds[rank][0]);
        close(w->fds[(rank + world - 1) % world][1]);
        return;
    }
    for (int other = 0; other < world; other++) {
        if (other != rank)
            close(w->boards->fd[rank][other]);
        board_free(&w->boards->board[rank][other]);
    }
}

/* All of it but what rank `kept` has; -1: all. */
static void wires_close(struct wires *w, int world, int kept)
{
    for (int r = 0; r < world; r++)
        if (r != kept)
            wires_close_rank(w, world, r);
    free(w->boards);
}

static void open_rank(struct party *p, struct wires *w, int rank)
{
    struct error err;
    struct member *m = &p->member[rank];
    struct tcp_ring_options tcp = {.rank = rank, .world = p->world, .abort = &m->abort};
    struct shm_ring_options shm = {.rank = rank, .world = p->world, .abort = &m->abort};
    if (w->boards) {
        shm.fd = w->boards->fd[rank];
        shm.board = w->boards->board[rank];
        cr_assert_eq(shm_ring_open(&m->collective, &shm, &err), 0);
    } else {
        tcp.next_fd = w->fds[rank][0];
        tcp.prev_fd = w->fds[(rank + p->world - 1) % p->world][1];
        cr_assert_eq(tcp_ring_open(&m->collective, &tcp, &err), 0);
    }
}

/* A process for one rank, which meets a fault in its turn number `turn`; 0: none. */
static pid_t start_rank(struct party *p, struct wires *w, int rank, int turn, const char *does)
{
    char fault[32];
    pid_t child = fork();
    cr_assert_geq(child, 0);
    if (child)
        return child;
    snprintf(fault, sizeof fault, "ring-turn:%d%s", turn, does);
    if (turn)
        setenv("RINGMASTER_FAULT", fault, 1);
    open_rank(p, w, rank);
    wires_close(w, p->world, rank);
    _exit(reduce_once(&p->member[rank]) < 0 ? 1 : 0);
}

static struct party *party_of_processes(int world, int64_t words)
{
    struct error err;
    struct party *p = calloc(1, sizeof *p);
    p->world = world;
    for (int r = 0; r < world; r++)
        cr_assert_eq(abort_flag_init(&p->member[r].abort, &err), 0);
    fill(p, words, 0);
    return p;
}

/* Enough for several portions: what is given, summed and taken, and room that is used again. */
static int64_t words_for(int kind)
{
    return kind == KIND_SHM ? 5 * BOARD_PORTION / 4 + 77 : 9001;
}

/* A process of its own for each rank, of which rank 1 is killed in its turn number `turn`. Returns whether it
 * was; what all of them add and have summed lies in shared memory. */
static bool kill_at_turn(int kind, int turn)
{
    struct party *p = party_of_processes(3, words_for(kind));
    struct wires w = wires_make(kind, p->world);
    pid_t child[WORLD_MAX];
    int status;
    bool killed = false;
    for (int r = 0; r < p->world; r++)
        child[r] = start_rank(p, &w, r, r == 1 ? turn : 0, "");
    wires_close(&w, p->world, -1);
    for (int r = 0; r < p->world; r++) {
        cr_assert_eq(waitpid(child[r], &status, 0), child[r]);
        killed |= WIFSIGNALED(status);
        cr_assert(r == 1 || WIFEXITED(status));
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            expect_sums(p, r);
    }
    party_free(p);
    return killed;
}

static const int rings[] = {KIND_RING, KIND_SHM};
enum { RINGS = sizeof rings / sizeof *rings };

/* Calls it for one turn after the other, until there is no such turn. */
static void expect_turns(bool (*at_turn)(int kind, int turn), int kind)
{
    int turn = 1;
    while (at_turn(kind, turn))
        turn++;
    cr_assert_gt(turn, 4, "%d turns", turn);
}

Test(ring_processes, a_kill_in_any_turn_leaves_what_each_rank_adds_as_it_was)
{
    for (int i = 0; i < RINGS; i++)
        expect_turns(kill_at_turn, rings[i]);
}

/* Rank 1 stands still in its turn number `turn` and is let go again; false: it had no such turn. */
static bool stop_at_turn(int kind, int turn)
{
    struct party *p = party_of_processes(3, words_for(kind));
    struct wires w = wires_make(kind, p->world);
    pid_t child[WORLD_MAX];
    int status;
    for (int r = 0; r < p->world; r++)
        child[r] = start_rank(p, &w, r, r == 1 ? turn : 0, "/stop");
    wires_close(&w, p->world, -1);
    cr_assert_eq(waitpid(child[1], &status, WUNTRACED), child[1]);
    bool stopped = WIFSTOPPED(status);
    if (stopped)
        kill(child[1], SIGCONT);
    for (int r = 0; r < p->world; r++) {
        if (r != 1 || stopped)
            cr_assert_eq(waitpid(child[r], &status, 0), child[r]);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "rank %d", r);
        expect_sums(p, r);
    }
    party_free(p);
    return stopped;
}

Test(ring_processes, a_rank_that_stands_still_in_any_turn_is_waited_for)
{
    for (int i = 0; i < RINGS; i++)
        expect_turns(stop_at_turn, rings[i]);
}

/* Threads for all ranks but the one that is a process. */
static void start_others(struct party *p, struct wires *w, int process)
{
    for (int r = 0; r < p->world; r++) {
        if (r == process)
            continue;
        open_rank(p, w, r);
        p->member[r].rounds = 1;
    }
    wires_close_rank(w, p->world, process);
    free(w->boards);
    for (int r = 0; r < p->world; r++)
        if (r != process)
            start(&p->member[r]);
}

static void give_up(struct party *p, int process)
{
    for (int r = 0; r < p->world; r++) {
        if (r == process)
            continue;
        abort_member(&p->member[r]);
        pthread_join(p->member[r].thread, NULL);
        close_member(&p->member[r]);
    }
}

/* Ranks 0 and 2 give the ring up in which rank 1 stands still, and their memory has other words and another
 * ring; the old one goes on meanwhile. Returns whether it stood still. */
static bool zombie_from_turn(int kind, int turn)
{
    enum { ZOMBIE = 1 };
    struct party *p = party_of_processes(3, words_for(kind));
    struct wires w = wires_make(kind, p->world);
    int status;
    pid_t zombie = start_rank(p, &w, ZOMBIE, turn, "/stop");
    start_others(p, &w, ZOMBIE);
    cr_assert_eq(waitpid(zombie, &status, WUNTRACED), zombie);
    bool stopped = WIFSTOPPED(status);
    give_up(p, ZOMBIE);
    struct party *next = party_open(kind, 2);
    fill(next, words_for(kind), 0);
    for (int r = 0; r < next->world; r++)
        start(&next->member[r]);
    if (stopped) {
        kill(zombie, SIGCONT);
        cr_assert_eq(waitpid(zombie, &status, 0), zombie);
    }
    cr_assert(WIFEXITED(status));
    if (WEXITSTATUS(status) == 0)
        expect_sums(p, ZOMBIE);
    for (int r = 0; r < next->world; r++) {
        pthread_join(next->member[r].thread, NULL);
        cr_assert_eq(next->member[r].rc, 0, "%s", next->member[r].err.text);
        expect_sums(next, r);
    }
    party_free(next);
    party_free(p);
    return stopped;
}

Test(ring_processes, a_rank_of_an_older_ring_that_goes_on_changes_nothing_in_the_next_one)
{
    for (int i = 0; i < RINGS; i++)
        expect_turns(zombie_from_turn, rings[i]);
}
