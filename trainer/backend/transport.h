/* A second way for the words of a step, beside the ring: where the words lie far away, those who compute may
 * have a quicker one among themselves (NCCL among GPUs). The ring stays: it proves who is there, finds dead
 * ranks, carries headers, and carries the words until this one is ready, and again when it is not.
 *
 * A transport makes one connection at a time, among the ranks of one ring, and makes it beside the training:
 * whatever may take long or never end is done by a thread of its own for each connection, so that nothing
 * here waits for it. Rank 0 asks for an id, all are given it, and each connects; each connection begins with
 * an id of its own. When it failed on one rank it is of no use to any: all drop it.
 *
 * Its connections are closed to strangers by the job's key where it can do that, unless one is told to be
 * `open`: all ranks of a connection are told the same, and its id is made the same way.
 *
 * Functions are called by one thread at a time. Sums are of 32-bit words, modulo 2^32: the same bits as the
 * ring's, in whatever order they are added. */
#ifndef RM_BACKEND_TRANSPORT_H
#define RM_BACKEND_TRANSPORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/limits.h"
#include "common/base/time.h"
#include "trainer/backend/memory.h"

enum { TRANSPORT_ID = 128 /* bytes; a secret of the ring's */, TRANSPORT_WATCHED = 2 };

enum transport_state {
    TRANSPORT_IDLE,     /* no connection */
    TRANSPORT_NAMES,    /* an id is being made */
    TRANSPORT_NAMED,    /* there it is */
    TRANSPORT_CONNECTS, /* until all ranks do; or it was ready, and is not at this moment */
    TRANSPORT_READY,
    TRANSPORT_FAILED,      /* to be dropped */
    TRANSPORT_KEY_REFUSED, /* likewise, and one that is open may be made */
};

struct transport_sum {
    struct far from, to; /* in the backend's memory; apart */
    int64_t count;       /* words */
    /* Who of them ends or gives up, the sum ends with: descriptors of the ring's neighbours, the rank of
     * each; and a word that is not 0 where this rank gives up. */
    int fds[TRANSPORT_WATCHED], peers[TRANSPORT_WATCHED], watched;
    const atomic_int *stop;
    atomic_llong *pulse; /* grows while it is under way */
    rm_time *still;      /* NULL, or grows to the longest time in which this process was not let go on */
};

struct transport;

struct transport_ops {
    /* TRANSPORT_IDLE -> TRANSPORT_NAMES: rank 0's. */
    void (*name)(struct transport *t, bool open);
    /* TRANSPORT_NAMED: TRANSPORT_ID bytes. */
    void (*id)(struct transport *t, uint8_t *out);
    /* TRANSPORT_IDLE or TRANSPORT_NAMED -> TRANSPORT_CONNECTS. */
    void (*connect)(struct transport *t, const uint8_t *id, int rank, int world, bool open);
    /* Looks also at a connection that was ready before. why (RM_WHY_MAX): a sentence, where it failed. */
    enum transport_state (*state)(struct transport *t, char *why);
    /* TRANSPORT_READY. ERR_PEER with the rank in *ret_peer (else -1), ERR_ABORTED: it was cut, the connection
     * is dropped, and nobody writes to `to` any more. ERR_MACHINE: nobody knows whether somebody still does,
     * so this process has to end. */
    int (*reduce)(struct transport *t, const struct transport_sum *sum, int *ret_peer, struct error *err);
    /* From any state to TRANSPORT_IDLE, and at once; what there was is aborted, beside whatever comes. */
    void (*drop)(struct transport *t);
    /* Drops, and waits a little for what is under way. NULL is fine. */
    void (*free)(struct transport *t);
};

struct transport {
    const struct transport_ops *ops;
    const char *name; /* "NCCL" */
    int version;      /* the same on all ranks of a connection; 22809 is 2.28.9 */
    bool needs_key;   /* it may not be `open` */
};

#endif
