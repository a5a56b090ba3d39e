/* The memory by which one rank of a ring speaks to ranks on the same machine: it alone writes there, and the
 * others read.
 *
 * A memfd that is made anew for each ring and passed over a proven Unix socket (trainer/io/ring_boards.h). It
 * is sealed: nobody can make it shorter under a reader, and what others map of it they can only read. So a
 * process that takes itself for a member of an older ring writes where nobody looks any more, and nothing
 * that a rank does with memory of its own is ever seen by others.
 *
 * First comes a page of counters, then room for BOARD_PORTIONS portions of a sum (shm_ring.h). */
#ifndef RM_COLLECTIVE_BOARD_H
#define RM_COLLECTIVE_BOARD_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

enum {
    BOARD_PAGE = 4096,
    BOARD_PORTIONS = 3,        /* so many are under way at once: given, being added, being taken */
    BOARD_PORTION = 512 << 10, /* bytes of one: what a few ranks have of it stays in the cache */
    BOARD_BYTES = BOARD_PAGE + BOARD_PORTIONS * BOARD_PORTION,
};

/* What a rank says of the reduce that it is in, before it gives the first portion. */
struct board_said {
    uint64_t round, shape, total;
};

/* Portions are counted from the ring's beginning, over all reduces. Each line is written for another reason.
 */
struct board_page {
    _Alignas(64) atomic_ullong given; /* what this rank adds of so many lies on the board */
    atomic_ullong summed;             /* of so many its own block there is the sum of all ranks */
    atomic_ullong taken;              /* of so many it has everything: their room may be used again */
    /* Where it is not 0 it sleeps, for the so-manieth time, until one of the others' counters is what it
     * wants. */
    _Alignas(64) atomic_ullong asleep;
    atomic_ullong wants_given, wants_summed, wants_taken;
    _Alignas(64) struct board_said said[2]; /* by round, even and odd: nobody is two ahead of another */
};
_Static_assert(sizeof(struct board_page) <= BOARD_PAGE, "the page holds all counters");

struct board {
    int fd;                  /* -1: closed; the memory stays */
    struct board_page *page; /* NULL: none */
};

/* A board of this process's own. ERR_MACHINE where the kernel or what guards this process has no such memory.
 */
int board_make(struct board *ret, struct error *err);
/* Another rank's, to read; owns fd, also where it fails. ERR_PROTOCOL where it is not sealed or of another
 * size: who made it could take it away under us. */
int board_map(struct board *ret, int fd, struct error *err);
void board_close_fd(struct board *b);
void board_free(struct board *b); /* a zeroed one with fd -1 is fine */
/* Where portion number `number` lies. */
uint8_t *board_room(const struct board *b, uint64_t number);

#endif
