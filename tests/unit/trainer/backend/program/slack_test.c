/* How long a program may be at one task, as a table. */
#include <criterion/criterion.h>
#include <inttypes.h>

#include "trainer/backend/program/slack.h"

static const struct {
    const char *what;
    int tasks;
    rm_time took[6]; /* each an update; below 0: another task that took as long */
    rm_time slack;
} table[] = {
    {"nothing was done yet: it may compile", 0, {0}, 300 * RM_S},
    {"two updates", 2, {RM_MS, RM_MS}, 300 * RM_S},
    {"two updates and lanes", 5, {RM_MS, -RM_MS, -RM_MS, RM_MS, -RM_MS}, 300 * RM_S},
    {"three quick ones", 3, {RM_MS, RM_MS, RM_MS}, 30 * RM_S},
    {"three of 3 s", 3, {3 * RM_S, 3 * RM_S, 3 * RM_S}, 30 * RM_S},
    {"an evaluation of 4 s, long ago", 5, {RM_MS, 4 * RM_S, RM_MS, RM_MS, RM_MS}, 40 * RM_S},
    {"a lane of 12 s", 4, {RM_MS, RM_MS, RM_MS, -12 * RM_S}, 120 * RM_S},
    {"a first lane that compiles for 29 s", 4, {-29 * RM_S, RM_S, RM_S, RM_S}, 290 * RM_S},
    {"an evaluation of 30 s", 3, {RM_S, RM_S, 30 * RM_S}, 300 * RM_S},
    {"one of a day", 3, {RM_S, RM_S, 86400 * RM_S}, 300 * RM_S},
    {"one that would be no time any more, ten times", 3, {RM_S, RM_S, RM_NEVER}, 300 * RM_S},
};

Test(slack, what_a_program_has_shown_says_how_long_it_may_say_nothing)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct slack s = {0};
        for (int t = 0; t < table[i].tasks; t++) {
            rm_time took = table[i].took[t];
            slack_task_took(&s, took > 0, took > 0 ? took : -took);
        }
        cr_assert_eq(slack_of(&s), table[i].slack, "%s: %" PRId64 " s", table[i].what, slack_of(&s) / RM_S);
    }
}
