/* Notices of machines' ends, as clouds tell them to pods: that a machine may go, or will, with its moment,
 * and that it does not go after all. At that moment it takes along whoever is still on it. Who makes pods
 * makes another one at the notice, or when the worker has ended. */
#include "tests/sim/sim.h"

static const rm_time enough = 6 * RM_S;      /* for a leave, where nothing disturbs */
static const rm_time worth = 10 * RM_S;      /* a notice's time in which there is training to do */
static const rm_time all_within = 15 * RM_S; /* what GKE gives */
static const rm_time asks_each = RM_S;       /* who makes pods, its coordinator for its status */

static void draw_shot(struct sim *sim, enum shot_kind kind, rm_time at)
{
    struct scenario *s = &sim->scenario;
    if (s->shots == SHOTS_MAX)
        return;
    s->shot[s->shots].at = at;
    s->shot[s->shots++].kind = kind;
}

/* With quick steps a job is over before a notice's time is, and an agent keeps the newest 64 while nobody
 * hears them: those of more than 5 s. Half of the jobs save all the time, so that a notice comes during a
 * save; with a part of the notices somebody comes, or the coordinator ends. */
void notice_draw(struct sim *sim)
{
    static const enum shot_kind kinds[] = {SHOT_WILL,     SHOT_WILL,     SHOT_MAY,   SHOT_TAKEN_BACK,
                                           SHOT_WILL_ALL, SHOT_MAY_BACK, SHOT_MOVED, SHOT_MAY_WILL,
                                           SHOT_WILL_TWO, SHOT_EARLY};
    struct scenario *s = &sim->scenario;
    if (!s->unsupervised || sim->crowd || sim_hash(sim->seed, 11, 0) % 100 >= 30)
        return;
    s->notices = true;
    s->step_time = sim_time(sim, 200 * RM_MS, 400 * RM_MS);
    s->steps += 40 + (int64_t)sim_below(sim, 100);
    s->checkpoint_every = sim_chance(sim, 50) ? 1 + (int64_t)sim_below(sim, 3) : s->checkpoint_every;
    int count = 1 + (int)sim_below(sim, 4);
    for (int i = 0; i < count; i++) {
        bool burst = i > 0 && sim_chance(sim, 40);
        rm_time from = burst ? s->shot[s->shots - 1].at : 0;
        rm_time at = from + sim_time(sim, 0, burst ? RM_S : s->step_time * s->steps);
        draw_shot(sim, kinds[sim_below(sim, sizeof kinds / sizeof *kinds)], at);
        if (sim_chance(sim, 30))
            draw_shot(sim, s->calm || sim_chance(sim, 50) ? SHOT_JOIN : SHOT_COORDINATOR,
                      at + sim_time(sim, 0, 500 * RM_MS));
    }
    liar_draw(sim);
}

/* Nothing but true notices, and what else is announced, happens to this job. */
static bool is_calm(const struct sim *sim)
{
    const struct scenario *s = &sim->scenario;
    return s->calm && !sim->liar.on && s->trouble == TROUBLE_NONE && !s->walls && !s->nan_step &&
           !sim->interrupted && !sim->ended;
}

/* ---- what a worker hears: what its listener would make of it ---- */

static struct notices word_of(enum msg_notice_word word, rm_time until)
{
    struct notices told = {.count = word != NOTICED_GONE};
    told.at[0] = (struct notice){.source = word == NOTICED_WILL ? NOTICE_AWS_SPOT : NOTICE_AWS_REBALANCE,
                                 .cause = NOTICE_CAUSE_RECLAIM,
                                 .certainty = word == NOTICED_WILL ? NOTICE_WILL : NOTICE_MAY,
                                 .until = until};
    return told;
}

static void heed(struct sim *sim, int node)
{
    struct node *n = &sim->node[node];
    struct notice will;
    if (!heed_notices(&n->heed, &n->notices, true, sim->now, &will))
        return;
    struct agent_event leave = {.kind = AGENT_NOTICE,
                                .deadline = will.until == RM_NEVER ? 0 : will.until - sim->now};
    text_copy(leave.text, sizeof leave.text, "aws-spot");
    node_event(sim, node, &leave);
}

