/* A small state on an emulated GPU, and what the CPU makes of the same one. */
#ifndef RM_TESTS_UPDATE_CASE_H
#define RM_TESTS_UPDATE_CASE_H

#include <stdbool.h>
#include <stdint.h>

#include "trainer/backend/cuda/kernels/pieces.h"
#include "trainer/backend/cuda/kernels/restore.h"
#include "trainer/backend/cuda/kernels/sums.h"
#include "trainer/backend/cuda/kernels/update.h"

/* What an emulated processor does of what repeats itself: one of so many. */
#ifdef RM_EMULATED
enum { CASE_SHARE = 10 };
#else
enum { CASE_SHARE = 1 };
#endif

enum { CASE_TENSORS = 3, CASE_BLOCKS = 3, CASE_STEP = 8 /* that the update leads to */ };

struct case_arrays {
    float *params, *m, *v; // (count) each
};

struct update_case {
    int64_t count;
    int pieces;
    bool floats;
    struct cuda_piece *piece;
    struct update_constants constants[CASE_TENSORS];
    uint32_t *words;
    struct case_arrays now, old, wanted, elsewhere;
    int64_t *stamp;
    uint64_t *proof, *elsewhere_proof; // (pieces) of what lies there
    struct cuda_slot *slot;            // (CASE_BLOCKS)
};

/* Pieces of these sizes, one tensor after the other in turn, with numbers of the seed. tame: nothing in it is
 * NaN, infinite or denormal. */
void update_case_init(struct update_case *c, const int *sizes, int pieces, bool floats, bool tame,
                      uint64_t seed);
void update_case_clear(struct update_case *c);
/* The state as it was before the update. */
void update_case_reset(struct update_case *c);

struct update_args update_case_args(const struct update_case *c, bool in_place);
struct restore_args update_case_restore(const struct update_case *c);

/* The first element at which two states differ, -1: none. NaN is NaN: what else its bits say is the
 * processor's. */
int64_t update_case_differs(const struct case_arrays *a, const struct case_arrays *b, int64_t first,
                            int64_t count);

/* Of a piece's bits, by the CPU's loops. */
uint64_t case_proof(const struct case_arrays *a, const struct cuda_piece *p);

uint32_t case_bits(float x);
/* Any float, the strange ones often. */
float case_number(uint64_t *seed);

#endif
