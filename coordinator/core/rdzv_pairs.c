/* Workers that live and are well but can't reach each other: neither is to blame, and no failure is counted.
 *
 * What a pair can do only a step shows: there are walls that let a handshake through, and stop what follows.
 * So a ring has come to nothing while it forms, and also after `go`, before its first step. One that comes to
 * nothing names a pair, and so does one that breaks later. Named by two without a step of both between them,
 * the two count as apart, and the next ring is the largest that holds no such pair (clique.h). Who is left
 * out comes back by rdzv_probe.c. Where too few would be left, the pair that was seen apart longest ago is
 * tried again, and so one after the other, with growing pauses, until startTimeout is over; in pods, where a
 * person or the network may mend it, without end. Neither such tries nor rings that show that two are apart
 * count as rings in vain (rdzv_gather.c). */
#include "coordinator/core/rdzv_pairs.h"

#include <stdio.h>
#include <string.h>

#include "coordinator/core/clique.h"
#include "coordinator/core/rdzv_base.h"
#include "coordinator/core/rdzv_boundary.h"
#include "coordinator/core/rdzv_who.h"

enum { RINGS_RUNNING = 2, PAIRS_NAMED = 3, TRIED_AGAIN = 64 };

static const rm_time first_pause = RM_S, longest_pause = 30 * RM_S;

static uint64_t bit(int worker)
{
    return (uint64_t)1 << worker;
}

bool rdzv_pairs_are_apart(const struct rdzv *st, int a, int b)
{
    return st->pairs.apart[a] & bit(b);
}

static uint64_t members(const struct rdzv *st)
{
    uint64_t set = 0;
    for (int r = 0; r < st->world; r++)
        set |= bit(st->member[r]);
    return set;
}

uint64_t rdzv_pairs_in_ring(const struct rdzv *st, int worker)
{
    return st->pairs.apart[worker] & members(st);
}

bool rdzv_pairs_bar(const struct rdzv *st, int worker)
{
    return st->worker[worker].rank < 0 && rdzv_pairs_in_ring(st, worker);
}

static void set_bit(uint64_t *sets, int a, int b, bool on)
{
    sets[a] = on ? sets[a] | bit(b) : sets[a] & ~bit(b);
    sets[b] = on ? sets[b] | bit(a) : sets[b] & ~bit(a);
}

bool rdzv_pairs_answer_only(const struct rdzv *st, int worker)
{
    return st->pairs.answer_only[worker] & rdzv_pairs_in_ring(st, worker);
}

/* Of two of whom no more than that is known since they were last answered it says little: named once more,
 * they are apart again. */
void rdzv_pairs_answered(struct rdzv *st, int a, int b)
{
    if (!rdzv_pairs_are_apart(st, a, b))
        return; /* it was asked as a neighbour to be */
    bool only = st->pairs.answer_only[a] & bit(b);
    set_bit(st->pairs.apart, a, b, false);
    set_bit(st->pairs.answer_only, a, b, true);
    st->pairs.named[a][b] = st->pairs.named[b][a] = only ? RINGS_RUNNING - 1 : 0;
}

static void together(struct rdzv *st, int a, int b)
{
    set_bit(st->pairs.apart, a, b, false);
    set_bit(st->pairs.answer_only, a, b, false);
    st->pairs.named[a][b] = st->pairs.named[b][a] = 0;
}

/* What was seen of the process before it says little of this one. */
void rdzv_pairs_another_process(struct rdzv *st, int worker)
{
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        set_bit(st->pairs.answer_only, worker, i, false);
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
    struct rdzv_named *n = &st->pairs.newest;
    *n = (struct rdzv_named){.set = true, .by = by, .peer = peer};
    n->by_pid = st->worker[by].trainer_pid;
    n->peer_pid = st->worker[peer].trainer_pid;
    n->by_incarnation = st->worker[by].incarnation;
    n->peer_incarnation = st->worker[peer].incarnation;
    text_copy(n->why, sizeof n->why, why);
}

static bool is_named(const struct rdzv_named *n, int a, int b)
{
    return n->set && ((n->by == a && n->peer == b) || (n->by == b && n->peer == a));
}

