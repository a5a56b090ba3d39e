/* Moments as object stores write them; all in UTC, as seconds since the epoch. */
#ifndef RM_OBJECT_DATE_H
#define RM_OBJECT_DATE_H

#include <stdbool.h>
#include <stdint.h>

enum { DATE_AMZ = 17 };

void date_amz(int64_t seconds, char out[DATE_AMZ]); /* "20150830T123600Z"; years 1 to 9999 */
/* "Sun, 06 Nov 1994 08:49:37 GMT" */
bool date_of_http(const char *text, int64_t *ret);
/* "2009-10-12T17:50:30.000Z", with or without a fraction */
bool date_of_iso(const char *text, int64_t *ret);

#endif
