/* The Gregorian calendar (also before it was made), and days since 1970-01-01. */
#ifndef RM_BASE_CALENDAR_H
#define RM_BASE_CALENDAR_H

#include <stdint.h>

/* month 1 to 12; a day past the month's last one counts on into the next. */
int64_t calendar_days(int64_t year, int month, int day);
void calendar_date(int64_t days, int64_t *ret_year, int *ret_month, int *ret_day);

#endif
