/* Which losses are known, and how one who hears of them adds them to its own. */
#include "common/model/losses.h"

#include <criterion/criterion.h>

static double loss_of(int64_t step)
{
    return 100 - (double)step;
}

static struct losses known(int64_t first, int64_t last)
{
    struct losses l = {0};
    for (int64_t step = first; step <= last; step++)
        losses_add(&l, step, loss_of(step));
    return l;
}

static void expect(const struct losses *l, int64_t first, int64_t last)
{
    double loss;
    cr_assert_eq(l->count, last - first + 1, "%d", l->count);
    for (int64_t step = first; step <= last; step++)
        cr_assert(losses_know(l, step, &loss) && loss == loss_of(step), "step %lld", (long long)step);
    cr_assert_not(losses_know(l, first - 1, &loss));
    cr_assert_not(losses_know(l, last + 1, &loss));
}

Test(losses, the_newest_of_many_are_kept)
{
    struct losses l = known(3, 100);
    expect(&l, 100 - LOSSES_KEPT + 1, 100);
}

Test(losses, a_step_told_once_more_is_known_once_and_another_past_is_forgotten)
{
    struct losses l = known(3, 6);
    losses_add(&l, 6, loss_of(6));
    expect(&l, 3, 6);
    losses_add(&l, 4, loss_of(4));
    expect(&l, 4, 4);
    losses_add(&l, 9, loss_of(9));
    expect(&l, 9, 9);
}

Test(losses, an_evaluation_is_known_of_its_step_whoever_tells_it)
{
    struct losses mine = known(3, 6), from = known(5, 7);
    double loss;
    losses_evaluate(&mine, 4, 0.5);
    losses_evaluate(&mine, 9, 0.5);
    losses_evaluate(&from, 6, 0.25);
    losses_take(&mine, &from);
    expect(&mine, 3, 7);
    cr_assert(losses_know_evaluation(&mine, 4, &loss) && loss == 0.5);
    cr_assert(losses_know_evaluation(&mine, 6, &loss) && loss == 0.25);
    cr_assert_not(losses_know_evaluation(&mine, 5, &loss) || losses_know_evaluation(&mine, 9, &loss));
    for (int64_t step = 8; step < 4 + LOSSES_KEPT; step++)
        losses_add(&mine, step, loss_of(step));
    cr_assert(losses_know_evaluation(&mine, 4, &loss) && losses_know_evaluation(&mine, 6, &loss));
    losses_add(&mine, 4 + LOSSES_KEPT, loss_of(4 + LOSSES_KEPT));
    cr_assert_not(losses_know_evaluation(&mine, 4, &loss));
    cr_assert(losses_know_evaluation(&mine, 6, &loss) && loss == 0.25);
}

Test(losses, whatever_another_one_knows_is_added)
{
    struct losses l = known(3, 6), more = known(5, 9), all = known(1, 9), newest = known(10, 10), none = {0};
    losses_take(&l, &more);
    expect(&l, 3, 9);
    losses_take(&l, &all);
    expect(&l, 1, 9);
    losses_take(&l, &newest);
    expect(&l, 1, 10);
    losses_take(&l, &none);
    expect(&l, 1, 10);
    struct losses longer = known(1, 12), shorter = known(5, 10);
    losses_take(&shorter, &longer);
    expect(&shorter, 1, 12);
    struct losses behind_a_gap = known(13, 14);
    losses_take(&l, &behind_a_gap);
    expect(&l, 13, 14);
    losses_take(&none, &l);
    expect(&none, 13, 14);
}
