/* Workers that live and are well but can't reach each other: neither is to blame, and no failure is counted.
 *
 * What a pair can do only a step shows: there are walls that let a handshake through, and stop what follows.
 * So a ring has come to nothing while it forms, and also after `go`, before its first step. One that comes to
 * nothing names a pair, and so does one that breaks later. Named by two without a step of both between them,
 * the two count as apart, and the next ring is the largest that holds no such pair (clique.h). Who is left
 * out comes back by rdzv_probe.c. Where too few would be left, the pair that was seen apart longest ago is
 * tried again, and so one after the other, with a growing pause before each round, until startTimeout is
 * over; in pods, where a person or the network may mend it, without end. Neither such tries nor rings that
 * show that two are apart count as rings in vain (rdzv_gather.c). */
#include "coordinator/core/rdzv_pairs.h"

#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "coordinator/core/clique.h"
#include "coordinator/core/rdzv_base.h"
#include "coordinator/core/rdzv_bridge.h"
#include "coordinator/core/rdzv_states.h"
#include "coordinator/core/rdzv_who.h"

enum { RINGS_RUNNING = 2, RINGS_OVERRULED = 2, PAIRS_NAMED = 3, TRIED_AGAIN = 64 };

/* How much a word about two says, beside others of the same break. */
enum { WORD, WORD_EXPECTED, WORD_OF_BOTH };

static const rm_time first_pause = RM_S, longest_pause = 30 * RM_S;

bool rdzv_pairs_are_apart(const struct rdzv *st, int a, int b)
{
    RM_ASSERT(set_has(st->pairs.apart[a], b) == set_has(st->pairs.apart[b], a),
              "worker %d can't reach worker %d, which can reach it", a, b);
    return set_has(st->pairs.apart[a], b);
}

static struct worker_set members(const struct rdzv *st)
{
    struct worker_set set = {0};
    for (int r = 0; r < st->world; r++)
        set_add(&set, st->member[r]);
    RM_ASSERT(set_count(set) == st->world, "a ring of %d has %d workers", st->world, set_count(set));
    return set;
}

struct worker_set rdzv_pairs_in_ring(const struct rdzv *st, int worker)
{
    struct worker_set set = set_common(st->pairs.apart[worker], members(st));
    RM_ASSERT(!set_has(set, worker), "worker %d can't reach itself", worker);
    return set;
}

bool rdzv_pairs_bar(const struct rdzv *st, int worker)
{
    RM_ASSERT(worker >= 0 && worker < RM_WORKERS_MAX, "worker %d may not join", worker);
    return st->worker[worker].rank < 0 && !set_is_empty(rdzv_pairs_in_ring(st, worker));
}

/* Each is in the other's set, or is not. */
static void mark_pair(struct worker_set *sets, int a, int b, bool on)
{
    RM_ASSERT(a != b || !on, "worker %d is a pair with itself", a);
    (on ? set_add : set_remove)(&sets[a], b);
    (on ? set_add : set_remove)(&sets[b], a);
}

bool rdzv_pairs_answer_only(const struct rdzv *st, int worker)
{
    RM_ASSERT(worker >= 0 && worker < RM_WORKERS_MAX, "worker %d only answers", worker);
    return set_meets(st->pairs.answer_only[worker], rdzv_pairs_in_ring(st, worker));
}

/* Of two of whom no more than that is known since they were last answered it says little: named once more,
 * they are apart again. */
void rdzv_pairs_answered(struct rdzv *st, int a, int b)
{
    RM_ASSERT(a != b, "worker %d answers itself", a);
    if (!rdzv_pairs_are_apart(st, a, b))
        return; /* it was asked as a neighbour to be */
    bool only = set_has(st->pairs.answer_only[a], b);
    mark_pair(st->pairs.apart, a, b, false);
    mark_pair(st->pairs.answer_only, a, b, true);
    st->pairs.named[a][b] = st->pairs.named[b][a] = only ? RINGS_RUNNING - 1 : 0;
}

