#include "common/base/lane_set.h"

#include <criterion/criterion.h>
#include <string.h>

static struct lane_set of(int a, int b)
{
    struct lane_set set = {0};
    lane_set_add(&set, a);
    lane_set_add(&set, b);
    return set;
}

Test(lane_set, members_come_in_rising_order_across_words)
{
    struct lane_set set = of(1023, 64);
    lane_set_add(&set, 63);
    cr_assert_eq(lane_set_next(&set, -1), 63);
    cr_assert_eq(lane_set_next(&set, 63), 64);
    cr_assert_eq(lane_set_next(&set, 64), 1023);
    cr_assert_eq(lane_set_next(&set, 1023), -1);
    cr_assert_eq(lane_set_count(&set), 3);
    cr_assert(lane_set_has(&set, 64) && !lane_set_has(&set, 65) && !lane_set_is_empty(&set));
}

Test(lane_set, two_of_them_meet_or_lie_in_each_other)
{
    struct lane_set a = of(3, 700), b = of(700, 9), both = a;
    cr_assert(lane_set_meets(&a, &b) && !lane_set_within(&a, &b));
    lane_set_add_all(&both, &b);
    cr_assert(lane_set_within(&a, &both) && lane_set_within(&b, &both) && lane_set_count(&both) == 3);
    struct lane_set other = of(4, 8), none = {0};
    cr_assert(!lane_set_meets(&a, &other) && lane_set_within(&none, &a) && lane_set_is_empty(&none));
}

Test(lane_set, its_text_comes_back_and_other_text_does_not)
{
    static const char *const bad[] = {"", "0", "000000000000000g", "00000000000000000"};
    char text[LANE_SET_TEXT_MAX];
    struct lane_set set = of(0, 65), back;
    lane_set_write(&set, text);
    cr_assert_str_eq(text, "00000000000000020000000000000001");
    cr_assert(lane_set_read(text, &back) && !memcmp(&set, &back, sizeof set));
    set = of(1023, 1);
    lane_set_write(&set, text);
    cr_assert_eq(strlen(text), (size_t)LANE_SET_TEXT_MAX - 1);
    cr_assert(lane_set_read(text, &back) && !memcmp(&set, &back, sizeof set));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_assert_not(lane_set_read(bad[i], &back), "'%s'", bad[i]);
}
