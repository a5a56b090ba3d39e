/* Which sentences of a log that nobody empties are said, where somebody else decides what comes: a server
 * that is now well and now not, and again, for weeks. The first time at once, then ever more rarely, up to
 * once an hour, and how many were not said is counted. Pure.
 *
 * Sentences that differ in their numbers alone are one. Of more of them than there is room for no new one is
 * said until one has not come for an hour. */
#ifndef RM_NOTICE_REPEATS_H
#define RM_NOTICE_REPEATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/time.h"

enum { REPEATS_KINDS = 8 };

/* Zero at first. */
struct repeats {
    struct repeats_kind {
        uint64_t hash; /* of the sentence; 0: this one is free */
        int said;      /* so often */
        int64_t more;  /* not said since */
        rm_time at;    /* said the last time */
        rm_time came;
    } kind[REPEATS_KINDS];
    int64_t others; /* not said, as there was no room */
};

/* Whether the sentence is to be said now; *ret_more: how many were not since it, or another one, was. */
bool repeats_say(struct repeats *r, const char *sentence, rm_time now, int64_t *ret_more);

/* The same for a sentence in a buffer: empty where it is not to be said, else with that number behind it. */
void repeats_thin(struct repeats *r, rm_time now, char *sentence, size_t size);

#endif