static void together(struct rdzv *st, int a, int b)
{
    RM_ASSERT(a != b, "worker %d makes a step with itself", a);
    mark_pair(st->pairs.apart, a, b, false);
    mark_pair(st->pairs.answer_only, a, b, false);
    st->pairs.named[a][b] = st->pairs.named[b][a] = 0;
}

/* What was seen of the process before it says little of this one. */
void rdzv_pairs_another_process(struct rdzv *st, int worker)
{
    RM_ASSERT(worker >= 0 && worker < RM_WORKERS_MAX, "another process of worker %d", worker);
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        mark_pair(st->pairs.answer_only, worker, i, false);
        if (!rdzv_pairs_are_apart(st, worker, i))
            st->pairs.named[worker][i] = st->pairs.named[i][worker] = 0;
    }
}

/* ---- a ring that came to nothing ---- */

void rdzv_pairs_in_vain(struct rdzv *st)
{
    st->pairs.in_vain = !st->pairs.stepped;
}

static void name_pair(struct rdzv *st, int by, int peer, const char *why)
{
    RM_ASSERT(by != peer && by >= 0 && by < RM_WORKERS_MAX && peer >= 0 && peer < RM_WORKERS_MAX,
              "worker %d names worker %d", by, peer);
    struct rdzv_named *n = &st->pairs.newest;
    *n = (struct rdzv_named){.set = true, .by = by, .peer = peer};
    n->by_pid = st->worker[by].trainer_pid;
    n->peer_pid = st->worker[peer].trainer_pid;
    n->by_incarnation = st->worker[by].incarnation;
    n->peer_incarnation = st->worker[peer].incarnation;
    text_copy_ends(n->why, sizeof n->why, rdzv_reason(why));
}

static bool is_named(const struct rdzv_named *n, int a, int b)
{
    return n->set && ((n->by == a && n->peer == b) || (n->by == b && n->peer == a));
}

static bool is_overruled(const struct rdzv_overruled *o, int a, int b)
{
    RM_ASSERT(a != b, "worker %d and itself", a);
    return o->rings > 0 && ((o->a == a && o->b == b) || (o->a == b && o->b == a));
}

/* What was known may have mended, and another way be bad by now, by which those two are only the next to
 * break. */
static void overrule(struct rdzv_pairs *p)
{
    int a = p->newest.by, b = p->newest.peer;
    RM_ASSERT(p->newest.set && a != b, "nobody is overruled, or worker %d by itself", a);
    int rings = is_overruled(&p->overruled, a, b) ? p->overruled.rings : 0;
    p->overruled = (struct rdzv_overruled){a, b, rings + 1};
}

/* Of two that are known to be apart, and are tried together, it is what was to be expected; and so it is of
 * two that were named first again and again. Where a connection ends, both its ends say so, and each names
 * the other: that shows it. */
static int weight_of(const struct rdzv_pairs *p, int by, int peer)
{
    RM_ASSERT(by != peer && by >= 0 && peer >= 0, "worker %d names worker %d", by, peer);
    if (set_has(p->words[peer], by))
        return WORD_OF_BOTH;
    bool again = is_overruled(&p->overruled, by, peer) && p->overruled.rings >= RINGS_OVERRULED;
    return again || set_has(p->apart[by], peer) ? WORD_EXPECTED : WORD;
}

/* Of words that weigh the same the first counts, as what follows it may follow from it: whoever closes a
 * broken ring breaks it for another neighbour. */
