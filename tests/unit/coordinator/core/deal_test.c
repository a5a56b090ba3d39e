#include "coordinator/core/deal.h"

#include <criterion/criterion.h>
#include <string.h>

enum { LANES = 12, MEMBERS = 4 };

/* done: what each has computed, a letter a lane ("..xx"); kept: who may keep it; rank: whose each lane is. */
static const struct row {
    const char *what;
    int world;
    const char *done[MEMBERS];
    const char *kept, *rank;
    int left;
    const char *idle; /* a letter a rank; NULL: none is */
} rows[] = {
    {"nobody has anything: usual shares", 3, {"", "", ""}, "---", "000011112222", 12, NULL},
    {"one of four died, and had a quarter",
     3,
     {"xxx", "...xxx", "......xxx"},
     "yyy",
     "000111222012",
     3,
     NULL},
    {"who has least left gets the lanes of the dead", 2, {"xx", "....xxxx"}, "yy", "000011110111", 6, NULL},
    {"all is computed", 2, {"xxxxxx", "......xxxxxx"}, "yy", "000000111111", 0, NULL},
    {"one lane in two sets: the larger set stays", 2, {"xx", ".xxx"}, "-y", "011100001111", 9, NULL},
    {"as large: the first stays", 2, {"xx", ".xx"}, "y-", "000000011111", 10, NULL},
    {"a third one meets neither", 3, {"x", "xx", "..x"}, "-yy", "112000111222", 9, NULL},
    {"alone", 1, {"..x"}, "y", "000000000000", 11, NULL},
    {"one is to have none", 3, {"", "", ""}, "---", "000000111111", 12, "..x"},
    {"two are to have none, and one has computed some",
     4,
     {"", "xx", "", ""},
     "-y--",
     "110000011111",
     10,
     "..xx"},
    {"fewer lanes left than members", 4, {"xxxxxx", "......xxxxx", "", ""}, "yy--", "000000111110", 1, NULL},
};

static struct lane_set of(const char *letters)
{
    struct lane_set set = {0};
    for (int i = 0; letters && letters[i]; i++)
        if (letters[i] == 'x')
            lane_set_add(&set, i);
    return set;
}

Test(deal, who_has_computed_keeps_it_and_the_rest_is_shared_out)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        struct lane_set done[MEMBERS];
        int rank[LANES];
        char text[LANES + 1] = "";
        for (int r = 0; r < MEMBERS; r++)
            done[r] = of(row->done[r]);
        struct worker_set idle = {0};
        for (int r = 0; row->idle && row->idle[r]; r++)
            if (row->idle[r] == 'x')
                set_add(&idle, r);
        cr_assert_eq(deal_lanes(LANES, row->world, idle, done, rank), row->left, "%s", row->what);
        for (int lane = 0; lane < LANES; lane++)
            text[lane] = (char)('0' + rank[lane]);
        cr_assert_str_eq(text, row->rank, "%s: %s, not %s", row->what, text, row->rank);
        for (int r = 0; r < row->world; r++)
            cr_assert_eq(!lane_set_is_empty(&done[r]), row->kept[r] == 'y', "%s: rank %d", row->what, r);
    }
}

/* Whatever was computed: each lane is one member's, what is kept is its owner's, and no two have more than
 * one lane more to compute. */
Test(deal, shares_are_as_even_as_they_can_be_whatever_was_done)
{
    for (unsigned chance = 1; chance < 3000; chance++) {
        struct lane_set done[MEMBERS] = {0};
        int rank[LANES], todo[MEMBERS] = {0}, world = 1 + (int)(chance % MEMBERS), least = LANES, most = 0;
        unsigned bits = chance * 2654435761u;
        for (int lane = 0; lane < LANES; lane++, bits = bits * 1664525u + 1013904223u)
            if (bits >> 31)
                lane_set_add(&done[(bits >> 16) % (unsigned)world], lane);
        if (chance % 3 == 0)
            lane_set_add(&done[0], (int)(chance % LANES));
        struct worker_set none = {0};
        int left = deal_lanes(LANES, world, none, done, rank), counted = 0;
        for (int lane = 0; lane < LANES; lane++) {
            cr_assert(rank[lane] >= 0 && rank[lane] < world);
            for (int r = 0; r < world; r++)
                cr_assert(!lane_set_has(&done[r], lane) || rank[lane] == r);
            todo[rank[lane]] += !lane_set_has(&done[rank[lane]], lane);
        }
        for (int r = 0; r < world; r++) {
            counted += todo[r];
            least = todo[r] < least ? todo[r] : least;
            most = todo[r] > most ? todo[r] : most;
        }
        cr_assert_eq(counted, left);
        cr_assert(most - least <= 1, "%d and %d lanes", least, most);
    }
}
