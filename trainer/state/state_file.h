/* The shape of the state's memfd, for the files of trainer/state and of a backend's sums only; everybody else
 * uses state.h.
 *
 * What makes it safe: every change is announced, made, and marked as made, in this order in memory. A
 * SIGKILL takes effect between two machine instructions and all earlier stores stay visible to the next
 * owner of the memory, so it is the compiler alone that must keep the order: release stores, and
 * state_order() after a store that announces. */
#ifndef RM_TRAINER_STATE_FILE_H
#define RM_TRAINER_STATE_FILE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/exact/wide.h"
#include "trainer/state/state.h"

enum {
    STATE_PIECE = 4096,      /* elements: old and new values of a piece stay in a core's cache */
    STATE_THREADS_MAX = 256, /* undo slots in the file; of unused ones only the first page is ever touched */
};

struct state_record_update {
    _Atomic uint32_t valid; /* words, header words and the fields below are complete */
    uint32_t to;            /* where it leaves the arrays: enum state_place_of */
    int64_t step;           /* that it leads to */
    int32_t k[RM_TENSORS_MAX];
};

/* Where the arrays of a state lie: in this file, or in the spare (state_add_spare). */
enum state_place_of { STATE_HOME, STATE_SPARE, STATE_PLACES };

/* As AdamW's passes know them. Far away these are addresses that only who computes may follow. */
struct state_place {
    float *params, *m, *v; // (parameters) each; NULL: not mapped
};

struct state_header {
    _Atomic uint64_t magic; /* written last when the file is laid out */
    uint8_t identity[RM_HASH_BYTES];
    _Atomic uint32_t proven;  /* each piece's sum is that of its bits; 0: they are to be made anew */
    _Atomic uint32_t current; /* 0: nothing held; 1, 2: point[current - 1] is the state */
    _Atomic uint32_t partial; /* of that state not all arrays are there yet: it is not held */
    struct state_point point[2];
    uint32_t place[2];                    /* of each point: enum state_place_of */
    struct state_record_update update[2]; /* of each buffer */
};

/* Old values of the piece that one thread is changing in place. */
struct state_slot {
    _Atomic uint32_t valid;
    int64_t piece;
    float params[STATE_PIECE], m[STATE_PIECE], v[STATE_PIECE];
};

/* A fixed range that lies in one tensor; the same for every number of threads and workers. */
struct state_piece {
    int64_t first;
    int32_t count;
    int32_t tensor;
};

/* What a pass has found out about a piece. */
struct state_scratch {
    double square;            /* norm, fp32 */
    struct wide square_fixed; /* norm, integers */
    uint64_t sum, proof;
    uint32_t max; /* of a lane's gradient */
};

struct state {
    struct state_shape shape;
    int64_t header_words;

    void *map;
    size_t map_size;
    struct state_header *header;
    struct memory *in;      /* of what follows but the header words; as in struct state_place */
    _Atomic int64_t *stamp; // (pieces) the step that each piece is of, where the newest of it lies
    uint64_t *proof;        // (pieces) sum of its bits there (proof.h), written before its stamp
    struct state_place place[STATE_PLACES];
    uint32_t *words[2]; // (parameters)
    uint32_t *said[2];  // (header_words) of each buffer, in the memfd: right behind the words where those are
    struct state_slot *slot; // (STATE_THREADS_MAX)

    int pieces;
    struct state_piece *piece; // (pieces) in flat order
    uint64_t resting; /* sum of the parameters' bits as they were read last, where who computes says it */
    struct state_scratch *scratch; // (pieces) of one pass over the pieces, until the next one

    void *spare_map;
    size_t spare_size;
    bool aim_spare;
};

/* Keeps the compiler from moving later stores in front of earlier ones. */
static inline void state_order(void)
{
    atomic_signal_fence(memory_order_seq_cst);
}

/* The state held, also while an update is pending; NULL where there is none. */
const struct state_point *state_current(const struct state *s);
/* Holds nothing from here on, and no undo slot is valid, wherever they lie. */
int state_forget(struct state *s, struct error *err);
/* Where its arrays lie; home where nothing is held. */
enum state_place_of state_placed(const struct state *s);
/* Buffer of the pending update, -1 where there is none. */
int state_pending_buffer(const struct state *s);
/* The buffer for what this rank adds to the next step, not that of the kept update: its record becomes
 * invalid. */
int state_take_spare(struct state *s);
/* All ranks are in the next step, and its pass fits: buffer b is going to hold the words of its update. From
 * here on what b kept is gone; header and k (tensors) are what was decided from. */
void state_update_begin(struct state *s, int b, const uint32_t *header, const int32_t *k);
/* The buffer that state_update_receive_begin gave out. */
int state_received_buffer(const struct state *s);
/* Does what it holds lead from the state held to that step, and fit? ERR_PROTOCOL. */
int state_update_fits(const struct state *s, int64_t step, struct error *err);
/* Makes buffer b, which is complete with its record's k, the update to the next step, from where the arrays
 * lie to where they were aimed. */
void state_seal(struct state *s, int b);
/* The sums of the pieces' bits, of the state held: are they known, they were made anew, all of them together.
 */
bool state_proven(const struct state *s);
void state_set_proven(struct state *s);
/* The sum of those, and of the exponents: what wrong ones add is a wrong sum that is proven. With the
 * parameters' bits as they were read last, where who computes reads them. */
uint64_t state_sum(const struct state *s);
/* Without those, and of a copy, where they lie far away. */
uint64_t state_sum_of(const struct state *s, const uint64_t *proof);
/* All pieces are stamped next->step, and lie at `place`: makes it the state. */
void state_commit(struct state *s, const struct state_point *next, enum state_place_of place);
/* A buffer's header words. */
static inline uint32_t *state_header_words(const struct state *s, int b)
{
    return s->said[b];
}

#endif
