/* Lanes shared out by how fast ranks are. */
#include "trainer/core/pace.h"

#include <criterion/criterion.h>
#include <string.h>

#include "common/base/prng.h"

enum { MOST = 8 };

/* The same header n times; returns how often shares moved. */
static int hear(struct pace *p, int n, const uint32_t *us)
{
    int moved = 0;
    for (int i = 0; i < n; i++)
        moved += pace_hear(p, us);
    return moved;
}

static void has_shares(const struct pace *p, const int *count)
{
    for (int r = 0; r < p->shares.world; r++)
        cr_assert_eq(p->shares.count[r], count[r], "rank %d has %d lanes, not %d", r, p->shares.count[r],
                     count[r]);
}

/* ---- shares ---- */

struct row {
    const char *what;
    int lanes, world;
    uint32_t us[MOST];
    int count[MOST];
};

static const struct row rows[] = {
    {"one of four at half speed", 64, 4, {5000, 5000, 10000, 5000}, {19, 18, 9, 18}},
    {"one of two at half speed", 12, 2, {20000, 10000}, {4, 8}},
    {"three speeds", 12, 3, {10000, 20000, 30000}, {7, 3, 2}},
    {"so slow that one lane holds all up", 8, 4, {10000, 10000, 10000, 50000}, {3, 2, 2, 1}},
    {"as many lanes as ranks", 4, 4, {10000, 10000, 10000, 90000}, {1, 1, 1, 1}},
    {"a gain of less than 5 %", 64, 4, {10000, 10000, 10400, 10000}, {16, 16, 16, 16}},
    {"no whole lane to be had", 8, 4, {10000, 10000, 14000, 10000}, {2, 2, 2, 2}},
    {"a gain of less than a millisecond", 64, 4, {10, 10, 40, 10}, {16, 16, 16, 16}},
    {"all alike", 64, 8, {900, 900, 900, 900, 900, 900, 900, 900}, {8, 8, 8, 8, 8, 8, 8, 8}},
    {"alone", 5, 1, {70000}, {5}},
    {"the longest times that can be said", 3, 2, {UINT32_MAX, UINT32_MAX / 4}, {1, 2}},
};

Test(pace, shares_follow_speeds_where_it_is_worth_it)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        struct pace p;
        pace_begin(&p, row->lanes, row->world, true);
        hear(&p, 40, row->us);
        for (int r = 0; r < row->world; r++)
            cr_assert_eq(p.shares.count[r], row->count[r], "%s: rank %d has %d lanes", row->what, r,
                         p.shares.count[r]);
        cr_assert_eq(hear(&p, 200, row->us), 0, "%s: they move again", row->what);
    }
}

/* ---- room for an audit ---- */

static const struct room_row {
    const char *what;
    int lanes, world, headers;
    uint32_t us[MOST];
    bool room[MOST];
} room_rows[] = {
    {"nothing is known yet, and 3, 3, 2", 8, 3, 7, {9000, 9000, 30000}, {true, false, false}},
    {"nothing is known yet, and all as many", 8, 4, 7, {9000, 9000, 9000, 9000}, {false}},
    {"alike, with a lane less", 8, 3, 8, {9000, 9000, 9000}, {true, false, false}},
    {"a lane less, as it is slower", 8, 3, 8, {9001, 9000, 9000}, {false, false, false}},
    {"as many, and much faster", 8, 4, 8, {1000, 9000, 1000, 9000}, {true, false, true, false}},
    {"one of two that holds the other up", 64, 2, 40, {1000, 64000}, {true, false}},
    {"19, 18, 9 and 18", 64, 4, 40, {5000, 5000, 10000, 5000}, {false, true, false, true}},
    {"steps that are too short to tell", 8, 3, 40, {30, 9, 9}, {true, false, false}},
    {"more ranks than lanes", 2, 3, 40, {0, 9000, 9000}, {true, false, false}},
    {"alone", 4, 1, 40, {9000}, {false}},
};

