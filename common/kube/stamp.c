#include "common/kube/stamp.h"

#include <stddef.h>
#include <stdio.h>

#include "common/base/calendar.h"
#include "common/base/date.h"

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

bool stamp_read(const char *text, int64_t *ret_ms)
{
    return date_of_iso_ms(text, ret_ms);
}
