/* Workers that fail at something: how often, since when, and what the table of faults says about it. */
#include "coordinator/core/rdzv_trouble.h"

#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "coordinator/core/rdzv_bridge.h"
#include "coordinator/core/rdzv_fault.h"
#include "coordinator/core/rdzv_states.h"
#include "coordinator/core/rdzv_who.h"

static bool is_written(enum fault_where where)
{
    RM_ASSERT((unsigned)where < FAULT_PLACES, "what one fails at has place %d", (int)where);
    return where == FAULT_IN_SAVE || where == FAULT_IN_SLICE;
}

static const struct rdzv_trouble *trouble_of(const struct rdzv_worker *w, enum fault_where where)
{
    RM_ASSERT(!w->trouble.times || !is_written(w->trouble.where), "place %d is noted as no write",
              (int)w->trouble.where);
    return is_written(where) ? &w->writing : &w->trouble;
}

static struct rdzv_trouble *trouble_to_note(struct rdzv_worker *w, enum fault_where where)
{
    RM_ASSERT(!w->writing.times || is_written(w->writing.where), "place %d is noted as a write",
              (int)w->writing.where);
    return is_written(where) ? &w->writing : &w->trouble;
}

void rdzv_trouble_over(struct rdzv_worker *w, enum fault_where where)
{
    struct rdzv_trouble *t = trouble_to_note(w, where);
    if (t->where == where)
        t->times = 0;
}

/* Who made a step can do its work, though not what another folder keeps it from; and whoever says something
 * from now on says it anew. */
void rdzv_trouble_step(struct rdzv *st)
{
    RM_ASSERT(st->state == RDZV_TRAINING, "step %lld is made in state %s", (long long)st->known_step,
              rdzv_state_name(st->state));
    st->steps_seen++;
    for (int r = 0; r < st->world; r++) {
        struct rdzv_worker *w = &st->worker[st->member[r]];
        if (!rdzv_sees_another_folder(st, w))
            w->trouble.times = 0;
    }
}

/* ---- what is known ---- */

static bool is_there(const struct rdzv_worker *w)
{
    bool there = w->presence != ABSENT || w->expected >= 0;
    return there && !w->leaving && !w->released && !w->quarantine[0];
}

static bool is_in_trouble(const struct rdzv_worker *w, enum fault_where where)
{
    const struct rdzv_trouble *t = trouble_of(w, where);
    return t->times > 0 && t->where == where;
}

/* Only those count who tried since the trouble began, and at what can't be older: what was written before
 * says nothing of a store that may be away from all by now. Whose own part of a step does not get written,
 * while all others wrote theirs, holds them up: nobody writes anything newer then. */
static bool others_write(const struct rdzv *st, const struct rdzv_worker *but)
{
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        const struct rdzv_trouble *t = &but->writing;
        bool since = w->sliced_at >= t->since || (t->stuck && but->sliced < t->at_step);
        if (w != but && w->presence != ABSENT && since && w->sliced >= t->at_step)
            return true;
    }
    return false;
}

/* Whoever has not tried yet may fail as well: it is in no trouble, and shows nothing. */
static bool has_shown(const struct rdzv *st, const struct rdzv_worker *w, const struct rdzv_worker *but,
                      enum fault_where where)
{
    RM_ASSERT((unsigned)where < FAULT_PLACES, "worker %d shows that it can at place %d",
              (int)(w - st->worker), (int)where);
    if (where == FAULT_IN_LIST)
        return w->listed_at > but->trouble.before;
    bool trains = st->state == RDZV_TRAINING && w->rank >= 0;
    return where != FAULT_IN_LOAD || w->loads > 1 || trains;
}

/* Where one worker alone will do, as for a slice, or the job's least number has to. shown: nobody counts
 * whose store may be as far away. */
static bool others_can(const struct rdzv *st, const struct rdzv_worker *but, enum fault_where where,
                       bool shown)
{
    RM_ASSERT((unsigned)where < FAULT_PLACES, "others than worker %d, at place %d", (int)(but - st->worker),
              (int)where);
    if (where == FAULT_IN_SLICE && !others_write(st, but))
        return false;
    int n = 0, least = where == FAULT_IN_SAVE ? 1 : st->settings.workers_min;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        bool here = w->presence == PRESENT && w->trainer_pid && is_there(w);
        bool able = where != FAULT_IN_SAVE || rdzv_holds_what_is_saved(st, w);
        able = able && (!shown || has_shown(st, w, but, where));
        n += w != but && here && able && !is_in_trouble(w, where);
    }
    return n >= least;
}

static bool says(const struct rdzv *st, const struct rdzv_worker *w, const struct rdzv_trouble *what)
{
    const struct rdzv_trouble *t = trouble_of(w, what->where);
    return t->said && t->step == st->steps_seen && t->where == what->where && !strcmp(t->why, what->why);
}

