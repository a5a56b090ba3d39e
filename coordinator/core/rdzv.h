/* The coordinator's mind: who is in the ring, at which generation, from which step, and why.
 *
 * A pure state machine. rdzv_step takes one event and the time, changes *st and fills *out with actions in
 * the order in which they are to be done; the shell (coordinator/coordinator.c) owns sockets, timers and
 * crypto. After every step the shell arms one timer for rdzv_deadline and delivers RDZV_TICK then (a tick too
 * early or too many does no harm). No I/O, no clock, no chance, no allocation.
 *
 *     st = rdzv_open(&settings, now);                 out is large (MiB): allocate it once
 *     for each event: rdzv_step(st, &event, now, out); for each out->action: do it; arm rdzv_deadline(st)
 *
 * The shell's part: a connection gets `challenge` from the shell at once; its first `hello` is verified by
 * the shell and only then handed in as RDZV_MESSAGE. Later frames (more hellos of the same agent too) are
 * handed in as they come. The core answers the first hello with `welcome` (proof filled by the shell: it
 * knows the agent's nonce) or with `abandon` and a close. Connection ids are the shell's, >= 0, not reused
 * while the core may still name them (a counter). RDZV_CLOSED is delivered once for every connection that was
 * handed in, whoever closed it. `send` to a connection that closed meanwhile is dropped by the shell.
 *
 * The end: RDZV_END carries the exit code; the shell lets what was sent leave (bounded) and exits with it. */
#ifndef RM_COORDINATOR_RDZV_H
#define RM_COORDINATOR_RDZV_H

#include "coordinator/core/rdzv_goodput.h"
#include "coordinator/core/rdzv_states.h"
#include "coordinator/core/rdzv_types.h"

struct rdzv *rdzv_open(const struct rdzv_settings *settings, rm_time now); /* heap; the only allocation */
void rdzv_free(struct rdzv *st);
void rdzv_step(struct rdzv *st, const struct rdzv_event *event, rm_time now, struct rdzv_out *out);
rm_time rdzv_deadline(const struct rdzv *st); /* RM_NEVER: nothing to wait for */

enum rdzv_state rdzv_state(const struct rdzv *st);
const char *rdzv_why(const struct rdzv *st); /* what it last decided, in one sentence */
/* Nobody waits for what this coordinator alone has begun: no ring forms or stops, nothing is being saved, and
 * whoever asked to leave has been released. A successor may go on from here at no cost. */
bool rdzv_may_hand_over(const struct rdzv *st);

#endif