void rdzv_pairs_fault(struct rdzv *st, const struct rdzv_worker *w, const struct msg_fault *f)
{
    RM_ASSERT(f->peer < RM_WORKERS_MAX, "worker %d names worker %d", rdzv_index(st, w), f->peer);
    struct rdzv_pairs *p = &st->pairs;
    int by = rdzv_index(st, w), peer = f->peer;
    if (rdzv_stops_now(st) && !p->broke)
        return; /* it was stopped for another reason, and ends by that */
    if (!rdzv_stops_now(st))
        rdzv_pairs_in_vain(st);
    if (f->kind == FAULT_LINEAGE)
        return; /* of what is held, and of no connection */
    p->broke = true;
    if (peer < 0 || peer == by)
        return;
    set_add(&p->words[by], peer);
    int weight = weight_of(p, by, peer);
    if (p->newest.set && weight <= p->weight)
        return;
    if (p->newest.set && weight == WORD_EXPECTED)
        overrule(p);
    p->weight = weight;
    if (!is_named(&p->newest, by, peer))
        name_pair(st, by, peer, f->detail);
}

void rdzv_pairs_stall(struct rdzv *st, int by, int peer, const char *why)
{
    RM_ASSERT(rdzv_ring_runs(st), "worker %d waits for worker %d in state %s", by, peer,
              rdzv_state_name(st->state));
    rdzv_pairs_in_vain(st);
    st->pairs.broke = true;
    st->pairs.weight = WORD_OF_BOTH; /* nobody knows better */
    name_pair(st, by, peer, why);
}

/* Both are well: they answered the stop, with the trainers that they had. */
static bool is_about_two_that_live(const struct rdzv *st, const struct rdzv_named *n)
{
    RM_ASSERT(n->set && n->by != n->peer, "nobody is named, or worker %d by itself", n->by);
    const struct rdzv_worker *by = &st->worker[n->by], *peer = &st->worker[n->peer];
    return rdzv_usable(st, by) && rdzv_usable(st, peer) && by->trainer_pid == n->by_pid &&
           peer->trainer_pid == n->peer_pid && by->incarnation == n->by_incarnation &&
           peer->incarnation == n->peer_incarnation;
}

/* True: that two are apart is news, and no answer in vain. */
static bool count_pair(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    struct rdzv_pairs *p = &st->pairs;
    struct rdzv_named n = p->newest;
    p->newest.set = false;
    if (!n.set || !is_about_two_that_live(st, &n))
        return false;
    p->blamed[n.peer]++;
    text_copy(p->why, sizeof p->why, n.why);
    p->seen[n.by][n.peer] = p->seen[n.peer][n.by] = ++p->namings;
    p->named[n.peer][n.by] = ++p->named[n.by][n.peer];
    if (p->named[n.by][n.peer] < RINGS_RUNNING)
        return false;
    bool answers = set_has(p->answer_only[n.by], n.peer), known = answers || set_has(p->apart[n.by], n.peer);
    p->named[n.by][n.peer] = p->named[n.peer][n.by] = RINGS_RUNNING;
    mark_pair(p->apart, n.by, n.peer, true);
    mark_pair(p->answer_only, n.by, n.peer, p->went || answers);
    RM_ASSERT(rdzv_pairs_are_apart(st, n.by, n.peer), "workers %d and %d are not apart", n.by, n.peer);
    return !known;
}

/* Whether it has answered a stop or not: who is late with that makes no other roster. */
static bool is_on_roster(const struct rdzv_worker *w)
{
    return w->presence == PRESENT && w->trainer_pid && !w->leaving && !w->released;
}

static struct worker_set roster(const struct rdzv *st)
{
    struct worker_set set = {0};
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        if (is_on_roster(&st->worker[i]))
            set_add(&set, i);
    return set;
}

static rm_time pause_after(int formings)
{
    RM_ASSERT(formings >= 0, "a pause after %d rings in vain", formings);
    if (formings < RINGS_RUNNING)
        return 0; /* the first repetition is at once: most of what breaks a ring is over by then */
    return rm_backoff(first_pause, longest_pause, formings - RINGS_RUNNING);
}

