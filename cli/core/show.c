/* Numbers as people read them. */
#include <stdio.h>
#include <string.h>

#include "cli/core/screen.h"

void show_count(int64_t n, struct str *out)
{
    char digits[32];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)n);
    for (int i = 0; i < length; i++) {
        int left = length - i;
        if (i && left % 3 == 0 && digits[i - 1] != '-')
            str_adds(out, ",");
        str_add(out, &digits[i], 1);
    }
}

void show_bytes(int64_t n, struct str *out)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB"};
    double x = (double)n;
    int unit = 0;
    while (x >= 1000 && unit < 4) {
        x /= 1000;
        unit++;
    }
    str_addf(out, unit && x < 100 ? "%.1f %s" : "%.0f %s", x, units[unit]);
}

void show_time(rm_time t, struct str *out)
{
    long long s = (t + RM_S / 2) / RM_S;
    if (s < 60)
        str_addf(out, "%lld s", s);
    else if (s < 3600)
        str_addf(out, "%lld min %02lld s", s / 60, s % 60);
    else
        str_addf(out, "%lld h %02lld min", s / 3600, s / 60 % 60);
}

void show_age(rm_time t, struct str *out)
{
    long long s = t / RM_S;
    if (s < -60)
        str_adds(out, "?"); /* a clock that is ahead of this one */
    else if (s < 0)
        str_adds(out, "0s");
    else if (s < 120)
        str_addf(out, "%llds", s);
    else if (s < 2 * 3600)
        str_addf(out, "%lldm", s / 60);
    else if (s < 48 * 3600)
        str_addf(out, "%lldh", s / 3600);
    else
        str_addf(out, "%lldd", s / (24 * 3600));
}

void show_ms(double ms, struct str *out)
{
    if (ms < 9.95)
        str_addf(out, "%.1f ms", ms);
    else if (ms < 10000)
        str_addf(out, "%.0f ms", ms);
    else
        str_addf(out, "%.1f s", ms / 1000);
}
