/* The largest set of workers of whom no two are apart: one of two that are goes, within a bound of looks. */
#include "coordinator/core/clique.h"

#include "common/base/assert.h"

enum { LOOKS_MAX = 20000 };

struct search {
    const struct clique_question *q;
    struct worker_set best;
    int looks;
};

/* Whether a is to be left out rather than b. */
static bool goes_before(const struct search *s, struct worker_set open, int a, int b)
{
    RM_ASSERT(a != b && set_has(open, a) && set_has(open, b), "workers %d and %d, of %d, are weighed", a, b,
              set_count(open));
    const struct clique_question *q = s->q;
    int apart_a = set_count(set_common(q->apart[a], open)),
        apart_b = set_count(set_common(q->apart[b], open));
    if (apart_a != apart_b)
        return apart_a > apart_b;
    bool dear_a = set_has(q->dear, a), dear_b = set_has(q->dear, b);
    if (dear_a != dear_b)
        return dear_b;
    if (q->blamed[a] != q->blamed[b])
        return q->blamed[a] > q->blamed[b];
    return a > b;
}

/* -1: nobody is apart from anybody. */
static int first_to_go(const struct search *s, struct worker_set open)
{
    int first = -1;
    for (int w = set_first(open); w >= 0; w = set_next(open, w)) {
        if (set_meets(s->q->apart[w], open) && (first < 0 || goes_before(s, open, w, first)))
            first = w;
    }
    return first;
}

/* At least so many have to go: one of each pair that has nobody in common with another pair. */
static int must_go(const struct search *s, struct worker_set open)
{
    int pairs = 0;
    for (int w = set_first(open); w >= 0; w = set_next(open, w)) {
        int other = set_first(set_common(s->q->apart[w], open));
        if (other < 0)
            continue;
        set_remove(&open, w);
        set_remove(&open, other);
        pairs++;
    }
    RM_ASSERT(2 * pairs <= RM_WORKERS_MAX, "%d pairs of workers", pairs);
    return pairs;
}

static void look_for_clique(struct search *s, struct worker_set open, struct worker_set in)
{
    struct worker_set all = set_union(in, open), with = in;
    int most = set_count(all) - must_go(s, open);
    RM_ASSERT(!set_meets(open, in), "%d workers are taken, and looked at", set_count(set_common(open, in)));
    if (!set_is_empty(s->best) && (most <= set_count(s->best) || ++s->looks > LOOKS_MAX))
        return;
    int w = first_to_go(s, open);
    if (w < 0) {
        s->best = all;
        return;
    }
    set_remove(&open, w);
    set_add(&with, w);
    look_for_clique(s, open, in);
    look_for_clique(s, set_minus(open, s->q->apart[w]), with);
}

struct worker_set clique_find(const struct clique_question *q)
{
    struct search s = {.q = q};
    look_for_clique(&s, q->among, (struct worker_set){0});
    for (int w = set_first(s.best); w >= 0; w = set_next(s.best, w))
        RM_ASSERT(set_has(q->among, w) && !set_meets(q->apart[w], s.best),
                  "worker %d is taken, and %d of the others are apart from it", w,
                  set_count(set_common(q->apart[w], s.best)));
    return s.best;
}