Test(pace, who_would_only_wait_meanwhile_has_room_for_a_lane)
{
    for (size_t i = 0; i < sizeof room_rows / sizeof *room_rows; i++) {
        const struct room_row *row = &room_rows[i];
        struct pace p;
        pace_begin(&p, row->lanes, row->world, true);
        hear(&p, row->headers, row->us);
        for (int r = 0; r < row->world; r++)
            cr_assert_eq(pace_has_room(&p, r), row->room[r], "%s: rank %d of %d lanes", row->what, r,
                         p.shares.count[r]);
    }
}

Test(pace, who_has_a_lane_less_since_it_was_slow_has_no_room_by_that_alone)
{
    struct pace p;
    pace_begin(&p, 64, 3, true);
    hear(&p, 40, (const uint32_t[]){5000, 5000, 10000});
    hear(&p, 40, (const uint32_t[]){5000, 5000, 5200});
    cr_assert(shares_are_even(&p.shares) && p.shares.count[2] == 21, "%d lanes", p.shares.count[2]);
    cr_assert_not(pace_has_room(&p, 2), "one more takes it longer than others have");
}

/* ---- shares that move ---- */

Test(pace, shares_move_once_eight_headers_in_a_row_say_so_of_ranks_known_by_eight)
{
    struct pace p;
    const uint32_t us[] = {10000, 20000};
    pace_begin(&p, 12, 2, true);
    cr_assert_eq(hear(&p, PACE_HEARD - 1 + PACE_PATIENCE - 1, us), 0);
    cr_assert_eq(hear(&p, 1, us), 1);
    has_shares(&p, (const int[]){8, 4});
}

Test(pace, they_go_back_when_speeds_do)
{
    struct pace p;
    pace_begin(&p, 64, 4, true);
    hear(&p, 40, (const uint32_t[]){5000, 5000, 10000, 5000});
    cr_assert_eq(p.shares.count[2], 9);
    hear(&p, 40, (const uint32_t[]){5000, 5000, 5000, 5000});
    has_shares(&p, (const int[]){16, 16, 16, 16});
}

Test(pace, one_step_out_of_eight_that_took_long_moves_nothing)
{
    struct pace p;
    pace_begin(&p, 16, 4, true);
    for (int step = 0; step < 400; step++) {
        uint32_t us[] = {10000, 10000, 10000, 10000};
        if (step % 8 == 3)
            us[step / 8 % 4] = 900000;
        cr_assert_not(pace_hear(&p, us), "step %d", step);
    }
}

Test(pace, noise_of_a_twentieth_moves_nothing)
{
    uint64_t chance = 7;
    struct pace p;
    pace_begin(&p, 64, 8, true);
    for (int step = 0; step < 5000; step++) {
        uint32_t us[8];
        for (int r = 0; r < 8; r++)
            us[r] = 10000 + (uint32_t)prng_below(&chance, 500);
        cr_assert_not(pace_hear(&p, us), "step %d", step);
    }
}

Test(pace, whoever_hears_the_same_headers_shares_out_the_same)
{
    uint64_t chance = 11;
    struct pace a, b;
    int moved = 0;
    pace_begin(&a, 48, 5, true);
    memset(&b, 0x5a, sizeof b); /* what was there before is forgotten */
    pace_begin(&b, 48, 5, true);
    for (int step = 0; step < 3000; step++) {
        uint32_t us[5];
        for (int r = 0; r < 5; r++)
            us[r] = 2000 + (uint32_t)prng_below(&chance, 1 + 4000 * (uint64_t)((step / 50 + r) % 5));
        moved += pace_hear(&a, us);
        pace_hear(&b, us);
        cr_assert(!memcmp(&a.shares, &b.shares, sizeof a.shares), "step %d", step);
        cr_assert_eq(shares_lanes(&a.shares), 48);
        for (int r = 0; r < 5; r++)
            cr_assert_geq(a.shares.count[r], 1, "rank %d", r);
    }
    cr_assert_gt(moved, 10);
}

