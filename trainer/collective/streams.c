/* One collective over several rings: a large sum is cut into as many parts, each reduced on a thread of
 * its own, and the failure of one ends all. ring_join.c makes it where a ring has more than one connection
 * between two ranks. */
#include "trainer/collective/streams.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/base/assert.h"
#include "common/os/cpu.h"
#include "trainer/collective/segments.h"

struct streams {
    struct collective base;
    struct abort_flag *abort; /* of who reduces; the rings have their own */
    int64_t least;
    int count, added;
    struct collective *ring[STREAMS_MAX];
    struct abort_flag flag[STREAMS_MAX];
};

/* One ring's part of a reduce. */
struct part {
    struct streams *all;
    int stream, n, rc, peer;
    pthread_t thread;
    bool started;
    struct collective_segment segment[STREAMS_SEGMENTS];
    uint64_t proof[STREAMS_SEGMENTS];
    struct error err;
};

static struct streams *streams_of(struct collective *self)
{
    return (struct streams *)(void *)self;
}

static void end_rings(struct streams *s)
{
    for (int i = 0; i < s->added; i++)
        s->ring[i]->ops->abort(s->ring[i]);
}

/* Elements [first, end) of the flat view. Each part has as many segments as the whole, so that its proofs are
 * found again; some are empty. */
static void cut_part(struct part *part, const struct collective_segment *segments, int n, int64_t first,
                     int64_t end)
{
    int64_t at = 0;
    part->n = n;
    for (int i = 0; i < n; i++) {
        const struct collective_segment *whole = &segments[i];
        int64_t from = first > at ? first - at : 0, to = end - at < whole->count ? end - at : whole->count;
        from = from < whole->count ? from : whole->count;
        to = to > from ? to : from;
        part->segment[i] = *whole;
        part->segment[i].from = whole->from ? (const uint32_t *)whole->from + from : NULL;
        part->segment[i].to = (uint32_t *)whole->to + from;
        part->segment[i].count = to - from;
        part->segment[i].at = whole->at + from;
        part->segment[i].proof = whole->proof ? &part->proof[i] : NULL;
        at += whole->count;
    }
}

static void reduce_part(struct part *part)
{
    struct collective *ring = part->all->ring[part->stream];
    part->rc = ring->ops->reduce(ring, part->segment, part->n, &part->peer, &part->err);
    if (part->rc < 0)
        end_rings(part->all);
}

static void *part_main(void *arg)
{
    cpu_flush_denormals(); /* as whoever asked for the sum */
    reduce_part(arg);
    return NULL;
}

/* The first that says why: those that were ended for it only say that they were. */
static const struct part *failed_part(const struct part *part, int count)
{
    const struct part *failed = NULL;
    for (int i = 0; i < count; i++)
        if (part[i].rc < 0 && (!failed || failed->err.code == ERR_ABORTED))
            failed = &part[i];
    return failed;
}

static int reduce_parts(struct streams *s, struct part *part, const struct collective_segment *segments,
                        int n, int *ret_peer, struct error *err)
{
    int64_t total = segments_total(segments, n);
    for (int i = 0; i < s->count; i++) {
        part[i].all = s;
        part[i].stream = i;
        cut_part(&part[i], segments, n, i * total / s->count, (i + 1) * total / s->count);
    }
    for (int i = 1; i < s->count; i++)
        part[i].started = pthread_create(&part[i].thread, NULL, part_main, &part[i]) == 0;
    for (int i = 0; i < s->count; i++)
        if (!part[i].started)
            reduce_part(&part[i]); /* also where there is no thread to be had: others wait for it */
    for (int i = 1; i < s->count; i++)
        if (part[i].started)
            pthread_join(part[i].thread, NULL);
    const struct part *failed = failed_part(part, s->count);
    if (failed) {
        *ret_peer = failed->peer;
        *err = failed->err;
        return -1;
    }
    for (int i = 0; i < n; i++)
        for (int p = 0; p < s->count && segments[i].proof; p++)
            *segments[i].proof += part[p].proof[i];
    return 0;
}

