/* What the snapshot before says of the next one. */
#include "agent/freeze/core/freeze_cost.h"

#include <criterion/criterion.h>
#include <string.h>

#define MIB ((int64_t)1 << 20)

static const struct freeze_cost none = {0};
/* 100 MiB: 2 s to this disk, of which it stood still for one, and 6 s to the store. */
static const struct freeze_cost last = {
    .memory = 100 * MIB, .frozen = RM_S, .dump = 2 * RM_S, .send = 6 * RM_S};

Test(freeze_cost, there_is_to_be_room_and_time_for_one)
{
    static const struct {
        const struct freeze_cost *last;
        struct freeze_want want;
        const char *sentence; /* NULL: it is made */
    } rows[] = {
        {&none, {-1, -1, RM_NEVER}, NULL},
        {&none, {100 * MIB, 100 * MIB, RM_S}, NULL}, /* nobody knows how long it takes */
        {&none,
         {101 * MIB, 100 * MIB, RM_NEVER},
         "there is no room for a snapshot: 101 MiB are in memory, and 100 MiB free on disk; make its volume "
         "larger"},
        {&last, {100 * MIB, 1000 * MIB, 10 * RM_S}, NULL},
        {&last, {50 * MIB, 1000 * MIB, 10 * RM_S}, NULL},
        {&last,
         {100 * MIB, 1000 * MIB, 9 * RM_S},
         "there is no time for a snapshot: it takes 10.0 s by the one before, and 9.0 s are left"},
        {&last,
         {200 * MIB, 1000 * MIB, 19 * RM_S},
         "there is no time for a snapshot: it takes 20.0 s by the one before, and 19.0 s are left"},
        {&last, {200 * MIB, 1000 * MIB, RM_NEVER}, NULL},
        {&last, {-1, -1, 10 * RM_S}, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error err = {0};
        int result = freeze_refuse(rows[i].last, &rows[i].want, &err);
        cr_assert_eq(result < 0, rows[i].sentence != NULL, "row %zu: %s", i, err.text);
        if (rows[i].sentence)
            cr_assert_str_eq(err.text, rows[i].sentence);
        cr_assert(strlen(err.text) < 192);
    }
}

Test(freeze_cost, what_costs_more_is_made_less_often)
{
    static const struct {
        struct freeze_cost last;
        rm_time most, every;
    } rows[] = {
        {{.memory = MIB, .frozen = RM_MS, .dump = RM_MS, .send = RM_MS}, 1800 * RM_S, 60 * RM_S},
        {{.memory = MIB, .frozen = 200 * RM_MS, .dump = RM_S, .send = RM_S}, 1800 * RM_S, 200 * RM_S},
        {{.memory = MIB, .frozen = RM_MS, .dump = RM_S, .send = 29 * RM_S}, 1800 * RM_S, 300 * RM_S},
        {{.memory = MIB, .frozen = 10 * RM_S, .dump = RM_S, .send = RM_S}, 1800 * RM_S, 1800 * RM_S},
        {{.memory = MIB, .frozen = RM_NEVER - 1, .dump = RM_NEVER - 1, .send = RM_NEVER - 1},
         90 * RM_S,
         90 * RM_S},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_assert_eq(freeze_every(&rows[i].last, rows[i].most), rows[i].every, "row %zu", i);
}
