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

struct state_place {
    float *params, *m, *v; // (parameters) each; NULL: not mapped
};

struct state_header {
    _Atomic uint64_t magic; /* written last when the file is laid out */
    uint8_t identity[RM_HASH_BYTES];
    _Atomic uint32_t current; /* 0: nothing held; 1, 2: point[current - 1] is the state */
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

struct state {
    struct state_shape shape;
    int64_t header_words;

    void *map;
    size_t map_size;
    struct state_header *header;
    _Atomic int64_t *stamp; // (pieces) the step that each piece is of, where the newest of it lies
    struct state_place place[STATE_PLACES];
    uint32_t *words[2];      // (parameters + header_words)
    struct state_slot *slot; // (STATE_THREADS_MAX)

    int pieces;
    struct state_piece *piece; // (pieces) in flat order
    double *square;            // (pieces) scratch of the norm pass
    uint64_t *sum;             // (pieces)
    uint32_t *piece_max;       // (pieces) scratch of lanes_add

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
/* Where its arrays lie; home where nothing is held. */
enum state_place_of state_placed(const struct state *s);
/* Buffer of the pending update, -1 where there is none. */
int state_pending_buffer(const struct state *s);
/* The buffer that the next reduction may use: its record becomes invalid. */
int state_take_spare(struct state *s);
/* The buffer that state_update_receive_begin gave out. */
int state_received_buffer(const struct state *s);
/* Does what it holds lead from the state held to that step, and fit? ERR_PROTOCOL. */
int state_update_fits(const struct state *s, int64_t step, struct error *err);
/* Makes buffer b, which is complete with its record's k, the update to the next step, from where the arrays
 * lie to where they were aimed. */
void state_seal(struct state *s, int b);
/* All pieces are stamped next->step, and lie at `place`: makes it the state. */
void state_commit(struct state *s, const struct state_point *next, enum state_place_of place);
/* The spare buffer's header words (behind its words). */
static inline uint32_t *state_header_words(const struct state *s, int b)
{
    return s->words[b] + s->shape.layout->parameters;
}

#endif
