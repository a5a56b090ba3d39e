/* Counts in eras of 400 years that begin in March, so that the leap day is a year's last (Howard Hinnant,
 * "chrono-compatible low-level date algorithms"). */
#include "common/base/calendar.h"

#include "common/base/assert.h"

enum { ERA_DAYS = 146097, EPOCH = 719468 /* from 0000-03-01 to 1970-01-01 */ };

int64_t calendar_days(int64_t year, int month, int day)
{
    RM_ASSERT(month >= 1 && month <= 12, "month %d of a year", month);
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400, of_era = year - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * ERA_DAYS + of_era * 365 + of_era / 4 - of_era / 100 + of_year - EPOCH;
}

void calendar_date(int64_t days, int64_t *ret_year, int *ret_month, int *ret_day)
{
    days += EPOCH;
    int64_t era = (days >= 0 ? days : days - ERA_DAYS + 1) / ERA_DAYS, of_era = days - era * ERA_DAYS;
    int64_t years = (of_era - of_era / 1460 + of_era / 36524 - of_era / (ERA_DAYS - 1)) / 365;
    int64_t of_year = of_era - (365 * years + years / 4 - years / 100), from_march = (5 * of_year + 2) / 153;
    *ret_day = (int)(of_year - (153 * from_march + 2) / 5 + 1);
    *ret_month = (int)(from_march < 10 ? from_march + 3 : from_march - 9);
    *ret_year = years + era * 400 + (*ret_month <= 2);
    RM_ASSERT(*ret_month >= 1 && *ret_month <= 12 && *ret_day >= 1 && *ret_day <= 31,
              "day %lld is the %d. of month %d", (long long)days, *ret_day, *ret_month);
}
