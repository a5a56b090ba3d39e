/* Random histories: workers come and go, miss updates, restart and receive; the state is always that of one
 * worker that nobody disturbed. A failing seed is printed and replays. */
#include <criterion/criterion.h>
#include <string.h>

#include "common/base/prng.h"
#include "exact_case.h"

enum { STEPS = 8, SEEDS = 60 / CASE_SHARE, RANKS = 5 };

static void restart(struct ring *r, int rank)
{
    const struct state_shape shape = {.layout = case_layout(), .lanes = CASE_LANES, .fast = r->fast};
    lanes_free(r->lanes[rank]);
    state_free(r->state[rank]);
    cr_assert_eq(state_open(&r->state[rank], r->fd[rank], &shape, NULL), 0);
    cr_assert_eq(lanes_open(&r->lanes[rank], r->state[rank], r->pool, NULL), 0);
}

static void receive(struct state *to, struct state *from)
{
    struct near_arrays a = near_arrays(to), b = near_arrays(from);
    struct state_point point;
    cr_assert(state_holds(from, &point));
    state_receive_begin(to);
    memcpy(a.params, b.params, (size_t)a.count * sizeof(float));
    memcpy(a.m, b.m, (size_t)a.count * sizeof(float));
    memcpy(a.v, b.v, (size_t)a.count * sizeof(float));
    state_receive_end(to, &point, NULL);
}

/* By the kept update where that is enough. Says whether it was. */
static bool catch_up(struct state *to, struct state *from)
{
    const struct update_rule rule = case_rule();
    struct state_point mine, theirs;
    struct state_update kept, got;
    state_holds(to, &mine);
    state_holds(from, &theirs);
    if (mine.step + 1 != theirs.step || !state_kept(from, &kept))
        return false;
    state_update_receive_begin(to, &got);
    memcpy(got.k, kept.k, (size_t)case_layout()->tensors * sizeof *got.k);
    memcpy(near_words(&got), near_words(&kept),
           (size_t)(kept.words_count + kept.header_count) * sizeof *kept.header);
    cr_assert_eq(state_update_receive_end(to, kept.step, NULL), 0);
    update_apply(to, &rule, NULL, NULL);
    return true;
}

/* Brings the first `world` ranks to the newest step that anybody holds. */
static int level(struct ring *r, int world)
{
    struct state_point point;
    int best = 0, caught = 0;
    int64_t highest = -1;
    for (int rank = 0; rank < RANKS; rank++) {
        if (!state_holds(r->state[rank], &point) || point.step <= highest)
            continue;
        highest = point.step;
        best = rank;
    }
    for (int rank = 0; rank < world; rank++) {
        state_holds(r->state[rank], &point);
        if (point.step == highest)
            continue;
        if (catch_up(r->state[rank], r->state[best]))
            caught++;
        else
            receive(r->state[rank], r->state[best]);
    }
    return caught;
}

/* Returns how many updates were made up for. */
static int run_history(uint64_t seed, struct case_hash *ret)
{
    struct ring r;
    int caught = 0;
    ring_open(&r, RANKS, false, 0);
    for (int step = 1; step <= STEPS; step++) {
        r.world = 1 + (int)prng_below(&seed, RANKS);
        caught += level(&r, r.world);
        ring_deal(&r, seed);
        uint64_t missing = splitmix64(&seed) & splitmix64(&seed);
        missing &= ~((uint64_t)1 << prng_below(&seed, (uint64_t)r.world)); /* one commits at least */
        ring_step(&r, missing);
        restart(&r, (int)prng_below(&seed, RANKS));
    }
    r.world = RANKS;
    caught += level(&r, RANKS);
    *ret = case_hash(r.state[0]);
    for (int rank = 1; rank < RANKS; rank++)
        cr_assert(case_same(*ret, case_hash(r.state[rank])));
    ring_close(&r);
    return caught;
}

Test(history, any_random_history_ends_in_the_state_of_an_undisturbed_run)
{
    struct ring r;
    struct case_hash got;
    int caught = 0;
    ring_open(&r, 1, false, 0);
    for (int step = 0; step < STEPS; step++)
        ring_step(&r, 0);
    struct case_hash wanted = case_hash(r.state[0]);
    ring_close(&r);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        caught += run_history(seed, &got);
        cr_assert(case_same(wanted, got), "seed %d", (int)seed);
    }
    cr_assert_geq(caught, SEEDS, "kept updates took part: %d", caught);
}
