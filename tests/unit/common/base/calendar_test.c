#include "common/base/calendar.h"

#include <criterion/criterion.h>
#include <time.h>

Test(calendar, known_days_are_where_they_belong)
{
    cr_assert_eq(calendar_days(1970, 1, 1), 0);
    cr_assert_eq(calendar_days(1969, 12, 31), -1);
    cr_assert_eq(calendar_days(2000, 2, 29), 11016);
    cr_assert_eq(calendar_days(2000, 3, 1), 11017);
    cr_assert_eq(calendar_days(1900, 3, 1) - calendar_days(1900, 2, 28), 1, "no leap year");
    cr_assert_eq(calendar_days(0, 3, 1), -719468);
    cr_assert_eq(calendar_days(2026, 2, 30), calendar_days(2026, 3, 2), "it counts on");
}

/* The C library's own calendar is asked, from the year -400 to 2800. */
Test(calendar, every_day_comes_back_and_is_the_librarys)
{
    for (int64_t days = -865625; days <= 303519; days++) {
        int64_t year;
        int month, day;
        struct tm tm;
        time_t seconds = (time_t)days * 86400;
        calendar_date(days, &year, &month, &day);
        cr_assert_eq(calendar_days(year, month, day), days);
        cr_assert(gmtime_r(&seconds, &tm));
        bool same = year == tm.tm_year + 1900 && month == tm.tm_mon + 1 && day == tm.tm_mday;
        cr_assert(same, "day %lld is %lld-%d-%d", (long long)days, (long long)year, month, day);
    }
}
