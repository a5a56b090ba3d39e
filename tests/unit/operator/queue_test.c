#include "operator/queue.h"

#include <criterion/criterion.h>

#include "common/base/prng.h"

Test(queue, hands_out_what_is_due_the_earliest_first_and_each_once)
{
    struct queue queue = {0};
    struct queue_item item[3] = {0};
    queue_add(&queue, &item[0], 30);
    queue_add(&queue, &item[1], 10);
    queue_add(&queue, &item[2], 20);
    queue_add(&queue, &item[0], 5);  /* wanted sooner */
    queue_add(&queue, &item[1], 50); /* later than it is wanted anyway */
    cr_assert_eq(queue_next(&queue), 5);
    cr_assert_null(queue_take(&queue, 4));
    cr_assert_eq(queue_take(&queue, 25), &item[0]);
    cr_assert_eq(queue_take(&queue, 25), &item[1]);
    cr_assert_eq(queue_take(&queue, 25), &item[2]);
    cr_assert_null(queue_take(&queue, 1000));
    cr_assert_eq(queue.in_work, 3);
    queue_clear(&queue);
}

Test(queue, a_change_during_work_comes_after_it)
{
    struct queue queue = {0};
    struct queue_item item = {0};
    queue_add(&queue, &item, 1);
    cr_assert_eq(queue_take(&queue, 1), &item);
    queue_add(&queue, &item, 9);
    queue_add(&queue, &item, 7);
    cr_assert_null(queue_take(&queue, 100), "never twice at the same time");
    queue_done(&queue, &item);
    cr_assert_eq(queue_next(&queue), 7);
    cr_assert_eq(queue_take(&queue, 7), &item);
    queue_done(&queue, &item);
    cr_assert_eq(queue_next(&queue), RM_NEVER);
    queue_clear(&queue);
}

Test(queue, failures_wait_longer_and_longer_and_a_change_does_not_wait_for_them)
{
    struct queue queue = {.seed = 1};
    struct queue_item item = {0};
    rm_time now = 0;
    queue_add(&queue, &item, now);
    for (int i = 0; i < 12; i++) {
        cr_assert_eq(queue_take(&queue, now), &item);
        queue_retry(&queue, &item, now, 100, 1600);
        rm_time delay = queue_next(&queue) - now, whole = i < 4 ? 100 << i : 1600;
        cr_assert(delay >= whole / 2 && delay <= whole, "failure %d waits %lld", i, (long long)delay);
        now += delay;
    }
    queue_add(&queue, &item, now - 1);
    cr_assert_eq(queue_take(&queue, now), &item);
    queue_forget(&item);
    queue_retry(&queue, &item, now, 100, 1600);
    cr_assert_leq(queue_next(&queue) - now, 100);
    queue_clear(&queue);
}

Test(queue, of_two_together_the_first_asked_for_is_first)
{
    struct queue queue = {0};
    struct queue_item item[50] = {0};
    for (int i = 0; i < 50; i++)
        queue_add(&queue, &item[i], 5);
    for (int i = 0; i < 50; i++)
        cr_assert_eq(queue_take(&queue, 5), &item[i]);
    queue_clear(&queue);
}

Test(queue, is_what_a_slow_list_would_be)
{
    enum { ITEMS = 40 };
    struct queue queue = {0};
    struct queue_item item[ITEMS] = {0};
    rm_time wanted[ITEMS];
    uint64_t chance = 7;
    for (int i = 0; i < ITEMS; i++)
        wanted[i] = RM_NEVER;
    for (int step = 0; step < 20000; step++) {
        int i = (int)prng_below(&chance, ITEMS);
        rm_time when = (rm_time)prng_below(&chance, 1000), least = RM_NEVER;
        if (prng_below(&chance, 3)) {
            queue_add(&queue, &item[i], when);
            wanted[i] = when < wanted[i] ? when : wanted[i];
        } else {
            queue_remove(&queue, &item[i]);
            wanted[i] = RM_NEVER;
        }
        for (int k = 0; k < ITEMS; k++)
            least = wanted[k] < least ? wanted[k] : least;
        cr_assert_eq(queue_next(&queue), least);
        if (step % 5)
            continue;
        struct queue_item *taken = queue_take(&queue, 500);
        cr_assert_eq(taken != NULL, least <= 500);
        if (taken) {
            cr_assert_eq(wanted[taken - item], least);
            wanted[taken - item] = RM_NEVER;
            queue_done(&queue, taken);
        }
    }
    queue_clear(&queue);
}
