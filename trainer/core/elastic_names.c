/* What the trainer's commands, its modes, the stages of a step and the outcomes of a command are called: a
 * sentence of an assertion is read by somebody who has no list of their numbers. */
#include "common/base/assert.h"
#include "trainer/core/elastic_parts.h"

const char *elastic_command_name(enum elastic_command command)
{
    static const char *const names[] = {
        [CMD_NONE] = "NONE",         [CMD_INIT] = "INIT",         [CMD_LOAD] = "LOAD",
        [CMD_RECEIVE] = "RECEIVE",   [CMD_CATCH_UP] = "CATCH_UP", [CMD_LISTEN] = "LISTEN",
        [CMD_CONNECT] = "CONNECT",   [CMD_LANES] = "LANES",       [CMD_EXCHANGE] = "EXCHANGE",
        [CMD_COMMIT] = "COMMIT",     [CMD_EVALUATE] = "EVALUATE", [CMD_COMPARE] = "COMPARE",
        [CMD_SNAPSHOT] = "SNAPSHOT", [CMD_DIGEST] = "DIGEST",     [CMD_DROP] = "DROP"};
    RM_ASSERT((unsigned)command < sizeof names / sizeof *names, "%d is the number of no command",
              (int)command);
    return names[command];
}

const char *elastic_running_name(const struct elastic *st)
{
    return elastic_command_name(st->running);
}

const char *elastic_mode_name(const struct elastic *st)
{
    static const char *const names[] = {
        [MODE_IDLE] = "IDLE",   [MODE_STATE] = "STATE", [MODE_CONNECT] = "CONNECT",
        [MODE_READY] = "READY", [MODE_TRAIN] = "TRAIN", [MODE_FAULTED] = "FAULTED"};
    RM_ASSERT((unsigned)st->mode < sizeof names / sizeof *names, "%d is the number of no mode",
              (int)st->mode);
    return names[st->mode];
}

const char *elastic_stage_name(const struct elastic *st)
{
    static const char *const names[] = {[STAGE_NONE] = "NONE",
                                        [STAGE_UNFIT] = "UNFIT",
                                        [STAGE_COMPUTED] = "COMPUTED",
                                        [STAGE_DECIDED] = "DECIDED"};
    RM_ASSERT((unsigned)st->stage < sizeof names / sizeof *names, "%d is the number of no stage",
              (int)st->stage);
    return names[st->stage];
}

const char *elastic_outcome_name(enum elastic_outcome outcome)
{
    static const char *const names[] = {
        [OUTCOME_OK] = "OK",           [OUTCOME_ABORTED] = "ABORTED",       [OUTCOME_PEER] = "PEER",
        [OUTCOME_RESCALE] = "RESCALE", [OUTCOME_NOT_FINITE] = "NOT_FINITE", [OUTCOME_DISPUTED] = "DISPUTED",
        [OUTCOME_LINEAGE] = "LINEAGE", [OUTCOME_PROOF] = "PROOF",           [OUTCOME_MISSING] = "MISSING",
        [OUTCOME_FAILED] = "FAILED"};
    RM_ASSERT((unsigned)outcome < sizeof names / sizeof *names, "%d is the number of no outcome",
              (int)outcome);
    return names[outcome];
}
