/* One contract for every collective: the sum is complete and the same everywhere, or nobody says success. */
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/base/prng.h"
#include "trainer/backend/memory.h"
#include "trainer/collective/local.h"
#include "trainer/collective/prove_words.h"
#include "trainer/collective/staged.h"
#include "trainer/collective/tcp_ring.h"
#include "trainer/exact/proof.h"

enum { WORLD_MAX = 8 };
enum { KIND_RING, KIND_LOCAL, KIND_STAGED_RING, KIND_STAGED_LOCAL, KINDS };
enum { PLACE = 41, PROOF_WORDS = 4 }; /* of the first word, for the proofs; in words, what they take */
enum { WINDOW = 4092 };               /* so that most sums need several, and none is even */

struct member {
    pthread_t thread;
    struct collective *collective;
    struct abort_flag abort;
    uint32_t *words, *words_sum;
    uint64_t *proof; // (2) of both halves of words_sum
    float *floats, *floats_sum;
    int64_t words_count, floats_count;
    bool listens; /* adds nothing */
    bool far;     /* what it adds, and the sums, lie in far memory */
    int rounds;   /* reduces to do */
    bool differ;  /* each of them has another first word */
    int rc, peer;
    struct error err;
    atomic_llong pulse, place;
};

struct party {
    int world, kind;
    struct member member[WORLD_MAX];
};

static void open_ring(struct party *p, int fds[WORLD_MAX][2])
{
    struct error err;
    for (int r = 0; r < p->world; r++) {
        struct tcp_ring_options o = {.rank = r,
                                     .world = p->world,
                                     .next_fd = -1,
                                     .prev_fd = -1,
                                     .abort = &p->member[r].abort,
                                     .pulse = &p->member[r].pulse,
                                     .place = &p->member[r].place};
        if (p->world > 1) {
            o.next_fd = fds[r][0];
            o.prev_fd = fds[(r + p->world - 1) % p->world][1];
        }
        cr_assert_eq(tcp_ring_open(&p->member[r].collective, &o, &err), 0);
    }
}

static void socket_pairs(int world, int fds[WORLD_MAX][2])
{
    for (int r = 0; r < world; r++)
        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds[r]), 0);
}

static struct party *party_open(int kind, int world)
{
    struct error err;
    struct party *p = calloc(1, sizeof *p);
    struct collective *all[WORLD_MAX];
    int fds[WORLD_MAX][2];
    p->world = world;
    p->kind = kind;
    for (int r = 0; r < world; r++) {
        cr_assert_eq(abort_flag_init(&p->member[r].abort, &err), 0);
        p->member[r].rounds = 1;
    }
    if (kind == KIND_LOCAL || kind == KIND_STAGED_LOCAL) {
        cr_assert_eq(local_open(all, world, &err), 0);
        for (int r = 0; r < world; r++)
            p->member[r].collective = all[r];
    } else {
        socket_pairs(world, fds);
        open_ring(p, fds);
    }
    for (int r = 0; r < world; r++) {
        struct member *m = &p->member[r];
        m->far = kind == KIND_STAGED_RING || kind == KIND_STAGED_LOCAL;
        if (m->far)
            cr_assert_eq(staged_open(&m->collective, m->collective, WINDOW, &err), 0);
    }
    return p;
}

static uint32_t word_of(int rank, int64_t i)
{
    uint64_t state = (uint64_t)rank * 1000003 + (uint64_t)i;
    return (uint32_t)splitmix64(&state);
}

static float float_of(int rank, int64_t i)
{
    return (float)(int32_t)word_of(rank, i) * 0x1p-24f;
}

