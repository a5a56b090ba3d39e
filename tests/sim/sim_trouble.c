/* Machines and stores that fail: reads that do at one agent or at all, for a while or for good, a machine
 * that won't do, and a disk that is full. And the truth about what may come of it. */
#include <inttypes.h>
#include <string.h>

#include "tests/sim/sim.h"

const char *const trouble_names[TROUBLES] = {
    "no trouble",       "reads fail at one", "reads fail at all", "one machine",  "all machines",
    "disk full at one", "pieces vanish",     "stuck at one",      "wrong source", "store away at one"};

static const rm_time leaves_out = 30 * RM_S;     /* who fails alone, after that */
static const rm_time stuck_is_told = 120 * RM_S; /* of a write; of a read sooner */
static const rm_time settles_in = RM_S;          /* who has been well for as long counts */
static const rm_time known_after = 10 * RM_S;    /* whoever lists names a checkpoint that stands so long */

/* From the seed's hash, so that the rest of the history is drawn as without it. */
static uint64_t drawn(const struct sim *sim, uint64_t what, uint64_t below)
{
    return sim_hash(sim->seed, 3, what) % below;
}

void trouble_draw(struct sim *sim)
{
    struct scenario *s = &sim->scenario;
    if (s->calm || drawn(sim, 0, 100) >= 20)
        return;
    s->trouble = (enum trouble_kind)(1 + drawn(sim, 1, TROUBLE_STUCK_ONE));
    s->trouble_worker = (int)drawn(sim, 2, (uint64_t)s->target);
    bool reads = s->trouble == TROUBLE_READS_ONE || s->trouble == TROUBLE_READS_ALL;
    bool early = reads || drawn(sim, 3, 2); /* stuck: then it reads, else it writes */
    rm_time span = s->step_time * s->steps;
    s->trouble_at = early ? 0 : (rm_time)drawn(sim, 4, (uint64_t)span + 1);
    s->trouble_until = s->trouble_at + (rm_time)drawn(sim, 5, 3 * RM_S);
    if (drawn(sim, 6, 100) < (s->trouble == TROUBLE_STUCK_ONE ? 60 : 15))
        s->trouble_until = RM_NEVER;
    if ((reads || (s->trouble == TROUBLE_STUCK_ONE && early)) && s->steps > 1 && !s->resumes)
        s->resumes = 1 + (int64_t)drawn(sim, 7, (uint64_t)s->steps - 1);
    if (s->nan_step && s->resumes >= s->nan_step)
        s->resumes = s->nan_step - 1;
}

/* Of its own, as of each seed that had no trouble before there was this one. */
void trouble_draw_source(struct sim *sim)
{
    struct scenario *s = &sim->scenario;
    uint64_t chance = sim_hash(sim->seed, 23, 1);
    if (s->calm || s->trouble || s->target < 2 || sim_hash(sim->seed, 23, 0) % 100 >= 10)
        return;
    s->trouble = TROUBLE_SOURCE;
    s->trouble_worker = (int)(chance % (uint64_t)s->target);
    s->trouble_at = chance >> 20 & 1 ? 0 : (rm_time)((chance >> 24) % (uint64_t)(s->step_time * s->steps));
    s->trouble_until = s->trouble_at + (rm_time)(sim_hash(sim->seed, 23, 2) % (40 * RM_S));
    if (chance >> 21 & 1)
        s->trouble_until = RM_NEVER;
}

/* Likewise. It lasts as long as an agent's and a coordinator's pauses do, and longer. */
void trouble_draw_away(struct sim *sim)
{
    struct scenario *s = &sim->scenario;
    uint64_t chance = sim_hash(sim->seed, 40, 1), kind = sim_hash(sim->seed, 40, 3) % 4;
    if (s->calm || s->trouble || sim_hash(sim->seed, 40, 0) % 100 >= 12)
        return;
    s->trouble = TROUBLE_AWAY_ONE;
    s->trouble_worker = (int)(chance % (uint64_t)s->target);
    s->trouble_at = chance >> 20 & 1 ? 0 : (rm_time)((chance >> 24) % (uint64_t)(s->step_time * s->steps));
    s->trouble_until = s->trouble_at + (rm_time)(sim_hash(sim->seed, 40, 2) % (90 * RM_S));
    if (chance >> 21 & 1)
        s->trouble_until = RM_NEVER;
    s->away_gives = kind > 1;
    s->away_takes = kind == 0;
    s->away_within = chance >> 22 & 1 ? 5 * RM_S : 0;
    if (!s->away_gives && s->trouble_at == 0 && s->steps > 1 && !s->resumes && !s->nan_step && !s->nan_alone)
        s->resumes = 1 + (int64_t)(sim_hash(sim->seed, 40, 4) % (uint64_t)(s->steps - 1));
}