void notice_tell(struct sim *sim, int node, enum msg_notice_word word, rm_time until, bool first)
{
    static const char *const pools[] = {"", "p3/a", "p3/b"};
    struct node *n = &sim->node[node];
    struct notices told = word_of(word, until), before = n->notices;
    if (!n->heed.heard && !first)
        heed(sim, node); /* it has asked before, and was told nothing */
    notices_hear(&n->notices, &told, true);
    const struct notice *was = notices_first(&before), *is = notices_first(&n->notices);
    if (notice_change(was, is) != NOTICE_SAME) {
        struct agent_event noticed = {.kind = AGENT_NOTICED, .notice = is};
        text_copy(noticed.text, sizeof noticed.text, pools[sim_hash(sim->seed, 13, (uint64_t)node) % 3]);
        node_event(sim, node, &noticed);
    }
    if (n->alive)
        heed(sim, node);
}

static bool is_outlived(const struct sim *sim, int node);
static void machine_goes(struct sim *sim, int w, rm_time lead);

/* A bug that is planted there: nothing is said, or something else. */
static bool is_planted(struct sim *sim, int node, enum msg_notice_word word, bool moved)
{
    struct node *n = &sim->node[node];
    bool unsaid = (sim->plant == PLANT_GONE_UNSAID && word == NOTICED_GONE && n->doomed_at) ||
                  (sim->plant == PLANT_SOONER_UNSAID && moved);
    if (sim->plant == PLANT_MAY_LEAVES && word == NOTICED_MAY) {
        struct agent_event leave = {.kind = AGENT_NOTICE, .deadline = 0};
        text_copy(leave.text, sizeof leave.text, "rebalance");
        node_event(sim, node, &leave);
        sim->planted++;
    }
    sim->planted += unsaid;
    return unsaid;
}

/* With nobody new since it was told, it has to be where it is. */
static void is_withdrawn(struct sim *sim, int node)
{
    struct node *n = &sim->node[node];
    rm_time lead = n->doomed_at - n->noticed_at;
    bool quick = lead >= worth && sim->now - n->noticed_at < lead / 4;
    n->stays = n->doomed_at && quick && n->nodes_then == sim->nodes && !n->eased && is_outlived(sim, node);
    n->kept = n->doomed_at != 0;
    n->doomed_at = 0;
    n->may_go = false;
}

/* e->c: it is news that it goes, or another moment, in so many ms; -1: it is about a word that it may. */
void notice_heard(struct sim *sim, const struct ev *e)
{
    struct node *n = &sim->node[e->a];
    enum msg_notice_word word = (enum msg_notice_word)e->b;
    if (e->c < 0 && n->doomed_at)
        return;
    rm_time lead = e->c > 0 ? e->c * RM_MS : 0;
    bool moved = lead && n->doomed_at, sooner = moved && sim->now + lead < n->doomed_at;
    if (!n->alive || (lead && !moved && sim->drilled[n->worker]))
        return;
    if (lead && !moved && !notice_will_go(sim, n->worker, lead))
        return;
    if (moved) {
        n->noticed_at = sim->now;
        n->doomed_at = sim->now + lead;
        n->nodes_then = 0;
    }
    if (lead)
        machine_goes(sim, n->worker, lead);
    if (lead && !moved)
        return; /* it hears of it in a moment */
    bool unsaid = is_planted(sim, e->a, word, sooner);
    n->may_go = word == NOTICED_MAY;
    if (word == NOTICED_GONE)
        is_withdrawn(sim, e->a);
    rm_time until = word == NOTICED_WILL ? n->doomed_at : RM_NEVER;
    bool late = sim->plant == PLANT_NOTICE_LATE && word == NOTICED_WILL;
    sim->planted += late;
    until += late ? 30 * RM_S : 0;
    if (!unsaid && n->alive)
        notice_tell(sim, e->a, word, until, false);
}

