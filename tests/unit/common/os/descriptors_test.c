#include "common/os/descriptors.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

Test(descriptors, a_process_takes_as_many_as_it_may_have)
{
    struct rlimit limit = {0}, before;
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit little = {64, before.rlim_max};
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &little), 0);
    descriptors_raise();
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    cr_assert_eq(limit.rlim_cur, before.rlim_max);
    cr_assert_eq(limit.rlim_max, before.rlim_max);
}

Test(descriptors, having_no_more_of_them_is_told_from_other_failures)
{
    enum { LITTLE = 64 };
    struct rlimit limit;
    int fd = 0;
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    struct rlimit little = {LITTLE, limit.rlim_max};
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &little), 0);
    for (int i = 0; i < LITTLE && fd >= 0; i++)
        fd = dup(0);
    cr_assert_eq(fd, -1);
    cr_assert(descriptors_short(errno));
    cr_assert_eq(dup(-1), -1);
    cr_assert_not(descriptors_short(errno));
}

Test(descriptors, what_is_left_beside_those_that_are_kept_follows_from_the_limit)
{
    struct rlimit limit;
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &(struct rlimit){1000, limit.rlim_max}), 0);
    cr_assert_eq(descriptors_beside(256), 744);
    cr_assert_eq(descriptors_beside(600), 500, "half, where little is left");
    cr_assert_eq(descriptors_beside(0), 1000);
}
