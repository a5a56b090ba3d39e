/* What is a report, what is none, and what is said of that. */
#include "agent/launch/core/progress.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "common/base/prng.h"

static const struct {
    const char *text;
    struct launch_progress wanted; /* loss NaN: not known */
} reports[] = {
    {"step=40 steps=1000 loss=2.5 rank=3", {3, 40, 1000, 2.5}},
    {"step=0", {-1, 0, 0, NAN}},
    {"rank=0 step=7\n", {0, 7, 0, NAN}},
    {"  loss=-1e-3   step=1  ", {-1, 1, 0, -1e-3}},
    {"step=1 loss=nan", {-1, 1, 0, NAN}},
    {"step=1 loss=-inf", {-1, 1, 0, NAN}},
    {"step=1 loss=1e999", {-1, 1, 0, NAN}},
    {"step=1 step=2", {-1, 2, 0, NAN}},
    {"step=1 accuracy=0.9 epoch=x", {-1, 1, 0, NAN}},
    {"step=9007199254740991", {-1, 9007199254740991, 0, NAN}},
};

Test(progress, reports)
{
    for (size_t i = 0; i < sizeof reports / sizeof *reports; i++) {
        struct launch_progress p;
        const struct launch_progress *w = &reports[i].wanted;
        struct error err = {0};
        cr_assert_eq(launch_progress_read(&p, reports[i].text, strlen(reports[i].text), &err), 0, "%s: %s",
                     reports[i].text, err.text);
        cr_assert(p.rank == w->rank && p.step == w->step && p.steps == w->steps, "%s", reports[i].text);
        cr_assert(isnan(w->loss) ? isnan(p.loss) : p.loss == w->loss, "%s: %g", reports[i].text, p.loss);
    }
}

static const struct {
    const char *text, *sentence;
} garbage[] = {
    {"", "no step"},
    {"   ", "no step"},
    {"loss=2", "no step"},
    {"{\"step\":1}", "not NAME=VALUE"},
    {"step=-1", "whole number"},
    {"step=1.5", "whole number"},
    {"step=", "whole number"},
    {"step=9007199254740992", "whole number"},
    {"step=99999999999999999999999999", "whole number"},
    {"step=1 steps=many", "whole number"},
    {"step=1 loss=2,5", "loss wants a number"},
    {"step=1 loss=", "loss wants a number"},
    {"step=1 \x01", "plain character"},
    {"step=\xff", "plain character"},
};

Test(progress, what_is_none_gets_a_sentence)
{
    for (size_t i = 0; i < sizeof garbage / sizeof *garbage; i++) {
        struct launch_progress p;
        struct error err = {0};
        cr_assert_eq(launch_progress_read(&p, garbage[i].text, strlen(garbage[i].text), &err), -1, "%s",
                     garbage[i].text);
        cr_assert(strstr(err.text, garbage[i].sentence), "%s: %s", garbage[i].text, err.text);
    }
}

Test(progress, the_longest_is_read_and_a_longer_one_is_not)
{
    char text[LAUNCH_PROGRESS_MAX + 1];
    struct launch_progress p;
    struct error err = {0};
    memset(text, ' ', sizeof text);
    memcpy(text, "step=1", 6);
    cr_assert_eq(launch_progress_read(&p, text, LAUNCH_PROGRESS_MAX, &err), 0);
    cr_assert_eq(launch_progress_read(&p, text, sizeof text, &err), -1);
    cr_assert(strstr(err.text, "longer than"), "%s", err.text);
}

/* Whatever comes, what is taken is within its bounds. */
Test(progress, any_bytes)
{
    static const char letters[] = "step=loank0123456789.-e \n\xff";
    uint64_t chance = 14;
    for (int round = 0; round < 20000; round++) {
        char text[64];
        size_t length = prng_below(&chance, sizeof text);
        struct launch_progress p;
        struct error err;
        for (size_t i = 0; i < length; i++)
            text[i] = letters[prng_below(&chance, sizeof letters - 1)];
        if (length > 8 && round % 2)
            memcpy(text, "step=", 5);
        if (launch_progress_read(&p, text, length, &err) == 0)
            cr_assert(p.step >= 0 && p.steps >= 0 && p.rank >= -1 && !isinf(p.loss));
    }
}
