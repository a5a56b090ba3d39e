/* Which checkpoints make way for the one that is published. Pure.
 *
 * Of those up to that one that have a readable manifest the newest `keep` stay, itself included. Newer ones
 * neither count nor go: whoever went back behind them may have been wrong about them. What has no readable
 * manifest neither counts nor goes either: it may be whole on another machine. */
#ifndef RM_STORE_KEEP_RULE_H
#define RM_STORE_KEEP_RULE_H

#include <stdbool.h>
#include <stdint.h>

struct keep_entry {
    int64_t step;
    bool readable; /* need not be known of those that are newer than what is published */
    bool goes;     /* the answer */
};

/* entry: (count), newest first. keep: at least 1 counts. */
void keep_rule(struct keep_entry *entry, int count, int64_t published, int keep);

#endif
