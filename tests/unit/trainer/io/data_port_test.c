/* Who may enter a ring, and that nobody else gets in or in the way. */
#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/str.h"
#include "common/os/clock.h"
#include "common/os/descriptors.h"
#include "trainer/io/reach.h"

enum { WORLD_MAX = 4 };

struct node {
    pthread_t thread;
    struct handshake_secret secret;
    struct handshake_end self;
    struct data_port *port;
    struct abort_flag abort;
    struct collective *ring;
    struct ring_join_options join;
    atomic_int refused, settled;
    char why[160]; /* of the last refusal */
    int rc, peer;
    struct error err;
};

static void node_refused(void *ctx, const char *why)
{
    struct node *n = ctx;
    strncpy(n->why, why, sizeof n->why - 1);
    atomic_fetch_add(&n->refused, 1);
}

static void echo_one_byte(void *ctx, int fd, const struct handshake_claim *claim,
                          const struct abort_flag *closing)
{
    (void)ctx;
    struct patience patience = {closing, RM_NEVER};
    char byte = (char)claim->from.worker;
    socket_send(fd, &byte, 1, &patience, NULL);
}

static void node_open(struct node *n, int worker, uint8_t key)
{
    *n = (struct node){.self = {worker, 1000 + (uint64_t)worker}, .secret = {.job = "job"}};
    memset(n->secret.key, key, sizeof n->secret.key);
    struct data_port_options o = {.listen = "127.0.0.1",
                                  .secret = n->secret,
                                  .self = n->self,
                                  .serve = echo_one_byte,
                                  .refused = node_refused,
                                  .ctx = n};
    cr_assert_eq(data_port_open(&n->port, &o, &n->err), 0);
    cr_assert_eq(abort_flag_init(&n->abort, &n->err), 0);
}

static void node_close(struct node *n)
{
    if (n->ring)
        n->ring->ops->close(n->ring);
    data_port_free(n->port);
    abort_flag_clear(&n->abort);
}

static struct ring_neighbour neighbour(const struct node *n)
{
    struct ring_neighbour out = {.end = n->self};
    text_copy(out.address, sizeof out.address, data_port_address(n->port));
    return out;
}

/* What rings are made of: so many connections to each neighbour, or memory where that can be. */
static int streams = 1;
static bool near;

static void node_settled(void *ctx, bool by_boards, const char *why)
{
    struct node *n = ctx;
    cr_assert(by_boards, "%s", why);
    atomic_fetch_add(&n->settled, 1);
}

static void *join_main(void *arg)
{
    struct node *n = arg;
    n->rc = ring_join(&n->ring, &n->join, &n->peer, &n->err);
    return NULL;
}

static void start_join(struct node *nodes, int rank, int world, struct ring_generation generation)
{
    struct node *n = &nodes[rank];
    static struct handshake_end ends[WORLD_MAX];
    for (int r = 0; r < world; r++)
        ends[r] = nodes[r].self;
    n->join = (struct ring_join_options){
        .port = n->port,
        .secret = n->secret,
        .generation = generation,
        .self = n->self,
        .rank = rank,
        .world = world,
        .streams = streams,
        .near = near ? ends : NULL,
        .settled = node_settled,
        .ctx = n,
        .next = neighbour(&nodes[(rank + 1) % world]),
        .previous = neighbour(&nodes[(rank + world - 1) % world]),
        .abort = &n->abort,
        .call_deadline = clock_now() + 30 * RM_S,
        .wait_deadline = clock_now() + 30 * RM_S,
    };
    cr_assert_eq(pthread_create(&n->thread, NULL, join_main, n), 0);
}

static void *sum_main(void *arg)
{
    struct node *n = arg;
    const uint32_t word = (uint32_t)n->self.worker + 1;
    uint32_t sum = 0;
    struct collective_segment segment = {.from = &word, .to = &sum, .count = 1};
    n->rc = n->ring->ops->reduce(n->ring, &segment, 1, &n->peer, &n->err);
    if (n->rc == 0)
        n->rc = (int)sum;
    return NULL;
}