Test(pace, who_has_no_lanes_gets_none_and_holds_nobody_up)
{
    struct pace p;
    pace_begin(&p, 12, 3, true);
    p.shares = (struct lane_shares){.world = 3, .count = {6, 0, 6}};
    hear(&p, 40, (const uint32_t[]){10000, 0, 20000});
    has_shares(&p, (const int[]){8, 0, 4});
    cr_assert_eq(pace_of_rank(&p, 1), 0);
    cr_assert_eq(pace_percent(&p, 1), 0);
}

Test(pace, a_header_in_which_somebody_does_not_know_is_passed_over)
{
    struct pace p;
    pace_begin(&p, 12, 2, true);
    cr_assert_eq(hear(&p, 100, (const uint32_t[]){10000, 0}), 0);
    cr_assert_eq(pace_of_rank(&p, 0), 0);
}

Test(pace, where_sums_depend_on_shares_they_stay)
{
    struct pace p;
    pace_begin(&p, 12, 2, false);
    cr_assert_eq(hear(&p, 100, (const uint32_t[]){10000, 40000}), 0);
    has_shares(&p, (const int[]){6, 6});
    cr_assert_eq(pace_percent(&p, 1), 400);
}

/* What the issue asks: no step longer than 1.15 of what speeds add up to. */
Test(pace, one_of_four_at_half_speed_costs_no_more_than_its_speed_is_less)
{
    struct pace p;
    const uint32_t us[] = {10000, 20000, 10000, 10000};
    double speeds = 0;
    uint64_t longest = 0;
    pace_begin(&p, 64, 4, true);
    hear(&p, 40, us);
    for (int r = 0; r < 4; r++) {
        uint64_t takes = us[r] * (uint64_t)p.shares.count[r];
        longest = takes > longest ? takes : longest;
        speeds += 1.0 / us[r];
    }
    cr_assert_leq((double)longest, 1.15 * 64 / speeds);
}

/* ---- who is slow ---- */

Test(pace, a_rank_is_measured_by_the_one_in_the_middle)
{
    struct pace p;
    pace_begin(&p, 64, 4, true);
    cr_assert_eq(pace_percent(&p, 0), 0);
    hear(&p, PACE_HEARD, (const uint32_t[]){4000, 5000, 12000, 20000});
    cr_assert_eq(pace_percent(&p, 0), 80);
    cr_assert_eq(pace_percent(&p, 1), 100);
    cr_assert_eq(pace_percent(&p, 2), 240);
    cr_assert_eq(pace_percent(&p, 3), 400);
    pace_begin(&p, 64, 4, true);
    hear(&p, PACE_HEARD, (const uint32_t[]){10, 10, 10, 50}); /* 16 lanes: less than a millisecond */
    cr_assert_eq(pace_percent(&p, 3), 100);
}

Test(pace, a_worker_is_slow_after_twenty_steps_and_no_longer_after_twenty)
{
    struct pace_watch w = {0};
    cr_assert_eq(pace_watch_hear(&w, 200), PACE_DOUBTED);
    for (int i = 2; i < PACE_STEPS; i++)
        cr_assert_eq(pace_watch_hear(&w, 200), PACE_STAYS);
    cr_assert_eq(pace_watch_hear(&w, 0), PACE_STAYS, "of a ring that is new nothing is known");
    cr_assert_eq(pace_watch_hear(&w, 151), PACE_TURNS);
    cr_assert(w.slow);
    cr_assert_eq(pace_watch_hear(&w, 300), PACE_STAYS);
    cr_assert_eq(pace_watch_hear(&w, 150), PACE_DOUBTED);
    cr_assert_eq(pace_watch_hear(&w, 300), PACE_STAYS);
    for (int i = 1; i < PACE_STEPS; i++)
        pace_watch_hear(&w, 100);
    cr_assert(w.slow);
    cr_assert_eq(pace_watch_hear(&w, 100), PACE_TURNS);
    cr_assert_not(w.slow);
}