/* ---- what happens ---- */

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
    if (node < 0 || !sim->node[node].alive || sim->drilled[w] || liar_is_on(sim, node))
        return false;
    struct node *n = &sim->node[node];
    n->noticed_at = sim->now;
    n->doomed_at = sim->now + lead;
    n->kept = false;
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
    bool more = !sim->replaced[w] && sim_chance(sim, 70);
    sim->replaced[w] |= more && run_makes_another(sim, sim_time(sim, RM_MS, lead + lead / 2));
}

void notice_deadline(struct sim *sim, int node)
{
    struct node *n = &sim->node[node];
    if (n->kept || (n->doomed_at > sim->now && !n->early))
        return; /* it was withdrawn, or moved */
    if (n->alive)
        notice_ends(sim, node, false);
    node_die(sim, node, 137);
}

/* ---- a machine that may go: another one is made, and then it is asked for ---- */

/* As scheduling.surge is by itself, of one at a time. Once nobody is to go any more that is said, too. */
void notice_relieve(struct sim *sim)
{
    struct rdzv_event e = {.kind = RDZV_RELIEVE};
    const struct scenario *s = &sim->scenario;
    bool any = false, heard = sim->rdzv && !sim->coord_stopped;
    e.relief.stay = s->target;
    for (int w = 0; w < RM_WORKERS_MAX; w++) {
        struct node *n = sim->node_of[w] >= 0 ? &sim->node[sim->node_of[w]] : NULL;
        if (!n)
            continue;
        n->eased = n->eased && !heard;
        if (!n->alive || !n->may_go || n->doomed_at)
            continue;
        any = true;
        if (e.relief.count)
            continue;
        n->eased = n->eased || heard;
        bool will = w % 2; /* as its Node says: what may come of that is no more, but for a save */
        e.relief.one[e.relief.count].worker = w;
        e.relief.one[e.relief.count].by = will ? EASED_BY_WILL : EASED_BY_MAY;
        e.relief.one[e.relief.count].left = will ? 60 * RM_S : 0;
        e.relief.one[e.relief.count++].attempt = n->attempt;
    }
    if (heard)
        coord_event(sim, &e);
    if (any && !sim->ended)
        sim_at(sim, sim->now + asks_each, EV_RELIEVE, 0, 0, 0);
}

static bool shoot_may(struct sim *sim, int w)
{
    sim_at(sim, sim->now, EV_NOTICE, sim->node_of[w], NOTICED_MAY, 0);
    sim_at(sim, sim->now + sim_time(sim, 0, asks_each), EV_RELIEVE, 0, 0, 0);
    run_makes_another(sim, sim_time(sim, RM_MS, 5 * RM_S));
    return true;
}

/* By others who are there, or went a moment ago. */
static bool places_are_taken(const struct sim *sim, int node)
{
    int others = 0;
    for (int i = 0; i < sim->nodes; i++) {
        const struct node *n = &sim->node[i];
        bool there = n->alive ? n->trainer.opened : n->ended_at && sim->now < n->ended_at + 2 * RM_S;
        others += i != node && !n->stranger && there;
    }
    return others >= sim->scenario.min;
}

static void check_may(struct sim *sim, int node)
{
    const struct node *n = &sim->node[node];
    bool over = sim->ended || sim->told >= sim->scenario.steps;
    if (!over && n->may_go && !n->doomed_at && !sim->drilled[n->worker] && !places_are_taken(sim, node))
        sim_fail(sim, "worker %d leaves as its machine may go, and fewer than %d are left", n->worker,
                 sim->scenario.min);
    if (!over && n->stays)
        sim_fail(sim, "worker %d leaves a machine that stays, as it was told in time", n->worker);
}