/* `min` workers of the job, at least two; or all that there are, of which each may have said it in several
 * processes. One process alone is never all, unless it is all that a run has: in pods another one comes,
 * elsewhere. */
static bool all_say_so(const struct rdzv *st, const struct rdzv_trouble *what)
{
    RM_ASSERT(what->said > 0, "all say what nobody says, of place %d", (int)what->where);
    int workers = 0, processes = 0, silent = 0;
    int least = st->settings.workers_min > 2 ? st->settings.workers_min : 2;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        bool same = says(st, w, what);
        workers += same;
        processes += same ? trouble_of(w, what->where)->said : 0;
        silent += is_there(w) && !same;
    }
    return workers >= least || (!silent && (processes >= least || !st->settings.unsupervised));
}

static void note_trouble(const struct turn *turn, struct rdzv_worker *w, enum fault_where where,
                         const struct msg_fault *f)
{
    struct rdzv *st = turn->st;
    struct rdzv_trouble *t = trouble_to_note(w, where);
    bool first = !t->times || t->where != where;
    char why[sizeof t->why];
    text_copy_ends(why, sizeof why, f->detail);
    bool same = t->said && t->step == st->steps_seen && !strcmp(t->why, why);
    t->said = same ? t->said + (t->attempt != w->attempt) : 1;
    t->attempt = w->attempt;
    t->since = first || turn->now - f->lasted < t->since ? turn->now - f->lasted : t->since;
    t->before = first ? turn->now : t->newest;
    t->newest = turn->now;
    t->alone = first ? RM_NEVER : t->alone;
    t->times = first ? 1 : t->times + 1;
    RM_ASSERT(t->since <= t->newest && t->before <= t->newest,
              "worker %d fails since %lld, before at %lld, now at %lld", (int)(w - st->worker),
              (long long)t->since, (long long)t->before, (long long)t->newest);
    t->where = where;
    t->differs = false;
    t->stuck = f->lasted > 0;
    t->class = f->class;
    t->person = f->person;
    t->step = st->steps_seen;
    t->at_step = f->step;
    memcpy(t->why, why, sizeof why);
}

/* Its own part of each checkpoint does not get written while others write theirs, and they are too few to go
 * on without it. */
static bool is_scarce(const struct rdzv *st, const struct rdzv_worker *w, enum fault_where where)
{
    RM_ASSERT(is_in_trouble(w, where), "worker %d is in no trouble, at place %d", (int)(w - st->worker),
              (int)where);
    return where == FAULT_IN_SLICE && others_write(st, w) && !others_can(st, w, where, false);
}

/* How long it has been in trouble; while others can, how long it alone has: an outage of all is over for each
 * in its own time. */
static rm_time lasted(const struct rdzv *st, struct rdzv_worker *w, struct rdzv_trouble *t, bool able,
                      rm_time now)
{
    bool scarce = is_scarce(st, w, t->where), alone = scarce || (able && others_can(st, w, t->where, true));
    rm_time from = t->stuck ? t->since : now; /* the call that has not returned since is the same one */
    t->alone = !alone ? RM_NEVER : t->alone < from ? t->alone : from;
    RM_ASSERT(t->since <= now && (!alone || t->alone <= now), "trouble since %lld, alone since %lld, at %lld",
              (long long)t->since, (long long)t->alone, (long long)now);
    if ((!able && !scarce) || t->where == FAULT_IN_WORK || t->where == FAULT_IN_SAVE)
        return now - t->since;
    return alone ? now - t->alone : 0;
}

/* Under this coordinator or one before it: its program has been accepted then, and one that is refused now,
 * as for a start that took long, says nothing of the next. */
static bool has_trained(const struct rdzv *st)
{
    bool held = false;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        held = held || (w->presence != ABSENT && w->state.held && w->state.step > 0);
    }
    return st->steps_seen || st->told > 0 || held;
}

struct fault_decision rdzv_trouble(const struct turn *turn, struct rdzv_worker *w, enum fault_where where,
                                   const struct msg_fault *f, bool proven)
{
    struct rdzv *st = turn->st;
    struct rdzv_trouble *t = trouble_to_note(w, where);
    note_trouble(turn, w, where, f);
    bool data = f->kind == FAULT_DATA && f->class == CLASS_UNKNOWN;
    bool refused = st->settings.brought && where == FAULT_IN_WORK && f->exit_code == EXIT_USAGE;
    bool store = where == FAULT_IN_SAVE, able = others_can(st, w, where, false);
    struct fault_facts facts = {.where = where,
                                .class = f->class,
                                .person = f->person || data,
                                .first = !st->settings.unsupervised && !st->settings.predecessor.given &&
                                         !st->steps_seen,
                                .unsupervised = st->settings.unsupervised,
                                .others_can = able,
                                .scarce = is_scarce(st, w, where),
                                .all_say_so = all_say_so(st, t),
                                .proven = proven,
                                .refused = refused && !has_trained(st),
                                .times = t->times,
                                .lasted = lasted(st, w, t, able, turn->now),
                                .patience = store ? st->settings.save_patience : st->settings.end_timeout,
                                .exit_code = f->exit_code            ? f->exit_code
                                             : f->kind == FAULT_DATA ? EXIT_DATA
                                                                     : 0};
    struct fault_decision d = fault_decide(&facts);
    bool waits = (d.remedy == FAULT_WAITS && where != FAULT_IN_SLICE) ||
                 (d.remedy == FAULT_ANOTHER && where != FAULT_IN_LOAD);
    t->until = waits ? turn->now + d.pause : turn->now;
    RM_ASSERT(t->until >= turn->now && t->times > 0, "%d failures, and a pause until %lld of %lld", t->times,
              (long long)t->until, (long long)turn->now);
    return d;
}

