/* Notices of machines' ends, as clouds tell them to pods: that a machine may go, or will, with its moment,
 * and that it does not go after all. At that moment it takes along whoever is still on it. Who makes pods
 * makes another one at the notice, or when the worker has ended. */
#include "tests/sim/sim.h"

static const rm_time enough = 3 * RM_S;      /* for a leave, where nothing disturbs */
static const rm_time worth = 10 * RM_S;      /* a notice's time in which there is training to do */
static const rm_time all_within = 15 * RM_S; /* what GKE gives */

/* With quick steps a job is over before a notice's time is, and an agent keeps the newest 64 while nobody
 * hears them: those of more than 5 s. */
void notice_draw(struct sim *sim)
{
    static const enum shot_kind kinds[] = {SHOT_WILL, SHOT_WILL, SHOT_MAY, SHOT_TAKEN_BACK, SHOT_WILL_ALL};
    struct scenario *s = &sim->scenario;
    if (!s->unsupervised || sim->crowd || sim_hash(sim->seed, 11, 0) % 100 >= 30)
        return;
    s->notices = true;
    s->step_time = sim_time(sim, 200 * RM_MS, 400 * RM_MS);
    s->steps += 40 + (int64_t)sim_below(sim, 100);
    int count = 1 + (int)sim_below(sim, 4);
    for (int i = 0; i < count; i++) {
        bool burst = i > 0 && sim_chance(sim, 40);
        rm_time from = burst ? s->shot[s->shots - 1].at : 0;
        s->shot[s->shots].at = from + sim_time(sim, 0, burst ? RM_S : s->step_time * s->steps);
        s->shot[s->shots++].kind = kinds[sim_below(sim, sizeof kinds / sizeof *kinds)];
    }
}

/* Nothing but notices, and what else is announced, happens to this job. */
static bool is_calm(const struct sim *sim)
{
    const struct scenario *s = &sim->scenario;
    return s->calm && s->trouble == TROUBLE_NONE && !s->walls && !s->nan_step && !sim->interrupted &&
           !sim->ended;
}

static void tell(struct sim *sim, int node, enum msg_notice_word word, rm_time left)
{
    struct notice notice = {.source = word == NOTICED_WILL ? NOTICE_AWS_SPOT : NOTICE_AWS_REBALANCE,
                            .cause = CAUSE_RECLAIM,
                            .certainty = word == NOTICED_WILL ? NOTICE_WILL : NOTICE_MAY,
                            .until = left < 0 ? RM_NEVER : sim->now + left};
    static const char *const pools[] = {"", "p3/a", "p3/b"};
    struct agent_event noticed = {.kind = AGENT_NOTICED, .notice = word == NOTICED_GONE ? NULL : &notice};
    text_copy(noticed.text, sizeof noticed.text, pools[sim_hash(sim->seed, 13, (uint64_t)node) % 3]);
    node_event(sim, node, &noticed);
    if (word != NOTICED_WILL)
        return;
    struct agent_event leave = {.kind = AGENT_NOTICE, .deadline = left};
    text_copy(leave.text, sizeof leave.text, "aws-spot");
    node_event(sim, node, &leave);
}

void notice_heard(struct sim *sim, const struct ev *e)
{
    const struct node *n = &sim->node[e->a];
    if (!n->alive)
        return;
    rm_time until = n->doomed_at;
    bool planted = sim->plant == PLANT_NOTICE_LATE && e->b == NOTICED_WILL;
    sim->planted += planted;
    until += planted ? 30 * RM_S : 0;
    tell(sim, e->a, (enum msg_notice_word)e->b,
         e->b == NOTICED_WILL ? (until > sim->now ? until - sim->now : 0) : -1);
}

/* And nobody waits beside the ring for a place in it. */
static bool all_train(const struct sim *sim)
{
    for (int i = 0; i < sim->nodes; i++) {
        if (sim->node[i].alive && sim->node[i].trainer.ring < 0)
            return false;
    }
    return sim->rdzv && rdzv_state(sim->rdzv) == RDZV_TRAINING;
}

bool notice_will_go(struct sim *sim, int w, rm_time lead)
{
    int node = sim->node_of[w];
    if (node < 0 || !sim->node[node].alive || sim->drilled[w])
        return false;
    struct node *n = &sim->node[node];
    n->noticed_at = sim->now;
    n->doomed_at = sim->now + lead;
    n->told_then = sim->told;
    n->nodes_then = all_train(sim) ? sim->nodes : 0;
    sim->drilled[w] = true;
    sim->tallies.of[TALLY_NOTICES]++;
    sim_at(sim, sim->now + sim_time(sim, 0, 5 * RM_MS), EV_NOTICE, node, NOTICED_WILL, 0);
    return true;
}

