/* What is to be looked at, and when: keys, not events.
 *
 * An item waits at most once, for the earliest of the moments asked for. While it is in work it is not handed
 * out again; what is asked for meanwhile counts once it is done. So one item is never worked on twice at the
 * same time, and no change is lost. Time is an argument. */
#ifndef RM_OPERATOR_QUEUE_H
#define RM_OPERATOR_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/time.h"

/* Lives in whatever is queued; zeros at first. */
struct queue_item {
    rm_time due;     /* when it is wanted; of one in work: when again, RM_NEVER is not */
    uint64_t number; /* of two that are due together the one that was asked for first */
    size_t place;    /* in the heap, from 1; 0: it doesn't wait */
    bool in_work;
    int failures; /* in a row */
};

struct queue {
    struct queue_item **heap; /* [1..count], the earliest on top */
    size_t count, room;
    uint64_t numbers, seed;
    int in_work;
};

void queue_clear(struct queue *queue); /* a queue of zeros is an empty one; set its seed */
/* Wants it at `when` at the latest; the past is now. */
void queue_add(struct queue *queue, struct queue_item *item, rm_time when);
/* The next that is due, in work from now on; NULL: none is. */
struct queue_item *queue_take(struct queue *queue, rm_time now);
void queue_done(struct queue *queue, struct queue_item *item);
/* Does as queue_done, and wants it again after a back-off: `least` doubled for each failure in a row, up to
 * `most`, less up to half of it by chance. A change that comes meanwhile doesn't wait for it. */
void queue_retry(struct queue *queue, struct queue_item *item, rm_time now, rm_time least, rm_time most);
void queue_forget(struct queue_item *item);                      /* it went well: failures begin anew */
void queue_remove(struct queue *queue, struct queue_item *item); /* not in work */
rm_time queue_next(const struct queue *queue);                   /* when the next is due; RM_NEVER */

#endif
