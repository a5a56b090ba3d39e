/* What a trainer's state and that of the control connection are called, for the sentences of assertions. */
#include "agent/core/agent_state.h"
#include "common/base/assert.h"

const char *agent_trainer_name(const struct agent *st)
{
    static const char *const names[] = {
        [TRAINER_NONE] = "NONE", [TRAINER_STARTING] = "STARTING", [TRAINER_UP] = "UP"};
    RM_ASSERT((unsigned)st->trainer < sizeof names / sizeof *names, "%d is the number of no trainer's state",
              (int)st->trainer);
    return names[st->trainer];
}

const char *agent_connection_name(const struct agent *st)
{
    static const char *const names[] = {[DISCONNECTED] = "DISCONNECTED",
                                        [CONNECTING] = "CONNECTING",
                                        [GREETED] = "GREETED",
                                        [WELCOMED] = "WELCOMED"};
    RM_ASSERT((unsigned)st->connection < sizeof names / sizeof *names,
              "%d is the number of no connection's state", (int)st->connection);
    return names[st->connection];
}
