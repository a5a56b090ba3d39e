#include "common/base/date.h"

#include <criterion/criterion.h>
#include <stdio.h>

static int64_t http(const char *text)
{
    int64_t t = -1;
    return date_of_http(text, &t) ? t : -1;
}

static int64_t iso(const char *text)
{
    int64_t t = -1;
    return date_of_iso(text, &t) ? t : -1;
}

Test(date, moments_are_read_as_the_standards_write_them)
{
    cr_assert_eq(http("Sun, 06 Nov 1994 08:49:37 GMT"), 784111777); /* RFC 9110, 5.6.7 */
    cr_assert_eq(http("Thu, 01 Jan 1970 00:00:00 GMT"), 0);
    cr_assert_eq(http("Thu, 29 Feb 2024 23:59:59 GMT"), 1709251199);
    cr_assert_eq(iso("1994-11-06T08:49:37Z"), 784111777);
    cr_assert_eq(iso("1994-11-06T08:49:37.123456Z"), 784111777);
    cr_assert_eq(iso("2000-03-01T00:00:00+00:00"), 951868800);
}

Test(date, what_is_no_moment_is_refused)
{
    static const char *const wrong[] = {"",
                                        "Sunday, 06-Nov-94 08:49:37 GMT",
                                        "Sun, 06 Nov 1994 08:49:37",
                                        "Sun, 06 Now 1994 08:49:37 GMT",
                                        "Sun, 06 anF 1994 08:49:37 GMT",
                                        "Sun, 06 Nov 1994 24:49:37 GMT",
                                        "Sun, 06 Nov 1994 08:49:37 GMT!",
                                        "Sun, 06 Nov 1994 08:-1:37 GMT",
                                        "1994-13-06T08:49:37Z",
                                        "1994-11-06T08:49:37",
                                        "1994-11-06 08:49:37Z",
                                        "1994-11-06T08:49:37.12",
                                        "-994-11-06T08:49:37Z"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        cr_assert_eq(http(wrong[i]), -1, "%s", wrong[i]);
        cr_assert_eq(iso(wrong[i]), -1, "%s", wrong[i]);
    }
}

Test(date, what_is_written_is_read_back_over_four_hundred_years)
{
    for (int64_t t = 0; t < (int64_t)400 * 366 * 86400; t += 86400 * 3 + 3671) {
        char text[DATE_ISO];
        int64_t back = -1;
        date_iso(t, text);
        cr_assert(date_of_iso(text, &back), "%s", text);
        cr_assert_eq(back, t, "%s", text);
    }
    char amz[DATE_AMZ], text[DATE_ISO];
    date_amz(1440938160, amz);
    cr_assert_str_eq(amz, "20150830T123600Z");
    date_iso(1440938160, text);
    cr_assert_str_eq(text, "2015-08-30T12:36:00Z");
}
