/* Moments as other programs write them; all in UTC. Pure. */
#ifndef RM_BASE_DATE_H
#define RM_BASE_DATE_H

#include <stdbool.h>
#include <stdint.h>

enum { DATE_AMZ = 17, DATE_ISO = 21 };

/* Seconds since the epoch; years 1 to 9999. */
void date_amz(int64_t seconds, char out[DATE_AMZ]); /* "20150830T123600Z" */
void date_iso(int64_t seconds, char out[DATE_ISO]); /* "2015-08-30T12:36:00Z" */
/* "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110, 5.6.7); the day of the week may be missing, and is not compared.
 */
bool date_of_http(const char *text, int64_t *ret);

/* "2009-10-12T17:50:30.000Z" (RFC 3339), with 0 to 9 decimals, or +00:00 for Z: seconds, and milliseconds. */
bool date_of_iso(const char *text, int64_t *ret);
bool date_of_iso_ms(const char *text, int64_t *ret);

#endif
