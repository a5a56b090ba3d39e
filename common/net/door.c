#include "common/net/door.h"

#include <stddef.h>

void door_enter(struct door *door, struct door_entry *entry, rm_time now)
{
    *entry = (struct door_entry){.older = door->newest, .inside = true, .until = now + door->patience};
    if (door->newest)
        door->newest->newer = entry;
    else
        door->oldest = entry;
    door->newest = entry;
    door->count[DOOR_STRANGER]++;
}

void door_leave(struct door *door, struct door_entry *entry)
{
    if (!entry->inside)
        return;
    *(entry->older ? &entry->older->newer : &door->oldest) = entry->newer;
    *(entry->newer ? &entry->newer->older : &door->newest) = entry->older;
    door->count[entry->kind]--;
    entry->inside = false;
}

static void become(struct door *door, struct door_entry *entry, enum door_kind kind)
{
    if (!entry->inside)
        return;
    door->count[entry->kind]--;
    door->count[kind]++;
    entry->kind = kind;
}

bool door_prove(struct door *door, struct door_entry *entry)
{
    if (door->count[DOOR_PROVEN] >= door->most[DOOR_PROVEN])
        return false;
    become(door, entry, DOOR_PROVEN);
    return true;
}

void door_watch(struct door *door, struct door_entry *entry)
{
    become(door, entry, DOOR_WATCHER);
}

static struct door_entry *oldest_of(const struct door *door, enum door_kind kind, bool waits_too)
{
    struct door_entry *entry = door->oldest;
    while (entry && (entry->kind != kind || (entry->waits && !waits_too)))
        entry = entry->newer;
    return entry;
}

struct door_entry *door_surplus(const struct door *door)
{
    if (door->count[DOOR_STRANGER] > door->most[DOOR_STRANGER])
        return oldest_of(door, DOOR_STRANGER, true);
    if (door->count[DOOR_WATCHER] <= door->most[DOOR_WATCHER])
        return NULL;
    struct door_entry *idle = oldest_of(door, DOOR_WATCHER, false);
    return idle ? idle : oldest_of(door, DOOR_WATCHER, true);
}

struct door_entry *door_late(const struct door *door, rm_time now)
{
    struct door_entry *oldest = oldest_of(door, DOOR_STRANGER, true);
    return oldest && oldest->until <= now ? oldest : NULL;
}

rm_time door_deadline(const struct door *door)
{
    const struct door_entry *oldest = oldest_of(door, DOOR_STRANGER, true);
    return oldest ? oldest->until : RM_NEVER;
}