/* Survives the process that writes it; more than is asked for, so that a count of 0 has an address. */
static void *shared(int64_t count)
{
    void *map = mmap(NULL, (size_t)count * 4 + 4, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(map, MAP_FAILED);
    return map;
}

static void fill(struct party *p, int64_t words, int64_t floats)
{
    for (int r = 0; r < p->world; r++) {
        struct member *m = &p->member[r];
        m->words_count = words;
        m->floats_count = floats;
        m->words = shared(words);
        m->words_sum = shared(words);
        m->floats = shared(floats);
        m->floats_sum = shared(floats);
        m->proof = shared(PROOF_WORDS);
        for (int64_t i = 0; i < words; i++)
            m->words[i] = word_of(r, i);
        for (int64_t i = 0; i < floats; i++)
            m->floats[i] = float_of(r, i);
    }
}

/* Memory that nobody reaches but by its functions: its addresses are others than the pointers. */
static const uint64_t far_away = (uint64_t)1 << 60;

static int far_read(struct memory *m, void *to, struct far from, size_t bytes, struct error *err)
{
    (void)m, (void)err;
    memcpy(to, (const char *)(uintptr_t)(from.at - far_away), bytes);
    return 0;
}

static int far_write(struct memory *m, struct far to, const void *from, size_t bytes, struct error *err)
{
    (void)m, (void)err;
    memcpy((char *)(uintptr_t)(to.at - far_away), from, bytes);
    return 0;
}

static void *far_near(struct memory *m, struct far at)
{
    (void)m, (void)at;
    return NULL;
}

static const struct memory_ops far_ops = {far_read, far_write, far_near};
static struct memory far_memory = {&far_ops};

/* The floats stay near, so that both kinds are in one sum. */
static void put_far(struct collective_segment *s)
{
    s->in = &far_memory;
    if (s->from)
        s->from = (const void *)((uintptr_t)s->from + far_away);
    s->to = (void *)((uintptr_t)s->to + far_away);
}

static int reduce_once(struct member *m)
{
    /* Words, floats, words again: blocks and chunks cross from one type to another. */
    int64_t half = m->words_count / 2;
    const uint32_t *words = m->listens ? NULL : m->words;
    struct collective_segment segments[3] = {
        {.from = words, .to = m->words_sum, .count = half, .proof = &m->proof[0], .at = PLACE},
        {.type = COLLECTIVE_F32,
         .from = m->listens ? NULL : m->floats,
         .to = m->floats_sum,
         .count = m->floats_count},
        {.from = words ? words + half : NULL,
         .to = m->words_sum + half,
         .count = m->words_count - half,
         .proof = &m->proof[1],
         .at = PLACE + half},
    };
    if (m->far) {
        put_far(&segments[0]);
        put_far(&segments[2]);
    }
    return m->collective->ops->reduce(m->collective, segments, 3, &m->peer, &m->err);
}

/* As the trainer does (engine_abort): nobody aborts what is being closed. */
static pthread_mutex_t ring_lock = PTHREAD_MUTEX_INITIALIZER;

static void close_member(struct member *m)
{
    pthread_mutex_lock(&ring_lock);
    struct collective *old = m->collective;
    m->collective = NULL;
    pthread_mutex_unlock(&ring_lock);
    if (old)
        old->ops->close(old);
}

static void abort_member(struct member *m)
{
    pthread_mutex_lock(&ring_lock);
    if (m->collective)
        m->collective->ops->abort(m->collective);
    pthread_mutex_unlock(&ring_lock);
}

/* So that what is left of an older round, or is a newer one's already, shows. */
static int reduce_another(struct member *m, int round)
{
    int rank = m->collective->rank, world = m->collective->world;
    uint32_t sum = (uint32_t)(world * round);
    m->words[0] = word_of(rank, 0) + (uint32_t)round;
    int rc = reduce_once(m);
    for (int r = 0; r < world; r++)
        sum += word_of(r, 0);
    m->words[0] = word_of(rank, 0);
    if (rc == 0 && m->words_sum[0] != sum)
        rc = err_set(&m->err, ERR_PROTOCOL, "round %d has another one's sum", round);
    return rc;
}

static void *member_main(void *arg)
{
    struct member *m = arg;
    for (int i = 0; i < m->rounds && m->rc == 0; i++)
        m->rc = m->differ ? reduce_another(m, m->rounds - 1 - i) : reduce_once(m);
    /* As the trainer does: who failed leaves, so that those behind it learn of it. */
    if (m->rc < 0)
        close_member(m);
    return NULL;
}

static void start(struct member *m)
{
    cr_assert_eq(pthread_create(&m->thread, NULL, member_main, m), 0);
}

static void run_all(struct party *p)
{
    for (int r = 0; r < p->world; r++)
        start(&p->member[r]);
    for (int r = 0; r < p->world; r++)
        pthread_join(p->member[r].thread, NULL);
}

/* Whatever came of it. */
static void expect_from(const struct party *p)
{
    for (int r = 0; r < p->world; r++) {
        const struct member *m = &p->member[r];
        for (int64_t i = 0; i < m->words_count; i++)
            cr_assert_eq(m->words[i], word_of(r, i), "word %ld of rank %d was written over", (long)i, r);
        for (int64_t i = 0; i < m->floats_count; i++)
            cr_assert(m->floats[i] == float_of(r, i), "float %ld of rank %d was written over", (long)i, r);
    }
}

static void expect_sums(const struct party *p, int rank)
{
    const struct member *m = &p->member[rank];
    uint64_t proof = 0;
    for (int64_t i = 0; i < m->words_count; i++) {
        uint32_t sum = 0;
        for (int r = 0; r < p->world; r++)
            sum += p->member[r].listens ? 0 : word_of(r, i);
        cr_assert_eq(m->words_sum[i], sum, "world %d rank %d word %ld", p->world, rank, (long)i);
        proof += proof_word(PLACE + (uint64_t)i, sum);
    }
    cr_assert_eq(m->proof[0] + m->proof[1], proof, "world %d rank %d: the proof of %ld words", p->world, rank,
                 (long)m->words_count);
    for (int64_t i = 0; i < m->floats_count; i++) {
        double sum = 0;
        for (int r = 0; r < p->world; r++)
            sum += p->member[r].listens ? 0 : (double)float_of(r, i);
        cr_assert_float_eq((double)m->floats_sum[i], sum, 1e-3, "world %d rank %d float %ld", p->world, rank,
                           (long)i);
        cr_assert_eq(memcmp(&m->floats_sum[i], &p->member[0].floats_sum[i], 4), 0, "ranks differ in bits");
    }
}

static void give_back(struct member *m)
{
    if (!m->words)
        return;
    munmap(m->words, (size_t)m->words_count * 4 + 4);
    munmap(m->words_sum, (size_t)m->words_count * 4 + 4);
    munmap(m->floats, (size_t)m->floats_count * 4 + 4);
    munmap(m->floats_sum, (size_t)m->floats_count * 4 + 4);
    munmap(m->proof, PROOF_WORDS * 4 + 4);
}

static void party_free(struct party *p)
{
    expect_from(p);
    for (int r = 0; r < p->world; r++) {
        close_member(&p->member[r]);
        abort_flag_clear(&p->member[r].abort);
        give_back(&p->member[r]);
    }
    free(p);
}

static void try_sums(int kind, int world, int64_t words, int64_t floats)
{
    struct party *p = party_open(kind, world);
    fill(p, words, floats);
    run_all(p);
    for (int r = 0; r < world; r++) {
        cr_assert_eq(p->member[r].rc, 0, "%s", p->member[r].err.text);
        expect_sums(p, r);
    }
    party_free(p);
}

Test(collective, the_proof_of_neighbours_is_that_of_each_word)
{
    enum { COUNT = 100 };
    uint32_t words[COUNT + 1];
    for (int i = 0; i <= COUNT; i++)
        words[i] = (uint32_t)i * 2654435769u ^ (i % 3 ? 0 : 0x80000000u);
    for (int first = 0; first < 2; first++) {
        for (int count = 0; count < COUNT; count++) {
            uint64_t sum = 0, at = 0xfffffffbu;
            for (int i = 0; i < count; i++)
                sum += proof_word(at + (uint64_t)i, words[first + i]);
            cr_assert_eq(prove_words(at, words + first, count), sum, "%d words", count);
        }
    }
}

Test(collective, sums_are_right_in_worlds_of_one_to_eight_for_odd_counts_of_mixed_types)
{
    static const int64_t counts[][2] = {{0, 0}, {1, 0}, {0, 1}, {3, 2}, {7, 6}, {1001, 333}, {40007, 70001}};
    for (int kind = 0; kind < KINDS; kind++)
        for (int world = 1; world <= WORLD_MAX; world++)
            for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
                try_sums(kind, world, counts[c][0], counts[c][1]);
}

Test(collective, sums_larger_than_any_socket_buffer_pass_through)
{
    try_sums(KIND_RING, 2, 1500001, 1500001);
    try_sums(KIND_RING, 3, 3000001, 0);
}

Test(collective, many_small_reductions_in_a_row_stay_in_step)
{
    for (int kind = 0; kind < KINDS; kind++) {
        struct party *p = party_open(kind, 3);
        fill(p, 9, 0);
        for (int r = 0; r < 3; r++) {
            p->member[r].rounds = 500;
            p->member[r].differ = true; /* and the last one is as it was filled */
        }
        run_all(p);
        for (int r = 0; r < 3; r++) {
            cr_assert_eq(p->member[r].rc, 0, "%s", p->member[r].err.text);
            expect_sums(p, r);
        }
        party_free(p);
    }
}

Test(collective, an_abort_before_a_reduce_is_not_forgotten)
{
    for (int kind = 0; kind < KINDS; kind++) {
        struct party *p = party_open(kind, 2);
        fill(p, 100, 0);
        abort_member(&p->member[0]);
        abort_member(&p->member[0]);
        run_all(p);
        cr_assert_eq(p->member[0].err.code, ERR_ABORTED);
        cr_assert_eq(p->member[1].err.code, ERR_PEER);
        cr_assert_eq(p->member[1].peer, 0);
        party_free(p);
    }
}

Test(collective, an_abort_wakes_a_reduce_that_waits_for_a_rank_that_never_comes)
{
    for (int kind = 0; kind < KINDS; kind++) {
        struct party *p = party_open(kind, 3);
        fill(p, 100000, 0);
        start(&p->member[0]);
        abort_member(&p->member[0]);
        pthread_join(p->member[0].thread, NULL);
        cr_assert_eq(p->member[0].rc, -1);
        cr_assert_eq(p->member[0].err.code, ERR_ABORTED);
        party_free(p);
    }
}

Test(collective, an_abort_after_a_complete_reduce_leaves_its_sum_alone)
{
    for (int kind = 0; kind < KINDS; kind++) {
        struct party *p = party_open(kind, 4);
        fill(p, 1000, 10);
        run_all(p);
        for (int r = 0; r < 4; r++)
            abort_member(&p->member[r]);
        for (int r = 0; r < 4; r++)
            expect_sums(p, r);
        cr_assert_eq(reduce_once(&p->member[2]), -1);
        cr_assert_eq(p->member[2].err.code, ERR_ABORTED);
        party_free(p);
    }
}

Test(collective, a_rank_that_closes_is_named_to_the_others)
{
    for (int kind = 0; kind < KINDS; kind++) {
        struct party *p = party_open(kind, 2);
        fill(p, 100000, 0);
        close_member(&p->member[1]);
        cr_assert_eq(reduce_once(&p->member[0]), -1);
        cr_assert_eq(p->member[0].err.code, ERR_PEER);
        cr_assert_eq(p->member[0].peer, 1);
        party_free(p);
    }
}

Test(collective, ranks_that_sum_different_things_fail_instead_of_mixing_them)
{
    struct party *p = party_open(KIND_RING, 3);
    fill(p, 1000, 10);
    p->member[1].words_count = 998;
    run_all(p);
    p->member[1].words_count = 1000;
    int protocol = 0;
    for (int r = 0; r < 3; r++) {
        cr_assert_eq(p->member[r].rc, -1);
        protocol += p->member[r].err.code == ERR_PROTOCOL;
    }
    cr_assert_geq(protocol, 1);
    party_free(p);
}

Test(collective, the_watched_descriptors_show_a_neighbours_end_and_nothing_else)
{
    struct party *p = party_open(KIND_RING, 3);
    int fds[2], peers[2];
    fill(p, 10, 0);
    run_all(p);
    cr_assert_eq(p->member[0].collective->ops->watch(p->member[0].collective, fds, peers), 2);
    for (int i = 0; i < 2; i++) {
        struct pollfd poll_fd = {.fd = fds[i], .events = POLLRDHUP};
        cr_assert_eq(poll(&poll_fd, 1, 0), 0);
        cr_assert_eq(peers[i], i ? 2 : 1);
    }
    close_member(&p->member[2]);
    struct pollfd ended = {.fd = fds[1], .events = POLLRDHUP};
    cr_assert_eq(poll(&ended, 1, 1000), 1);
    party_free(p);
}

Test(collective, a_rank_that_waits_for_one_that_never_comes_has_a_pulse, .timeout = 60)
{
    struct party *p = party_open(KIND_RING, 2);
    fill(p, 10, 0);
    start(&p->member[0]);
    long long before = atomic_load(&p->member[0].pulse);
    while (atomic_load(&p->member[0].pulse) < before + 5) /* its own bytes are out after the first */
        sched_yield();
    start(&p->member[1]);
    for (int r = 0; r < 2; r++)
        pthread_join(p->member[r].thread, NULL);
    expect_sums(p, 0);
    party_free(p);
}

/* Rank 2 sends nothing: rank 3 behind it gets nothing, rank 0 gets rank 3's block, rank 1 both of theirs. */
Test(collective, where_nothing_comes_by_one_connection_the_rank_behind_it_has_come_least_far, .timeout = 60)
{
    struct party *p = party_open(KIND_RING, 4);
    int64_t words = 4000, block = words, header = 24;
    fill(p, words, 0);
    for (int r = 0; r < 4; r++)
        p->member[r].rounds = 2;
    for (int r = 0; r < 4; r++)
        if (r != 2)
            start(&p->member[r]);
    while (atomic_load(&p->member[1].place) < header + 2 * block)
        sched_yield();
    cr_assert_eq(atomic_load(&p->member[3].place), 0);
    cr_assert_eq(atomic_load(&p->member[0].place), header + block);
    start(&p->member[2]);
    for (int r = 0; r < 4; r++)
        pthread_join(p->member[r].thread, NULL);
    for (int r = 0; r < 4; r++)
        cr_assert_eq(atomic_load(&p->member[r].place), 2 * (header + 8 * words), "rank %d", r);
    party_free(p);
}

/* A connection that breaks after exactly `left` bytes. */
struct relay {
    pthread_t thread;
    int from, to;
    int64_t left;
};

static bool relay_some(struct relay *r, char *buffer, size_t room)
{
    struct pollfd in = {.fd = r->from, .events = POLLIN};
    poll(&in, 1, -1);
    ssize_t n = recv(r->from, buffer, (int64_t)room < r->left ? room : (size_t)r->left, 0);
    if (n < 0)
        return errno == EAGAIN;
    for (ssize_t sent = 0; sent < n;) {
        struct pollfd out = {.fd = r->to, .events = POLLOUT};
        poll(&out, 1, -1);
        ssize_t m = send(r->to, buffer + sent, (size_t)(n - sent), MSG_NOSIGNAL);
        if (m < 0 && errno != EAGAIN)
            return false;
        sent += m > 0 ? m : 0;
    }
    r->left -= n;
    return n > 0;
}

static void *relay_main(void *arg)
{
    struct relay *r = arg;
    char buffer[4096];
    while (r->left > 0 && relay_some(r, buffer, sizeof buffer))
        continue;
    close(r->from);
    close(r->to);
    return NULL;
}

/* Returns how many ranks said success when the connection of rank 1 to rank 2 ended after `cut` bytes. */
static int successes_with_cut(int world, int64_t words, int64_t cut)
{
    struct party *p = calloc(1, sizeof *p);
    struct error err;
    int fds[WORLD_MAX][2], behind[2], successes = 0;
    p->world = world;
    for (int r = 0; r < world; r++) {
        p->member[r].rounds = 1;
        cr_assert_eq(abort_flag_init(&p->member[r].abort, &err), 0);
    }
    socket_pairs(world, fds);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, behind), 0);
    struct relay relay = {.from = fds[1][1], .to = behind[0], .left = cut};
    fds[1][1] = behind[1];
    open_ring(p, fds);
    fill(p, words,
         world > 2 ? 5 : 0); /* floats are compared with rank 0's, and that one fails alone of two */
    cr_assert_eq(pthread_create(&relay.thread, NULL, relay_main, &relay), 0);
    run_all(p);
    for (int r = 0; r < world; r++) {
        if (p->member[r].rc == 0) {
            successes++;
            expect_sums(p, r);
        } else {
            cr_assert_eq(p->member[r].err.code, ERR_PEER, "%s", p->member[r].err.text);
        }
    }
    for (int r = 0; r < world; r++)
        close_member(&p->member[r]);
    pthread_join(relay.thread, NULL);
    party_free(p);
    return successes;
}

