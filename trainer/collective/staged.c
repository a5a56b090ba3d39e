/* A ring over memory that is far away: window by window over a ring of near memory. */
#include "trainer/collective/staged.h"

#include <stdbool.h>
#include <stdlib.h>

#include "common/base/assert.h"
#include "trainer/backend/memory.h"
#include "trainer/collective/segments.h"

struct staged {
    struct collective base;
    struct collective *below;
    int64_t window;     /* elements */
    uint32_t *in, *out; // (window) what this rank adds, and the sum
};

/* A part of one segment, in a window. */
struct part {
    const struct collective_segment *whole;
    int64_t first; /* element of the segment */
    struct collective_segment here;
};

static struct staged *staged_of(struct collective *self)
{
    return (struct staged *)(void *)self;
}

static struct far far_of(const void *address, int64_t first)
{
    return far_add((struct far){(uint64_t)(uintptr_t)address}, first * 4);
}

/* Where this process may touch the bytes, NULL where it may not. */
static void *near_of(const struct collective_segment *s, const void *address, int64_t first)
{
    if (!s->in)
        return (char *)(uintptr_t)address + first * 4;
    return s->in->ops->near(s->in, far_of(address, first));
}

/* The parts of the window that begins at element `first` of the flat view; returns how many. */
static int cut_window(const struct staged *s, const struct collective_segment *segments, int n, int64_t first,
                      struct part *parts)
{
    int64_t left = s->window, used = 0;
    int count = 0;
    for (int i = 0; i < n && left > 0; i++) {
        const struct collective_segment *whole = &segments[i];
        if (first >= whole->count) {
            first -= whole->count;
            continue;
        }
        int64_t size = whole->count - first < left ? whole->count - first : left;
        struct part *p = &parts[count++];
        const void *from = whole->from ? near_of(whole, whole->from, first) : NULL;
        void *to = near_of(whole, whole->to, first);
        *p = (struct part){.whole = whole, .first = first};
        p->here = (struct collective_segment){.type = whole->type,
                                              .from = !whole->from || from ? from : s->in + used,
                                              .to = to ? to : s->out + used,
                                              .count = size,
                                              .at = whole->at + first};
        first = 0;
        used += size;
        left -= size;
    }
    return count;
}

static bool is_far(const struct part *p, const void *here, const void *there)
{
    return here && here != near_of(p->whole, there, p->first);
}

static int fetch(const struct staged *s, const struct part *p, struct error *err)
{
    struct memory *in = p->whole->in;
    const int64_t at = (const uint32_t *)p->here.from - s->in;
    if (!is_far(p, p->here.from, p->whole->from))
        return 0;
    return in->ops->read(in, s->in + at, far_of(p->whole->from, p->first), (size_t)p->here.count * 4, err);
}

static int put_back(const struct part *p, struct error *err)
{
    struct memory *in = p->whole->in;
    if (!is_far(p, p->here.to, p->whole->to))
        return 0;
    return in->ops->write(in, far_of(p->whole->to, p->first), p->here.to, (size_t)p->here.count * 4, err);
}

static int reduce_window(const struct staged *s, const struct part *parts, int n, int *ret_peer,
                         struct error *err)
{
    struct collective_segment here[STAGED_SEGMENTS];
    uint64_t proof[STAGED_SEGMENTS];
    for (int i = 0; i < n; i++) {
        if (fetch(s, &parts[i], err) < 0)
            return -1;
        here[i] = parts[i].here;
        here[i].proof = parts[i].whole->proof ? &proof[i] : NULL;
    }
    if (s->below->ops->reduce(s->below, here, n, ret_peer, err) < 0)
        return -1;
    for (int i = 0; i < n; i++) {
        if (parts[i].whole->proof)
            *parts[i].whole->proof += proof[i];
        if (put_back(&parts[i], err) < 0)
            return -1;
    }
    return 0;
}

static int staged_reduce(struct collective *self, const struct collective_segment *segments, int n,
                         int *ret_peer, struct error *err)
{
    struct staged *s = staged_of(self);
    struct part parts[STAGED_SEGMENTS];
    int64_t total = segments_total(segments, n), first = 0;
    int nobody, rc;
    RM_ASSERT(n <= STAGED_SEGMENTS, "%d segments in one sum, of %d at most", n, STAGED_SEGMENTS);
    segments_check_overlap(segments, n);
    segments_unproven(segments, n);
    if (!ret_peer)
        ret_peer = &nobody;
    *ret_peer = -1;
    do { /* once also for nothing at all: an abort must show */
        int count = cut_window(s, segments, n, first, parts);
        rc = reduce_window(s, parts, count, ret_peer, err);
        first += s->window;
    } while (rc == 0 && first < total);
    s->base.sent = s->below->sent;
    return rc;
}

static void staged_abort(struct collective *self)
{
    struct staged *s = staged_of(self);
    s->below->ops->abort(s->below);
}

static void staged_close(struct collective *self)
{
    struct staged *s = staged_of(self);
    s->below->ops->close(s->below);
    free(s->in);
    free(s->out);
    free(s);
}

static int staged_watch(struct collective *self, int fds[2], int peers[2])
{
    struct staged *s = staged_of(self);
    return s->below->ops->watch(s->below, fds, peers);
}

static const struct collective_ops staged_ops = {staged_reduce, staged_abort, staged_close, staged_watch};

int staged_open(struct collective **ret, struct collective *below, int64_t window, struct error *err)
{
    struct staged *s = calloc(1, sizeof *s);
    RM_ASSERT(window >= 4, "a window of %lld bytes", (long long)window);
    if (s) {
        s->base = (struct collective){&staged_ops, below->rank, below->world, 0};
        s->below = below;
        s->window = window / 4;
        s->in = malloc((size_t)window);
        s->out = malloc((size_t)window);
    }
    if (!s || !s->in || !s->out) {
        below->ops->close(below);
        if (s)
            free(s->in);
        if (s)
            free(s->out);
        free(s);
        return err_set(err, ERR_MACHINE, "no memory for a window of %lld MiB", (long long)window >> 20);
    }
    *ret = &s->base;
    return 0;
}