/* ---- slices that are written while training goes on ---- */

void rdzv_slice_is_in(struct rdzv *st, struct rdzv_worker *w, int64_t step, bool anew)
{
    w->sliced = step;
    if (anew && st->state != RDZV_RECOVERING)
        w->sliced_at = st->accounted;
}

void rdzv_write_is_over(struct rdzv_worker *w, int64_t step)
{
    if (step < w->writing.at_step)
        return; /* said once more, after a reconnect */
    rdzv_trouble_over(w, FAULT_IN_SAVE);
    rdzv_trouble_over(w, FAULT_IN_SLICE);
}

/* The job goes on from `step`: whatever is written now is newer than a write that failed at a later one. */
void rdzv_writes_go_back(struct rdzv *st, int64_t step)
{
    RM_ASSERT(step >= 0, "the job goes back to step %lld", (long long)step);
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_trouble *t = &st->worker[i].writing;
        if (t->times && t->at_step > step)
            t->at_step = step;
    }
}

/* ---- waiting for those in trouble ---- */

/* With them there would be enough: no other time runs out meanwhile. */
bool rdzv_waits_for_trouble(const struct rdzv *st)
{
    int n = 0, held = 0;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        bool held_back = w->trouble.times > 0 || is_in_trouble(w, FAULT_IN_SAVE);
        bool back = w->presence != ABSENT && is_there(w) && held_back;
        held += back;
        n += back || rdzv_candidate(st, w);
    }
    return held && n >= st->settings.workers_min;
}

static rm_time pause_until(const struct rdzv *st, const struct rdzv_trouble *t)
{
    RM_ASSERT(t->until >= 0, "a pause until %lld ns", (long long)t->until);
    return rdzv_trouble_pauses(st, t) ? t->until : RM_NEVER;
}

rm_time rdzv_trouble_at(const struct rdzv *st)
{
    rm_time at = RM_NEVER;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        if (w->presence == PRESENT)
            at = rm_earlier(at, rm_earlier(pause_until(st, &w->trouble), pause_until(st, &w->writing)));
    }
    return at;
}

/* A damaged checkpoint, or one of other software, is no matter of the store. */
static bool is_of_the_store(const struct rdzv_trouble *t)
{
    RM_ASSERT((unsigned)t->where < FAULT_PLACES, "%d failures at place %d", t->times, (int)t->where);
    bool reads = t->where == FAULT_IN_LIST || t->where == FAULT_IN_LOAD;
    return t->times > 0 && reads && !t->differs && t->class != CLASS_OBJECT && t->class != CLASS_SOFTWARE;
}

const struct rdzv_trouble *rdzv_store_trouble(const struct rdzv *st, rm_time now)
{
    const struct rdzv_trouble *newest = NULL;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        const struct rdzv_trouble *t = &w->trouble;
        if (!is_there(w) || !is_of_the_store(t) || now - t->since < FAULT_PATIENCE ||
            others_can(st, w, t->where, false))
            continue;
        if (!newest || t->newest > newest->newest)
            newest = t;
    }
    RM_ASSERT(!newest || newest->times > 0, "a store is away by %d failures", newest ? newest->times : 0);
    return newest;
}

int rdzv_describe_trouble(const struct rdzv *st, int worker, char *out, size_t size)
{
    const struct rdzv_worker *w = &st->worker[worker];
    const struct rdzv_trouble *t = w->trouble.times ? &w->trouble : &w->writing;
    RM_ASSERT((unsigned)t->where < FAULT_PLACES, "worker %d fails at place %d", worker, (int)t->where);
    static const char *const does[FAULT_PLACES] = {"list the checkpoints", "load the checkpoint",
                                                   "save its part", "save its part", "work"};
    if (w->presence == ABSENT || !t->times)
        return 0;
    char cause[151];
    return snprintf(out, size, "; worker %d can't %s, and tries again: %s", worker, does[t->where],
                    text_copy_ends(cause, sizeof cause, t->why));
}
