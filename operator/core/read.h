/* Reading members of objects that others wrote: tolerant and bounded. What is absent or of another kind
 * leaves the caller's value as it is; texts are cut to fit, control characters become spaces. Pure. */
#ifndef RM_OPERATOR_CORE_READ_H
#define RM_OPERATOR_CORE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct js;

/* Down a dotted path ("status.phase"); NULL where a part is absent. Keys with dots: use js_get. */
const struct js *read_at(const struct js *object, const char *path);

void read_text(const struct js *object, const char *path, char *out, size_t size);
void read_int(const struct js *object, const char *path, int64_t lowest, int64_t highest, int64_t *ret);
void read_small(const struct js *object, const char *path, int lowest, int highest, int *ret);
void read_flag(const struct js *object, const char *path, bool *ret);
void read_instant(const struct js *object, const char *path, int64_t *ret_ms);

/* A copy without control characters and broken ends of UTF-8, cut to fit. */
void text_tame(const char *text, char *out, size_t size);
/* The same, but of a text that is too long it keeps both ends: a server's sentence names the thing first and
 * the cause last. size is 32 or more. */
void text_tame_ends(const char *text, char *out, size_t size);

#endif
