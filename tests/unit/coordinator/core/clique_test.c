/* Who trains together where some can't reach each other. */
#include <criterion/criterion.h>
#include <stdbool.h>

#include "common/base/limits.h"
#include "common/base/prng.h"
#include "coordinator/core/clique.h"
#include "tests/unit/bits.h"

static struct worker_set apart[RM_WORKERS_MAX];
static int blamed[RM_WORKERS_MAX];

static void part(int a, int b)
{
    set_add(&apart[a], b);
    set_add(&apart[b], a);
}

static int count(uint64_t bits)
{
    return __builtin_popcountll(bits);
}

static uint64_t find(uint64_t among, uint64_t dear)
{
    struct clique_question q = {set_of_bits(among), set_of_bits(dear), apart, blamed};
    return bits_of_set(clique_find(&q));
}

Test(clique, where_all_reach_each_other_nobody_is_left_out)
{
    cr_assert_eq(find(0x7, 0), 0x7);
    cr_assert_eq(find(UINT64_MAX, 0), UINT64_MAX);
    cr_assert_eq(find(0, 0), 0);
}

Test(clique, of_two_the_one_blamed_more_often_is_left_out_then_the_higher_index)
{
    part(0, 2);
    cr_assert_eq(find(0x7, 0), 0x3);
    blamed[0] = 1;
    cr_assert_eq(find(0x7, 0), 0x6);
}

Test(clique, one_that_is_cut_off_from_two_goes_alone)
{
    part(1, 0);
    part(1, 2);
    blamed[0] = blamed[2] = 5; /* it can't call them: they are blamed, and it is not */
    cr_assert_eq(find(0x7, 0), 0x5);
}

Test(clique, of_two_the_one_that_holds_the_state_stays)
{
    part(0, 1);
    blamed[0] = 9;
    cr_assert_eq(find(0x3, 0x1), 0x1);
}

Test(clique, a_larger_set_is_found_where_leaving_out_the_busiest_one_first_would_miss_it)
{
    /* 0 is apart from 1, 2 and 3, and each of these from two of 4..7 */
    part(0, 1), part(0, 2), part(0, 3);
    part(1, 4), part(1, 5);
    part(2, 5), part(2, 6);
    part(3, 6), part(3, 4);
    cr_assert_eq(count(find(0x7f, 0)), 4);
}

/* As slow and obvious as can be. */
static int largest_by_trying_all(int workers)
{
    int best = 0;
    for (uint64_t set = 0; set < (uint64_t)1 << workers; set++) {
        bool whole = true;
        for (int a = 0; a < workers && whole; a++)
            whole = !(set >> a & 1) || !set_meets(apart[a], set_of_bits(set));
        if (whole && count(set) > best)
            best = count(set);
    }
    return best;
}

Test(clique, it_is_the_largest_whoever_is_apart)
{
    uint64_t chance = 7;
    for (int round = 0; round < 300; round++) {
        for (int a = 0; a < RM_WORKERS_MAX; a++)
            apart[a] = (struct worker_set){0};
        uint64_t pairs = prng_below(&chance, 30);
        for (uint64_t i = 0; i < pairs; i++) {
            int a = (int)prng_below(&chance, 9), b = (int)prng_below(&chance, 9);
            if (a != b)
                part(a, b);
        }
        uint64_t set = find(0x1ff, 0);
        for (int a = 0; a < 9; a++)
            cr_assert(!(set >> a & 1) || !set_meets(apart[a], set_of_bits(set)),
                      "round %d: two that are apart", round);
        cr_assert_eq(count(set), largest_by_trying_all(9), "round %d", round);
    }
}

Test(clique, sixty_four_of_whom_a_third_of_the_pairs_are_apart_are_divided_in_bounded_work)
{
    uint64_t chance = 3;
    for (int a = 0; a < RM_WORKERS_MAX; a++)
        for (int b = 0; b < a; b++)
            if (prng_below(&chance, 3) == 0)
                part(a, b);
    uint64_t set = find(UINT64_MAX, 0);
    cr_assert_geq(count(set), 8);
    for (int a = 0; a < RM_WORKERS_MAX; a++)
        cr_assert(!(set >> a & 1) || !set_meets(apart[a], set_of_bits(set)));
}
