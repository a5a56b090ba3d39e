/* How long to train between two checkpoints: the formula, its bounds, its sentence. */
#include "coordinator/core/interval.h"

#include <criterion/criterion.h>
#include <math.h>

#define MINUTE (60 * RM_S)
#define DAY    (86400 * RM_S)

static const struct interval_facts usual = {
    .least = MINUTE, .most = 30 * MINUTE, .believed = DAY, .measured = true, .stall = RM_S, .safe = 3 * RM_S};

static rm_time chosen(struct interval_facts f)
{
    enum interval_limit limit;
    return interval_choose(&f, &limit);
}

Test(interval, a_table_of_what_is_measured_and_what_comes_of_it)
{
    static const struct {
        struct interval_facts f;
        rm_time seconds;
        enum interval_limit limit;
    } rows[] = {
        /* sqrt(2 * 1 * 86400) = 415.7 */
        {{MINUTE, 30 * MINUTE, DAY, true, RM_S, RM_S, 0, 0}, 415, INTERVAL_FREE},
        /* a second day without a loss: sqrt(2 * 1 * 172800) */
        {{MINUTE, 30 * MINUTE, DAY, true, RM_S, RM_S, 0, DAY}, 587, INTERVAL_FREE},
        /* two losses in an hour: sqrt(2 * 1 * 90000 / 3) */
        {{MINUTE, 30 * MINUTE, DAY, true, RM_S, RM_S, 2, 3600 * RM_S}, 244, INTERVAL_FREE},
        {{MINUTE, 30 * MINUTE, DAY, true, 16 * RM_S, RM_S, 0, 0}, 1662, INTERVAL_FREE},
        {{MINUTE, 30 * MINUTE, DAY, true, 19 * RM_S, RM_S, 0, 0}, 1800, INTERVAL_MOST},
        {{MINUTE, 2 * MINUTE, DAY, true, RM_S, RM_S, 0, 0}, 120, INTERVAL_MOST},
        {{MINUTE, MINUTE, DAY, true, RM_S, RM_S, 0, 0}, 60, INTERVAL_MOST},
        {{MINUTE, 30 * MINUTE, DAY, true, 10 * RM_MS, RM_S, 0, 0}, 60, INTERVAL_LEAST},
        {{MINUTE, 30 * MINUTE, DAY, true, 0, 0, 0, 0}, 60, INTERVAL_LEAST},
        {{MINUTE, 30 * MINUTE, DAY, true, -RM_S, 0, 0, 0}, 60, INTERVAL_LEAST},
        {{MINUTE, 30 * MINUTE, DAY, true, RM_S, RM_S, 1000000, 0}, 60, INTERVAL_LEAST},
        {{MINUTE, 30 * MINUTE, DAY, true, RM_S, 500 * RM_S, 0, 0}, 500, INTERVAL_SAFE},
        {{MINUTE, 5 * MINUTE, DAY, true, RM_S, 500 * RM_S, 0, 0}, 300, INTERVAL_MOST},
        {{MINUTE, 30 * MINUTE, DAY, false, 0, 0, 0, 0}, 60, INTERVAL_FIRST},
        {{MINUTE, 30 * MINUTE, DAY, false, 0, 0, 7, 365 * DAY}, 60, INTERVAL_FIRST},
        {{MINUTE, 8760 * 3600 * RM_S, DAY, true, 3600 * RM_S, RM_S, 0, 10 * 365 * DAY},
         1507054,
         INTERVAL_FREE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        enum interval_limit limit;
        rm_time every = interval_choose(&rows[i].f, &limit);
        cr_expect_eq(every, rows[i].seconds * RM_S, "row %zu: %lld s", i, (long long)(every / RM_S));
        cr_expect_eq(limit, rows[i].limit, "row %zu: limit %d", i, (int)limit);
    }
}

/* What is lost of a second of training, by saves and by work that is done again. */
static double lost(double every, double stall, double rate)
{
    return stall / every + rate * every / 2;
}

Test(interval, no_other_time_loses_less_by_the_model)
{
    for (int losses = 0; losses < 40; losses += 3) {
        struct interval_facts f = usual;
        f.losses = losses;
        f.observed = DAY / 2;
        double rate = (1.0 + losses) / (1.5 * 86400), at = (double)(chosen(f) / RM_S);
        for (double other = 60; other < 1800; other += 10)
            cr_assert_leq(lost(at, 1, rate), lost(other, 1, rate) + 1e-5, "%g s of %d losses, not %g", at,
                          losses, other);
    }
}

Test(interval, more_losses_never_make_it_longer_and_dearer_saves_never_shorter)
{
    struct interval_facts f = usual;
    rm_time before = RM_NEVER;
    for (int64_t losses = 0; losses < 200; losses++) {
        f.losses = losses;
        cr_assert_leq(chosen(f), before);
        before = chosen(f);
    }
    f = usual;
    before = 0;
    for (rm_time stall = 0; stall < 60 * RM_S; stall += 100 * RM_MS) {
        f.stall = stall;
        cr_assert_geq(chosen(f), before);
        before = chosen(f);
    }
}

static void says(struct interval_facts f, const char *wanted)
{
    char text[200];
    interval_sentence(&f, text, sizeof text);
    cr_expect_str_eq(text, wanted);
}

Test(interval, its_sentence_has_the_numbers_that_it_comes_from)
{
    struct interval_facts f = usual;
    says(f, "every 6.92 min: a save stalls training for 1.00 s, and all workers together were lost 0 times "
            "in 0 s");
    f.losses = 1, f.observed = 3600 * RM_S;
    says(f,
         "every 5 min: a save stalls training for 1.00 s, and all workers together were lost once in 60 min");
    f.losses = 2, f.observed = 5 * 3600 * RM_S;
    says(f,
         "every 4.38 min: a save stalls training for 1.00 s, and all workers together were lost 2 times in "
         "5 h");
    f.most = 2 * MINUTE;
    says(f,
         "every 2 min: a save stalls training for 1.00 s, and all workers together were lost 2 times in 5 h; "
         "checkpoint.maxLoss is the most");
    f = usual, f.safe = 500 * RM_S;
    says(f, "every 8.33 min: a save stalls training for 1.00 s, and all workers together were lost 0 times "
            "in 0 s; "
            "a save is safe after 8.33 min");
    f = usual, f.stall = -5;
    says(
        f,
        "every 60 s: a save stalls training for 0.00 s, and all workers together were lost 0 times in 0 s; a "
        "minute is the least");
    f.measured = false;
    says(f, "every 60 s: what a save costs is not known yet");
}
