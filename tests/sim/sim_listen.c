/* Who listens to those who train: parts of a state, and every update, from whoever of them has it. */
#include <stdio.h>

#include "tests/sim/sim.h"

enum { PIECES = 5, TRIES = 4 };

void listen_start(struct sim *sim, int node)
{
    struct node *n = &sim->node[node];
    struct trainer *t = &n->trainer;
    n->listens = true;
    n->listens_term = sim->term;
    n->listens_conn = n->conn;
    t->hears = n->memory.whole ? n->memory : (struct content){.update_step = -1};
    t->follows = n->memory.whole;
    t->pieces = t->follows ? PIECES : 0;
    t->tries = 0;
    compute_finish(sim, node, OUTCOME_OK, -1, sim_time(sim, 100 * RM_US, 20 * RM_MS));
}

/* NULL: it has gone, or can't be reached. *ret_silent: it is there, and says nothing now. */
static const struct content *source_of(struct sim *sim, int node, int i, bool *ret_silent)
{
    const struct msg_member *said = &sim->node[node].trainer.form->listen.source[i];
    int other, epoch, worker = sim->node[node].worker;
    enum wall_kind why;
    *ret_silent = false;
    if (sscanf(said->address, "%d:%d", &other, &epoch) != 2)
        return NULL;
    const struct node *n = &sim->node[other];
    bool there = n->alive && n->trainer.alive && n->trainer.epoch == epoch &&
                 pairs_reach(sim, worker, said->worker) &&
                 pairs_carry(sim, said->worker, worker, &why, false);
    *ret_silent = there && (n->trainer.stopped || !n->memory.whole || n->trainer.sealed);
    return there ? &n->memory : NULL;
}

enum heard { HEARD_PIECE, HEARD_UPDATE, HEARD_NOTHING, HEARD_TOO_LATE };

/* A bit that flipped lies in one part of a state. */
static uint64_t flaw_of_piece(uint64_t flaw, int piece)
{
    return flaw % PIECES == (uint64_t)piece ? flaw : 0;
}

/* What one of them gives now. */
static enum heard hear(struct content *mine, int *pieces, const struct content *source)
{
    bool whole = *pieces == PIECES;
    if (!mine->whole) {
        *mine = content_new(source->step, source->hash);
        mine->fresh = true;
        mine->loss_known = source->loss_known;
        mine->losses = source->losses;
    }
    bool same = source->step == mine->step && source->hash == mine->hash;
    if (same && !whole)
        mine->flaw += flaw_of_piece(source->flaw, (*pieces)++);
    if (same)
        return whole ? HEARD_NOTHING : HEARD_PIECE;
    if (source->step <= mine->step)
        return source->step == mine->step ? HEARD_TOO_LATE : HEARD_NOTHING;
    if (source->step != mine->step + 1 || source->parent != mine->hash || source->update_step != source->step)
        return HEARD_TOO_LATE;
    mine->parent = mine->hash;
    mine->hash = source->hash;
    mine->update_step = mine->step = source->step;
    mine->sure = false;
    mine->loss_known = true;
    losses_take(&mine->losses, &source->losses);
    return HEARD_UPDATE;
}

/* Asks all in turn. False: nobody is left. */
static bool ask_all(struct sim *sim, int node, enum heard *ret)
{
    struct trainer *t = &sim->node[node].trainer;
    int late = 0, there = 0;
    *ret = HEARD_NOTHING;
    for (int i = 0; i < t->form->listen.sources_count && *ret == HEARD_NOTHING; i++) {
        bool silent;
        const struct content *source = source_of(sim, node, i, &silent);
        there += source != NULL;
        if (!source || silent)
            continue;
        if (source->torn && source->update_step == source->step)
            sim_fail(sim, "R9: worker %d is told of words that led to no step", sim->node[node].worker);
        enum heard heard = hear(&t->hears, &t->pieces, source);
        late += heard == HEARD_TOO_LATE;
        *ret = heard == HEARD_TOO_LATE ? HEARD_NOTHING : heard;
    }
    *ret = *ret == HEARD_NOTHING && late ? HEARD_TOO_LATE : *ret;
    return there > 0;
}

static void pretend(struct sim *sim, struct node *n)
{
    struct trainer *t = &n->trainer;
    if (sim->plant != PLANT_LISTENER_HOLDS || n->memory.whole || t->pieces != 1)
        return;
    sim->planted++;
    t->pieces = PIECES;
    n->memory = content_new(t->hears.step, t->hears.hash ^ 1);
}

static bool begin_anew(struct trainer *t)
{
    t->hears = (struct content){.update_step = -1};
    t->pieces = 0;
    return ++t->tries < TRIES;
}

bool listen_goes_on(struct sim *sim, int node, struct elastic_result *r)
{
    struct node *n = &sim->node[node];
    struct trainer *t = &n->trainer;
    enum heard heard;
    if (r->outcome != OUTCOME_OK)
        return false;
    bool there = ask_all(sim, node, &heard) && !sim->scenario.beside;
    if (there && heard == HEARD_TOO_LATE) {
        n->memory = (struct content){.update_step = -1};
        there = begin_anew(t);
    }
    if (!there) {
        r->outcome = OUTCOME_PEER;
        n->listens = t->follows; /* else it gets the state while all wait */
        sim->tallies.of[TALLY_HEARD_IN_VAIN]++;
        return false;
    }
    pretend(sim, n);
    sim->tallies.of[TALLY_UPDATES_HEARD] += heard == HEARD_UPDATE;
    bool all = t->pieces == PIECES, done = all && !t->follows;
    if (all && (t->follows || !n->memory.whole))
        n->memory = t->hears;
    sim->tallies.of[TALLY_HEARD] += done;
    return !done;
}

void listen_check_form(struct sim *sim, const struct msg_form *f)
{
    int hold = 0;
    for (int r = 0; r < f->count; r++)
        hold += f->member[r].role == ROLE_KEEP || f->member[r].role == ROLE_CATCH_UP ||
                f->member[r].role == ROLE_FOLLOW;
    for (int r = 0; r < f->count; r++) {
        int node = sim->node_of[f->member[r].worker];
        if (node < 0)
            continue;
        struct node *n = &sim->node[node];
        bool told = n->listens && n->listens_term == sim->term && n->listens_conn == n->conn;
        bool goes_on = told && n->trainer.command == CMD_LISTEN;
        if (goes_on && f->member[r].role == ROLE_RECEIVE && hold >= sim->settings.workers_min)
            sim_fail(sim, "R18: all wait until worker %d, which listens, has a state", f->member[r].worker);
        n->listens = false;
    }
}