Test(collective, a_connection_that_breaks_at_any_byte_never_yields_a_wrong_sum)
{
    int64_t words = 211, bytes = 24 + 2 * 2 * (words + 5) * 4 / 3 + 8;
    int failed = 0, all = 0;
    for (int64_t cut = 0; cut <= bytes; cut += cut < 64 ? 1 : 13) {
        int successes = successes_with_cut(3, words, cut);
        failed += successes == 0;
        all += successes == 3;
    }
    /* Early cuts fail everybody; the last ones come after all is said. */
    cr_assert_gt(failed, 10);
    cr_assert_geq(all, 1);
}

Test(collective, a_connection_of_two_that_breaks_at_any_byte_never_yields_a_wrong_sum)
{
    int64_t words = 211, bytes = 24 + words * 4;
    for (int64_t cut = 0; cut <= bytes + 1; cut += cut < 64 || cut > bytes - 8 ? 1 : 13) {
        int successes = successes_with_cut(2, words, cut);
        cr_assert(cut < bytes ? successes < 2 : successes == 2, "%ld bytes: %d", (long)cut, successes);
    }
}

/* A whole way less to wait for than with blocks. */
Test(collective, two_ranks_that_sum_little_send_all_of_it_before_anything_comes, .timeout = 60)
{
    enum { WORDS = 1000, FLOATS = 7, BYTES = 24 + 4 * (WORDS + FLOATS) };
    struct party *p = party_open(KIND_RING, 2);
    char came[BYTES];
    int fds[2], peers[2];
    fill(p, WORDS, FLOATS);
    p->member[1].collective->ops->watch(p->member[1].collective, fds, peers);
    start(&p->member[0]);
    for (ssize_t n = 0; n < BYTES; n = recv(fds[1], came, sizeof came, MSG_PEEK)) {
        struct pollfd in = {.fd = fds[1], .events = POLLIN};
        poll(&in, 1, -1);
    }
    start(&p->member[1]);
    for (int r = 0; r < 2; r++)
        pthread_join(p->member[r].thread, NULL);
    for (int r = 0; r < 2; r++) {
        expect_sums(p, r);
        cr_assert_eq(p->member[r].collective->sent, BYTES);
    }
    party_free(p);
}

