#include "common/base/software.h"

#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"

void software_of(const char *fingerprint, char out[RM_FINGERPRINT_MAX])
{
    static const char begin[] = "numerics ";
    const char *library = strrchr(fingerprint, ',');
    RM_ASSERT(fingerprint != out, "software of '%s' written over it", fingerprint);
    *out = 0;
    if (library && !strncmp(fingerprint, begin, sizeof begin - 1))
        snprintf(out, RM_FINGERPRINT_MAX, "%.*s%.80s", (int)strcspn(fingerprint, ","), fingerprint, library);
}

/* "oneDNN" of "numerics ID, oneDNN 3.1.5", with its length. */
static const char *library_name(const char *software, size_t *ret_length)
{
    const char *comma = strrchr(software, ',');
    const char *name = comma ? comma + 1 + strspn(comma + 1, " ") : "";
    *ret_length = strcspn(name, " ");
    return name;
}

bool software_differs(const char *one, const char *other, char a[RM_FINGERPRINT_MAX],
                      char b[RM_FINGERPRINT_MAX])
{
    size_t length_a, length_b;
    software_of(one, a);
    software_of(other, b);
    const char *library_a = library_name(a, &length_a), *library_b = library_name(b, &length_b);
    return *a && *b && length_a == length_b && !strncmp(library_a, library_b, length_a) && strcmp(a, b) != 0;
}
