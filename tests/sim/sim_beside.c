/* Programs beside trainers (launch.mode: Elastic): one that fails says so through its launcher, and its
 * trainer ends with it. What must hold: a failure is told by its coordinator once, whatever broke meanwhile,
 * and is told at all where its agent lives on and is heard. Of several while nobody hears the last one counts
 * (docs/programs.md). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim.h"

enum { FAILS = 3, SPARED = 42 }; /* exit codes */

/* After which a failure has reached a coordinator that nothing keeps from it. */
static rm_time heard_within(const struct sim *sim)
{
    return sim->settings.lost_after + 3 * RM_S;
}

void beside_draw(struct sim *sim)
{
    sim->scenario.beside = sim_hash(sim->seed, 14, 0) % 100 < 20;
}

void beside_settle(const struct sim *sim, struct rdzv_settings *s)
{
    s->brought = sim->scenario.beside;
    s->rule[SPARED] = RULE_SPARES;
}

static void make(struct sim *sim, int number, struct message *m)
{
    const struct beside_failure *f = &sim->failure[number];
    message_init(m, MSG_FAULT);
    m->fault.kind = FAULT_PROGRAM;
    m->fault.peer = m->fault.rank = -1;
    m->fault.step = -1;
    m->fault.exit_code = f->exit_code;
    snprintf(m->fault.detail, sizeof m->fault.detail, "exit code %d: failure %d", f->exit_code, number);
}

static void say(struct sim *sim, int node, int number)
{
    struct message m;
    make(sim, number, &m);
    sim->planted += sim->plant == PLANT_FAILURE_UNSAID;
    if (sim->plant != PLANT_FAILURE_UNSAID)
        link_to_agent(sim, node, &m);
}

/* Of those that die by themselves two in three do so by their program. */
bool beside_fails(struct sim *sim, int node)
{
    const struct trainer *t = &sim->node[node].trainer;
    uint64_t chance = sim_hash(sim->seed, 15, (uint64_t)sim->failures);
    if (!sim->scenario.beside || !t->opened || chance % 3 == 0 || sim->failures == SHOTS_MAX)
        return false;
    for (int i = 0; i < sim->failures; i++)
        sim->failure[i].followed = sim->failure[i].followed || sim->failure[i].node == node;
    struct beside_failure *f = &sim->failure[sim->failures++];
    *f = (struct beside_failure){.node = node, .at = sim->now, .exit_code = chance % 2 ? FAILS : SPARED};
    sim->tallies.of[TALLY_PROGRAMS_FAILED]++;
    sim->tallies.of[TALLY_IN_A_LANE] += t->command == CMD_LANES;
    say(sim, node, sim->failures - 1);
    trainer_die(sim, node, 1);
    return true;
}

/* The planted bug: behind a trainer's end the agent says its program's failure once more, as the next one's.
 */
bool beside_says_twice(struct sim *sim, int node, const struct message *m, struct message *ret)
{
    bool ended = m->type == MSG_FAULT && m->fault.kind == FAULT_TRAINER_EXIT;
    for (int i = 0; sim->plant == PLANT_FAILURE_TWICE && ended && i < sim->failures; i++) {
        if (sim->failure[i].node != node || sim->failure[i].followed)
            continue;
        make(sim, i, ret);
        ret->fault.trainer = m->fault.trainer + 1;
        sim->planted++;
        return true;
    }
    return false;
}

void beside_check_told(struct sim *sim, const struct rdzv_tell *t)
{
    const char *which = t->kind == TELL_PROGRAM_FAILED ? strstr(t->text, "failure ") : NULL;
    int number = which ? (int)strtol(which + strlen("failure "), NULL, 10) : -1;
    if (number < 0)
        return;
    struct beside_failure *f = &sim->failure[number];
    if (number >= sim->failures || t->worker != sim->node[f->node].worker || t->program_code != f->exit_code)
        sim_fail(sim, "a failure is told of worker %d that was none of its own: %s", t->worker, t->text);
    if (f->term == sim->term)
        sim_fail(sim, "failure %d of worker %d is told twice", number, t->worker);
    f->term = sim->term;
}

/* The run is over, or about to be: who could have said something has. */
void beside_check_end(struct sim *sim)
{
    for (int i = 0; i < sim->failures; i++) {
        const struct beside_failure *f = &sim->failure[i];
        const struct node *n = &sim->node[f->node];
        rm_time calm = n->disturbed > sim->coord_disturbed ? n->disturbed : sim->coord_disturbed;
        rm_time since = f->at > calm ? f->at : calm;
        bool lasted = n->ended_at == 0 || n->ended_at > since + heard_within(sim);
        if (!f->term && !f->followed && !n->stranger && lasted && sim->ended_at > since + heard_within(sim))
            sim_fail(sim, "the program of worker %d failed at %.4f s, and nobody was told", n->worker,
                     (double)f->at / RM_S);
    }
}