static int reduce_large(struct streams *s, const struct collective_segment *segments, int n, int *ret_peer,
                        struct error *err)
{
    struct part *part = calloc((size_t)s->count, sizeof *part);
    RM_ASSERT(n <= STREAMS_SEGMENTS, "%d segments in one sum, of %d at most", n, STREAMS_SEGMENTS);
    segments_check(segments, n);
    segments_unproven(segments, n);
    if (!part) {
        end_rings(s);
        return err_set(err, ERR_MACHINE, "no memory for the parts of a sum");
    }
    int rc = reduce_parts(s, part, segments, n, ret_peer, err);
    free(part);
    return rc;
}

static int streams_reduce(struct collective *self, const struct collective_segment *segments, int n,
                          int *ret_peer, struct error *err)
{
    struct streams *s = streams_of(self);
    struct error ignored;
    int nobody, rc;
    ret_peer = ret_peer ? ret_peer : &nobody;
    err = err ? err : &ignored;
    *ret_peer = -1;
    if (abort_flag_is_set(s->abort))
        return err_set(err, ERR_ABORTED, "aborted");
    if (segments_total(segments, n) < s->least)
        rc = s->ring[0]->ops->reduce(s->ring[0], segments, n, ret_peer, err);
    else
        rc = reduce_large(s, segments, n, ret_peer, err);
    self->sent = 0;
    for (int i = 0; i < s->count; i++)
        self->sent += s->ring[i]->sent;
    if (rc < 0 && abort_flag_is_set(s->abort)) {
        *ret_peer = -1;
        return err_set(err, ERR_ABORTED, "aborted");
    }
    return rc;
}

static void streams_abort(struct collective *self)
{
    struct streams *s = streams_of(self);
    abort_flag_set(s->abort);
    end_rings(s);
}

static void streams_close(struct collective *self)
{
    streams_free(streams_of(self));
}

static int streams_watch(struct collective *self, int fds[2], int peers[2])
{
    struct collective *first = streams_of(self)->ring[0];
    return first->ops->watch(first, fds, peers);
}

static const struct collective_ops streams_ops = {streams_reduce, streams_abort, streams_close,
                                                  streams_watch};

int streams_open(struct streams **ret, int count, struct abort_flag *abort, int64_t least, struct error *err)
{
    struct streams *s = calloc(1, sizeof *s);
    RM_ASSERT(count >= 1 && count <= STREAMS_MAX, "%d rings side by side", count);
    if (!s)
        return err_set(err, ERR_MACHINE, "no memory for %d rings", count);
    s->abort = abort;
    s->least = least;
    s->count = count;
    for (int i = 0; i < STREAMS_MAX; i++)
        s->flag[i].event_fd = -1;
    for (int i = 0; i < count; i++) {
        if (abort_flag_init(&s->flag[i], err) < 0) {
            streams_free(s);
            return -1;
        }
    }
    *ret = s;
    return 0;
}

struct abort_flag *streams_flag(struct streams *s, int stream)
{
    return &s->flag[stream];
}

void streams_add(struct streams *s, struct collective *ring)
{
    RM_ASSERT(s->added < s->count, "one ring more than %d", s->count);
    s->ring[s->added++] = ring;
}

struct collective *streams_collective(struct streams *s)
{
    RM_ASSERT(s->added == s->count, "%d rings of %d", s->added, s->count);
    s->base = (struct collective){.ops = &streams_ops, .rank = s->ring[0]->rank, .world = s->ring[0]->world};
    return &s->base;
}

void streams_free(struct streams *s)
{
    for (int i = 0; i < s->added; i++)
        s->ring[i]->ops->close(s->ring[i]);
    for (int i = 0; i < STREAMS_MAX; i++)
        abort_flag_clear(&s->flag[i]);
    free(s);
}