static void expect_sum(struct node *nodes, int world, int expected)
{
    for (int r = 0; r < world; r++)
        cr_assert_eq(pthread_create(&nodes[r].thread, NULL, sum_main, &nodes[r]), 0);
    for (int r = 0; r < world; r++) {
        pthread_join(nodes[r].thread, NULL);
        cr_assert_eq(nodes[r].rc, expected, "%s", nodes[r].err.text);
    }
}

static void form(struct node *nodes, int world, struct ring_generation generation)
{
    for (int r = 0; r < world; r++)
        start_join(nodes, r, world, generation);
    for (int r = 0; r < world; r++) {
        pthread_join(nodes[r].thread, NULL);
        cr_assert_eq(nodes[r].rc, 0, "%s", nodes[r].err.text);
    }
}

static void form_again(void)
{
    for (int world = 1; world <= WORLD_MAX; world++) {
        struct node nodes[WORLD_MAX];
        for (int r = 0; r < world; r++)
            node_open(&nodes[r], r, 7);
        for (int n = 1; n <= 3; n++) {
            form(nodes, world, (struct ring_generation){1, n});
            expect_sum(nodes, world, world * (world + 1) / 2);
            for (int r = 0; r < world; r++) {
                nodes[r].ring->ops->close(nodes[r].ring);
                nodes[r].ring = NULL;
            }
        }
        for (int r = 0; r < world; r++) {
            cr_assert_eq(atomic_load(&nodes[r].settled), near && world > 1 ? 3 : 0);
            node_close(&nodes[r]);
        }
    }
}

Test(data_port, rings_of_one_to_four_form_over_tcp_and_form_again)
{
    form_again();
}

Test(data_port, rings_of_several_connections_form_and_form_again)
{
    for (streams = 2; streams <= HANDSHAKE_STREAMS; streams += 3)
        form_again();
}

Test(data_port, rings_in_memory_form_and_form_again)
{
    near = true;
    form_again();
}

/* Calls whatever rank listens, and says something else than a hello. */
static void *name_sockets(void *arg)
{
    atomic_bool *over = arg;
    char line[256], name[128];
    while (!atomic_load(over)) {
        FILE *sockets = fopen("/proc/net/unix", "r");
        while (sockets && fgets(line, sizeof line, sockets)) {
            struct sockaddr_un at = {.sun_family = AF_UNIX};
            const char *found = strstr(line, "@ringmaster-");
            if (!found || sscanf(found, "@%107s", name) != 1)
                continue;
            memcpy(at.sun_path + 1, name, strlen(name));
            int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
            socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
            struct pollfd sent_away = {.fd = fd, .events = POLLIN};
            if (connect(fd, (const struct sockaddr *)(const void *)&at, size) == 0 &&
                send(fd, line, HANDSHAKE_HELLO, MSG_NOSIGNAL) == HANDSHAKE_HELLO)
                poll(&sent_away, 1, -1);
            close(fd);
        }
        if (sockets)
            fclose(sockets);
    }
    return NULL;
}

Test(data_port, a_stranger_at_a_ranks_socket_is_sent_away_and_the_ring_forms)
{
    atomic_bool over = false;
    pthread_t stranger;
    near = true;
    cr_assert_eq(pthread_create(&stranger, NULL, name_sockets, &over), 0);
    form_again();
    atomic_store(&over, true);
    pthread_join(stranger, NULL);
}

Test(data_port, a_peer_that_is_told_of_a_generation_first_waits_without_harm)
{
    struct node nodes[2];
    node_open(&nodes[0], 0, 7);
    node_open(&nodes[1], 1, 7);
    start_join(nodes, 0, 2, (struct ring_generation){1, 5});
    start_join(nodes, 1, 2, (struct ring_generation){1, 5});
    for (int r = 0; r < 2; r++) {
        pthread_join(nodes[r].thread, NULL);
        cr_assert_eq(nodes[r].rc, 0);
    }
    expect_sum(nodes, 2, 3);
    node_close(&nodes[0]);
    node_close(&nodes[1]);
}

