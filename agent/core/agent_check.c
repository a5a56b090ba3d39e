/* What holds of the agent between two steps, whatever was told: looked at after each, in every build. */
#include <inttypes.h>

#include "agent/core/agent_state.h"
#include "common/base/assert.h"

void agent_check_invariants(const struct agent *st)
{
    RM_ASSERT(st->progress_count >= 0 && st->progress_count <= PROGRESS_KEPT && st->evaluated_count >= 0 &&
                  st->evaluated_count <= EVALUATED_KEPT && st->written_count <= WRITTEN_KEPT,
              "%d steps, %d evaluations, %d slices are kept", st->progress_count, st->evaluated_count,
              st->written_count);
    RM_ASSERT(!(st->writing && st->write_waits), "a slice of step %" PRId64 " is written, and waits",
              st->write->snapshot.state.step);
    RM_ASSERT(!(st->publishing && st->publish_waits), "step %" PRId64 " is published, and waits",
              st->publish->publish.step);
    RM_ASSERT(!st->publish_next_set || st->publishing, "step %" PRId64 " waits to be published after nothing",
              st->publish_next->publish.step);
    RM_ASSERT(!st->writing || st->writes.under_way > 0, "a slice of step %" PRId64 " is written by no call",
              st->write->snapshot.state.step);
    RM_ASSERT(!st->publishing || st->writes.under_way > 0, "step %" PRId64 " is published by no call",
              st->publish->publish.step);
    RM_ASSERT(!st->loading || st->reads.under_way > 0, "a state is loaded by %d calls", st->reads.under_way);
    RM_ASSERT(st->connection != WELCOMED || st->term > 0, "it was welcomed in term %" PRId64, st->term);
    RM_ASSERT(!st->trains_on || (st->leaving && st->leave_until != RM_NEVER),
              "worker %d trains on until %" PRId64 ", which nobody named", st->settings.worker,
              st->leave_until);
    RM_ASSERT((st->connection == WELCOMED) == (st->beat_at != RM_NEVER),
              "connection %s, the next heartbeat at %" PRId64, agent_connection_name(st), st->beat_at);
    RM_ASSERT(st->connection != CONNECTING || st->retry_at == RM_NEVER,
              "a try under way, and one at %" PRId64, st->retry_at);
    RM_ASSERT(!st->wanted || st->writing, "trainer %d waits for memory that nobody writes from", st->spawned);
    RM_ASSERT(!st->publish_first || st->publishing,
              "a slice of step %" PRId64 " waits for a manifest that nobody writes",
              st->write->snapshot.state.step);
    RM_ASSERT(!st->leaving || st->leave_why[0] || st->released,
              "worker %d leaves until %" PRId64 ", and nobody knows why", st->settings.worker,
              st->leave_until);
    RM_ASSERT(st->trainer != TRAINER_UP || st->up.pid > 0, "a trainer is up, with pid %" PRId64, st->up.pid);
}
