#include "common/net/door.h"

#include <criterion/criterion.h>

static struct door door_of(int strangers, int watchers, int proven)
{
    return (struct door){.most = {strangers, watchers, proven}, .patience = 5};
}

Test(door, of_too_many_strangers_the_oldest_has_to_go)
{
    struct door door = door_of(2, 1, 1);
    struct door_entry e[4];
    for (int i = 0; i < 2; i++)
        door_enter(&door, &e[i], i);
    cr_assert_null(door_surplus(&door));
    door_enter(&door, &e[2], 2);
    cr_assert_eq(door_surplus(&door), &e[0]);
    door_leave(&door, &e[0]);
    cr_assert_null(door_surplus(&door));
    door_enter(&door, &e[3], 3);
    cr_assert_eq(door_surplus(&door), &e[1]);
}

Test(door, who_is_proven_is_never_in_surplus_and_their_places_are_counted_apart)
{
    struct door door = door_of(1, 1, 2);
    struct door_entry proven[3], stranger[5];
    for (int i = 0; i < 3; i++) {
        door_enter(&door, &proven[i], 0);
        cr_assert_eq(door_prove(&door, &proven[i]), i < 2);
    }
    cr_assert_null(door_surplus(&door), "the third is the one stranger that there may be");
    for (int i = 0; i < 5; i++) {
        door_enter(&door, &stranger[i], 1);
        struct door_entry *gone = door_surplus(&door);
        cr_assert_eq(gone, i ? &stranger[i - 1] : &proven[2]);
        door_leave(&door, gone);
    }
    cr_assert_eq(door.count[DOOR_PROVEN], 2);
    door_leave(&door, &proven[0]);
    cr_assert(door_prove(&door, &stranger[4]), "a place that is free again is given again");
}

Test(door, of_too_many_watchers_one_that_has_its_answer_goes_before_one_that_waits)
{
    struct door door = door_of(4, 2, 0);
    struct door_entry e[4];
    for (int i = 0; i < 3; i++) {
        door_enter(&door, &e[i], 0);
        door_watch(&door, &e[i]);
    }
    e[0].waits = true;
    cr_assert_eq(door_surplus(&door), &e[1]);
    e[1].waits = e[2].waits = true;
    cr_assert_eq(door_surplus(&door), &e[0]);
    door_enter(&door, &e[3], 0);
    cr_assert_eq(door_surplus(&door), &e[0], "a stranger takes no watcher's place");
}

Test(door, a_strangers_time_counts_from_when_it_came_and_ends_when_it_is_known)
{
    struct door door = door_of(4, 4, 4);
    struct door_entry first, second, third;
    cr_assert_eq(door_deadline(&door), RM_NEVER);
    door_enter(&door, &first, 10);
    door_enter(&door, &second, 11);
    door_enter(&door, &third, 12);
    cr_assert_eq(door_deadline(&door), 15);
    cr_assert_null(door_late(&door, 14));
    cr_assert_eq(door_late(&door, 15), &first);
    cr_assert(door_prove(&door, &first));
    door_watch(&door, &second);
    cr_assert_null(door_late(&door, 16));
    cr_assert_eq(door_deadline(&door), 17);
    cr_assert_eq(door_late(&door, 17), &third);
    door_leave(&door, &third);
    door_leave(&door, &third);
    cr_assert_eq(door_deadline(&door), RM_NEVER);
    cr_assert_eq(door.count[DOOR_STRANGER], 0);
}
