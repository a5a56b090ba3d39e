/* Kernels see the state's records as plain structs; here the compiler holds these to what the CPU sees. */
#include <stddef.h>

#include "trainer/backend/cuda/kernels/pieces.h"
#include "trainer/state/state_file.h"

#define SAME_FIELD(ours, theirs, field)                                                                      \
    _Static_assert(offsetof(struct ours, field) == offsetof(struct theirs, field), #ours "." #field)
#define SAME_SIZE(ours, theirs) _Static_assert(sizeof(struct ours) == sizeof(struct theirs), #ours)

_Static_assert((int)PIECE_MOST == (int)STATE_PIECE, "a piece");
SAME_SIZE(cuda_piece, state_piece);
SAME_FIELD(cuda_piece, state_piece, first);
SAME_FIELD(cuda_piece, state_piece, count);
SAME_FIELD(cuda_piece, state_piece, tensor);
SAME_SIZE(cuda_slot, state_slot);
SAME_FIELD(cuda_slot, state_slot, valid);
SAME_FIELD(cuda_slot, state_slot, piece);
SAME_FIELD(cuda_slot, state_slot, params);
SAME_FIELD(cuda_slot, state_slot, m);
SAME_FIELD(cuda_slot, state_slot, v);
_Static_assert(sizeof(int64_t) == sizeof(_Atomic int64_t), "a stamp");
