/* Who may stay at a server's door: a pure list of its incoming connections in the order in which they came.
 *
 * A connection is a stranger when it comes. Who asks something that anybody may ask becomes a watcher, who
 * proves who it is gets one of the places that are kept for such. Each kind has a limit of its own, so that
 * no number of strangers or watchers takes a place from one that is proven. Of too many strangers the oldest
 * has to go; of too many watchers the oldest whose answer is not due any more, or else the oldest. A
 * stranger has to go after `patience`, counted from when it came. */
#ifndef RM_NET_DOOR_H
#define RM_NET_DOOR_H

#include <stdbool.h>

#include "common/base/time.h"

enum door_kind { DOOR_STRANGER, DOOR_WATCHER, DOOR_PROVEN, DOOR_KINDS };

/* Part of the connection, which the caller owns. */
struct door_entry {
    struct door_entry *older, *newer;
    enum door_kind kind;
    bool inside; /* in the list */
    bool waits;  /* set by the caller: a watcher whose answer is due */
    rm_time until;
};

struct door {
    int most[DOOR_KINDS]; /* set by the caller, as patience is; all else is zero at first */
    rm_time patience;
    int count[DOOR_KINDS];
    struct door_entry *oldest, *newest;
};

void door_enter(struct door *door, struct door_entry *entry, rm_time now);
void door_leave(struct door *door, struct door_entry *entry); /* also one that is not inside */
/* false, and nothing changes, where all places of proven ones are taken. */
bool door_prove(struct door *door, struct door_entry *entry);
void door_watch(struct door *door, struct door_entry *entry);

/* One that has to go, because there are too many of its kind or because it is late; NULL: nobody. */
struct door_entry *door_surplus(const struct door *door);
struct door_entry *door_late(const struct door *door, rm_time now);
rm_time door_deadline(const struct door *door); /* when somebody will be late; RM_NEVER */

#endif
