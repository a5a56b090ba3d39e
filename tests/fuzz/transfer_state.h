/* A tiny state in memory for the two targets of the transfer of states. */
#ifndef RM_TESTS_FUZZ_TRANSFER_STATE_H
#define RM_TESTS_FUZZ_TRANSFER_STATE_H

#include "trainer/state/state.h"

enum { FUZZ_STATE_STEP = 4 };

/* One state for the process; fuzz_state_fill puts it at FUZZ_STATE_STEP with lineage {7}, no update kept. */
struct state *fuzz_state(const struct model_layout **ret_layout);
void fuzz_state_fill(struct state *state);

#endif
