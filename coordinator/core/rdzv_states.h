/* The states, and the moves between them. */
#ifndef RM_COORDINATOR_RDZV_STATES_H
#define RM_COORDINATOR_RDZV_STATES_H

#include "coordinator/core/rdzv_turn.h"
#include "coordinator/core/rdzv_types.h"

/* The name is in capital letters, as in docs/protocol.md. */
const char *rdzv_state_name(enum rdzv_state state);

/* Whether the table has an edge from one to the other. */
bool rdzv_may_move(enum rdzv_state from, enum rdzv_state to);

/* Adds the state table as the Markdown of docs/protocol.md. */
void rdzv_print_states(struct str *out);
/* The only writer of the state. A move that the table lacks ends the run with a sentence. */
void rdzv_move(const struct turn *turn, enum rdzv_state to);

#endif
