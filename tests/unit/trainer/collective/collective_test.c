/* One contract for every collective: the sum is complete and the same everywhere, or nobody says success. */
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collective_rig.h"
#include "common/base/assert.h"
#include "trainer/collective/prove_words.h"
#include "trainer/exact/proof.h"

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
    try_sums(KIND_STREAMS, 3, 3000001, 5);
    try_sums(KIND_SHM, 2, 1500001, 1500001);
    try_sums(KIND_SHM, 3, 3000001, 0);
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

static void sum_different_things(int kind, int64_t words)
{
    struct party *p = party_open(kind, 3);
    fill(p, words, 10);
    p->member[1].words_count = words - 2;
    run_all(p);
    p->member[1].words_count = words;
    int protocol = 0;
    for (int r = 0; r < 3; r++) {
        cr_assert_eq(p->member[r].rc, -1);
        protocol += p->member[r].err.code == ERR_PROTOCOL;
    }
    cr_assert_geq(protocol, 1);
    party_free(p);
}

Test(collective, ranks_that_sum_different_things_fail_instead_of_mixing_them)
{
    static const int kinds[] = {KIND_RING, KIND_SHM, KIND_STREAMS};
    for (int i = 0; i < 3; i++) {
        sum_different_things(kinds[i], 1000);
        sum_different_things(kinds[i], 1000000);
    }
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
static void sum_no_numbers(int kind)
{
    struct party *p = party_open(kind, 2);
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

Test(collective, two_ranks_have_the_same_bits_of_a_sum_that_is_no_number)
{
    sum_no_numbers(KIND_RING);
    sum_no_numbers(KIND_SHM);
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
/* Each is lost if somebody sleeps and nobody wakes him. */
Test(collective, a_hundred_thousand_small_sums_come_to_an_end)
{
    static const struct {
        int world, rounds;
    } parties[] = {{2, 60000}, {3, 30000}, {5, 10000}};
    for (int i = 0; i < 3; i++) {
        struct party *p = party_open(KIND_SHM, parties[i].world);
        fill(p, 9, 0);
        for (int r = 0; r < p->world; r++) {
            p->member[r].rounds = parties[i].rounds;
            p->member[r].differ = true;
        }
        run_all(p);
        for (int r = 0; r < p->world; r++) {
            cr_assert_eq(p->member[r].rc, 0, "%s", p->member[r].err.text);
            expect_sums(p, r);
        }
        party_free(p);
    }
}

/* The others can't write where a rank does, nor take its memory away. */
Test(collective, a_board_is_its_owners_alone)
{
    struct board own, others, other_size = {.fd = -1};
    struct error err;
    cr_assert_eq(board_make(&own, &err), 0, "%s", err.text);
    cr_assert_eq(board_map(&others, dup(own.fd), &err), 0, "%s", err.text);
    cr_assert_eq(mmap(NULL, BOARD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, own.fd, 0), MAP_FAILED);
    cr_assert_eq(ftruncate(own.fd, 0), -1);
    cr_assert_eq(mprotect(others.page, BOARD_PAGE, PROT_READ | PROT_WRITE), -1);
    atomic_store(&own.page->given, 7);
    cr_assert_eq(atomic_load(&others.page->given), 7);
    int unsealed = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    cr_assert_eq(ftruncate(unsealed, BOARD_BYTES), 0);
    cr_assert_eq(board_map(&other_size, unsealed, &err), -1);
    cr_assert_eq(err.code, ERR_PROTOCOL);
    board_free(&own);
    cr_assert_eq(atomic_load(&others.page->given), 7, "it stays with who has it");
    board_free(&others);
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