/* Who has no time at all is lost as suddenly as any other. */
static rm_time draw_lead(struct sim *sim)
{
    static const rm_time most[] = {2 * RM_S, 15 * RM_S, 40 * RM_S};
    rm_time lead = sim_time(sim, 10 * RM_MS, most[sim_below(sim, 3)]);
    return sim->scenario.calm ? lead + enough : lead;
}

static void machine_goes(struct sim *sim, int w, rm_time lead)
{
    sim_at(sim, sim->now + lead, EV_DEADLINE, sim->node_of[w], 0, 0);
    if (sim->now + 2 * lead > sim->quiet_since)
        sim->quiet_since = sim->now + 2 * lead;
    sim->replaced[w] = sim_chance(sim, 70) && run_makes_another(sim, sim_time(sim, RM_MS, lead + lead / 2));
}

static bool shoot_will(struct sim *sim, int w)
{
    rm_time lead = draw_lead(sim);
    if (!notice_will_go(sim, w, lead))
        return false;
    machine_goes(sim, w, lead);
    return true;
}

static bool shoot_all(struct sim *sim)
{
    bool any = false;
    for (int w = 0; w < RM_WORKERS_MAX; w++) {
        rm_time lead = all_within + sim_time(sim, 0, 200 * RM_MS);
        if (!notice_will_go(sim, w, lead))
            continue;
        machine_goes(sim, w, lead);
        any = true;
    }
    return any;
}

static bool shoot_taken_back(struct sim *sim, int w)
{
    rm_time lead = draw_lead(sim);
    if (!notice_will_go(sim, w, lead))
        return false;
    int node = sim->node_of[w];
    sim->node[node].nodes_then = 0;
    sim_at(sim, sim->now + sim_time(sim, 10 * RM_MS, lead), EV_NOTICE, node, NOTICED_GONE, 0);
    return true;
}

bool notice_shoot(struct sim *sim, enum shot_kind kind, int w)
{
    if (kind == SHOT_WILL_ALL)
        return shoot_all(sim);
    if (w < 0 || sim->drilled[w])
        return false;
    if (kind == SHOT_WILL)
        return shoot_will(sim, w);
    if (kind == SHOT_TAKEN_BACK)
        return shoot_taken_back(sim, w);
    sim_at(sim, sim->now, EV_NOTICE, sim->node_of[w], NOTICED_MAY, 0);
    return true;
}

/* Who holds the state longer than all others needs time to save it. */
static bool is_outlived(const struct sim *sim, int node)
{
    for (int i = 0; i < sim->nodes; i++) {
        const struct node *n = &sim->node[i];
        if (i != node && n->alive && n->trainer.opened && n->memory.whole && !n->doomed_at)
            return true;
    }
    return false;
}

/* Its machine is about to take it along, or it has gone by itself. */
void notice_ends(struct sim *sim, int node, bool by_itself)
{
    const struct node *n = &sim->node[node];
    if (!n->doomed_at || n->stranger)
        return;
    rm_time lead = n->doomed_at - n->noticed_at, used = sim->now - n->noticed_at;
    sim->tallies.of[by_itself ? TALLY_OUT_IN_TIME : TALLY_TAKEN_ALONG]++;
    sim->tallies.of[TALLY_NOTICE_STEPS] += sim->told - n->told_then;
    replay_ends(sim, node, by_itself);
    if (!is_calm(sim))
        return;
    if (!by_itself && lead >= enough)
        sim_fail(sim, "worker %d is still there when its machine ends, which it was told %.1f s before",
                 n->worker, (double)lead / RM_S);
    bool alone = n->nodes_then == sim->nodes && sim->told < sim->scenario.steps;
    if (by_itself && alone && is_outlived(sim, node) && lead >= worth && used < lead / 4)
        sim_fail(sim, "worker %d leaves %.1f s before its machine does, and nobody has come in its place",
                 n->worker, (double)(lead - used) / RM_S);
}

/* What nobody has to lose where a survivor, or the time for a save, was there. */
void notice_check_skipped(struct sim *sim)
{
    if (is_calm(sim) && sim->scenario.notices && !sim->settings.leave_unsaved)
        for (int i = 0; i < sim->nodes; i++) {
            const struct node *n = &sim->node[i];
            rm_time lead = n->doomed_at - n->noticed_at;
            if (n->alive && n->doomed_at && lead >= worth)
                sim_fail(sim, "a state is not saved, which worker %d was told %.1f s before its end",
                         n->worker, (double)lead / RM_S);
        }
}
