/* What a container's environment says to the programs that start in it, and not to Ringmaster's.
 *
 * An image is free to set LD_PRELOAD, PYTHONHOME or GLIBC_TUNABLES: they are for its own programs. In such an
 * image ours come with a loader and libraries of their own (agent/bundle), which those variables would break.
 * So the first program puts them aside under another name before any loader has read them, and the last thing
 * before the user's program gives them back: same names, values, order and number.
 *
 * Pure, and without a call of any library: the first program has none. */
#ifndef RM_LAUNCH_ASIDE_H
#define RM_LAUNCH_ASIDE_H

#include <stdbool.h>
#include <stddef.h>

/* In front of each name that is put aside. */
#define ASIDE_PREFIX "RINGMASTER_ASIDE_"

/* Whether this entry (NAME=VALUE) changes how a program of ours would start or what it would load. */
bool aside_concerns(const char *entry);
bool aside_is_put(const char *entry); /* it has the prefix */
/* How many bytes aside_put needs for this environment and `said`. */
size_t aside_room(char *const *environment, const char *said);
/* An environment in `room` (aligned as a pointer is) in which all of that is aside, and `said` (NAME=VALUE)
 * is the last entry, the only one of its name. Its other strings are those of `environment`. What has the
 * prefix already is left out: it is nobody's. */
char **aside_put(char *const *environment, const char *said, void *room);
/* Turns what aside_put made into what it was made of, in its place; any other environment stays as it is. */
void aside_give_back(char **environment);

#endif
