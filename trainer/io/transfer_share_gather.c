/* Takes the shares of a checkpoint that the other members have read, range by range, until the own state is
 * whole. */
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/os/clock.h"
#include "common/os/fault.h"
#include "common/os/log.h"
#include "trainer/io/transfer_parts.h"

#define CALL_PATIENCE (5 * RM_S)    /* to reach a member */
#define BEAT          (100 * RM_MS) /* while its share is waited for */

/* One member's share. */
struct take {
    const struct transfer_gather *gather;
    int index;
    pthread_t thread;
    bool threaded, wanted, came;
    bool begun; /* bytes may lie in its ranges, whether all came or not */
    struct model_range range[STATE_ARRAYS_MAX];
    struct error err;
};

static int call_member(const struct take *t, int *ret_fd, struct error *err)
{
    const struct transfer_want *want = t->gather->want;
    const struct transfer_peer *peer = &want->source[t->index];
    struct patience patience = {want->abort, clock_now() + CALL_PATIENCE};
    struct handshake_claim claim = {HANDSHAKE_TRANSFER, want->generation, want->self, peer->end, 0};
    struct transfer_request request = {.magic = TRANSFER_MAGIC, .kind = TRANSFER_SHARE, .step = want->step};
    memcpy(request.lineage, want->lineage, RM_HASH_BYTES);
    if (socket_connect(ret_fd, peer->address, &patience, err) < 0)
        return -1;
    if (handshake_call(*ret_fd, &want->secret, &claim, &patience, err) == 0 &&
        socket_send(*ret_fd, &request, sizeof request, &patience, err) == 0)
        return 0;
    close(*ret_fd);
    return -1;
}

/* Until the member answers, however long it reads, or ends. With a beat: nobody shall take us for dead. */
static int wait_for_answer(const struct take *t, int fd, struct error *err)
{
    const struct transfer_gather *g = t->gather;
    for (;;) {
        struct patience beat = {g->want->abort, clock_now() + BEAT};
        if (socket_wait(fd, POLLIN, &beat, err) == 0)
            break;
        if (err->code != ERR_PEER)
            return -1;
        if (g->waiting_for)
            atomic_store(g->waiting_for, g->want->source[t->index].end.worker);
        if (g->pulse)
            atomic_fetch_add_explicit(g->pulse, 1, memory_order_relaxed);
    }
    if (g->waiting_for)
        atomic_store(g->waiting_for, -1);
    return 0;
}

static bool inside(const struct model_range *r, int64_t total)
{
    return r->first >= 0 && r->count >= 0 && r->first <= total && r->count <= total - r->first;
}

static bool ranges_fit(const struct take *t)
{
    for (int i = 0; i < t->gather->to.arrays; i++)
        if (!inside(&t->range[i], t->gather->to.count))
            return false;
    return true;
}

static int read_head(struct take *t, int fd, struct error *err)
{
    const struct transfer_gather *g = t->gather;
    const struct transfer_want *want = g->want;
    struct patience patience = {want->abort, clock_now() + CALL_PATIENCE};
    struct transfer_reply reply;
    int32_t k[RM_TENSORS_MAX];
    if (socket_receive(fd, &reply, sizeof reply, &patience, err) < 0)
        return -1;
    if (reply.status != TRANSFER_OK)
        return err_set(err, ERR_PEER, "it has read nothing of the checkpoint of step %lld",
                       (long long)want->step);
    if (reply.tensors != want->tensors || reply.step != want->step)
        return err_set(err, ERR_PROTOCOL, "its model is not ours");
    if (transfer_chunks_here(want, fd, k, want->tensors, err) < 0 ||
        transfer_chunks_here(want, fd, t->range, g->to.arrays * (int64_t)sizeof *t->range / 4, err) < 0)
        return -1;
    if (memcmp(k, g->point->k, (size_t)want->tensors * 4) != 0 || !ranges_fit(t))
        return err_set(err, ERR_PROTOCOL, "it has read another checkpoint than we");
    t->begun = true;
    return 0;
}