/* A part that takes as long as a pause, or as several. Who has to be out in time has no time for that. */
void trouble_draw_writes(struct sim *sim)
{
    struct scenario *s = &sim->scenario;
    uint64_t of_hundred = s->trouble == TROUBLE_AWAY_ONE ? 50 : 3;
    if (!s->calm && !s->notices && sim_hash(sim->seed, 41, 0) % 100 < of_hundred)
        s->write_within = RM_S + (rm_time)(sim_hash(sim->seed, 41, 1) % (4 * RM_S));
}

/* When the trouble has to have come to an end, or ended the run. */
rm_time trouble_over(const struct sim *sim)
{
    const struct scenario *s = &sim->scenario;
    if (!s->trouble)
        return 0;
    rm_time patience = rm_later(sim->settings.end_timeout, sim->settings.save_patience);
    rm_time lasts = s->trouble_until == RM_NEVER ? patience : s->trouble_until - s->trouble_at;
    if (s->trouble == TROUBLE_STUCK_ONE)
        lasts += stuck_is_told;
    return s->trouble_at + lasts + 3 * leaves_out;
}

/* Of a kind that meets all. Of one worker's, others are not excused. */
bool trouble_excuses(const struct sim *sim)
{
    const struct scenario *s = &sim->scenario;
    bool all =
        s->trouble == TROUBLE_READS_ALL || s->trouble == TROUBLE_MACHINE_ALL || s->trouble == TROUBLE_VANISH;
    bool lasts = s->trouble == TROUBLE_MACHINE_ALL || sim->now < s->trouble_until;
    return all && sim->now >= s->trouble_at && lasts;
}

/* Who fails alone is asked again for 30 s before others go on without it, and a pause of 30 s may come before
 * it is asked for the last time; a call that does not return is waited for before that is told, and in a run
 * until its patience is over. */
rm_time trouble_takes(const struct sim *sim)
{
    enum trouble_kind kind = sim->scenario.trouble;
    rm_time stuck = kind == TROUBLE_STUCK_ONE ? stuck_is_told + sim->settings.end_timeout : 0;
    return kind ? 2 * leaves_out + stuck : 0;
}

static bool is_now(const struct sim *sim)
{
    return sim->now >= sim->scenario.trouble_at && sim->now < sim->scenario.trouble_until;
}

/* What one can't read it may put aside for everybody. */
static bool plant_spreads(struct sim *sim, int node)
{
    bool pods = sim->scenario.unsupervised;
    bool spreads = sim->plant == (pods ? PLANT_ONE_HOLDS_ALL : PLANT_ONE_ENDS_ALL);
    sim->planted += spreads && sim->node[node].worker != sim->scenario.trouble_worker;
    return spreads;
}

bool trouble_reads_fail(struct sim *sim, int node)
{
    enum trouble_kind kind = sim->scenario.trouble;
    if (kind == TROUBLE_READS_ONE && is_now(sim))
        return sim->node[node].worker == sim->scenario.trouble_worker || plant_spreads(sim, node);
    return kind == TROUBLE_READS_ALL && is_now(sim);
}

/* Else only what is listed can't be read. */
bool trouble_lists_fail(struct sim *sim, int node)
{
    return trouble_reads_fail(sim, node) && drawn(sim, 8, 2);
}

bool trouble_disk_full(const struct sim *sim, int node)
{
    bool here = sim->node[node].worker == sim->scenario.trouble_worker;
    return sim->scenario.trouble == TROUBLE_DISK_ONE && here && is_now(sim);
}

/* The store says so as if it might take it a while later, and then it takes no manifest, either. */
bool trouble_disk_refuses(const struct sim *sim, int node)
{
    return trouble_disk_full(sim, node) && drawn(sim, 9, 2);
}

/* A call that was made before is under way, and comes back. In a pod's place comes one on another machine. */
rm_time trouble_returns_at(const struct sim *sim, int node, bool reads)
{
    const struct scenario *s = &sim->scenario;
    const struct node *n = &sim->node[node];
    bool here = n->worker == s->trouble_worker && (n->attempt == 0 || !s->unsupervised);
    bool early = s->trouble_at == 0;
    if (s->trouble != TROUBLE_STUCK_ONE || !here || !is_now(sim) || reads != early)
        return sim->now;
    return s->trouble_until;
}