static int count_pairs_apart(const struct rdzv *st, struct worker_set among)
{
    int count = 0;
    for (int i = set_first(among); i >= 0; i = set_next(among, i))
        count += set_count(set_common(st->pairs.apart[i], among));
    RM_ASSERT(count % 2 == 0, "%d workers can't reach one of those who are there", count);
    return count / 2;
}

/* Where too few reach each other each try is of other pairs: all that are apart have theirs one after the
 * other before a pause, which else would grow by every pair. A ring may hold them all. */
static void count_in_vain(const struct turn *turn)
{
    struct rdzv_pairs *p = &turn->st->pairs;
    int pairs = count_pairs_apart(turn->st, roster(turn->st));
    bool all_at_once = count_pairs_apart(turn->st, members(turn->st)) >= pairs;
    p->tries++;
    if (!p->too_few || all_at_once || p->tries >= pairs) {
        p->tries = 0;
        p->formings++;
    }
    p->again_at = turn->now + pause_after(p->formings);
    RM_ASSERT(p->again_at >= turn->now && p->tries >= 0, "after %d tries the next ring is %lld ns ago",
              p->tries, (long long)(turn->now - p->again_at));
}

/* A ring shows of the pair that breaks it that it is apart, and nothing of others. It is the last try of all
 * its pairs where it breaks at one that has had its own: no ring of enough could do without that one. */
static void count_last_try(struct rdzv *st)
{
    RM_ASSERT(st->pairs.last_tries > 0, "the last of %d tries", st->pairs.last_tries);
    struct rdzv_pairs *p = &st->pairs;
    const struct rdzv_named *n = &p->newest;
    if (n->set && !set_has(p->tried_last[n->by], n->peer)) {
        mark_pair(p->tried_last, n->by, n->peer, true);
        return;
    }
    for (int r = 0; r < st->world; r++)
        p->tried_last[st->member[r]] = set_union(p->tried_last[st->member[r]], members(st));
}

bool rdzv_pairs_stopped(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->state == RDZV_QUIESCING, "a ring came to nothing in state %s", rdzv_state_name(st->state));
    struct rdzv_pairs *p = &st->pairs;
    if (p->in_vain && p->broke && p->last_tries) /* what stopped it otherwise shows nothing of its pairs */
        count_last_try(st);
    bool learned = count_pair(turn);
    if (p->in_vain)
        count_in_vain(turn);
    p->in_vain = p->broke = false;
    return learned;
}

/* ---- who forms ---- */

static struct worker_set candidates(const struct rdzv *st)
{
    struct worker_set set = {0};
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        if (rdzv_candidate(st, &st->worker[i]))
            set_add(&set, i);
    return set;
}

static struct worker_set holders(const struct rdzv *st, const struct msg_state *state)
{
    struct worker_set set = {0};
    for (int i = 0; i < RM_WORKERS_MAX && state->held; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        if (rdzv_usable(st, w) && msg_state_equal(&w->state, state))
            set_add(&set, i);
    }
    return set;
}

static bool is_divided(const struct rdzv *st, struct worker_set set)
{
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        if (set_has(set, i) && set_meets(st->pairs.apart[i], set))
            return true;
    return false;
}

static struct worker_set largest(const struct rdzv *st, const struct worker_set *apart,
                                 struct worker_set among, struct worker_set dear)
{
    struct clique_question q = {among, dear, apart, st->pairs.blamed};
    return clique_find(&q);
}

/* Whether somebody can give them the state. */
static bool are_served(const struct worker_set *apart, struct worker_set set, struct worker_set holding)
{
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        if (set_has(holding, i) && !set_meets(apart[i], set))
            return true;
    return set_is_empty(holding);
}

/* Those who reach one of the holders, and each other. */
static struct worker_set largest_served(const struct rdzv *st, const struct worker_set *apart,
                                        struct worker_set among, struct worker_set holding)
{
    struct worker_set best = {0};
    for (int i = set_first(holding); i >= 0; i = set_next(holding, i)) {
        struct worker_set set = largest(st, apart, set_minus(among, apart[i]), holding);
        best = set_count(set) > set_count(best) ? set : best;
    }
    RM_ASSERT(set_is_empty(set_minus(best, among)), "%d are served that may not form",
              set_count(set_minus(best, among)));
    return best;
}

