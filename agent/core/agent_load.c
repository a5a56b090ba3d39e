/* Shares of a checkpoint, read to where the trainer's state lies or beside it, and who may touch that
 * meanwhile. */
#include "agent/core/agent_state.h"

#include "common/base/assert.h"

/* One at a time: the memory that it goes to is the same. */
static void start_load(struct agent *st, struct agent_out *out)
{
    if (!st->load_wanted || st->loading)
        return;
    st->load_wanted = false;
    st->loading = true;
    RM_ASSERT(generation_compare(st->load_generation, st->ring) == 0, "a load for ring %lld in ring %lld",
              (long long)st->load_generation.n, (long long)st->ring.n);
    agent_call_made(st, &st->reads);
    struct message *m = agent_say(out, AGENT_LOAD, MSG_LOAD);
    m->generation = st->ring;
    m->load.state = st->form.resume;
    m->load.parts = st->form.count;
    m->load.shares = st->load_shares;
    m->load.in_state = st->load_in_state;
}

static void want(struct agent *st, struct worker_set shares, struct agent_out *out)
{
    RM_ASSERT(st->phase == PHASE_FORMING, "shares are wanted in phase %s", msg_phase_name(st->phase));
    st->load_wanted = true;
    st->load_shares = shares;
    st->load_generation = st->ring;
    start_load(st, out);
}

void agent_drop_load(struct agent *st, struct agent_out *out)
{
    st->load_wanted = false;
    if (st->loading)
        agent_act(out, AGENT_LOAD_STOP);
}

void agent_load_for(struct agent *st, const struct msg_form *form, struct agent_out *out)
{
    RM_ASSERT(st->phase == PHASE_FORMING && form->count <= RM_WORKERS_MAX,
              "a ring of %d is formed in phase %s", form->count, msg_phase_name(st->phase));
    agent_drop_load(st, out);
    for (int rank = 0; rank < form->count; rank++) {
        const struct msg_member *m = &form->member[rank];
        if (m->worker != st->settings.worker || m->role != ROLE_LOAD || st->settings.launcher)
            continue;
        /* What is held stays until something better has come; and it must be within our reach. */
        st->load_in_state = !st->state.held && st->up.params_at >= 0;
        want(st, set_of(rank), out);
        if (agent_calls_are_stuck(st, &st->reads))
            agent_say_reads_are_stuck(st, out); /* it will not begin */
    }
}

/* Shares that no other member gave. The trainer waits for an answer in any case. */
void agent_on_load(struct agent *st, const struct message *m, struct agent_out *out)
{
    if (generation_compare(m->generation, st->ring) == 0 && st->phase == PHASE_FORMING) {
        want(st, m->load.shares, out);
        return;
    }
    agent_say(out, AGENT_SEND_LINK, MSG_LOADED)->generation = m->generation;
}

/* The trainer hears of every end, also one that is only starting, unless the next load is about to write to
 * the same memory: until then it may not touch that. */
void agent_on_loaded(struct agent *st, const struct agent_event *e, struct agent_out *out)
{
    RM_ASSERT(st->loading, "a state is loaded that nobody began, in ring %lld",
              (long long)st->load_generation.n);
    st->loading = false;
    agent_call_returned(st, &st->reads);
    if (!e->ok && !e->given_up)
        agent_storage_fault(st, e, out);
    if (!st->load_wanted && st->trainer != TRAINER_NONE) {
        struct message *m = agent_say(out, AGENT_SEND_LINK, MSG_LOADED);
        if (e->ok && generation_compare(e->message->generation, st->load_generation) == 0)
            message_keep(m, e->message);
        m->generation = st->load_generation;
    }
    start_load(st, out);
}
