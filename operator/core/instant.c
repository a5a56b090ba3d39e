#include "operator/core/instant.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/calendar.h"
#include "common/base/date.h"

enum { MS_S = 1000, DAY_S = 86400 };

/* Reads exactly `digits` digits. */
static bool number(const char **at, int digits, int *ret)
{
    RM_ASSERT(digits > 0 && digits <= 9, "a number of %d digits", digits);
    int value = 0;
    for (int i = 0; i < digits; i++, (*at)++) {
        if (!isdigit((unsigned char)**at))
            return false;
        value = value * 10 + (**at - '0');
    }
    *ret = value;
    return true;
}

static bool mark(const char **at, char wanted)
{
    bool there = **at == wanted;
    *at += there;
    return there;
}

/* ".123456" -> 123. */
static bool fraction(const char **at, int *ret_ms)
{
    *ret_ms = 0;
    if (!mark(at, '.'))
        return true;
    if (!isdigit((unsigned char)**at))
        return false;
    for (int weight = 100; isdigit((unsigned char)**at); (*at)++, weight /= 10)
        *ret_ms += weight * (**at - '0');
    RM_ASSERT(*ret_ms >= 0 && *ret_ms < MS_S, "%d ms of a second", *ret_ms);
    return true;
}

static bool zone(const char **at, int *ret_s)
{
    int hours, minutes;
    *ret_s = 0;
    if (mark(at, 'Z'))
        return true;
    int sign = **at == '-' ? -1 : 1;
    if (!mark(at, '+') && !mark(at, '-'))
        return false;
    if (!number(at, 2, &hours) || !mark(at, ':') || !number(at, 2, &minutes) || hours > 23 || minutes > 59)
        return false;
    *ret_s = sign * (hours * 3600 + minutes * 60);
    RM_ASSERT(*ret_s > -DAY_S && *ret_s < DAY_S, "a zone %d s away", *ret_s);
    return true;
}

bool instant_parse(const char *text, int64_t *ret_ms)
{
    int year, month, day, hour, minute, second, ms, offset;
    if (!text || !number(&text, 4, &year) || !mark(&text, '-') || !number(&text, 2, &month) ||
        !mark(&text, '-') || !number(&text, 2, &day) || !mark(&text, 'T'))
        return false;
    if (!number(&text, 2, &hour) || !mark(&text, ':') || !number(&text, 2, &minute) || !mark(&text, ':') ||
        !number(&text, 2, &second) || !fraction(&text, &ms) || !zone(&text, &offset) || *text)
        return false;
    if (month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 || second > 60)
        return false;
    int64_t seconds = calendar_days(year, month, day) * DAY_S + hour * 3600 + minute * 60 + second - offset;
    *ret_ms = seconds * MS_S + ms;
    return true;
}

void instant_text(int64_t ms, char out[OP_INSTANT_TEXT])
{
    date_iso(ms / MS_S, out);
}
