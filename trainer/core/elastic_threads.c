/* Whose a command is, for whom it waits, and what follows it at once. */
#include "trainer/core/elastic.h"

#include "common/base/assert.h"

enum elastic_thread elastic_thread(enum elastic_command command)
{
    RM_ASSERT((unsigned)command <= CMD_DROP, "command %d is nobody's", (int)command);
    bool talks = command == CMD_CONNECT || command == CMD_RECEIVE || command == CMD_EXCHANGE;
    return talks ? ELASTIC_TALKS : ELASTIC_COMPUTES;
}

enum elastic_thread elastic_thread_after(enum elastic_command next, int64_t words)
{
    RM_ASSERT(words >= 0, "a step of %lld words", (long long)words);
    return words <= ELASTIC_FEW_WORDS ? ELASTIC_COMPUTES : elastic_thread(next);
}

enum elastic_command elastic_follows(const struct elastic_result *r)
{
    if (r->outcome != OUTCOME_OK)
        return CMD_NONE;
    return r->command == CMD_LANES ? CMD_EXCHANGE : r->command == CMD_EXCHANGE ? CMD_COMMIT : CMD_NONE;
}

bool elastic_waits_for_peers(enum elastic_command command)
{
    RM_ASSERT((unsigned)command <= CMD_DROP, "command %d waits", (int)command);
    return command == CMD_RECEIVE || command == CMD_CATCH_UP || command == CMD_LOAD ||
           command == CMD_LISTEN || command == CMD_CONNECT || command == CMD_LANES ||
           command == CMD_EXCHANGE || command == CMD_EVALUATE || command == CMD_COMPARE;
}
