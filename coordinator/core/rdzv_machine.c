#include "coordinator/core/rdzv_machine.h"

#include <string.h>

#include "common/base/assert.h"
#include "coordinator/core/rdzv_state.h"

static const rm_time apart = 60 * RM_S;

/* Where there is no room the oldest goes: as many as a job has workers leave within a minute at most. */
static struct rdzv_left_machine *room_for(struct rdzv *st, const char *name)
{
    RM_ASSERT(name[0], "a machine is left that nobody named, among %d", RM_WORKERS_MAX);
    struct rdzv_left_machine *oldest = st->left_machine;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_left_machine *m = &st->left_machine[i];
        if (m->at && !strcmp(m->name, name))
            return m;
        oldest = m->at < oldest->at ? m : oldest;
    }
    return oldest;
}

void rdzv_machine_left(const struct turn *turn, const struct rdzv_worker *w)
{
    if (!w->noticed || !w->machine[0])
        return;
    struct rdzv_left_machine *m = room_for(turn->st, w->machine);
    RM_ASSERT(m->at <= turn->now, "a machine was left %lld ns from now", (long long)(m->at - turn->now));
    bool known = m->at && !strcmp(m->name, w->machine);
    if (known && turn->now < m->at + apart && w->came <= m->at)
        return; /* with the one before */
    m->at = turn->now;
    text_copy(m->name, sizeof m->name, w->machine);
}

rm_time rdzv_machine_holds_until(const struct rdzv *st, const struct rdzv_worker *w)
{
    for (int i = 0; i < RM_WORKERS_MAX && w->machine[0]; i++) {
        const struct rdzv_left_machine *m = &st->left_machine[i];
        if (m->at && w->came > m->at && !strcmp(m->name, w->machine))
            return m->at + apart;
    }
    return 0;
}

bool rdzv_machine_holds(const struct rdzv *st, const struct rdzv_worker *w)
{
    return st->accounted < rdzv_machine_holds_until(st, w);
}