/* The caller's side by hand, as a peer of that generation would do it. */
static int call(const struct node *to, const struct handshake_secret *secret,
                const struct handshake_claim *claim, struct error *err)
{
    struct patience patience = {NULL, clock_now() + 10 * RM_S};
    int fd;
    cr_assert_eq(socket_connect(&fd, data_port_address(to->port), &patience, err), 0);
    if (handshake_call(fd, secret, claim, &patience, err) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void expect_closed(int fd)
{
    char byte;
    struct patience patience = {NULL, clock_now() + 10 * RM_S};
    struct error err;
    cr_assert_eq(socket_receive(fd, &byte, 1, &patience, &err), -1);
    cr_assert_null(strstr(err.text, "silent"), "%s", err.text);
    close(fd);
}

Test(data_port, a_ring_connection_of_an_older_generation_is_refused)
{
    struct node node;
    struct error err;
    node_open(&node, 0, 7);
    data_port_advance(node.port, (struct ring_generation){2, 3});
    struct handshake_claim claim = {HANDSHAKE_RING, {2, 2}, {1, 1001}, node.self, 0};
    expect_closed(call(&node, &node.secret, &claim, &err));
    claim.generation = (struct ring_generation){1, 9};
    expect_closed(call(&node, &node.secret, &claim, &err));
    cr_assert_eq(atomic_load(&node.refused), 2);
    node_close(&node);
}

Test(data_port, a_connection_that_waited_is_closed_when_a_newer_generation_comes)
{
    struct node node;
    struct error err;
    node_open(&node, 0, 7);
    struct handshake_claim claim = {HANDSHAKE_RING, {1, 2}, {1, 1001}, node.self, 0};
    int fd = call(&node, &node.secret, &claim, &err), taken;
    struct patience patience = {NULL, clock_now() + 10 * RM_S};
    struct handshake_end other = {1, 77};
    struct patience none = {NULL, clock_now()};
    cr_assert_eq(data_port_take(node.port, claim.generation, &other, 0, &none, &taken, &err), -1,
                 "another incarnation's connection must not be taken for it");
    cr_assert_eq(data_port_take(node.port, claim.generation, &claim.from, 0, &patience, &taken, &err), 0);
    close(taken);
    close(fd);
    fd = call(&node, &node.secret, &claim, &err);
    /* The port's thread parks it after the confirmation; from then on or not, the newer generation ends it.
     */
    data_port_advance(node.port, (struct ring_generation){1, 3});
    expect_closed(fd);
    node_close(&node);
}

Test(data_port, who_has_another_key_is_refused_on_both_sides)
{
    struct node nodes[2];
    node_open(&nodes[0], 0, 7);
    node_open(&nodes[1], 1, 8);
    start_join(nodes, 0, 2, (struct ring_generation){1, 1});
    start_join(nodes, 1, 2, (struct ring_generation){1, 1});
    for (int r = 0; r < 2; r++) {
        pthread_join(nodes[r].thread, NULL);
        cr_assert_eq(nodes[r].rc, -1);
        cr_assert_eq(nodes[r].err.code, ERR_PROTOCOL, "%s", nodes[r].err.text);
        cr_assert_eq(nodes[r].peer, 1 - r);
        cr_assert_not_null(strstr(nodes[r].err.text, "does not hold this job's key"));
    }
    node_close(&nodes[0]);
    node_close(&nodes[1]);
}

Test(data_port, another_jobs_member_is_refused_even_with_the_same_key)
{
    struct node node;
    struct error err;
    node_open(&node, 0, 7);
    struct handshake_secret other = node.secret;
    text_copy(other.job, sizeof other.job, "another");
    struct handshake_claim claim = {HANDSHAKE_RING, {1, 1}, {1, 1001}, node.self, 0};
    cr_assert_eq(call(&node, &other, &claim, &err), -1);
    cr_assert_eq(err.code, ERR_PROTOCOL);
    node_close(&node);
}

Test(data_port, who_wants_an_earlier_process_of_this_worker_is_refused)
{
    struct node node;
    struct error err;
    node_open(&node, 0, 7);
    struct handshake_claim claim = {HANDSHAKE_RING, {1, 1}, {1, 1001}, {0, 999}, 0};
    cr_assert_eq(call(&node, &node.secret, &claim, &err), -1);
    cr_assert_eq(err.code, ERR_PEER);
    node_close(&node);
}

static void stranger_says(const struct node *to, const void *bytes, size_t length)
{
    struct patience patience = {NULL, clock_now() + 10 * RM_S};
    struct error err;
    int fd;
    cr_assert_eq(socket_connect(&fd, data_port_address(to->port), &patience, &err), 0);
    cr_assert_eq(socket_send(fd, bytes, length, &patience, &err), 0);
    expect_closed(fd);
}

Test(data_port, strangers_are_sent_away_and_a_ring_forms_among_them)
{
    struct node nodes[2];
    struct error err;
    int mute[100];
    char http[HANDSHAKE_HELLO] = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: somebody\r\n\r\n";
    node_open(&nodes[0], 0, 7);
    node_open(&nodes[1], 1, 7);
    stranger_says(&nodes[0], http, sizeof http);
    cr_assert_eq(atomic_load(&nodes[0].refused), 1);
    /* More mute callers than the port has room for. */
    struct patience patience = {NULL, clock_now() + 10 * RM_S};
    for (int i = 0; i < 100; i++)
        cr_assert_eq(socket_connect(&mute[i], data_port_address(nodes[0].port), &patience, &err), 0);
    form(nodes, 2, (struct ring_generation){1, 1});
    expect_sum(nodes, 2, 3);
    for (int i = 0; i < 100; i++)
        close(mute[i]);
    node_close(&nodes[0]);
    node_close(&nodes[1]);
}

/* Opens that many connections and says nothing. */
static void connect_many(const struct node *to, int *fds, int count)
{
    struct patience patience = {NULL, clock_now() + 30 * RM_S};
    struct error err;
    for (int i = 0; i < count; i++)
        cr_assert_eq(socket_connect(&fds[i], data_port_address(to->port), &patience, &err), 0, "%s",
                     err.text);
}

Test(data_port, all_members_may_call_at_once_and_nobody_is_sent_away)
{
    enum { CALLS = 2 * RM_WORKERS_MAX }; /* a ring connection and a transfer each */
    struct node node;
    struct error err;
    int fds[CALLS];
    struct patience patience = {NULL, clock_now() + 30 * RM_S};
    node_open(&node, 0, 7);
    connect_many(&node, fds, CALLS);
    for (int i = 0; i < CALLS; i++) {
        enum handshake_purpose purpose = i % 2 ? HANDSHAKE_RING : HANDSHAKE_TRANSFER;
        struct handshake_claim claim = {purpose, {1, 1}, {i / 2, 1000 + (uint64_t)i / 2}, node.self, 0};
        cr_assert_eq(handshake_call(fds[i], &node.secret, &claim, &patience, &err), 0, "caller %d: %s", i,
                     err.text);
    }
    cr_assert_eq(atomic_load(&node.refused), 0, "%s", node.why);
    for (int i = 0; i < CALLS; i++)
        close(fds[i]);
    node_close(&node);
}

/* What a caller does first, up to the port's answer. */
static void say_hello(int fd, const struct node *to, int worker)
{
    struct patience patience = {NULL, clock_now() + 10 * RM_S};
    struct error err;
    uint8_t hello[HANDSHAKE_HELLO] = {'R', 'M', 'D', '1', HANDSHAKE_TRANSFER}, answer[HANDSHAKE_ANSWER];
    hello[40] = (uint8_t)worker;
    memcpy(hello + 32, &to->self.incarnation, 8);
    cr_assert_eq(socket_send(fd, hello, sizeof hello, &patience, &err), 0);
    cr_assert_eq(socket_receive(fd, answer, sizeof answer, &patience, &err), 0, "%s", err.text);
}

static bool is_open(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0;
}

Test(data_port, who_has_said_whom_it_wants_is_not_pushed_out_by_those_who_say_nothing)
{
    enum { MUTE = 2 * DATA_PORT_CALLERS };
    struct node node;
    int caller, mute[MUTE];
    node_open(&node, 0, 7);
    connect_many(&node, &caller, 1);
    say_hello(caller, &node, 1);
    connect_many(&node, mute, MUTE);
    for (int i = 0; i < MUTE - DATA_PORT_CALLERS + 1; i++)
        expect_closed(mute[i]); /* in the order in which they came */
    cr_assert(is_open(caller));
    for (int i = MUTE - DATA_PORT_CALLERS + 1; i < MUTE; i++)
        close(mute[i]);
    close(caller);
    node_close(&node);
}

static void note_pause(void *ctx, const char *why)
{
    struct node *n = ctx;
    if (strstr(why, "may open no more files"))
        abort_flag_set(&n->abort);
    node_refused(ctx, why);
}

Test(data_port, without_descriptors_callers_wait_and_the_port_does_not_turn_without_rest)
{
    struct node node;
    enum { LITTLE = 256 };
    struct rlimit limit, little;
    struct error err;
    struct patience patience = {NULL, clock_now() + 20 * RM_S};
    int fd, taken[LITTLE], count = 0;
    node_open(&node, 0, 7);
    struct data_port_options o = {.listen = "127.0.0.1",
                                  .secret = node.secret,
                                  .self = node.self,
                                  .serve = echo_one_byte,
                                  .refused = note_pause,
                                  .ctx = &node};
    data_port_free(node.port);
    cr_assert_eq(data_port_open(&node.port, &o, &err), 0);
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    little = (struct rlimit){LITTLE, limit.rlim_max};
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &little), 0);
    while ((taken[count] = dup(node.abort.event_fd)) >= 0)
        count++;
    close(taken[--count]); /* one for the caller's own end */
    cr_assert_eq(socket_connect(&fd, data_port_address(node.port), &patience, &err), 0, "%s", err.text);
    cr_assert_eq(socket_wait(node.abort.event_fd, POLLIN, &patience, &err), 0, "it was never noticed");
    struct patience moment = {NULL, clock_now() + 3 * DESCRIPTORS_PAUSE};
    char byte;
    cr_assert_eq(socket_receive(fd, &byte, 1, &moment, &err), -1, "nobody can have answered");
    cr_assert_lt(atomic_load(&node.refused), 20, "it tries without rest");
    while (count)
        close(taken[--count]);
    struct handshake_claim claim = {HANDSHAKE_TRANSFER, {1, 1}, {5, 1001}, node.self, 0};
    cr_assert_eq(handshake_call(fd, &node.secret, &claim, &patience, &err), 0, "%s", err.text);
    cr_assert_eq(socket_receive(fd, &byte, 1, &patience, &err), 0, "%s", err.text);
    cr_assert_eq(byte, 5);
    close(fd);
    node_close(&node);
}