static bool is_breaking(const struct rdzv *st)
{
    return st->state == RDZV_QUIESCING && st->stop_at == STOP_NOW;
}

/* The first word counts, as what follows it may follow from it: whoever closes a broken ring breaks it for
 * another neighbour. But where a connection ends, both its ends say so, and each names the other: that counts
 * more. */
void rdzv_pairs_fault(struct rdzv *st, const struct rdzv_worker *w, const struct msg_fault *f)
{
    struct rdzv_pairs *p = &st->pairs;
    int by = rdzv_index(st, w), peer = f->peer;
    if (is_breaking(st) && !p->broke)
        return; /* it was stopped for another reason, and ends by that */
    if (!is_breaking(st))
        rdzv_pairs_in_vain(st);
    p->broke = true;
    if (peer < 0 || peer == by)
        return;
    p->words[by] |= bit(peer);
    bool both = p->words[peer] & bit(by), counts = !p->newest.set || (both && !p->both);
    p->both = p->both || both;
    if (counts && !is_named(&p->newest, by, peer))
        name_pair(st, by, peer, f->detail);
}

void rdzv_pairs_stall(struct rdzv *st, int by, int peer, const char *why)
{
    rdzv_pairs_in_vain(st);
    st->pairs.broke = st->pairs.both = true; /* nobody knows better */
    name_pair(st, by, peer, why);
}

/* Both are well: they answered the stop, with the trainers that they had. */
static bool is_about_two_that_live(const struct rdzv *st, const struct rdzv_named *n)
{
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
    p->seen[n.by][n.peer] = p->seen[n.peer][n.by] = turn->now;
    p->named[n.peer][n.by] = ++p->named[n.by][n.peer];
    if (p->named[n.by][n.peer] < RINGS_RUNNING)
        return false;
    bool known = (p->apart[n.by] | p->answer_only[n.by]) & bit(n.peer);
    p->named[n.by][n.peer] = p->named[n.peer][n.by] = RINGS_RUNNING;
    set_bit(p->apart, n.by, n.peer, true);
    set_bit(p->answer_only, n.by, n.peer, p->went || (p->answer_only[n.by] & bit(n.peer)));
    return !known;
}

static rm_time pause_after(int formings)
{
    rm_time pause = first_pause;
    if (formings < RINGS_RUNNING)
        return 0; /* the first repetition is at once: most of what breaks a ring is over by then */
    for (int i = RINGS_RUNNING; i < formings && pause < longest_pause; i++)
        pause *= 2;
    return pause < longest_pause ? pause : longest_pause;
}

bool rdzv_pairs_stopped(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    struct rdzv_pairs *p = &st->pairs;
    p->formings += p->in_vain;
    if (p->in_vain && p->last_tries)
        for (int r = 0; r < st->world; r++)
            p->tried_last[st->member[r]] |= members(st);
    bool learned = count_pair(turn);
    if (p->in_vain)
        p->again_at = turn->now + pause_after(p->formings);
    p->in_vain = p->broke = false;
    return learned;
}

/* ---- who forms ---- */

static uint64_t candidates(const struct rdzv *st)
{
    uint64_t set = 0;
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        set |= rdzv_candidate(st, &st->worker[i]) ? bit(i) : 0;
    return set;
}

static uint64_t holders(const struct rdzv *st, const struct msg_state *state)
{
    uint64_t set = 0;
    for (int i = 0; i < RM_WORKERS_MAX && state->held; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        set |= rdzv_usable(st, w) && msg_state_equal(&w->state, state) ? bit(i) : 0;
    }
    return set;
}

static bool is_divided(const struct rdzv *st, uint64_t set)
{
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        if ((set & bit(i)) && (st->pairs.apart[i] & set))
            return true;
    return false;
}

static uint64_t largest(const struct rdzv *st, const uint64_t *apart, uint64_t among, uint64_t dear)
{
    struct clique_question q = {among, dear, apart, st->pairs.blamed};
    return clique_find(&q);
}