/* What the next ring is chosen from. */
struct question {
    struct worker_set all, holding; /* candidates; who can give the newest state */
    int fewest;
};

/* Best is a ring of those who get the state from one of its holders; else one that goes on from the store
 * without them. */
static struct worker_set divide(const struct rdzv *st, const struct worker_set *apart,
                                const struct question *q, bool *ret_stranded)
{
    RM_ASSERT(q->fewest >= 1, "a ring of %d at least", q->fewest);
    struct worker_set set = largest(st, apart, q->all, q->holding);
    *ret_stranded = false;
    if (are_served(apart, set, q->holding))
        return set;
    struct worker_set served = largest_served(st, apart, q->all, q->holding);
    *ret_stranded = set_count(served) < q->fewest && set_count(set) >= q->fewest;
    RM_ASSERT(set_is_empty(set_minus(set_union(served, set), q->all)),
              "%d of %d are chosen that are not here", set_count(set_minus(set_union(served, set), q->all)),
              set_count(q->all));
    return *ret_stranded ? set : served;
}

struct pair {
    int a, b; /* -1: there is none */
};

/* Of those in `all` that are apart the pair that was seen so first, or last. */
static struct pair find_pair(const struct rdzv *st, const struct worker_set *apart, struct worker_set all,
                             bool newest)
{
    struct pair found = {-1, -1};
    for (int a = set_first(all); a >= 0; a = set_next(all, a)) {
        struct worker_set others = set_common(apart[a], all);
        for (int b = set_first(others); b >= 0; b = set_next(others, b)) {
            int seen = st->pairs.seen[a][b], than = found.a < 0 ? 0 : st->pairs.seen[found.a][found.b];
            if (found.a < 0 || (newest ? seen > than : seen < than))
                found = (struct pair){a, b};
        }
    }
    RM_ASSERT(found.a < 0 || found.a != found.b, "worker %d is apart from itself", found.a);
    return found;
}

/* It counts as apart no more. */
static void forget_pair(struct worker_set *apart, struct pair pair)
{
    RM_ASSERT(pair.a >= 0 && pair.a != pair.b, "workers %d and %d are no pair", pair.a, pair.b);
    mark_pair(apart, pair.a, pair.b, false);
}

/* Too few reach each other, as far as is known: what was seen longest ago is tried again, which shows whether
 * it is still so. Of the last tries each is of pairs that have not had theirs, as long as there are such. */
static struct worker_set try_again(const struct rdzv *st, const struct question *q, bool *ret_stranded)
{
    RM_ASSERT(q->fewest >= 1 && set_count(q->all) >= q->fewest, "%d are tried, of %d that are needed",
              set_count(q->all), q->fewest);
    const struct rdzv_pairs *p = &st->pairs;
    struct worker_set apart[RM_WORKERS_MAX], untried[RM_WORKERS_MAX], set;
    memcpy(apart, p->apart, sizeof apart);
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        untried[i] = p->last_tries ? set_minus(apart[i], p->tried_last[i]) : apart[i];
    for (int i = 0; i < TRIED_AGAIN; i++) {
        struct pair oldest = find_pair(st, untried, q->all, false);
        if (oldest.a < 0)
            oldest = find_pair(st, apart, q->all, false);
        if (oldest.a < 0)
            break;
        forget_pair(untried, oldest);
        forget_pair(apart, oldest);
        set = divide(st, apart, q, ret_stranded);
        if (set_count(set) >= q->fewest)
            return set;
    }
    return q->all;
}

