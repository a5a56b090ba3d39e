#include "coordinator/core/clique.h"

#include <stdbool.h>

#include "common/base/limits.h"

enum { LOOKS_MAX = 20000 };

struct search {
    const struct clique_question *q;
    uint64_t best;
    int looks;
};

static uint64_t bit(int worker)
{
    return (uint64_t)1 << worker;
}

int clique_count(uint64_t workers)
{
    return __builtin_popcountll(workers);
}

/* Whether a is to be left out rather than b. */
static bool goes_before(const struct search *s, uint64_t open, int a, int b)
{
    const struct clique_question *q = s->q;
    int apart_a = clique_count(q->apart[a] & open), apart_b = clique_count(q->apart[b] & open);
    if (apart_a != apart_b)
        return apart_a > apart_b;
    bool dear_a = q->dear & bit(a), dear_b = q->dear & bit(b);
    if (dear_a != dear_b)
        return dear_b;
    if (q->blamed[a] != q->blamed[b])
        return q->blamed[a] > q->blamed[b];
    return a > b;
}

/* -1: nobody is apart from anybody. */
static int first_to_go(const struct search *s, uint64_t open)
{
    int first = -1;
    for (int w = 0; w < RM_WORKERS_MAX; w++) {
        bool divided = (open & bit(w)) && (s->q->apart[w] & open);
        if (divided && (first < 0 || goes_before(s, open, w, first)))
            first = w;
    }
    return first;
}

/* At least so many have to go: one of each pair that has nobody in common with another pair. */
static int must_go(const struct search *s, uint64_t open)
{
    int pairs = 0;
    for (int w = 0; w < RM_WORKERS_MAX; w++) {
        uint64_t others = open & bit(w) ? s->q->apart[w] & open : 0;
        if (!others)
            continue;
        open &= ~bit(w) & ~(others & -others);
        pairs++;
    }
    return pairs;
}

static void look(struct search *s, uint64_t open, uint64_t in)
{
    int most = clique_count(in | open) - must_go(s, open);
    if (s->best && (most <= clique_count(s->best) || ++s->looks > LOOKS_MAX))
        return;
    int w = first_to_go(s, open);
    if (w < 0) {
        s->best = in | open;
        return;
    }
    look(s, open & ~bit(w), in);
    look(s, open & ~bit(w) & ~s->q->apart[w], in | bit(w));
}

uint64_t clique_find(const struct clique_question *q)
{
    struct search s = {.q = q};
    look(&s, q->among, 0);
    return s.best;
}
