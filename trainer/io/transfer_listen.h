/* A state that comes in while those who hold it train on: who will join a ring pulls it block by block from
 * all of them, and makes what has come current with each update that they commit. They wait for nothing: a
 * block is copied between two steps' commits, and an update is kept aside until the next one is committed
 * (transfer_keep.c).
 *
 * Blocks of one step only lie in the state at any moment. When those who train have committed the next one,
 * its update is pulled and applied to the whole memory, to what has come and to what has not; then blocks of
 * that step follow. One source that goes costs nothing: the others have what it had. Where an update was gone
 * before it was here, what has come is of no use any more, and all begins anew, a few times (LISTEN_TRIES).
 */
#ifndef RM_IO_TRANSFER_LISTEN_H
#define RM_IO_TRANSFER_LISTEN_H

#include "common/model/losses.h"
#include "trainer/io/transfer.h"

enum { LISTEN_TRIES = 4 };

struct transfer_listen {
    const struct transfer_want *want; /* step and lineage mean nothing here */
    const struct abort_flag *enough;  /* set: an update of which not all has come yet is not taken any more */
    /* Applies the update that lies in the state's buffers, to the state of that step and lineage.
     * ERR_PROTOCOL: it does not lead there, and nothing has changed. */
    int (*apply)(void *ctx, int64_t step, const uint8_t lineage[RM_HASH_BYTES], struct error *err);
    void *ctx;
    /* What the sources told of the newest steps up to the one held; gone on with where one is held. */
    struct losses *losses;
    int missed; /* set: how often an update was gone before it was here, and all that had come of no use */
};

/* Where nothing is held: returns 0 when all of it is, and is of the newest step that was heard of. Where a
 * state is held: goes on with it, from step to step, until `enough` (ERR_ABORTED). The arrays have to be near
 * (ERR_PEER where they are not, here or there). want->abort ends it at once. On failure the state is as it
 * was after the newest update, or nothing is held. *ret_exact: whether the state's history is. */
int transfer_listen(struct state *state, struct transfer_listen *listen, bool *ret_exact, struct error *err);

#endif
