#include "trainer/collective/local.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/limits.h"
#include "trainer/collective/segments.h"

struct group;

struct member {
    struct collective base;
    struct group *group;
    const struct collective_segment *segments; /* while inside reduce */
    bool aborted;
};

struct group {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int world, open;
    int arrived; /* members inside the current reduce */
    int gone;    /* first rank that aborted or closed; -1 */
    unsigned round;
    struct member member[RM_WORKERS_MAX];
};

static struct member *member_of(struct collective *self)
{
    return (struct member *)(void *)self;
}

static void sum_all(struct group *g, int n)
{
    for (int i = 0; i < n; i++) {
        const struct collective_segment first = g->member[0].segments[i];
        size_t bytes = (size_t)first.count * 4;
        memset(first.to, 0, bytes);
        for (int r = 0; r < g->world; r++) {
            const void *from = g->member[r].segments[i].from;
            if (from)
                segments_add(first.type, first.to, r ? first.to : NULL, from, first.count);
        }
        for (int r = 1; r < g->world; r++)
            memcpy(g->member[r].segments[i].to, first.to, bytes);
    }
    for (int r = 0; r < g->world; r++) {
        const struct collective_segment *own = g->member[r].segments;
        segments_prove(own, n, 0, 4 * segments_total(own, n));
    }
}

/* Called with the lock held. */
static int wait_for_all(struct member *m, int n, int *ret_peer, struct error *err)
{
    struct group *g = m->group;
    unsigned round = g->round;
    if (!m->aborted && g->gone < 0 && ++g->arrived == g->world) {
        sum_all(g, n);
        g->arrived = 0;
        g->round++;
        pthread_cond_broadcast(&g->changed);
        return 0;
    }
    while (!m->aborted && g->gone < 0 && g->round == round)
        pthread_cond_wait(&g->changed, &g->lock);
    if (g->round != round)
        return 0;
    if (m->aborted)
        return err_set(err, ERR_ABORTED, "aborted");
    *ret_peer = g->gone;
    return err_set(err, ERR_PEER, "rank %d is gone", g->gone);
}

static int local_reduce(struct collective *self, const struct collective_segment *segments, int n,
                        int *ret_peer, struct error *err)
{
    struct member *m = member_of(self);
    int nobody;
    if (!ret_peer)
        ret_peer = &nobody;
    *ret_peer = -1;
    segments_check(segments, n);
    segments_unproven(segments, n);
    pthread_mutex_lock(&m->group->lock);
    m->segments = segments;
    int rc = wait_for_all(m, n, ret_peer, err);
    pthread_mutex_unlock(&m->group->lock);
    return rc;
}

/* Called with the lock held. */
static void leave_group(struct member *m)
{
    if (m->group->gone < 0)
        m->group->gone = m->base.rank;
    pthread_cond_broadcast(&m->group->changed);
}

static void local_abort(struct collective *self)
{
    struct member *m = member_of(self);
    pthread_mutex_lock(&m->group->lock);
    m->aborted = true;
    leave_group(m);
    pthread_mutex_unlock(&m->group->lock);
}

static void local_close(struct collective *self)
{
    struct member *m = member_of(self);
    struct group *g = m->group;
    pthread_mutex_lock(&g->lock);
    leave_group(m);
    bool last = --g->open == 0;
    pthread_mutex_unlock(&g->lock);
    if (last) {
        pthread_cond_destroy(&g->changed);
        pthread_mutex_destroy(&g->lock);
        free(g);
    }
}

static int local_watch(struct collective *self, int fds[2], int peers[2])
{
    (void)self;
    (void)fds;
    (void)peers;
    return 0;
}

static const struct collective_ops local_ops = {local_reduce, local_abort, local_close, local_watch};

int local_open(struct collective **ret, int world, struct error *err)
{
    struct group *g = calloc(1, sizeof *g);
    if (!g)
        return err_set(err, ERR_MACHINE, "no memory for a group of %d", world);
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->changed, NULL);
    g->world = g->open = world;
    g->gone = -1;
    for (int r = 0; r < world; r++) {
        g->member[r].base = (struct collective){&local_ops, r, world, 0};
        g->member[r].group = g;
        ret[r] = &g->member[r].base;
    }
    return 0;
}