static void count_time_stuck(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    struct rdzv_pairs *p = &st->pairs;
    if (p->too_few && p->stuck_since == RM_NEVER)
        p->stuck_since = turn->now;
    if (p->too_few)
        return;
    p->stuck_since = RM_NEVER;
    p->last_tries = 0;
    RM_ASSERT(!p->too_few && !p->last_tries, "enough reach each other, and %d last tries are made",
              p->last_tries);
}

/* Where nobody is apart that is everybody, as ever. */
void rdzv_pairs_choose(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    struct rdzv_pairs *p = &st->pairs;
    bool stranded = false;
    p->stranded = (struct worker_set){0};
    p->too_few = false;
    struct msg_state best = rdzv_best_state(st);
    bool unsaved = best.held && best.step > 0 && best.step > st->saved;
    bool all_done = best.held && best.step >= st->settings.steps;
    struct question q = {candidates(st), holders(st, &best), all_done ? 1 : st->settings.workers_min};
    p->members = q.all;
    if (set_count(q.all) >= q.fewest && is_divided(st, set_union(q.all, q.holding))) {
        p->members = divide(st, p->apart, &q, &stranded);
        p->too_few = set_count(p->members) < q.fewest;
        if (p->too_few)
            p->members = try_again(st, &q, &stranded);
    }
    p->save_first = unsaved && (stranded || p->too_few);
    p->stranded = stranded && !unsaved ? q.holding : (struct worker_set){0};
    RM_ASSERT(set_is_empty(set_minus(p->members, q.all)), "%d members of the next ring are no candidates",
              set_count(set_minus(p->members, q.all)));
    count_time_stuck(turn);
}

/* Who has gone is not what it lacked. */
static bool has_newcomer(const struct rdzv *st)
{
    const struct rdzv_pairs *p = &st->pairs;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        bool known = p->roster[i].pid == w->trainer_pid && p->roster[i].incarnation == w->incarnation;
        if (is_on_roster(w) && !known)
            return true;
    }
    return false;
}

/* Whether it is what came to nothing, once more. */
static bool is_repetition(const struct rdzv *st)
{
    const struct rdzv_pairs *p = &st->pairs;
    return !has_newcomer(st) && (p->too_few || set_equals(p->members, p->formed));
}

rm_time rdzv_pairs_give_up_at(const struct rdzv *st)
{
    bool for_ever = st->settings.unsupervised || st->pairs.stuck_since == RM_NEVER;
    return for_ever ? RM_NEVER : st->pairs.stuck_since + st->settings.start_timeout;
}

/* Whoever has come since may be what it lacked: then there is no pause. Nor is there one between the tries of
 * a round, or the last ones, unless somebody has yet to answer a stop who could be in one. */
rm_time rdzv_pairs_form_at(const struct rdzv *st)
{
    const struct rdzv_pairs *p = &st->pairs;
    bool tries = p->too_few && set_equals(roster(st), candidates(st));
    if (!is_repetition(st) || (tries && p->tries))
        return 0;
    rm_time last = tries ? rdzv_pairs_give_up_at(st) : RM_NEVER;
    return p->again_at < last ? p->again_at : last;
}

/* Not before each pair was tried once more, those of who is late with an answer included: its way may have
 * been free since the time before. */
static bool is_over(const struct rdzv *st, rm_time now)
{
    const struct rdzv_pairs *p = &st->pairs;
    rm_time over = rdzv_pairs_give_up_at(st);
    if (now < over || !p->last_tries || !p->too_few)
        return false;
    struct worker_set all = roster(st);
    bool any_left = false;
    for (int i = set_first(all); i >= 0; i = set_next(all, i))
        any_left = any_left || set_meets(p->apart[i], set_minus(all, p->tried_last[i]));
    return !any_left || p->last_tries >= TRIED_AGAIN;
}

bool rdzv_pairs_hold_back(const struct rdzv *st, rm_time now)
{
    return st->pairs.save_first || is_over(st, now) || now < rdzv_pairs_form_at(st);
}