Test(data_port, a_confirmation_without_the_key_is_worth_nothing)
{
    struct node node;
    struct error err;
    node_open(&node, 0, 7);
    struct handshake_claim claim = {HANDSHAKE_RING, {1, 1}, {1, 1001}, node.self, 0};
    struct patience patience = {NULL, clock_now() + 10 * RM_S};
    struct handshake_called forged;
    uint8_t hello[HANDSHAKE_HELLO] = {0}, answer[HANDSHAKE_ANSWER], confirm[HANDSHAKE_CONFIRM] = {1};
    struct handshake_claim read_back;
    int fd;
    /* A hello heard on the wire before, said again: the fresh nonce makes it useless. */
    struct handshake_secret none = {.job = "job"};
    memcpy(hello, "RMD1", 4);
    hello[4] = HANDSHAKE_RING;
    cr_assert_eq(handshake_answer(&forged, &none, hello, &read_back, answer, &err), 0);
    memcpy(hello + 32, &claim.to.incarnation, 8);
    cr_assert_eq(socket_connect(&fd, data_port_address(node.port), &patience, &err), 0);
    cr_assert_eq(socket_send(fd, hello, sizeof hello, &patience, &err), 0);
    cr_assert_eq(socket_receive(fd, answer, sizeof answer, &patience, &err), 0, "%s", err.text);
    cr_assert_eq(socket_send(fd, confirm, sizeof confirm, &patience, &err), 0);
    expect_closed(fd);
    cr_assert_not_null(strstr(node.why, "does not hold this job's key"), "%s", node.why);
    node_close(&node);
}

