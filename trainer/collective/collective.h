/* The collective that a step needs: a sum over all ranks, abortable at any point.
 *
 * A small table of functions: the TCP ring (tcp_ring.h), an in-process one for tests (local.h), and one that
 * carries segments of far memory over either (staged.h). One contract test runs on all.
 *
 * Contract. All ranks call reduce with the same segments (types and counts) in the same order. On success
 * every rank holds the same bits in each `to`: the element-wise sum of all `from` (u32: modulo 2^32, so in
 * any order; f32: a fixed order that depends on the world size and rank order only). A reduce that fails on
 * one rank leaves `to` undefined and the collective unusable on that rank: close it. `from` is never written,
 * whatever happens, so that the same sum can be asked of another ring. No rank returns success unless the
 * sum is complete. In a world of 1 the sum is a copy; who can do without it does not ask. abort may be called
 * from any thread at any time, more than once, also before reduce: the reduce in flight returns ERR_ABORTED
 * soon; peers see their connection end. No reduction mixes generations: each connection proves job,
 * generation and both incarnations when it is made. */
#ifndef RM_COLLECTIVE_H
#define RM_COLLECTIVE_H

#include <stdint.h>

#include "common/base/error.h"

enum collective_type { COLLECTIVE_U32, COLLECTIVE_F32 };

struct memory; /* trainer/backend/memory.h */

/* No `to` overlaps any `from` or `to` of the same reduce; that is asserted. */
struct collective_segment {
    enum collective_type type;
    const void *from; // (count) what this rank adds; NULL: nothing
    void *to;         // (count) the sum over all ranks
    int64_t count;
    uint64_t *proof; /* not NULL: gets the sum of the words in `to` (proof.h), formed as they become final */
    int64_t at;      /* place of the first of them, for that */
    struct memory *in; /* NULL: this process's own; else from and to are its `far` addresses, for staged.h */
};

struct collective;

struct collective_ops {
    /* ERR_PEER with the rank in *ret_peer (else -1) where a neighbour's connection ended; ERR_ABORTED. */
    int (*reduce)(struct collective *self, const struct collective_segment *segments, int n, int *ret_peer,
                  struct error *err);
    void (*abort)(struct collective *self);
    void (*close)(struct collective *self); /* frees; nobody may be inside */
    /* Descriptors to watch for the end of a neighbour while nobody is inside reduce: fills fds[2] and
     * peers[2] (rank of each), returns how many. */
    int (*watch)(struct collective *self, int fds[2], int peers[2]);
};

struct collective {
    const struct collective_ops *ops;
    int rank, world;
    int64_t sent; /* bytes that this rank has sent in all of its reduces; the other direction has as many, or
                     nearly */
};

#endif
