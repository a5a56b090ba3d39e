#include "operator/queue.h"

#include <stdlib.h>

#include "common/base/prng.h"

static bool before(const struct queue_item *a, const struct queue_item *b)
{
    return a->due != b->due ? a->due < b->due : a->number < b->number;
}

static void put_item(struct queue *queue, struct queue_item *item, size_t place)
{
    queue->heap[place] = item;
    item->place = place;
}

static void rise(struct queue *queue, struct queue_item *item)
{
    size_t at = item->place;
    for (; at > 1 && before(item, queue->heap[at / 2]); at /= 2)
        put_item(queue, queue->heap[at / 2], at);
    put_item(queue, item, at);
}

static void sink(struct queue *queue, struct queue_item *item)
{
    size_t at = item->place;
    for (;;) {
        size_t child = 2 * at;
        if (child < queue->count && before(queue->heap[child + 1], queue->heap[child]))
            child++;
        if (child > queue->count || !before(queue->heap[child], item))
            break;
        put_item(queue, queue->heap[child], at);
        at = child;
    }
    put_item(queue, item, at);
}

static void push(struct queue *queue, struct queue_item *item)
{
    if (queue->count + 2 > queue->room) {
        queue->room = queue->room ? 2 * queue->room : 16;
        queue->heap = realloc(queue->heap, queue->room * sizeof(struct queue_item *));
        if (!queue->heap)
            abort();
    }
    item->number = queue->numbers++;
    put_item(queue, item, ++queue->count);
    rise(queue, item);
}

void queue_add(struct queue *queue, struct queue_item *item, rm_time when)
{
    if (item->in_work) {
        item->due = when < item->due ? when : item->due;
    } else if (!item->place) {
        item->due = when;
        push(queue, item);
    } else if (when < item->due) {
        item->due = when;
        rise(queue, item);
    }
}

void queue_remove(struct queue *queue, struct queue_item *item)
{
    if (!item->place)
        return;
    struct queue_item *last = queue->heap[queue->count--];
    if (last != item) {
        put_item(queue, last, item->place);
        rise(queue, last);
        sink(queue, last);
    }
    item->place = 0;
}

struct queue_item *queue_take(struct queue *queue, rm_time now)
{
    if (queue_next(queue) > now)
        return NULL;
    struct queue_item *item = queue->heap[1];
    queue_remove(queue, item);
    item->in_work = true;
    item->due = RM_NEVER;
    queue->in_work++;
    return item;
}

void queue_done(struct queue *queue, struct queue_item *item)
{
    item->in_work = false;
    queue->in_work--;
    if (item->due != RM_NEVER)
        push(queue, item);
}

void queue_retry(struct queue *queue, struct queue_item *item, rm_time now, rm_time least, rm_time most)
{
    rm_time delay = least;
    for (int i = 0; i < item->failures && delay < most; i++)
        delay *= 2;
    delay = delay < most ? delay : most;
    delay -= (rm_time)(prng_unit(&queue->seed) * (double)delay / 2);
    item->failures++;
    queue_add(queue, item, now + delay);
    queue_done(queue, item);
}

void queue_forget(struct queue_item *item)
{
    item->failures = 0;
}

rm_time queue_next(const struct queue *queue)
{
    return queue->count ? queue->heap[1]->due : RM_NEVER;
}

void queue_clear(struct queue *queue)
{
    free(queue->heap);
    *queue = (struct queue){0};
}
