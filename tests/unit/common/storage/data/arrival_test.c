/* Data that come while a job waits for them. */
#include "common/storage/data/arrival.h"

#include <criterion/criterion.h>

struct look {
    int64_t at_s;
    struct arrival_amount there;
    bool over;
};

static void sees(const struct look *looks, size_t count)
{
    struct arrival arrival = {0};
    for (size_t i = 0; i < count; i++)
        cr_expect_eq(arrival_is_over(&arrival, looks[i].there, looks[i].at_s * RM_S), looks[i].over,
                     "look %zu", i);
}

#define SEES(...)                                                                                            \
    do {                                                                                                     \
        static const struct look looks[] = {__VA_ARGS__};                                                    \
        sees(looks, sizeof looks / sizeof *looks);                                                           \
    } while (0)

Test(arrival, what_lies_there_from_the_start_is_waited_for_by_nobody)
{
    SEES({100, {40, 4000}, true}, {101, {41, 4100}, true});
}

Test(arrival, nothing_is_no_data_however_long_it_lasts)
{
    SEES({100, {0, 0}, false}, {131, {0, 0}, false}, {5000, {0, 0}, false});
}

Test(arrival, what_comes_has_come_once_there_is_no_more_for_a_while)
{
    SEES({100, {0, 0}, false}, {130, {1, 100}, false}, {159, {1, 100}, false}, {160, {1, 100}, true});
}

Test(arrival, each_file_more_and_each_that_is_another_one_begins_the_while_anew)
{
    SEES({100, {0, 0}, false}, {130, {1, 100}, false}, {160, {2, 200}, false}, {189, {2, 250}, false},
         {218, {2, 250}, false}, {219, {2, 250}, true});
}

Test(arrival, what_is_taken_away_again_is_waited_for_again)
{
    SEES({100, {0, 0}, false}, {130, {1, 100}, false}, {150, {0, 0}, false}, {151, {1, 100}, false},
         {181, {1, 100}, true});
}
