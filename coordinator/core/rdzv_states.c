/* The table of states: names, meanings and legal exits, and the one function that moves between them. */
#include "coordinator/core/rdzv_states.h"

#include "common/base/assert.h"
#include "coordinator/core/rdzv_base.h"
#include "coordinator/core/rdzv_goodput.h"
#include "coordinator/core/rdzv_state.h"

struct edge {
    const char *name, *means, *leaves;
    enum rdzv_state to[6];
    int exits;
};

static const struct edge table[RDZV_STATES] = {
    [RDZV_RECOVERING] = {"RECOVERING",
                         "a successor collects hellos (not used by term 1)",
                         "all members of the newest ring say that they train or are ready -> TRAINING; "
                         "all expected are here or lostAfter is over -> QUIESCING",
                         {RDZV_TRAINING, RDZV_QUIESCING, RDZV_FAILED},
                         3},
    [RDZV_GATHERING] =
        {"GATHERING",
         "no ring; workers arrive, checkpoints are listed",
         "enough workers, and all expected are here or the join window is over -> FORMING; fewer "
         "than min with an unsaved state, or told to end -> SAVING; nobody on the way -> FAILED",
         {RDZV_FORMING, RDZV_SAVING, RDZV_FAILED, RDZV_FINISHED},
         4},
    [RDZV_FORMING] = {"FORMING",
                      "the member list is out; members fetch the state and connect",
                      "all ready on one state -> TRAINING; anyone lost, late or leaving -> QUIESCING",
                      {RDZV_TRAINING, RDZV_QUIESCING, RDZV_FAILED, RDZV_FINISHED},
                      4},
    [RDZV_TRAINING] =
        {"TRAINING",
         "the ring is at work",
         "a leave or a join -> QUIESCING at the boundary; a loss, a fault or an end -> QUIESCING "
         "at once; all finished the last step -> SAVING",
         {RDZV_QUIESCING, RDZV_SAVING, RDZV_FAILED, RDZV_FINISHED},
         4},
    [RDZV_QUIESCING] =
        {"QUIESCING",
         "stopping: at a common step boundary, or at once",
         "all members answered this round -> FORMING, or GATHERING with too few, or SAVING when "
         "told to end; any loss while waiting for a boundary -> QUIESCING at once",
         {RDZV_QUIESCING, RDZV_FORMING, RDZV_GATHERING, RDZV_SAVING, RDZV_FAILED, RDZV_FINISHED},
         6},
    [RDZV_SAVING] =
        {"SAVING",
         "holders of the state write their slices; one publishes",
         "published -> FINISHED, FAILED or GATHERING; a writer is gone -> SAVING again; nobody holds "
         "the state -> QUIESCING, to ask everybody anew, or FAILED",
         {RDZV_SAVING, RDZV_QUIESCING, RDZV_GATHERING, RDZV_FINISHED, RDZV_FAILED},
         5},
    [RDZV_FINISHED] = {"FINISHED", "complete; everybody is released", "never", {0}, 0},
    [RDZV_FAILED] =
        {"FAILED", "over, with a sentence and an exit code; everybody is released", "never", {0}, 0},
};

const char *rdzv_state_name(enum rdzv_state state)
{
    RM_ASSERT((unsigned)state < RDZV_STATES, "state %d has no name", (int)state);
    return table[state].name;
}

bool rdzv_may_move(enum rdzv_state from, enum rdzv_state to)
{
    RM_ASSERT((unsigned)from < RDZV_STATES && (unsigned)to < RDZV_STATES, "a move from state %d to %d",
              (int)from, (int)to);
    for (int i = 0; i < table[from].exits; i++) {
        if (table[from].to[i] == to)
            return true;
    }
    return false;
}

void rdzv_print_states(struct str *out)
{
    str_adds(out, "| state | means | leaves when | may go to |\n|---|---|---|---|\n");
    for (int s = 0; s < RDZV_STATES; s++) {
        str_addf(out, "| %s | %s | %s | ", table[s].name, table[s].means, table[s].leaves);
        for (int i = 0; i < table[s].exits; i++)
            str_addf(out, "%s%s", i ? ", " : "", table[table[s].to[i]].name);
        str_adds(out, " |\n");
    }
}

/* The only writer of st->state. A move that the table does not have is a bug: it stops the run with a
 * sentence instead of training on in a state that nobody thought of. */
void rdzv_move(const struct turn *turn, enum rdzv_state to)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(to < RDZV_STATES, "a move to state %d", (int)to);
    rdzv_account(turn);
    if (!rdzv_may_move(st->state, to)) {
        rdzv_give_up(st, EXIT_TRAINING, "internal error: %s can't follow %s", rdzv_state_name(to),
                     rdzv_state_name(st->state));
        return;
    }
    if (to == RDZV_TRAINING)
        rdzv_ring_moved(turn);
    st->state = to;
    st->state_since = turn->now;
    for (int i = 0; to == RDZV_GATHERING && i < RM_WORKERS_MAX; i++)
        st->worker[i].rank = -1;
}
