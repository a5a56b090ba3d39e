/* Where a URI of a job file lies on this machine. */
#ifndef RM_OS_URI_H
#define RM_OS_URI_H

#include <stddef.h>

#include "common/base/error.h"

/* Copies the path of `file:///folder` (or of a plain path) into out[size]. The bytes are taken as they are:
 * there is no %-decoding. Another scheme, or a path that doesn't fit, is ERR_USAGE with a sentence. */
int uri_path(const char *uri, char *out, size_t size, struct error *err);

#endif