/* A sum of two of them has the bits of the first, so the order counts. */
Test(collective, two_ranks_have_the_same_bits_of_a_sum_that_is_no_number)
{
    struct party *p = party_open(KIND_RING, 2);
    fill(p, 3, 40);
    for (int r = 0; r < 2; r++)
        for (int i = 0; i < 40; i++)
            memcpy(&p->member[r].floats[i], &(uint32_t){0x7fc00000u + (uint32_t)(100 * r + i)}, 4);
    run_all(p);
    cr_assert_eq(memcmp(p->member[0].floats_sum, p->member[1].floats_sum, 40 * sizeof(float)), 0);
    for (int r = 0; r < 2; r++)
        for (int i = 0; i < 40; i++)
            p->member[r].floats[i] = float_of(r, i);
    party_free(p);
}

Test(collective, a_connection_that_breaks_within_a_large_sum_never_yields_a_wrong_sum)
{
    for (int64_t cut = 1; cut < 2000000; cut += 333333)
        cr_assert_lt(successes_with_cut(4, 400001, cut), 4);
}

/* Each element goes round twice but for one hop, whoever begins with it; each rank says first what it sums.
 */
Test(collective, a_ring_knows_how_many_bytes_it_has_sent)
{
    enum { WORLD = 4, WORDS = 1001, FLOATS = 33, SAYING = 3 * sizeof(uint64_t), ROUNDS = 3 };
    struct party *p = party_open(KIND_RING, WORLD);
    int64_t sent = 0;
    fill(p, WORDS, FLOATS);
    for (int r = 0; r < WORLD; r++)
        p->member[r].rounds = ROUNDS;
    run_all(p);
    for (int r = 0; r < WORLD; r++) {
        cr_assert_eq(p->member[r].rc, 0, "%s", p->member[r].err.text);
        sent += p->member[r].collective->sent;
    }
    cr_assert_eq(sent, ROUNDS * (2 * (WORLD - 1) * 4 * (WORDS + FLOATS) + WORLD * SAYING));
    party_free(p);
}

