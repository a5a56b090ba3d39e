#include "common/object/date.h"

#include <stdio.h>
#include <string.h>

/* Days since the epoch of a day of the Gregorian calendar, and back, counting years from March so that the
 * leap day is a year's last (Howard Hinnant, "chrono-compatible low-level date algorithms"). */
static int64_t days_of(int64_t year, int month, int day)
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400, of_era = year - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static void day_of(int64_t days, int *year, int *month, int *day)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097, in_era = days - era * 146097;
    int64_t of_era = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    int64_t of_year = in_era - (365 * of_era + of_era / 4 - of_era / 100),
            from_march = (5 * of_year + 2) / 153;
    *day = (int)(of_year - (153 * from_march + 2) / 5 + 1);
    *month = (int)(from_march < 10 ? from_march + 3 : from_march - 9);
    *year = (int)(of_era + era * 400 + (*month <= 2));
}

void date_amz(int64_t seconds, char out[DATE_AMZ])
{
    int year, month, day;
    int64_t days = (seconds >= 0 ? seconds : seconds - 86399) / 86400, of_day = seconds - days * 86400;
    day_of(days, &year, &month, &day);
    snprintf(out, DATE_AMZ, "%04u%02u%02uT%02u%02u%02uZ", (unsigned)year % 10000, (unsigned)month % 100,
             (unsigned)day % 100, (unsigned)(of_day / 3600) % 100, (unsigned)(of_day / 60 % 60),
             (unsigned)(of_day % 60));
}

static bool moment(int year, int month, int day, const int of_day[3], int64_t *ret)
{
    if (year < 1 || month < 1 || month > 12 || day < 1 || day > 31 || of_day[0] < 0 || of_day[0] > 23 ||
        of_day[1] < 0 || of_day[1] > 59 || of_day[2] < 0 || of_day[2] > 60)
        return false;
    *ret = days_of(year, month, day) * 86400 + of_day[0] * 3600 + of_day[1] * 60 + of_day[2];
    return true;
}

bool date_of_http(const char *text, int64_t *ret)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    char name[4];
    int day, year, of_day[3], end = 0;
    if (sscanf(text, "%*3[A-Za-z], %2d %3[A-Za-z] %4d %2d:%2d:%2d GMT%n", &day, name, &year, &of_day[0],
               &of_day[1], &of_day[2], &end) != 6 ||
        !end || text[end] || strlen(name) != 3)
        return false;
    const char *at = strstr(months, name);
    if (!at || (at - months) % 3)
        return false;
    return moment(year, (int)(at - months) / 3 + 1, day, of_day, ret);
}

bool date_of_iso(const char *text, int64_t *ret)
{
    int year, month, day, of_day[3], end = 0;
    if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d%n", &year, &month, &day, &of_day[0], &of_day[1], &of_day[2],
               &end) != 6 ||
        !end)
        return false;
    const char *rest = text + end;
    if (*rest == '.')
        rest += 1 + strspn(rest + 1, "0123456789");
    if (strcmp(rest, "Z") != 0 && strcmp(rest, "+00:00") != 0)
        return false;
    return moment(year, month, day, of_day, ret);
}
