#include "common/storage/object/date.h"

#include <stdio.h>
#include <string.h>

#include "common/base/calendar.h"

void date_amz(int64_t seconds, char out[DATE_AMZ])
{
    int64_t year;
    int month, day;
    int64_t days = (seconds >= 0 ? seconds : seconds - 86399) / 86400, of_day = seconds - days * 86400;
    calendar_date(days, &year, &month, &day);
    snprintf(out, DATE_AMZ, "%04u%02u%02uT%02u%02u%02uZ", (unsigned)year % 10000, (unsigned)month % 100,
             (unsigned)day % 100, (unsigned)(of_day / 3600) % 100, (unsigned)(of_day / 60 % 60),
             (unsigned)(of_day % 60));
}

static bool moment(int year, int month, int day, const int of_day[3], int64_t *ret)
{
    if (year < 1 || month < 1 || month > 12 || day < 1 || day > 31 || of_day[0] < 0 || of_day[0] > 23 ||
        of_day[1] < 0 || of_day[1] > 59 || of_day[2] < 0 || of_day[2] > 60)
        return false;
    *ret = calendar_days(year, month, day) * 86400 + of_day[0] * 3600 + of_day[1] * 60 + of_day[2];
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
