/* Which sample is read when: once each per pass, the same for everybody, whatever the ring did. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "trainer/core/cursor.h"

static void expect_each_once(uint64_t seed, int64_t pass, int64_t samples)
{
    char *seen = calloc(1, (size_t)samples);
    for (int64_t i = 0; i < samples; i++) {
        int64_t at = cursor_permute(seed, pass, samples, i);
        cr_assert(at >= 0 && at < samples, "%ld of %ld samples", (long)at, (long)samples);
        cr_assert_not(seen[at], "sample %ld twice in a pass over %ld", (long)at, (long)samples);
        seen[at] = 1;
    }
    free(seen);
}

Test(cursor, each_sample_comes_once_in_each_pass_for_any_number_of_samples)
{
    for (int64_t samples = 1; samples <= 300; samples++)
        for (int64_t pass = 0; pass < 3; pass++)
            expect_each_once(42, pass, samples);
    expect_each_once(7, 0, 65536);
    expect_each_once(7, 1, 65537);
}

Test(cursor, passes_and_seeds_have_orders_of_their_own)
{
    int same_pass = 0, same_seed = 0, in_place = 0;
    for (int64_t i = 0; i < 1000; i++) {
        int64_t here = cursor_permute(1, 0, 1000, i);
        same_pass += here == cursor_permute(1, 1, 1000, i);
        same_seed += here == cursor_permute(2, 0, 1000, i);
        in_place += here == i;
    }
    /* About one fixed point is expected of a random permutation. */
    cr_assert_lt(same_pass, 12);
    cr_assert_lt(same_seed, 12);
    cr_assert_lt(in_place, 12);
}

Test(cursor, batches_run_across_the_ends_of_passes_without_leaving_a_sample_out)
{
    struct cursor c = {.seed = 3, .samples = 10, .lanes = 3, .lane_sequences = 2};
    int seen[10] = {0};
    /* 5 steps of 6 sequences are 3 passes over 10 samples. */
    for (int64_t step = 0; step < 5; step++)
        for (int lane = 0; lane < 3; lane++)
            for (int j = 0; j < 2; j++)
                seen[cursor_sample(&c, step, lane, j)]++;
    for (int i = 0; i < 10; i++)
        cr_assert_eq(seen[i], 3, "sample %d was read %d times in 3 passes", i, seen[i]);
}

Test(cursor, a_lane_reads_the_same_samples_whoever_asks_and_whenever)
{
    struct cursor c = {.seed = 9, .samples = 1000003, .lanes = 64, .lane_sequences = 4};
    cr_assert_eq(cursor_sample(&c, 77, 5, 3), cursor_permute(9, 0, 1000003, 77 * 256 + 5 * 4 + 3));
    cr_assert_eq(
        cursor_sample(&c, 4000000000, 5, 3),
        cursor_permute(9, (4000000000 * 256 + 23) / 1000003, 1000003, (4000000000 * 256 + 23) % 1000003));
}

/* A file that was trained by one release must be continued by the next in the same order. */
Test(cursor, the_order_is_fixed_for_ever)
{
    static const int64_t expected[8] = {798, 982, 929, 872, 155, 388, 807, 180};
    for (int i = 0; i < 8; i++)
        cr_assert_eq(cursor_permute(42, 0, 1000, i), expected[i], "element %d is %ld", i,
                     (long)cursor_permute(42, 0, 1000, i));
}
