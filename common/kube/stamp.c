#include "common/kube/stamp.h"

#include <stddef.h>
#include <stdio.h>

#include "common/base/calendar.h"

static int print_seconds(int64_t seconds, char *out, size_t size)
{
    int64_t days = (seconds >= 0 ? seconds : seconds - 86399) / 86400, of_day = seconds - days * 86400, year;
    int month, day;
    calendar_date(days, &year, &month, &day);
    return snprintf(out, size, "%04lld-%02d-%02dT%02d:%02d:%02d", (long long)year, month, day,
                    (int)(of_day / 3600), (int)(of_day / 60 % 60), (int)(of_day % 60));
}

static int64_t seconds_of(int64_t ms)
{
    return (ms >= 0 ? ms : ms - 999) / 1000;
}

void stamp_print(int64_t ms, char out[STAMP_MAX])
{
    int n = print_seconds(seconds_of(ms), out, STAMP_MAX);
    if (n > 0 && n < STAMP_MAX)
        snprintf(out + n, (size_t)(STAMP_MAX - n), "Z");
}

void stamp_print_micro(int64_t ms, char out[STAMP_MAX])
{
    int n = print_seconds(seconds_of(ms), out, STAMP_MAX);
    if (n > 0 && n < STAMP_MAX)
        snprintf(out + n, (size_t)(STAMP_MAX - n), ".%03d000Z", (int)(ms - seconds_of(ms) * 1000));
}

/* The decimals behind the seconds, as ms; 0 where there are none. *at moves behind them. */
static int read_decimals(const char **at)
{
    int ms = 0, scale = 100, digits = 0;
    if (**at != '.')
        return 0;
    for (++*at; **at >= '0' && **at <= '9'; ++*at, scale /= 10, digits++)
        ms += (**at - '0') * scale;
    return digits >= 1 && digits <= 9 ? ms : -1;
}

bool stamp_read(const char *text, int64_t *ret_ms)
{
    int year, month, day, hour, minute, second, end = 0;
    if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d%n", &year, &month, &day, &hour, &minute, &second, &end) != 6 ||
        end != 19 || month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 ||
        second > 60)
        return false;
    const char *at = text + end;
    int ms = read_decimals(&at);
    if (ms < 0 || at[0] != 'Z' || at[1])
        return false;
    *ret_ms = ((calendar_days(year, month, day) * 24 + hour) * 60 + minute) * 60000 + second * 1000LL + ms;
    return true;
}