static bool is_away(const struct sim *sim, int node)
{
    bool here = sim->node[node].worker == sim->scenario.trouble_worker;
    return sim->scenario.trouble == TROUBLE_AWAY_ONE && here && is_now(sim);
}

bool trouble_takes_nothing(const struct sim *sim, int node)
{
    return is_away(sim, node) && !sim->scenario.away_takes;
}

bool trouble_gives_nothing(const struct sim *sim, int node)
{
    return is_away(sim, node) && !sim->scenario.away_gives;
}

/* Chance of its own: what is drawn beside it stays the same. */
rm_time trouble_longer(struct sim *sim, int node, enum agent_event_kind kind)
{
    const struct scenario *s = &sim->scenario;
    bool reads = kind == AGENT_LISTED || kind == AGENT_LOADED;
    bool away = reads ? trouble_gives_nothing(sim, node) : trouble_takes_nothing(sim, node);
    rm_time within = away ? s->away_within : kind == AGENT_WRITTEN ? s->write_within : 0;
    return within ? (rm_time)(sim_hash(sim->seed, 42, (uint64_t)sim->calls++) % (uint64_t)within) : 0;
}

bool trouble_pieces_vanish(const struct sim *sim)
{
    return sim->scenario.trouble == TROUBLE_VANISH && is_now(sim);
}

bool trouble_is_stuck(const struct sim *sim, int node)
{
    const struct scenario *s = &sim->scenario;
    bool since = sim->now >= s->trouble_at + leaves_out && sim->now < trouble_over(sim);
    return s->trouble == TROUBLE_STUCK_ONE && sim->node[node].worker == s->trouble_worker && since;
}

/* A machine is what it is; the pod that comes in its place is on another one. */
bool trouble_machine_fails(const struct sim *sim, int node)
{
    const struct node *n = &sim->node[node];
    bool one = sim->scenario.trouble == TROUBLE_MACHINE_ONE && n->worker == sim->scenario.trouble_worker &&
               (n->attempt == 0 || !sim->scenario.unsupervised);
    bool all = sim->scenario.trouble == TROUBLE_MACHINE_ALL;
    return (one || all) && n->heard && sim->now >= sim->scenario.trouble_at;
}

/* ---- one worker's, and others ---- */

static bool is_of_one(enum trouble_kind kind)
{
    return kind == TROUBLE_READS_ONE || kind == TROUBLE_MACHINE_ONE || kind == TROUBLE_DISK_ONE ||
           kind == TROUBLE_STUCK_ONE || kind == TROUBLE_AWAY_ONE;
}

/* A machine is left behind with its pod; what a folder or a key keeps a worker from meets the next one, too.
 */
bool trouble_is_own(const struct sim *sim, int node, rm_time since)
{
    const struct scenario *s = &sim->scenario;
    const struct node *n = &sim->node[node];
    bool stays_behind = s->trouble == TROUBLE_MACHINE_ONE || s->trouble == TROUBLE_STUCK_ONE;
    bool elsewhere = stays_behind && s->unsupervised && n->attempt > 0;
    bool passes = s->trouble != TROUBLE_MACHINE_ONE && s->trouble_until != RM_NEVER;
    bool over = passes && s->trouble_until + leaves_out <= since; /* and its last pause with it */
    return is_of_one(s->trouble) && n->worker == s->trouble_worker && !elsewhere &&
           sim->now >= s->trouble_at && !over;
}

static const struct published *newest_sound(const struct sim *sim, rm_time stood)
{
    const struct published *best = NULL;
    for (int i = 0; i < sim->published_count; i++) {
        const struct published *p = &sim->published[i];
        bool sound = !p->damaged && published_stands(p) && p->stood <= stood;
        if (sound && (!best || p->step > best->step))
            best = p;
    }
    return best;
}

/* In its memory, from which none of the others gets it: a wall stands between it and each of them. As
 * it can't save it either nobody else can go on from there, and to give those steps up is not for the job to
 * decide. */
bool trouble_holds_alone(const struct sim *sim)
{
    int worker = sim->scenario.trouble_worker, here = sim->scenario.trouble ? sim->node_of[worker] : -1;
    if (here < 0 || !sim->node[here].alive || !trouble_is_own(sim, here, sim->now))
        return false;
    const struct content *held = &sim->node[here].memory;
    const struct published *p = newest_sound(sim, sim->now);
    bool alone = held->whole && (!p || p->step < held->step);
    for (int i = 0; i < sim->nodes; i++) {
        const struct node *n = &sim->node[i];
        bool as_new = n->memory.whole && n->memory.step >= held->step;
        bool reached = !pairs_stood(sim, n->worker, worker, sim->now - settles_in);
        alone = alone && (i == here || !n->alive || (!as_new && !reached));
    }
    return alone;
}

