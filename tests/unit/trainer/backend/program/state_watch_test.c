/* What of a program's state goes into the lineage, and when. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/backend/program/state_watch.h"

Test(state_watch, the_first_state_and_those_between_are_not_asked_for)
{
    cr_assert_not(watch_is_due(0));
    cr_assert_not(watch_is_due(WATCH_EVERY - 1));
    cr_assert(watch_is_due(WATCH_EVERY));
    cr_assert_not(watch_is_due(WATCH_EVERY + 1));
    cr_assert(watch_is_due(7 * WATCH_EVERY));
}

/* Also in the last byte of a block, in the first of the next and in the image's last. */
Test(state_watch, one_bit_anywhere_changes_the_sum)
{
    const size_t bytes = (size_t)(3 << 20) - 5, places[] = {0, (1 << 20) - 1, 1 << 20, bytes - 1};
    uint8_t before[RM_HASH_BYTES], after[RM_HASH_BYTES];
    char *image = malloc(bytes);
    cr_assert_not_null(image);
    memset(image, 'x', bytes);
    watch_sum(image, bytes, before);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        image[places[i]] ^= 16;
        watch_sum(image, bytes, after);
        cr_assert_neq(memcmp(before, after, sizeof before), 0, "byte %zu", places[i]);
        image[places[i]] ^= 16;
    }
    watch_sum(image, bytes, after);
    cr_assert_arr_eq(before, after, sizeof before);
    free(image);
}

Test(state_watch, a_lineage_leads_on_by_both)
{
    uint8_t a[RM_HASH_BYTES] = {1}, b[RM_HASH_BYTES] = {1}, c[RM_HASH_BYTES] = {2};
    const uint8_t sum[RM_HASH_BYTES] = {3}, other[RM_HASH_BYTES] = {4};
    watch_mix(a, sum);
    watch_mix(b, other);
    watch_mix(c, sum);
    cr_assert_neq(memcmp(a, b, sizeof a), 0);
    cr_assert_neq(memcmp(a, c, sizeof a), 0);
}