Test(collective, a_rank_that_adds_nothing_has_the_sum_of_the_others)
{
    for (int kind = 0; kind < KINDS; kind++) {
        for (int world = 1; world <= 4; world++) {
            for (int listener = 0; listener < world; listener++) {
                struct party *p = party_open(kind, world);
                fill(p, 40007, 33);
                p->member[listener].listens = true;
                run_all(p);
                for (int r = 0; r < world; r++) {
                    cr_assert_eq(p->member[r].rc, 0, "%s", p->member[r].err.text);
                    expect_sums(p, r);
                }
                party_free(p);
            }
        }
    }
}

/* A process of its own for each rank, of which rank 1 is killed in its turn number `turn`. Returns whether it
 * was; what all of them add and have summed lies in shared memory. */
static bool kill_at_turn(struct party *p, int turn)
{
    pid_t child[WORLD_MAX];
    int fds[WORLD_MAX][2], status;
    char fault[32];
    bool killed = false;
    snprintf(fault, sizeof fault, "ring-turn:%d", turn);
    socket_pairs(p->world, fds);
    for (int r = 0; r < p->world; r++) {
        child[r] = fork();
        if (child[r])
            continue;
        if (r == 1)
            setenv("RINGMASTER_FAULT", fault, 1);
        open_ring(p, fds);
        for (int i = 0; i < p->world; i++)
            if (i != r)
                close_member(&p->member[i]);
        _exit(reduce_once(&p->member[r]) < 0 ? 1 : 0);
    }
    for (int r = 0; r < p->world; r++) {
        close(fds[r][0]);
        close(fds[r][1]);
    }
    for (int r = 0; r < p->world; r++) {
        cr_assert_eq(waitpid(child[r], &status, 0), child[r]);
        killed |= WIFSIGNALED(status);
        cr_assert(r == 1 || WIFEXITED(status));
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            expect_sums(p, r);
    }
    return killed;
}

