/* Points in wall-clock time as Kubernetes writes them: RFC 3339 in UTC, kept as milliseconds since the epoch.
 * Pods, nodes and a restarted operator share no other clock. 0 stands for "none". Pure. */
#ifndef RM_OPERATOR_CORE_INSTANT_H
#define RM_OPERATOR_CORE_INSTANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OP_INSTANT_TEXT = 32 };

/* "2026-03-01T12:00:00Z", "...00.123456Z", "...+02:00". false where text is NULL or none of these. */
bool instant_parse(const char *text, int64_t *ret_ms);

/* In whole seconds, as metav1.Time is: "2026-03-01T12:00:00Z". */
void instant_text(int64_t ms, char out[OP_INSTANT_TEXT]);

#endif