/* Whether somebody can give them the state. */
static bool are_served(const uint64_t *apart, uint64_t set, uint64_t holding)
{
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        if ((holding & bit(i)) && !(apart[i] & set))
            return true;
    return !holding;
}

/* Those who reach one of the holders, and each other. */
static uint64_t largest_served(const struct rdzv *st, const uint64_t *apart, uint64_t among, uint64_t holding)
{
    uint64_t best = 0;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        uint64_t set = holding & bit(i) ? largest(st, apart, among & ~apart[i], holding) : 0;
        best = clique_count(set) > clique_count(best) ? set : best;
    }
    return best;
}

/* What the next ring is chosen from. */
struct question {
    uint64_t all, holding; /* candidates; who can give the newest state */
    int fewest;
};

/* Best is a ring of those who get the state from one of its holders; else one that goes on from the store
 * without them. */
static uint64_t divide(const struct rdzv *st, const uint64_t *apart, const struct question *q,
                       bool *ret_stranded)
{
    uint64_t set = largest(st, apart, q->all, q->holding);
    *ret_stranded = false;
    if (are_served(apart, set, q->holding))
        return set;
    uint64_t served = largest_served(st, apart, q->all, q->holding);
    *ret_stranded = clique_count(served) < q->fewest && clique_count(set) >= q->fewest;
    return *ret_stranded ? set : served;
}

struct pair {
    int a, b; /* -1: there is none */
};

/* Of those in `all` that are apart the pair that was seen so first, or last. */
static struct pair find_pair(const struct rdzv *st, const uint64_t *apart, uint64_t all, bool newest)
{
    struct pair found = {-1, -1};
    for (int a = 0; a < RM_WORKERS_MAX; a++) {
        for (uint64_t others = all & bit(a) ? apart[a] & all : 0; others; others &= others - 1) {
            int b = __builtin_ctzll(others);
            rm_time seen = st->pairs.seen[a][b], than = found.a < 0 ? 0 : st->pairs.seen[found.a][found.b];
            if (found.a < 0 || (newest ? seen > than : seen < than))
                found = (struct pair){a, b};
        }
    }
    return found;
}

/* It counts as apart no more. */
static void forget_pair(uint64_t *apart, struct pair pair)
{
    apart[pair.a] &= ~bit(pair.b);
    apart[pair.b] &= ~bit(pair.a);
}

/* Too few reach each other, as far as is known: what was seen longest ago is tried again, which shows whether
 * it is still so. */
static uint64_t try_again(const struct rdzv *st, const struct question *q, bool *ret_stranded)
{
    uint64_t apart[RM_WORKERS_MAX], set = 0;
    memcpy(apart, st->pairs.apart, sizeof apart);
    for (int i = 0; i < TRIED_AGAIN; i++) {
        struct pair oldest = find_pair(st, apart, q->all, false);
        if (oldest.a < 0)
            break;
        forget_pair(apart, oldest);
        set = divide(st, apart, q, ret_stranded);
        if (clique_count(set) >= q->fewest)
            return set;
    }
    return q->all;
}

/* Where nobody is apart that is everybody, as ever. */
void rdzv_pairs_choose(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    struct rdzv_pairs *p = &st->pairs;
    bool stranded = false;
    p->stranded = 0;
    p->too_few = false;
    struct msg_state best = rdzv_best_state(st);
    bool unsaved = best.held && best.step > 0 && best.step > st->saved;
    bool all_done = best.held && best.step >= st->settings.steps;
    struct question q = {candidates(st), holders(st, &best), all_done ? 1 : st->settings.workers_min};
    p->members = q.all;
    if (clique_count(q.all) >= q.fewest && is_divided(st, q.all | q.holding)) {
        p->members = divide(st, p->apart, &q, &stranded);
        p->too_few = clique_count(p->members) < q.fewest;
        if (p->too_few)
            p->members = try_again(st, &q, &stranded);
    }
    p->save_first = unsaved && (stranded || p->too_few);
    p->stranded = stranded && !unsaved ? q.holding : 0;
    if (!p->too_few) {
        p->stuck_since = RM_NEVER;
        p->last_tries = 0;
    } else if (p->stuck_since == RM_NEVER) {
        p->stuck_since = turn->now;
    }
}

