/* The training state from trainer to trainer, at a boundary: whole, in slices from several sources, or only
 * the update that one who is a step behind lacks.
 *
 * Source side: the compute thread says when the state stands still (transfer_allow) and when it is about to
 * change (transfer_forbid); transfer_serve runs on a data port's thread and copies chunk by chunk under that
 * gate, so that a receiver who is late (or a zombie of an older generation) sees its connection end and never
 * gets a mixture. Receiver side: a call that blocks until everything is there and verified, or fails; a
 * state received in part is never held (state.h).
 *
 * Where all members of a ring load one checkpoint, each has read a share of it and takes the others' from
 * them (transfer_share.h).
 *
 * Every chunk carries a CRC-32C; step, lineage and exponents are checked against what was asked for. */
#ifndef RM_IO_TRANSFER_H
#define RM_IO_TRANSFER_H

#include <stdatomic.h>

#include "trainer/io/data_port.h"
#include "trainer/state/state.h"

struct transfer_source;

/* tensors: of the state's layout. */
int transfer_source_open(struct transfer_source **ret, struct state *state, int tensors, struct error *err);
void transfer_source_free(struct transfer_source *source); /* after the data port; NULL is fine */
/* From now on the state as it is may be served (nothing, where none is held). exact: whether its history
 * is. On the thread that owns the state. */
void transfer_allow(struct transfer_source *source, bool exact);
/* Returns when nobody reads the state any more, nor a share. */
void transfer_forbid(struct transfer_source *source);
/* The same, but for those who listen (transfer_listen.h): a step is being made, and the state stands. */
void transfer_forbid_others(struct transfer_source *source);
/* Steps are made from now on that take another time than those before. */
void transfer_ring_begins(struct transfer_source *source);
/* The kept update is about to be written over. Returns when nobody reads it any more. */
void transfer_forget_update(struct transfer_source *source);
/* What the evaluation of the state that is held came to: those who listen tell it, too. */
void transfer_evaluated(struct transfer_source *source, int64_t step, double held_out);
/* A data port's `serve`; ctx is a struct transfer_source. */
void transfer_serve(void *ctx, int fd, const struct handshake_claim *claim, const struct abort_flag *closing);

struct transfer_peer {
    struct handshake_end end;
    char address[RM_ADDRESS_MAX];
};

struct transfer_want {
    struct handshake_secret secret;
    struct ring_generation generation;
    struct handshake_end self;
    int64_t step; /* of the state to arrive at */
    uint8_t lineage[RM_HASH_BYTES];
    int tensors; /* of the state's layout */
    int sources;
    const struct transfer_peer *source; // (sources) all hold that state
    const struct abort_flag *abort;
    atomic_llong *received; /* bytes so far, for progress; may be NULL */
    rm_time silence;        /* a source of which no chunk comes for so long has failed; 0: 30 s */
};

/* Fills the state; afterwards it holds `step`. *ret_exact: whether its history is. *ret_source: index of the
 * source that failed (ERR_PEER, ERR_PROTOCOL), else -1. On failure the state holds nothing. */
int transfer_receive_state(struct state *state, const struct transfer_want *want, bool *ret_exact,
                           int *ret_source, struct error *err);

/* Fetches the update that leads to `step` into the state's buffers: update_check_received, then
 * state_update_receive_end and update_apply are next. The state is as before, also on failure. */
int transfer_receive_update(struct state *state, const struct transfer_want *want, bool *ret_exact,
                            int *ret_source, struct error *err);

#endif