/* Who came too late to be in the last steps may have heard of all. */
static bool another_holds_all(const struct sim *sim)
{
    bool any = false;
    for (int i = 0; i < sim->nodes; i++) {
        const struct node *n = &sim->node[i];
        bool holds = n->alive && n->memory.whole && n->memory.step >= sim->scenario.steps;
        any = any || (holds && !trouble_is_own(sim, i, sim->now));
    }
    return any;
}

/* What one alone can't do stops nobody: enough others are well, and reach each other. After the last step any
 * one of them would do that holds it. Of an interrupted job, or one with too many failures or a step that is
 * not finite, nothing is left to do but to save, for whoever holds its state. */
static bool others_go_on(const struct sim *sim)
{
    bool made = sim->told >= sim->scenario.steps;
    bool not_finite = sim->scenario.nan_step && sim->told >= sim->scenario.nan_step - 1;
    if (sim->interrupted || not_finite || still_ends(sim) || (made && !another_holds_all(sim)) ||
        trouble_holds_alone(sim))
        return false;
    return pairs_well_since(sim, sim->now - settles_in) >= (made ? 1 : sim->scenario.min);
}

static const char said_of_source[] = "it gives something else than was agreed";

/* In a pod's place comes one on another machine. */
bool trouble_is_wrong_source(const struct sim *sim, int node)
{
    const struct scenario *s = &sim->scenario;
    const struct node *n = &sim->node[node];
    bool here = n->worker == s->trouble_worker && (n->attempt == 0 || !s->unsupervised);
    return s->trouble == TROUBLE_SOURCE && here && is_now(sim);
}

void trouble_source_said(struct sim *sim, struct elastic_result *r, int source)
{
    r->outcome = OUTCOME_PEER;
    r->peer = source;
    r->class = sim->plant == PLANT_SOURCE_IS_PAIR ? CLASS_UNKNOWN : CLASS_SOURCE;
    sim->planted += sim->plant == PLANT_SOURCE_IS_PAIR;
    sim->tallies.of[TALLY_GAVE_WRONG]++;
    text_copy(r->text, sizeof r->text, said_of_source);
}

/* Who is reached and answers is no pair's matter, and nobody else is blamed for what it gives. */
void trouble_check_told(struct sim *sim, const struct rdzv_tell *t)
{
    if (t->kind == TELL_FAILED)
        sim->others_well = others_go_on(sim);
    bool out = t->kind == TELL_WORKER_REFUSED || t->kind == TELL_WORKER_QUARANTINED;
    if (!strstr(t->text, said_of_source))
        return;
    if (t->kind == TELL_WORKER_LEFT_OUT || strstr(t->text, "can't reach each other"))
        sim_fail(sim, "worker %d is said not to be reached, and %s", sim->scenario.trouble_worker,
                 said_of_source);
    if (out && t->worker != sim->scenario.trouble_worker)
        sim_fail(sim, "worker %d is left out for what worker %d gives", t->worker,
                 sim->scenario.trouble_worker);
}

void trouble_say(struct sim *sim, struct message *m)
{
    message_init(m, MSG_FAULT);
    m->fault.kind = FAULT_MACHINE;
    m->fault.class = CLASS_MACHINE;
    m->fault.exit_code = 4;
    m->fault.peer = -1;
    m->fault.step = -1;
    text_copy(m->fault.detail, sizeof m->fault.detail, "this machine won't do");
    sim->planted += sim->plant == PLANT_ONE_FOR_ALL;
}

/* ---- the truth ---- */

rm_time trouble_long_known(const struct sim *sim)
{
    return sim->now - known_after;
}

/* Where nobody holds anything, the ring goes on from the newest sound checkpoint; one that has only just been
 * published may not be known yet. */
void trouble_check_form(struct sim *sim, const struct msg_form *f)
{
    bool from_store = f->count && (f->member[0].role == ROLE_LOAD || f->member[0].role == ROLE_INIT);
    const struct published *p = newest_sound(sim, trouble_long_known(sim));
    int64_t from = f->resume.held ? f->resume.step : -1;
    if (from_store && p && p->step > from)
        sim_fail(sim, "a sound checkpoint of step %" PRId64 " is passed over: the ring begins at %" PRId64,
                 p->step, from);
}

