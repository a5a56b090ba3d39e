/* {"name": "value", ...}, the one level in which services tell credentials: read into the caller's memory,
 * with no copy of a secret left behind. credentials_remote.c reads Amazon's answers with it,
 * credentials_google.c Google's. */
#ifndef RM_OBJECT_CREDENTIALS_JSON_H
#define RM_OBJECT_CREDENTIALS_JSON_H

#include <stdbool.h>
#include <stddef.h>

struct credentials_field {
    const char *name;
    char *out;
    size_t size;
    bool word; /* a number, true, false or null: its characters; or a text, which is the usual */
};

/* A field whose value is of the other kind, or that is absent, stays as it is; so does what nobody asks for.
 * false: not JSON of one level, or a value has no room. */
bool credentials_json(const char *text, size_t length, const struct credentials_field *field, int fields);

#endif