Test(data_port, a_dead_next_rank_is_named)
{
    struct node nodes[2];
    node_open(&nodes[0], 0, 7);
    node_open(&nodes[1], 1, 7);
    struct ring_neighbour dead = neighbour(&nodes[1]);
    node_close(&nodes[1]);
    node_open(&nodes[1], 1, 7);
    start_join(nodes, 1, 2, (struct ring_generation){1, 1});
    struct ring_join_options o = {.port = nodes[0].port,
                                  .streams = 1,
                                  .secret = nodes[0].secret,
                                  .generation = {1, 1},
                                  .self = nodes[0].self,
                                  .rank = 0,
                                  .world = 2,
                                  .next = dead,
                                  .previous = dead,
                                  .abort = &nodes[0].abort,
                                  .call_deadline = clock_now() + 30 * RM_S,
                                  .wait_deadline = clock_now() + 30 * RM_S};
    cr_assert_eq(ring_join(&nodes[0].ring, &o, &nodes[0].peer, &nodes[0].err), -1);
    cr_assert_eq(nodes[0].err.code, ERR_PEER, "%s", nodes[0].err.text);
    cr_assert_eq(nodes[0].peer, 1);
    /* And an abort ends the wait of the one that still hopes. */
    abort_flag_set(&nodes[1].abort);
    pthread_join(nodes[1].thread, NULL);
    cr_assert_eq(nodes[1].err.code, ERR_ABORTED, "%s", nodes[1].err.text);
    node_close(&nodes[0]);
    node_close(&nodes[1]);
}

