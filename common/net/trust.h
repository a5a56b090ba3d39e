/* Whose certificates are believed where nobody names a file of them. */
#ifndef RM_NET_TRUST_H
#define RM_NET_TRUST_H

#include <stddef.h>

enum { TRUST_PATH_MAX = 1024 };

/* NULL: what the system's own libraries take. A program of the bundle, in an image of somebody else's, takes
 * that image's file, wherever its distribution has it, and the bundle's own (in `room`) where it has none. */
const char *trust_file(char *room, size_t size);
/* The same with everything given: bundle NULL is none, `places` ends in NULL. */
const char *trust_choose(const char *bundle, const char *const *places, char *room, size_t size);

#endif