void trouble_check_refused(struct sim *sim, const struct rdzv_tell *t)
{
    bool damaged = false;
    for (int i = 0; i < sim->published_count; i++)
        damaged = damaged || (sim->published[i].step == t->step && sim->published[i].damaged);
    if (!damaged)
        sim_fail(sim, "a sound checkpoint of step %" PRId64 " is refused: %s", t->step, t->text);
    if (sim->now > sim->quiet_since && !pairs_wait_for_ever(sim))
        sim->quiet_since = sim->now; /* who is alone takes its time with the next one, too */
}

/* What an agent that stood still publishes after the end comes too late for it. */
bool trouble_all_damaged(const struct sim *sim)
{
    return sim->scenario.damage && !newest_sound(sim, sim->ended_at);
}

/* Whether too few may be left, as one of a run goes for good; whoever was to take its place may stand still.
 */
bool trouble_takes_one(const struct sim *sim)
{
    enum trouble_kind kind = sim->scenario.trouble;
    bool one = kind == TROUBLE_MACHINE_ONE || kind == TROUBLE_STUCK_ONE || kind == TROUBLE_SOURCE;
    return kind == TROUBLE_MACHINE_ALL || (one && !sim->others_well);
}

/* Longer than a run waits for what it alone is needed for. */
static bool lasts_too_long(const struct sim *sim)
{
    rm_time patience = rm_earlier(sim->settings.end_timeout, sim->settings.save_patience);
    return sim->scenario.trouble_until == RM_NEVER ||
           sim->scenario.trouble_until - sim->scenario.trouble_at >= patience;
}

/* Whether 4 is how it has to end. */
bool trouble_ends_it(const struct sim *sim)
{
    const struct scenario *s = &sim->scenario;
    bool for_good = s->trouble_until == RM_NEVER && !s->unsupervised;
    switch (s->trouble) {
    case TROUBLE_READS_ONE: /* as one of no more than min; or as the only one that is left */
    case TROUBLE_DISK_ONE:
    case TROUBLE_STUCK_ONE:
        return for_good && !sim->others_well;
    case TROUBLE_AWAY_ONE:
        return lasts_too_long(sim) && !s->unsupervised && !sim->others_well;
    case TROUBLE_MACHINE_ONE:
        return !s->unsupervised && !sim->others_well;
    case TROUBLE_MACHINE_ALL:
        return true;
    case TROUBLE_READS_ALL:
    case TROUBLE_VANISH:
        return for_good;
    case TROUBLE_SOURCE:
        return !s->unsupervised && strstr(sim->end_why, said_of_source);
    default:
        return false;
    }
}

/* All others went and told why; whether its machine would do nobody knows. */
static bool one_stands_still(const struct sim *sim)
{
    bool any = false;
    for (int i = 0; i < sim->nodes; i++)
        any = any || (sim->node[i].alive && (sim->node[i].trainer.stopped || sim->node[i].trainer.stuck));
    return any;
}

/* Two machines have to see it, where there are two, and to whom its store gives nothing sees nothing. */
static bool damage_is_unproven(const struct sim *sim)
{
    bool well = pairs_well_since(sim, sim->now - settles_in) > 1;
    return sim->scenario.damage && !well && !newest_sound(sim, sim->now);
}

/* In pods what can't be had is waited for without end, and the reason is told. */
bool trouble_may_wait(const struct sim *sim)
{
    const struct scenario *s = &sim->scenario;
    bool told = sim->rdzv && (strstr(rdzv_why(sim->rdzv), "again") || strstr(rdzv_why(sim->rdzv), "waits") ||
                              strstr(rdzv_why(sim->rdzv), "can't"));
    bool for_good = s->trouble && s->trouble_until == RM_NEVER &&
                    (!is_of_one(s->trouble) || !others_go_on(sim) || damage_is_unproven(sim));
    told = told || (sim->rdzv && rdzv_state(sim->rdzv) == RDZV_SAVING && sim->tallies.of[TALLY_WAITED]);
    told = told || (s->trouble == TROUBLE_STUCK_ONE && sim->stuck_told);
    told = told || (s->trouble == TROUBLE_VANISH && sim->vanished_told);
    bool refused = s->trouble == TROUBLE_MACHINE_ALL && sim->refused_told && one_stands_still(sim);
    return s->unsupervised && (refused || (told && (sim->store_full || for_good)));
}
