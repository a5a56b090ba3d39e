/* What a stop, a ring and a new connection mean for one who listens. */
#include "coordinator/core/rdzv_listening.h"

#include "common/base/assert.h"

bool rdzv_listens_on(const struct rdzv_worker *w)
{
    bool listens = w->listening == LISTENING_NOW || w->listening == LISTENING_HOLDS;
    return listens && w->rank < 0 && w->asked == RM_NEVER;
}

void rdzv_listen_hello(struct rdzv_worker *w, bool same_trainer)
{
    if (!same_trainer)
        w->listening = LISTENING_NOT;
    else if (rdzv_listens_on(w))
        w->listening = LISTENING_NOW;
    w->listen_said = false;
}

void rdzv_listen_stopped(struct rdzv_worker *w)
{
    if (w->listening == LISTENING_NOW || w->listening == LISTENING_HOLDS)
        w->listening = LISTENING_OVER;
}

bool rdzv_listen_missed(const struct rdzv_worker *w, const struct msg_state *held)
{
    bool near = w->state.held && w->state.step >= held->step - 1;
    return w->listening == LISTENING_OVER && held->held && !near;
}

enum { LEFT_OUT_MOST = 2 };

void rdzv_listen_trains(struct rdzv_worker *w)
{
    if (w->rank >= 0) {
        w->listening = LISTENING_NOT;
        w->listened = 0;
    } else if (w->listening == LISTENING_OVER) {
        w->listened++;
        w->listening = w->listened < LEFT_OUT_MOST ? LISTENING_NOT : LISTENING_CANT;
    }
    RM_ASSERT(w->listening != LISTENING_OVER, "rank %d was called in, and the others have gone on", w->rank);
}
