/* Ranks of a collective as threads of a test: what they add is known, so that every sum can be looked at. */
#ifndef RM_TEST_COLLECTIVE_RIG_H
#define RM_TEST_COLLECTIVE_RIG_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "trainer/collective/abort_flag.h"
#include "trainer/collective/board.h"
#include "trainer/collective/collective.h"

enum { WORLD_MAX = 8 };
enum {
    KIND_RING,
    KIND_LOCAL,
    KIND_SHM,
    KIND_STREAMS,
    KIND_STAGED_RING,
    KIND_STAGED_LOCAL,
    KIND_STAGED_SHM,
    KINDS
};
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

/* A socket between any two, and each rank's board mapped by all others: as ring_boards.c makes them. */
struct boards {
    int fd[WORLD_MAX][WORLD_MAX];
    struct board board[WORLD_MAX][WORLD_MAX];
};

void open_ring(struct party *p, int fds[WORLD_MAX][2]);
void socket_pairs(int world, int fds[WORLD_MAX][2]);
struct boards *boards_make(int world);
struct party *party_open(int kind, int world);
uint32_t word_of(int rank, int64_t i);
float float_of(int rank, int64_t i);
void *shared(int64_t count);
void fill(struct party *p, int64_t words, int64_t floats);
int reduce_once(struct member *m);
void close_member(struct member *m);
void abort_member(struct member *m);
void start(struct member *m);
void run_all(struct party *p);
void expect_sums(const struct party *p, int rank);
void party_free(struct party *p);

#endif
