/* NCCL as a transport, by its stand-ins: ranks are threads of this process, each with a connection and a
 * stream of its own on one stand-in GPU. */
#include "trainer/backend/cuda/nccl/nccl_transport.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/time.h"
#include "gpu_case.h"
#include "trainer/backend/cuda/nccl/nccl.h"

enum { WORLD_MOST = 3, WORDS = 5000, TO = 32 << 10, TURN_MS = 1 };

static const char key[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

struct rank {
    struct gpu *gpu;
    struct transport *t;
    struct cuda_memory m;
    pthread_t thread;
    int64_t count;
    atomic_int stop;
    int fd, rc, peer; /* fd: watched as rank 1's; -1 none */
    rm_time still;
    struct error err;
    uint32_t *host; // (WORDS) pinned
};

struct party {
    struct gpu gpu;
    char folder[64];
    int world;
    struct rank rank[WORLD_MOST];
};

static void play(const struct party *p, const char *words)
{
    char script[200];
    snprintf(script, sizeof script, "dir=%s,%s", p->folder, words);
    setenv("RINGMASTER_STANDIN_NCCL", script, 1);
}

static void use_version(int version)
{
    char path[512];
    snprintf(path, sizeof path, STANDIN_NCCL "/nccl-%d/libnccl.so.2", version);
    setenv("RINGMASTER_NCCL_LIBRARY", path, 1);
}

static uint32_t word_of(int rank, int64_t i)
{
    return (uint32_t)(rank + 1) * 0x9e3779b9u + (uint32_t)i * 0x85ebca6bu; /* wraps */
}

static void fill(struct rank *r, int number)
{
    struct cuda_stream s = gpu_stream(r->gpu);
    for (int i = 0; i < WORDS; i++)
        r->host[i] = word_of(number, i);
    GPU_OK(cuda_copy_in(&s, r->m.at, r->host, WORDS * sizeof *r->host, &gpu_err));
    GPU_OK(cuda_stream_wait(&s, &gpu_err));
    cuda_stream_clear(&s);
}

static void party_open(struct party *p, int version, int world, const char *script)
{
    *p = (struct party){.folder = "/tmp/rm-nccl-test-XXXXXX", .world = world};
    cr_assert_not_null(mkdtemp(p->folder));
    use_version(version);
    play(p, script);
    gpu_open(&p->gpu, "seed=5");
    for (int i = 0; i < world; i++) {
        struct rank *r = &p->rank[i];
        *r = (struct rank){.gpu = &p->gpu, .fd = -1};
        r->m = gpu_memory(&p->gpu, 2 * TO);
        r->host = gpu_pinned(&p->gpu, WORDS * sizeof *r->host);
        fill(r, i);
        GPU_OK(nccl_transport_open(&r->t, p->gpu.device, key, &gpu_err));
    }
}

static void party_close(struct party *p)
{
    char command[128];
    for (int i = 0; i < p->world; i++) {
        p->rank[i].t->ops->free(p->rank[i].t);
        cuda_memory_clear(&p->rank[i].m);
        cuda_pinned_free(p->gpu.device, p->rank[i].host);
    }
    gpu_close(&p->gpu);
    snprintf(command, sizeof command, "rm -rf '%s'", p->folder);
    cr_assert_eq(system(command), 0);
}

static enum transport_state state_of(struct rank *r)
{
    char why[RM_WHY_MAX] = "";
    return r->t->ops->state(r->t, why);
}

static void wait_for(struct rank *r, enum transport_state state)
{
    while (state_of(r) != state)
        poll(NULL, 0, TURN_MS);
}

static void connect_all_as(struct party *p, bool open)
{
    uint8_t id[TRANSPORT_ID];
    p->rank[0].t->ops->name(p->rank[0].t, open);
    wait_for(&p->rank[0], TRANSPORT_NAMED);
    p->rank[0].t->ops->id(p->rank[0].t, id);
    for (int i = 0; i < p->world; i++)
        p->rank[i].t->ops->connect(p->rank[i].t, id, i, p->world, open);
}

static void connect_all(struct party *p)
{
    connect_all_as(p, false);
}

static void wait_for_all(struct party *p, enum transport_state state)
{
    for (int i = 0; i < p->world; i++)
        wait_for(&p->rank[i], state);
}

static void *sum_main(void *arg)
{
    struct rank *r = arg;
    const struct transport_sum sum = {.from = {r->m.at},
                                      .to = {r->m.at + TO},
                                      .count = r->count,
                                      .fds = {r->fd},
                                      .peers = {1},
                                      .watched = r->fd >= 0,
                                      .stop = &r->stop,
                                      .still = &r->still};
    r->rc = r->t->ops->reduce(r->t, &sum, &r->peer, &r->err);
    return NULL;
}

static void sum_begin(struct rank *r, int64_t count)
{
    r->count = count;
    cr_assert_eq(pthread_create(&r->thread, NULL, sum_main, r), 0);
}

static void expect_sum(struct party *p, int rank)
{
    struct rank *r = &p->rank[rank];
    struct cuda_stream s = gpu_stream(&p->gpu);
    cr_assert_eq(r->rc, 0, "rank %d: %s", rank, r->err.text);
    GPU_OK(cuda_device_use(p->gpu.device, &gpu_err));
    GPU_OK(cuda_copy_out(&s, r->host, r->m.at + TO, (size_t)r->count * sizeof *r->host, &gpu_err));
    GPU_OK(cuda_stream_wait(&s, &gpu_err));
    cuda_stream_clear(&s);
    for (int64_t i = 0; i < r->count; i++) {
        uint32_t wanted = 0;
        for (int k = 0; k < p->world; k++)
            wanted += word_of(k, i);
        cr_assert_eq(r->host[i], wanted, "rank %d, word %lld", rank, (long long)i);
    }
}

static void sum_all(struct party *p, int64_t count)
{
    for (int i = 0; i < p->world; i++)
        sum_begin(&p->rank[i], count);
    for (int i = 0; i < p->world; i++)
        pthread_join(p->rank[i].thread, NULL);
    for (int i = 0; i < p->world; i++)
        expect_sum(p, i);
}

static void sums_are_right(int version, int world)
{
    struct party p;
    party_open(&p, version, world, "");
    cr_assert_eq(p.rank[0].t->version, version);
    connect_all(&p);
    wait_for_all(&p, TRANSPORT_READY);
    sum_all(&p, 1);
    sum_all(&p, 37);
    sum_all(&p, WORDS);
    sum_all(&p, WORDS - 1);
    party_close(&p);
}

Test(nccl, sums_by_2_26_are_exact)
{
    sums_are_right(22605, 2);
    sums_are_right(22605, 3);
}

Test(nccl, sums_by_2_28_are_exact)
{
    sums_are_right(22809, 2);
    sums_are_right(22809, 3);
}

/* It takes a key, and takes it before the first communicator of a process alone. */
Test(nccl, sums_by_2_32_of_two_are_exact)
{
    sums_are_right(23203, 2);
}

Test(nccl, sums_by_2_32_of_three_are_exact)
{
    sums_are_right(23203, 3);
}

Test(nccl, a_library_that_cannot_be_used_is_refused_with_a_sentence)
{
    struct nccl *n;
    struct error err = {0};
    setenv("RINGMASTER_NCCL_LIBRARY", "/nowhere/libnccl.so.2", 1);
    GPU_FAILS(nccl_open(&n, key, &gpu_err), "no NCCL: /nowhere/libnccl.so.2 can't be loaded");
    setenv("RINGMASTER_NCCL_LIBRARY", STANDIN_STUB, 1);
    cr_assert_eq(nccl_open(&n, key, &err), -1);
    cr_assert_not_null(strstr(err.text, "lacks ncclGetVersion"), "%s", err.text);
    use_version(22809);
    setenv("RINGMASTER_STANDIN_NCCL", "version=22805", 1);
    cr_assert_eq(nccl_open(&n, key, &err), -1);
    cr_assert_not_null(strstr(err.text, "is NCCL 2.28.5, and 2.28.3 to 2.28.8 crash"), "%s", err.text);
    use_version(23203);
    unsetenv("RINGMASTER_STANDIN_NCCL");
    GPU_FAILS(nccl_open(&n, "0123", &gpu_err), "NCCL failed to take the job's key: invalid argument (4)");
    use_version(22809);
    setenv("RINGMASTER_NCCL_NEEDS_KEY", "1", 1);
    GPU_FAILS(nccl_open(&n, key, &gpu_err),
              "RINGMASTER_NCCL_NEEDS_KEY is set, and NCCL 2.28.9 takes no key for its sockets: 2.32 does");
}

static void drop_all(struct party *p)
{
    for (int i = 0; i < p->world; i++)
        p->rank[i].t->ops->drop(p->rank[i].t);
}

/* The stand-in ends a process that changes the key while there is a communicator. */
Test(nccl, a_library_without_tls_refuses_the_key_and_sums_without_it)
{
    struct party p;
    char why[RM_WHY_MAX] = "";
    party_open(&p, 23203, 2, "no-tls");
    for (int turn = 0; turn < 3; turn++) {
        connect_all(&p);
        wait_for_all(&p, TRANSPORT_KEY_REFUSED);
        p.rank[1].t->ops->state(p.rank[1].t, why);
        cr_assert_str_eq(why, "NCCL makes no communicator with the job's key (built without TLS?)");
        drop_all(&p);
        connect_all_as(&p, true);
        wait_for_all(&p, TRANSPORT_READY);
        sum_all(&p, WORDS);
        drop_all(&p);
    }
    party_close(&p);
}

/* One thread still aborts, or makes, what has the key, as another one is to do without. */
Test(nccl, the_key_is_not_taken_back_while_a_communicator_has_not_ended)
{
    struct party p;
    party_open(&p, 23203, 2, "abort-hangs");
    connect_all(&p);
    wait_for_all(&p, TRANSPORT_READY);
    drop_all(&p);
    p.rank[0].t->ops->name(p.rank[0].t, true);
    for (int turn = 0; turn < 20; turn++) {
        cr_assert_eq(state_of(&p.rank[0]), TRANSPORT_NAMES);
        poll(NULL, 0, TURN_MS);
    }
    drop_all(&p);
    connect_all(&p);
    wait_for_all(&p, TRANSPORT_READY);
    sum_all(&p, WORDS);
}

Test(nccl, who_needs_the_key_makes_none_without_it)
{
    struct party p;
    char why[RM_WHY_MAX] = "";
    setenv("RINGMASTER_NCCL_NEEDS_KEY", "1", 1);
    party_open(&p, 23203, 2, "");
    cr_assert(p.rank[0].t->needs_key);
    p.rank[0].t->ops->name(p.rank[0].t, true);
    wait_for(&p.rank[0], TRANSPORT_FAILED);
    p.rank[0].t->ops->state(p.rank[0].t, why);
    cr_assert_str_eq(why, "RINGMASTER_NCCL_NEEDS_KEY is set: NCCL may not go without the job's key");
    drop_all(&p);
    connect_all(&p);
    wait_for_all(&p, TRANSPORT_READY);
    sum_all(&p, WORDS);
    party_close(&p);
}

static bool is_stopped(pid_t pid)
{
    char path[64], text[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    close(fd);
    const char *behind = length > 0 ? strrchr(text, ')') : NULL;
    return behind && behind[2] == 'T';
}

/* Another process stops this one for so long. */
static void stop_and_go_on(int ms)
{
    const pid_t self = getpid(), other = fork();
    cr_assert(other >= 0);
    if (other == 0) {
        kill(self, SIGSTOP);
        while (!is_stopped(self))
            poll(NULL, 0, TURN_MS);
        poll(NULL, 0, ms);
        kill(self, SIGCONT);
        _exit(0);
    }
    waitpid(other, NULL, 0);
}

/* So often that it happens in a rest, and not in a question to NCCL alone, which may take what it takes. */
Test(nccl, a_sum_tells_how_long_its_process_stood_still)
{
    enum { STOPPED_MS = 50 };
    struct party p;
    party_open(&p, 22809, 2, "");
    connect_all(&p);
    wait_for_all(&p, TRANSPORT_READY);
    sum_begin(&p.rank[0], WORDS);
    for (int turn = 0; turn < 6; turn++)
        stop_and_go_on(STOPPED_MS);
    sum_begin(&p.rank[1], WORDS);
    for (int i = 0; i < p.world; i++)
        pthread_join(p.rank[i].thread, NULL);
    cr_assert_geq(p.rank[0].still, STOPPED_MS * RM_MS);
    expect_sum(&p, 0);
    party_close(&p);
}

Test(nccl, a_connection_that_is_never_made_is_dropped_at_once_and_the_next_one_sums)
{
    struct party p;
    party_open(&p, 22809, 2, "init-hangs");
    connect_all(&p);
    for (int i = 0; i < p.world; i++) {
        cr_assert_eq(state_of(&p.rank[i]), TRANSPORT_CONNECTS);
        p.rank[i].t->ops->drop(p.rank[i].t);
        cr_assert_eq(state_of(&p.rank[i]), TRANSPORT_IDLE);
    }
    play(&p, "");
    connect_all(&p);
    wait_for_all(&p, TRANSPORT_READY);
    sum_all(&p, WORDS);
    party_close(&p);
}

Test(nccl, a_connection_that_fails_says_why)
{
    struct party p;
    char why[RM_WHY_MAX] = "";
    party_open(&p, 22809, 2, "init-fails@1");
    connect_all(&p);
    while (state_of(&p.rank[0]) == TRANSPORT_CONNECTS || state_of(&p.rank[1]) == TRANSPORT_CONNECTS)
        poll(NULL, 0, TURN_MS);
    const int failed = state_of(&p.rank[0]) == TRANSPORT_FAILED ? 0 : 1;
    cr_assert_eq(p.rank[failed].t->ops->state(p.rank[failed].t, why), TRANSPORT_FAILED);
    cr_assert_str_eq(why, "NCCL failed to make a communicator: remote process exited or there was a network "
                          "error (6)");
    party_close(&p);
}

/* The one with the error is told; the others would wait for ever, and are told to give up. */
Test(nccl, an_error_in_a_sum_ends_it_and_the_next_connection_sums)
{
    struct party p;
    party_open(&p, 22809, 2, "async-error@1");
    connect_all(&p);
    wait_for_all(&p, TRANSPORT_READY);
    sum_begin(&p.rank[0], WORDS);
    pthread_join(p.rank[0].thread, NULL);
    sum_begin(&p.rank[1], WORDS);
    atomic_store(&p.rank[1].stop, 1);
    pthread_join(p.rank[1].thread, NULL);
    cr_assert_eq(p.rank[0].rc, -1);
    cr_assert_eq(p.rank[0].err.code, ERR_PEER, "%s", p.rank[0].err.text);
    cr_assert_eq(p.rank[1].rc, -1);
    cr_assert_eq(p.rank[1].err.code, ERR_ABORTED, "%s", p.rank[1].err.text);
    atomic_store(&p.rank[1].stop, 0);
    for (int i = 0; i < p.world; i++)
        cr_assert_eq(state_of(&p.rank[i]), TRANSPORT_IDLE);
    play(&p, "");
    connect_all(&p);
    wait_for_all(&p, TRANSPORT_READY);
    sum_all(&p, WORDS);
    party_close(&p);
}

Test(nccl, an_error_between_two_sums_shows_before_the_next)
{
    struct party p;
    party_open(&p, 23203, 2, "error-after@2");
    connect_all(&p);
    wait_for_all(&p, TRANSPORT_READY);
    for (int i = 0; i < p.world; i++) {
        sum_begin(&p.rank[i], WORDS);
    }
    for (int i = 0; i < p.world; i++)
        pthread_join(p.rank[i].thread, NULL);
    cr_assert(state_of(&p.rank[0]) == TRANSPORT_FAILED || state_of(&p.rank[1]) == TRANSPORT_FAILED ||
              p.rank[0].rc < 0 || p.rank[1].rc < 0);
    party_close(&p);
}

Test(nccl, a_neighbour_that_ends_is_seen_although_the_library_sees_nothing)
{
    struct party p;
    int fds[2];
    party_open(&p, 22809, 2, "");
    connect_all(&p);
    wait_for_all(&p, TRANSPORT_READY);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    p.rank[0].fd = fds[0];
    sum_begin(&p.rank[0], WORDS);
    close(fds[1]);
    pthread_join(p.rank[0].thread, NULL);
    cr_assert_eq(p.rank[0].rc, -1);
    cr_assert_eq(p.rank[0].peer, 1);
    cr_assert_eq(p.rank[0].err.code, ERR_PEER, "%s", p.rank[0].err.text);
    close(fds[0]);
    party_close(&p);
}

/* As where a peer's death shows as an error before anybody has looked at its connection. */
Test(nccl, an_error_beside_a_neighbours_end_is_that_neighbours)
{
    struct party p;
    int fds[2];
    party_open(&p, 22809, 2, "async-error");
    connect_all(&p);
    wait_for_all(&p, TRANSPORT_READY);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    p.rank[0].fd = fds[0];
    close(fds[1]);
    sum_begin(&p.rank[0], WORDS);
    pthread_join(p.rank[0].thread, NULL);
    cr_assert_eq(p.rank[0].rc, -1);
    cr_assert_eq(p.rank[0].peer, 1, "%s", p.rank[0].err.text);
    close(fds[0]);
    party_close(&p);
}

/* Neither it nor who sums by it waits for that. */
Test(nccl, one_that_is_in_progress_behind_a_sum_is_ready_again_later)
{
    struct party p;
    party_open(&p, 22809, 3, "rests");
    connect_all(&p);
    for (int turn = 0; turn < 3; turn++) {
        wait_for_all(&p, TRANSPORT_READY);
        sum_all(&p, WORDS);
    }
    party_close(&p);
}

/* Its threads are left behind; what is stuck is said, and is none of the next connection's. */
Test(nccl, an_abort_that_never_returns_costs_a_thread)
{
    struct party p;
    party_open(&p, 22605, 2, "abort-hangs");
    connect_all(&p);
    wait_for_all(&p, TRANSPORT_READY);
    for (int i = 0; i < p.world; i++)
        p.rank[i].t->ops->drop(p.rank[i].t);
    connect_all(&p);
    wait_for_all(&p, TRANSPORT_READY);
    sum_all(&p, WORDS);
}