static int take_range(struct take *t, int fd, int i, struct error *err)
{
    const struct transfer_gather *g = t->gather;
    const struct state_array *a = &g->to.array[i];
    const struct model_range *r = &t->range[i];
    return transfer_chunks(g->want, fd, g->to.in, state_range_at(a, r->first, r->count),
                           r->count * (int64_t)state_type_bytes(a->type), err);
}

static int take_share(struct take *t, struct error *err)
{
    int fd;
    if (call_member(t, &fd, err) < 0)
        return -1;
    int result = wait_for_answer(t, fd, err);
    if (result == 0)
        result = read_head(t, fd, err);
    for (int i = 0; i < t->gather->to.arrays && result == 0; i++)
        result = take_range(t, fd, i, err);
    close(fd);
    return result;
}

static void *take_main(void *arg)
{
    struct take *t = arg;
    t->came = take_share(t, &t->err) == 0;
    if (!t->came && t->err.code != ERR_ABORTED)
        log_warn("a share of the checkpoint did not come", "worker=%d why=\"%s\"",
                 t->gather->want->source[t->index].end.worker, t->err.text);
    return NULL;
}

static int by_first(const void *a, const void *b)
{
    const struct model_range *x = a, *y = b;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return (x->count > y->count) - (x->count < y->count);
}

/* Do the shares overlap nowhere and, where all came, leave no gap? One that did not come may have been
 * written over another one's bytes, too. */
static bool tiles(const struct transfer_gather *g, const struct take *take, int array, bool all_came)
{
    struct model_range range[RM_WORKERS_MAX + 1];
    int n = 0;
    int64_t at = 0;
    range[n++] = g->have[array];
    for (int i = 0; i < g->want->sources; i++)
        if (take[i].begun)
            range[n++] = take[i].range[array];
    qsort(range, (size_t)n, sizeof *range, by_first);
    for (int i = 0; i < n; i++) {
        if (!range[i].count)
            continue;
        if (range[i].first < at || (all_came && range[i].first > at))
            return false;
        at = range[i].first + range[i].count;
    }
    return !all_came || at == g->to.count;
}

static void run_takes(struct take *take, int n)
{
    for (int i = 0; i < n; i++)
        take[i].threaded = take[i].wanted && !pthread_create(&take[i].thread, NULL, take_main, &take[i]);
    for (int i = 0; i < n; i++) {
        if (take[i].threaded)
            pthread_join(take[i].thread, NULL);
        else if (take[i].wanted)
            take_main(&take[i]); /* there was no thread for it */
    }
}

static struct worker_set missing_of(const struct transfer_gather *g, const struct take *take)
{
    struct worker_set missing = {0};
    bool whole = true;
    for (int i = 0; i < g->want->sources; i++)
        if (take[i].wanted && !take[i].came)
            set_add(&missing, i);
    for (int i = 0; i < g->to.arrays && whole; i++)
        whole = tiles(g, take, i, set_is_empty(missing));
    return whole ? missing : g->wanted;
}

int transfer_share_gather(const struct transfer_gather *gather, struct worker_set *ret_missing,
                          struct error *err)
{
    int n = gather->want->sources, result = 0;
    RM_ASSERT(gather->to.arrays > 0 && gather->to.arrays <= STATE_ARRAYS_MAX, "a checkpoint of %d arrays",
              gather->to.arrays);
    struct take *take = calloc((size_t)n, sizeof *take);
    if (!take)
        return err_set(err, ERR_MACHINE, "no memory to gather a checkpoint");
    for (int i = 0; i < n; i++)
        take[i] = (struct take){.gather = gather, .index = i, .wanted = set_has(gather->wanted, i)};
    run_takes(take, n);
    *ret_missing = missing_of(gather, take);
    for (int i = 0; i < n; i++)
        if (take[i].wanted && !take[i].came && take[i].err.code == ERR_ABORTED)
            result = err_set(err, ERR_ABORTED, "aborted");
    free(take);
    if (gather->waiting_for)
        atomic_store(gather->waiting_for, -1);
    FAULT("shares-gathered");
    return result;
}