/* Whether it has answered a stop or not: who is late with that is no other crew. */
static bool is_of_crew(const struct rdzv_worker *w)
{
    return w->presence == PRESENT && w->trainer_pid && !w->leaving && !w->released;
}

static bool is_same_crew(const struct rdzv *st)
{
    const struct rdzv_pairs *p = &st->pairs;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        bool in = is_of_crew(w);
        if (p->crew[i].pid != (in ? w->trainer_pid : 0) || (in && p->crew[i].incarnation != w->incarnation))
            return false;
    }
    return true;
}

/* Whether it is what came to nothing, once more. */
static bool is_repetition(const struct rdzv *st)
{
    const struct rdzv_pairs *p = &st->pairs;
    return is_same_crew(st) && (p->too_few || p->members == p->formed);
}

rm_time rdzv_pairs_give_up_at(const struct rdzv *st)
{
    bool for_ever = st->settings.unsupervised || st->pairs.stuck_since == RM_NEVER;
    return for_ever ? RM_NEVER : st->pairs.stuck_since + st->settings.start_timeout;
}

/* Whoever has come since may be what it lacked: then there is no pause. */
rm_time rdzv_pairs_form_at(const struct rdzv *st)
{
    rm_time last = rdzv_pairs_give_up_at(st), at = is_repetition(st) ? st->pairs.again_at : 0;
    return at < last ? at : last;
}

/* Not before each pair was tried once more: its way may have been free since the time before. */
static bool is_over(const struct rdzv *st, rm_time now)
{
    const struct rdzv_pairs *p = &st->pairs;
    rm_time over = rdzv_pairs_give_up_at(st);
    if (now < over || !p->last_tries)
        return false;
    uint64_t all = candidates(st);
    bool any_left = false;
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        any_left = any_left || ((all & bit(i)) && (p->apart[i] & all & ~p->tried_last[i]));
    return !any_left || p->last_tries >= TRIED_AGAIN;
}

bool rdzv_pairs_hold_back(const struct rdzv *st, rm_time now)
{
    return st->pairs.save_first || is_over(st, now) || now < rdzv_pairs_form_at(st);
}

/* ---- in words ---- */

/* "workers 0 and 2, workers 1 and 2 can't reach each other (connect to ...": those last that were last seen
 * so long ago that they may reach each other by now. */
static void describe(const struct rdzv *st, char *out, size_t size)
{
    uint64_t apart[RM_WORKERS_MAX], set = candidates(st);
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
    snprintf(out + n, size - (size_t)n, " can't reach each other (%.150s)", st->pairs.why);
}

void rdzv_pairs_say_too_few(const struct rdzv *st, char *out, size_t size)
{
    char pairs[300]; /* 3 pairs, and one reason */
    describe(st, pairs, sizeof pairs);
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
    p->formings = is_repetition(st) ? p->formings : 0;
    p->formed = p->members;
    if (!p->last_tries)
        memset(p->tried_last, 0, sizeof p->tried_last);
    p->last_tries += turn->now >= rdzv_pairs_give_up_at(st);
    p->in_vain = p->broke = p->both = p->newest.set = p->went = p->stepped = false;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        bool in = is_of_crew(w);
        p->words[i] = 0;
        p->crew[i].pid = in ? w->trainer_pid : 0;
        p->crew[i].incarnation = in ? w->incarnation : 0;
    }
}

void rdzv_pairs_went(struct rdzv *st)
{
    st->pairs.went = true;
    st->pairs.stranded = 0;
}

/* What broke it since, if anything did, was not in vain. */
void rdzv_pairs_stepped(struct rdzv *st)
{
    struct rdzv_pairs *p = &st->pairs;
    if (p->stepped)
        return;
    p->stepped = true;
    p->in_vain = false;
    p->formings = p->last_tries = 0;
    p->formed = 0;
    p->stuck_since = RM_NEVER;
    for (int r = 0; r < st->world; r++)
        for (int q = 0; q < r; q++)
            together(st, st->member[r], st->member[q]);
}
