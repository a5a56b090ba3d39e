#include "trainer/exact/schedule.h"

#include <criterion/criterion.h>
#include <math.h>

static const struct schedule usual = {
    .rate = 1e-3, .rate_min = 1e-4, .warmup = 10, .steps = 110, .cosine = true};

Test(schedule, warm_up_rises_linearly_from_a_tenth_to_the_whole)
{
    cr_assert_float_eq(schedule_rate(&usual, 1), 1e-4, 1e-18);
    cr_assert_float_eq(schedule_rate(&usual, 5), 5e-4, 1e-18);
    cr_assert(schedule_rate(&usual, 10) == 1e-3);
}

Test(schedule, cosine_falls_to_the_minimum_at_the_last_step)
{
    cr_assert_float_eq(schedule_rate(&usual, 60), 5.5e-4, 1e-17, "half way is the mean");
    cr_assert(schedule_rate(&usual, 110) == 1e-4);
    for (int64_t step = 11; step <= 110; step++) {
        double t = (double)(step - 10) / 100;
        double wanted = 1e-4 + 0.5 * 9e-4 * (1 + cos(M_PI * t));
        cr_assert_float_eq(schedule_rate(&usual, step), wanted, 1e-18, "step %d", (int)step);
        cr_assert_lt(schedule_rate(&usual, step), schedule_rate(&usual, step - 1));
    }
}

Test(schedule, constant_stays_after_warm_up)
{
    struct schedule s = usual;
    s.cosine = false;
    cr_assert(schedule_rate(&s, 11) == 1e-3 && schedule_rate(&s, 110) == 1e-3);
    cr_assert(schedule_rate(&s, 1) < 1e-3);
}

Test(schedule, jobs_shorter_than_their_warm_up_and_without_one)
{
    struct schedule s = {.rate = 1, .rate_min = 0.25, .warmup = 8, .steps = 4, .cosine = true};
    cr_assert(schedule_rate(&s, 4) == 0.5);
    s.warmup = 0;
    s.steps = 1;
    cr_assert(schedule_rate(&s, 1) == 0.25, "the only step is the last");
    s.warmup = s.steps = 3;
    cr_assert(schedule_rate(&s, 3) == 1, "the end of the warm-up wins over the end of the cosine");
}

Test(schedule, own_cosine_agrees_with_the_library_to_1e_15)
{
    for (int i = 0; i <= 10000; i++) {
        double t = i / 10000.0;
        cr_assert_float_eq(schedule_cos_pi(t), cosl(3.14159265358979323846264338327950288L * (long double)t),
                           1e-15);
    }
    cr_assert(schedule_cos_pi(0) == 1 && schedule_cos_pi(1) == -1);
}

Test(schedule, powers_by_squaring)
{
    cr_assert(schedule_power(0.9, 0) == 1 && schedule_power(0.9, 1) == 0.9);
    cr_assert(schedule_power(2, 40) == 0x1p40);
    cr_assert_float_eq(schedule_power(0.999, 1000), pow(0.999, 1000), 1e-13);
}