static int reach_node(const struct node *from, const struct handshake_end *to, const char *address,
                      struct error *err)
{
    struct reach_options o = {from->secret, from->self, &from->abort};
    struct ring_neighbour peer = {.end = *to};
    text_copy(peer.address, sizeof peer.address, address);
    return reach(&o, &peer, err);
}

Test(data_port, a_port_that_answers_is_reached_and_nothing_is_left_behind)
{
    struct node nodes[2];
    struct error err;
    node_open(&nodes[0], 0, 7);
    node_open(&nodes[1], 1, 7);
    const char *address = data_port_address(nodes[1].port);
    for (int i = 0; i < 3 * DATA_PORT_CALLERS; i++) /* no place is kept, for a ring or a transfer */
        cr_assert_eq(reach_node(&nodes[0], &nodes[1].self, address, &err), 0, "%d: %s", i, err.text);
    cr_assert_eq(atomic_load(&nodes[1].refused), 0);
    node_close(&nodes[0]);
    node_close(&nodes[1]);
}

Test(data_port, neither_another_process_nor_another_key_nor_nobody_is_reached)
{
    struct node nodes[3];
    struct error err;
    for (int i = 0; i < 3; i++)
        node_open(&nodes[i], i, i < 2 ? 7 : 8);
    struct handshake_end earlier = {1, 5};
    const char *address = data_port_address(nodes[1].port);
    cr_assert_lt(reach_node(&nodes[0], &earlier, address, &err), 0);
    cr_assert_lt(reach_node(&nodes[0], &nodes[2].self, data_port_address(nodes[2].port), &err), 0);
    cr_assert_lt(reach_node(&nodes[0], &nodes[1].self, "127.0.0.1:1", &err), 0);
    cr_assert(strstr(err.text, "connect to 127.0.0.1:1"), "%s", err.text);
    for (int i = 0; i < 3; i++)
        node_close(&nodes[i]);
}

Test(data_port, a_proven_transfer_is_served)
{
    struct node node;
    struct error err;
    struct patience patience = {NULL, clock_now() + 10 * RM_S};
    char byte = 0;
    node_open(&node, 0, 7);
    struct handshake_claim claim = {HANDSHAKE_TRANSFER, {1, 1}, {42, 1001}, node.self, 0};
    int fd = call(&node, &node.secret, &claim, &err);
    cr_assert_eq(socket_receive(fd, &byte, 1, &patience, &err), 0, "%s", err.text);
    cr_assert_eq(byte, 42);
    close(fd);
    node_close(&node);
}
