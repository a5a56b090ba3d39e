/* Times as the API server writes them (RFC 3339 in UTC), from and to milliseconds since the epoch. Pure. */
#ifndef RM_KUBE_STAMP_H
#define RM_KUBE_STAMP_H

#include <stdbool.h>
#include <stdint.h>

enum { STAMP_MAX = 32 };

void stamp_print(int64_t ms, char out[STAMP_MAX]);       /* "2026-11-21T05:30:45Z" */
void stamp_print_micro(int64_t ms, char out[STAMP_MAX]); /* "2026-11-21T05:30:45.120000Z": MicroTime */

/* Either of them, with 0 to 9 decimals; false for what is neither. */
bool stamp_read(const char *text, int64_t *ret_ms);

#endif