/* ---- a machine that will go ---- */

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
    rm_time most = sim_chance(sim, 50) ? lead / 4 : lead;
    sim_at(sim, sim->now + sim_time(sim, 10 * RM_MS, most), EV_NOTICE, node, NOTICED_GONE, 0);
    return true;
}

static bool shoot_moved(struct sim *sim, int w)
{
    rm_time lead = draw_lead(sim), heard = sim_time(sim, 10 * RM_MS, lead);
    if (!notice_will_go(sim, w, lead))
        return false;
    int node = sim->node_of[w];
    machine_goes(sim, w, lead);
    sim_at(sim, sim->now + heard / 2, EV_NOTICE, node, NOTICED_WILL, (int)(draw_lead(sim) / RM_MS) + 1);
    return true;
}

static bool shoot_two(struct sim *sim, int w)
{
    bool any = shoot_will(sim, w);
    for (int other = 0; other < RM_WORKERS_MAX; other++)
        if (any && other != w && sim->node_of[other] >= 0 && shoot_will(sim, other))
            break;
    return any;
}

/* Of which nothing can be demanded but that of any other loss: where all is announced it does not happen. */
static bool shoot_early(struct sim *sim, int w)
{
    rm_time lead = draw_lead(sim);
    if (sim->scenario.calm)
        return shoot_will(sim, w);
    if (!notice_will_go(sim, w, lead))
        return false;
    sim->node[sim->node_of[w]].early = true;
    machine_goes(sim, w, sim_time(sim, RM_MS, lead));
    return true;
}

/* And a while later something else is told of it. */
static bool shoot_may_then(struct sim *sim, enum shot_kind kind, int w)
{
    bool will = kind == SHOT_MAY_WILL;
    rm_time later = sim_time(sim, 10 * RM_MS, 10 * RM_S);
    shoot_may(sim, w);
    sim_at(sim, sim->now + later, EV_NOTICE, sim->node_of[w], will ? NOTICED_WILL : NOTICED_GONE,
           will ? (int)(draw_lead(sim) / RM_MS) + 1 : -1);
    return true;
}

bool notice_shoot(struct sim *sim, enum shot_kind kind, int w)
{
    if (kind == SHOT_WILL_ALL)
        return shoot_all(sim);
    if (w < 0 || sim->drilled[w] || liar_is_on(sim, sim->node_of[w]))
        return false;
    switch (kind) {
    case SHOT_WILL:
        return shoot_will(sim, w);
    case SHOT_TAKEN_BACK:
        return shoot_taken_back(sim, w);
    case SHOT_MOVED:
        return shoot_moved(sim, w);
    case SHOT_WILL_TWO:
        return shoot_two(sim, w);
    case SHOT_EARLY:
        return shoot_early(sim, w);
    case SHOT_MAY_BACK:
    case SHOT_MAY_WILL:
        return shoot_may_then(sim, kind, w);
    default:
        return shoot_may(sim, w);
    }
}

/* Who holds the state longer than all others needs time to save it. */
static bool is_outlived(const struct sim *sim, int node)
{
    for (int i = 0; i < sim->nodes; i++) {
        const struct node *n = &sim->node[i];
        bool stays = !n->doomed_at && !n->termed;
        if (i != node && n->alive && n->trainer.opened && n->memory.whole && stays)
            return true;
    }
    return false;
}

/* Its machine is about to take it along, or it has gone by itself. */
void notice_ends(struct sim *sim, int node, bool by_itself)
{
    const struct node *n = &sim->node[node];
    if (by_itself && is_calm(sim) && !n->stranger)
        check_may(sim, node);
    if (!n->doomed_at || n->stranger)
        return;
    rm_time lead = n->doomed_at - n->noticed_at, used = sim->now - n->noticed_at;
    sim->tallies.of[by_itself ? TALLY_OUT_IN_TIME : TALLY_TAKEN_ALONG]++;
    sim->tallies.of[TALLY_NOTICE_STEPS] += sim->told - n->told_then;
    replay_ends(sim, node, by_itself);
    if (!is_calm(sim) || n->early)
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
