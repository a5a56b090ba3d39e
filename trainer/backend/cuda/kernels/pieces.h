/* The state's records as kernels see them: plain structs of the same layout as those of
 * trainer/state/state_file.h (layout.c holds them to it). */
#ifndef RM_TRAINER_CUDA_PIECES_H
#define RM_TRAINER_CUDA_PIECES_H

#include <stdint.h>

enum { PIECE_MOST = 4096 }; /* elements: STATE_PIECE */

/* struct state_piece */
struct cuda_piece {
    int64_t first;
    int32_t count;
    int32_t tensor;
};

/* struct state_slot: old values of the piece that one block is changing in place. */
struct cuda_slot {
    uint32_t valid;
    int64_t piece;
    float params[PIECE_MOST], m[PIECE_MOST], v[PIECE_MOST];
};

#endif
