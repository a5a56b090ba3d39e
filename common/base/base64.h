/* Base64 (RFC 4648, with padding), as it stands in JSON and YAML for bytes that are no text. */
#ifndef RM_BASE_BASE64_H
#define RM_BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/str.h"

/* Appends the text of `length` bytes. */
void base64_encode(const void *bytes, size_t length, struct str *out);

/* Appends the bytes that the text stands for. White space (line breaks of a file) is skipped; false where
 * anything else is not base64, or the padding is wrong: what was appended by then stays. */
bool base64_decode(const char *text, struct str *out);

#endif