Test(collective, a_kill_in_any_turn_of_the_ring_leaves_what_each_rank_adds_as_it_was)
{
    int turn = 1;
    for (bool killed = true; killed; turn++) {
        struct error err;
        struct party *p = calloc(1, sizeof *p);
        p->world = 3;
        for (int r = 0; r < p->world; r++)
            cr_assert_eq(abort_flag_init(&p->member[r].abort, &err), 0);
        fill(p, 9001, 0);
        killed = kill_at_turn(p, turn);
        party_free(p);
    }
    cr_assert_gt(turn, 4, "%d turns", turn);
}

static void remember(const char *sentence)
{
    (void)sentence;
    _exit(42);
}

/* Ends with 42 where the assertion stood in the way. */
static int sum_over(int kind, const void *from, void *to, int64_t count)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        struct party *p = party_open(kind, 1);
        struct collective_segment segment = {.from = from, .to = to, .count = count};
        assertion_hook = remember;
        _exit(p->member[0].collective->ops->reduce(p->member[0].collective, &segment, 1, NULL, NULL));
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    return WEXITSTATUS(status);
}

Test(collective, a_sum_over_what_is_added_is_refused)
{
    uint32_t words[20] = {0};
    for (int kind = 0; kind < KINDS; kind++) {
        cr_assert_eq(sum_over(kind, words, words, 20), 42, "in place");
        cr_assert_eq(sum_over(kind, words, words + 9, 10), 42, "one element is shared");
        cr_assert_eq(sum_over(kind, words + 10, words, 10), 0, "side by side");
        cr_assert_eq(sum_over(kind, NULL, words, 20), 0);
    }
}
