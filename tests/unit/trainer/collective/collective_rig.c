#include "collective_rig.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/prng.h"
#include "trainer/backend/memory.h"
#include "trainer/collective/local.h"
#include "trainer/collective/shm_ring.h"
#include "trainer/collective/staged.h"
#include "trainer/collective/streams.h"
#include "trainer/collective/tcp_ring.h"
#include "trainer/exact/proof.h"

void open_ring(struct party *p, int fds[WORLD_MAX][2])
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

void socket_pairs(int world, int fds[WORLD_MAX][2])
{
    for (int r = 0; r < world; r++)
        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds[r]), 0);
}

struct boards *boards_make(int world)
{
    struct boards *b = calloc(1, sizeof *b);
    struct error err;
    int pair[2];
    for (int r = 0; r < world; r++) {
        b->fd[r][r] = -1;
        cr_assert_eq(board_make(&b->board[r][r], &err), 0, "%s", err.text);
        for (int other = 0; other < world; other++)
            if (other != r)
                cr_assert_eq(board_map(&b->board[other][r], dup(b->board[r][r].fd), &err), 0, "%s", err.text);
        for (int other = r + 1; other < world; other++) {
            cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
            b->fd[r][other] = pair[0];
            b->fd[other][r] = pair[1];
        }
    }
    return b;
}

static void open_shm(struct party *p, const struct boards *b)
{
    struct error err;
    for (int r = 0; r < p->world; r++) {
        struct shm_ring_options o = {.rank = r,
                                     .world = p->world,
                                     .fd = b->fd[r],
                                     .board = b->board[r],
                                     .abort = &p->member[r].abort,
                                     .pulse = &p->member[r].pulse,
                                     .place = &p->member[r].place,
                                     .trusts = true};
        cr_assert_eq(shm_ring_open(&p->member[r].collective, &o, &err), 0);
    }
}

enum { STREAMS = 3, STREAMS_FROM = 5 }; /* elements from which on a sum goes by all of them */

static void open_streams(struct party *p)
{
    struct error err;
    struct streams *all[WORLD_MAX];
    int fds[WORLD_MAX][2];
    for (int r = 0; r < p->world; r++)
        cr_assert_eq(streams_open(&all[r], STREAMS, &p->member[r].abort, STREAMS_FROM, &err), 0);
    for (int i = 0; i < STREAMS; i++) {
        socket_pairs(p->world, fds);
        for (int r = 0; r < p->world; r++) {
            struct tcp_ring_options o = {.rank = r,
                                         .world = p->world,
                                         .next_fd = fds[r][0],
                                         .prev_fd = fds[(r + p->world - 1) % p->world][1],
                                         .abort = streams_flag(all[r], i),
                                         .pulse = &p->member[r].pulse};
            struct collective *ring;
            cr_assert_eq(tcp_ring_open(&ring, &o, &err), 0);
            streams_add(all[r], ring);
        }
    }
    for (int r = 0; r < p->world; r++)
        p->member[r].collective = streams_collective(all[r]);
}

struct party *party_open(int kind, int world)
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
    } else if (world > 1 && (kind == KIND_SHM || kind == KIND_STAGED_SHM)) {
        struct boards *b = boards_make(world);
        open_shm(p, b);
        free(b);
    } else if (world > 1 && kind == KIND_STREAMS) {
        open_streams(p);
    } else {
        socket_pairs(world, fds);
        open_ring(p, fds);
    }
    for (int r = 0; r < world; r++) {
        struct member *m = &p->member[r];
        m->far = kind >= KIND_STAGED_RING;
        if (m->far)
            cr_assert_eq(staged_open(&m->collective, m->collective, WINDOW, &err), 0);
    }
    return p;
}

uint32_t word_of(int rank, int64_t i)
{
    uint64_t state = (uint64_t)rank * 1000003 + (uint64_t)i;
    return (uint32_t)splitmix64(&state);
}

float float_of(int rank, int64_t i)
{
    return (float)(int32_t)word_of(rank, i) * 0x1p-24f;
}

/* Survives the process that writes it; more than is asked for, so that a count of 0 has an address. */
void *shared(int64_t count)
{
    void *map = mmap(NULL, (size_t)count * 4 + 4, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(map, MAP_FAILED);
    return map;
}

void fill(struct party *p, int64_t words, int64_t floats)
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

int reduce_once(struct member *m)
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

void close_member(struct member *m)
{
    pthread_mutex_lock(&ring_lock);
    struct collective *old = m->collective;
    m->collective = NULL;
    pthread_mutex_unlock(&ring_lock);
    if (old)
        old->ops->close(old);
}

void abort_member(struct member *m)
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

void start(struct member *m)
{
    cr_assert_eq(pthread_create(&m->thread, NULL, member_main, m), 0);
}

void run_all(struct party *p)
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

void expect_sums(const struct party *p, int rank)
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

void party_free(struct party *p)
{
    expect_from(p);
    for (int r = 0; r < p->world; r++) {
        close_member(&p->member[r]);
        abort_flag_clear(&p->member[r].abort);
        give_back(&p->member[r]);
    }
    free(p);
}
