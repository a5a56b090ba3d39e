#include "common/base/date.h"

#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
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

void date_iso(int64_t seconds, char out[DATE_ISO])
{
    char amz[DATE_AMZ];
    date_amz(seconds, amz);
    snprintf(out, DATE_ISO, "%.4s-%.2s-%.2sT%.2s:%.2s:%.2sZ", amz, amz + 4, amz + 6, amz + 9, amz + 11,
             amz + 13);
}

struct moment {
    int year, month, day, hour, minute, second;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* `count` digits, neither more nor fewer. */
static bool take_number(const char **at, int count, int *ret)
{
    int value = 0;
    for (int i = 0; i < count; i++, ++*at) {
        if (!is_digit(**at))
            return false;
        value = value * 10 + (**at - '0');
    }
    *ret = value;
    return true;
}

static bool take_text(const char **at, const char *text)
{
    size_t length = strlen(text);
    bool there = !strncmp(*at, text, length);
    *at += there ? length : 0;
    return there;
}

static bool take_time(const char **at, struct moment *m)
{
    return take_number(at, 2, &m->hour) && take_text(at, ":") && take_number(at, 2, &m->minute) &&
           take_text(at, ":") && take_number(at, 2, &m->second);
}

static bool seconds_of(const struct moment *m, int64_t *ret)
{
    if (m->year < 1 || m->month < 1 || m->month > 12 || m->day < 1 || m->day > 31 || m->hour > 23 ||
        m->minute > 59 || m->second > 60)
        return false;
    int64_t days = calendar_days(m->year, m->month, m->day);
    RM_ASSERT(m->hour >= 0 && m->minute >= 0 && m->second >= 0, "%d:%d:%d is read", m->hour, m->minute,
              m->second);
    *ret = ((days * 24 + m->hour) * 60 + m->minute) * 60 + m->second;
    return true;
}

static bool take_month(const char **at, int *ret)
{
    static const char names[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    for (int i = 0; i < 12; i++)
        if (take_text(at, names[i])) {
            *ret = i + 1;
            return true;
        }
    return false;
}

static bool take_weekday(const char **at)
{
    for (int i = 0; i < 3; i++, ++*at)
        if (!((**at >= 'A' && **at <= 'Z') || (**at >= 'a' && **at <= 'z')))
            return false;
    return take_text(at, ", ");
}

bool date_of_http(const char *text, int64_t *ret)
{
    struct moment m;
    const char *at = text;
    return (is_digit(*at) || take_weekday(&at)) && take_number(&at, 2, &m.day) && take_text(&at, " ") &&
           take_month(&at, &m.month) && take_text(&at, " ") && take_number(&at, 4, &m.year) &&
           take_text(&at, " ") && take_time(&at, &m) && take_text(&at, " GMT") && !*at && seconds_of(&m, ret);
}

/* The decimals behind the seconds, as ms; 0 where there are none. */
static bool take_decimals(const char **at, int *ret)
{
    int scale = 100, digits = 0;
    *ret = 0;
    if (**at != '.')
        return true;
    for (++*at; is_digit(**at); ++*at, scale /= 10, digits++)
        *ret += (**at - '0') * scale;
    return digits >= 1 && digits <= 9;
}

bool date_of_iso_ms(const char *text, int64_t *ret)
{
    struct moment m;
    const char *at = text;
    int64_t seconds;
    int ms;
    bool read = take_number(&at, 4, &m.year) && take_text(&at, "-") && take_number(&at, 2, &m.month) &&
                take_text(&at, "-") && take_number(&at, 2, &m.day) && take_text(&at, "T") &&
                take_time(&at, &m) && take_decimals(&at, &ms) &&
                (take_text(&at, "Z") || take_text(&at, "+00:00")) && !*at && seconds_of(&m, &seconds);
    if (read)
        *ret = seconds * 1000 + ms;
    return read;
}

bool date_of_iso(const char *text, int64_t *ret)
{
    int64_t ms;
    bool read = date_of_iso_ms(text, &ms);
    if (read)
        *ret = ms >= 0 ? ms / 1000 : -((999 - ms) / 1000);
    return read;
}