/* ---- in words ---- */

/* "workers 0 and 2, workers 1 and 2 can't reach each other (connect to ...": those last that were last seen
 * so long ago that they may reach each other by now. */
static void describe_pairs(const struct rdzv *st, char *out, size_t size)
{
    struct worker_set apart[RM_WORKERS_MAX], set = candidates(st);
    int n = 0, pairs = 0;
    memcpy(apart, st->pairs.apart, sizeof apart);
    for (struct pair pair; (pair = find_pair(st, apart, set, true)).a >= 0; pairs++) {
        forget_pair(apart, pair);
        if (pairs < PAIRS_NAMED)
            n +=
                snprintf(out + n, size - (size_t)n, "%sworkers %d and %d", pairs ? ", " : "", pair.a, pair.b);
    }
    if (pairs > PAIRS_NAMED)
        n += snprintf(out + n, size - (size_t)n, " and %d more pairs", pairs - PAIRS_NAMED);
    RM_ASSERT(n >= 0 && (size_t)n < size, "%d pairs in %d of %zu bytes", pairs, n, size);
    char cause[151];
    snprintf(out + n, size - (size_t)n, " can't reach each other (%s)",
             text_copy_ends(cause, sizeof cause, st->pairs.why));
}

void rdzv_pairs_say_too_few(const struct rdzv *st, char *out, size_t size)
{
    RM_ASSERT(st->pairs.too_few, "enough reach each other, in state %s", rdzv_state_name(st->state));
    char pairs[300]; /* 3 pairs, and one reason */
    describe_pairs(st, pairs, sizeof pairs);
    snprintf(out, size,
             "%s, and fewer than min %d are left without one of each pair: let their addresses reach each "
             "other",
             pairs, st->settings.workers_min);
}

/* True: it has waited long enough. */
bool rdzv_pairs_give_up(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    char why[MSG_DETAIL_MAX];
    if (!is_over(st, turn->now))
        return false;
    rdzv_pairs_say_too_few(st, why, sizeof why);
    rdzv_give_up(st, EXIT_MACHINE, "%.330s", why);
    return true;
}

void rdzv_pairs_formed(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    struct rdzv_pairs *p = &st->pairs;
    RM_ASSERT(st->world > 0 && st->world <= set_count(p->members), "a ring of %d, chosen from %d", st->world,
              set_count(p->members));
    p->formings = is_repetition(st) ? p->formings : 0;
    p->tries = is_repetition(st) ? p->tries : 0;
    p->formed = p->members;
    if (!p->last_tries)
        memset(p->tried_last, 0, sizeof p->tried_last);
    p->last_tries += turn->now >= rdzv_pairs_give_up_at(st);
    p->in_vain = p->broke = p->newest.set = p->went = p->stepped = false;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        bool in = is_on_roster(w);
        p->words[i] = (struct worker_set){0};
        p->roster[i].pid = in ? w->trainer_pid : 0;
        p->roster[i].incarnation = in ? w->incarnation : 0;
    }
}

void rdzv_pairs_went(struct rdzv *st)
{
    RM_ASSERT(st->world > 0 && !st->pairs.stepped, "a ring of %d is told to go, and has made a step",
              st->world);
    st->pairs.went = true;
    st->pairs.stranded = (struct worker_set){0};
}

/* What broke it since, if anything did, was not in vain. */
void rdzv_pairs_stepped(struct rdzv *st)
{
    struct rdzv_pairs *p = &st->pairs;
    if (p->stepped)
        return;
    p->stepped = true;
    p->in_vain = false;
    p->formings = p->tries = p->last_tries = 0;
    p->formed = (struct worker_set){0};
    p->overruled.rings = 0;
    p->stuck_since = RM_NEVER;
    for (int r = 0; r < st->world; r++)
        for (int q = 0; q < r; q++)
            together(st, st->member[r], st->member[q]);
}
