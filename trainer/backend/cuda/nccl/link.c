/* The life of one communicator, on its thread: an id, where it is wanted; the making of it, asked about by
 * turns; rest while others sum by it; its abort. */
#include "trainer/backend/cuda/nccl/link.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/str.h"
#include "common/os/clock.h"
#include "common/os/fault.h"

enum { TURN_MS = 2 /* between two questions while it is made */ };

/* For the end of those that have the job's key where this one is to do without, or the other way round. */
static const rm_time key_patience = 10 * RM_S;

static void hold_drop(struct nccl_link *l)
{
    pthread_mutex_lock(&l->lock);
    bool last = --l->holders == 0;
    pthread_mutex_unlock(&l->lock);
    if (!last)
        return;
    pthread_cond_destroy(&l->turn);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

static void state_set(struct nccl_link *l, enum transport_state state, const char *why)
{
    pthread_mutex_lock(&l->lock);
    l->state = state;
    if (why && !*l->why)
        text_copy(l->why, sizeof l->why, why);
    pthread_mutex_unlock(&l->lock);
}

static bool is_dropped(struct nccl_link *l)
{
    pthread_mutex_lock(&l->lock);
    bool dropped = l->dropped;
    pthread_mutex_unlock(&l->lock);
    return dropped;
}

/* Until there is something to do for it: false where that is its end. */
static bool wait_for_work(struct nccl_link *l)
{
    pthread_mutex_lock(&l->lock);
    while (!l->dropped && !l->wanted_id && !l->given)
        pthread_cond_wait(&l->turn, &l->lock);
    bool go_on = !l->dropped;
    pthread_mutex_unlock(&l->lock);
    return go_on;
}

static void wait_for_drop(struct nccl_link *l)
{
    pthread_mutex_lock(&l->lock);
    while (!l->dropped)
        pthread_cond_wait(&l->turn, &l->lock);
    pthread_mutex_unlock(&l->lock);
}

/* The key is the whole process's: one that was dropped a moment ago may still be made, or aborted, with it.
 */
static bool enter_it(struct nccl_link *l)
{
    const rm_time until = clock_now() + key_patience;
    struct error err;
    int entered = l->entered;
    while (entered == 0 && (entered = nccl_enter(l->nccl, l->open, &err)) == 0 && !is_dropped(l)) {
        if (clock_now() >= until)
            entered =
                err_set(&err, ERR_MACHINE, "the job's key can't be %s: a communicator of NCCL does not end",
                        l->open ? "taken back" : "used again");
        else
            poll(NULL, 0, TURN_MS);
    }
    if (entered < 0)
        state_set(l, TRANSPORT_FAILED, err.text);
    l->entered = entered > 0;
    return l->entered;
}

static bool name_it(struct nccl_link *l)
{
    struct error err;
    ncclUniqueId id;
    ncclResult_t result = l->nccl->calls.ncclGetUniqueId(&id);
    if (result != NCCL_SUCCESS)
        nccl_failed(l->nccl, result, "make an id", &err);
    pthread_mutex_lock(&l->lock);
    l->wanted_id = false;
    l->id = id;
    pthread_mutex_unlock(&l->lock);
    state_set(l, result == NCCL_SUCCESS ? TRANSPORT_NAMED : TRANSPORT_FAILED,
              result == NCCL_SUCCESS ? NULL : err.text);
    return result == NCCL_SUCCESS;
}

static ncclConfig_t config_of(void)
{
    return (ncclConfig_t){.size = sizeof(ncclConfig_t),
                          .magic = (unsigned)NCCL_MAGIC,
                          .version = NCCL_CONFIG_VERSION,
                          .blocking = 0,
                          .cga_cluster_size = NCCL_UNSET,
                          .ctas_min = NCCL_UNSET,
                          .ctas_max = NCCL_UNSET,
                          .split_share = NCCL_UNSET,
                          .traffic_class = NCCL_UNSET,
                          .collnet_enable = NCCL_UNSET,
                          .cta_policy = NCCL_UNSET,
                          .shrink_share = NCCL_UNSET,
                          .nvls_ctas = NCCL_UNSET};
}

/* NCCL_IN_PROGRESS where it was dropped before it was made. */
static ncclResult_t make_it(struct nccl_link *l)
{
    ncclConfig_t config = config_of();
    ncclResult_t result = l->nccl->calls.ncclCommInitRankConfig(&l->comm, l->world, l->id, l->rank, &config);
    while (result == NCCL_IN_PROGRESS && !is_dropped(l)) {
        FAULT("nccl-init");
        ncclResult_t asked = l->nccl->calls.ncclCommGetAsyncError(l->comm, &result);
        if (asked != NCCL_SUCCESS)
            result = asked;
        if (result == NCCL_IN_PROGRESS)
            poll(NULL, 0, TURN_MS);
    }
    return result;
}

static void end_it(struct nccl_link *l)
{
    if (l->comm)
        l->nccl->calls.ncclCommAbort(l->comm);
    l->comm = NULL;
}

/* "Invalid usage" is what a library without TLS says of the key, and says of other things, too. */
static void connect_it(struct nccl_link *l)
{
    struct error err;
    ncclResult_t result = make_it(l);
    bool by_key = result == NCCL_INVALID_USAGE && l->nccl->calls.ncclSetEncryption && !l->open;
    if (by_key)
        state_set(l, TRANSPORT_KEY_REFUSED,
                  "NCCL makes no communicator with the job's key (built without TLS?)");
    else if (result == NCCL_SUCCESS)
        state_set(l, TRANSPORT_READY, NULL);
    else if (result != NCCL_IN_PROGRESS) {
        nccl_failed(l->nccl, result, "make a communicator", &err);
        state_set(l, TRANSPORT_FAILED, err.text);
    }
}

static void live(struct nccl_link *l)
{
    struct error err;
    if (cuda_device_use(l->device, &err) < 0) {
        state_set(l, TRANSPORT_FAILED, err.text);
        return;
    }
    while (wait_for_work(l) && enter_it(l)) {
        if (l->given) {
            connect_it(l);
            break;
        }
        if (!name_it(l))
            break;
    }
    wait_for_drop(l);
    FAULT("nccl-abort");
    end_it(l);
    if (l->entered)
        nccl_leave();
}

static void *thread_main(void *arg)
{
    struct nccl_link *l = arg;
    live(l);
    pthread_mutex_lock(&l->lock);
    l->ended = true;
    pthread_cond_broadcast(&l->turn);
    pthread_mutex_unlock(&l->lock);
    hold_drop(l);
    return NULL;
}

struct nccl_link *nccl_link_open(struct nccl *nccl, struct cuda_device *device)
{
    pthread_t thread;
    pthread_condattr_t attr;
    struct nccl_link *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    l->nccl = nccl;
    l->device = device;
    l->holders = 2;
    pthread_mutex_init(&l->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&l->turn, &attr);
    pthread_condattr_destroy(&attr);
    if (pthread_create(&thread, NULL, thread_main, l) != 0) {
        l->holders = 1;
        hold_drop(l);
        return NULL;
    }
    pthread_detach(thread);
    return l;
}

void nccl_link_want_id(struct nccl_link *l, bool open)
{
    pthread_mutex_lock(&l->lock);
    l->wanted_id = true;
    l->open = open;
    l->state = TRANSPORT_NAMES;
    pthread_cond_broadcast(&l->turn);
    pthread_mutex_unlock(&l->lock);
}

void nccl_link_connect(struct nccl_link *l, const uint8_t *id, int rank, int world, bool open)
{
    pthread_mutex_lock(&l->lock);
    RM_ASSERT(l->state != TRANSPORT_NAMED || l->open == open,
              "rank %d uses its id otherwise than it was made", rank);
    l->open = open;
    memcpy(l->id.internal, id, sizeof l->id.internal);
    l->rank = rank;
    l->world = world;
    l->given = true;
    l->state = TRANSPORT_CONNECTS;
    pthread_cond_broadcast(&l->turn);
    pthread_mutex_unlock(&l->lock);
}

/* A communicator that was ready may have failed since, or be at something of its own; who asks is the one who
 * sums by it. */
enum transport_state nccl_link_state(struct nccl_link *l, char *why)
{
    struct error err;
    ncclResult_t now = NCCL_SUCCESS;
    pthread_mutex_lock(&l->lock);
    bool ready = l->state == TRANSPORT_READY;
    pthread_mutex_unlock(&l->lock);
    if (ready && l->nccl->calls.ncclCommGetAsyncError(l->comm, &now) == NCCL_SUCCESS) {
        if (now == NCCL_IN_PROGRESS)
            return TRANSPORT_CONNECTS;
        if (now != NCCL_SUCCESS) {
            nccl_failed(l->nccl, now, "keep its communicator", &err);
            nccl_link_spoil(l, err.text);
        }
    }
    pthread_mutex_lock(&l->lock);
    enum transport_state state = l->state;
    if (state == TRANSPORT_FAILED || state == TRANSPORT_KEY_REFUSED)
        text_copy(why, RM_WHY_MAX, l->why);
    pthread_mutex_unlock(&l->lock);
    return state;
}

void nccl_link_spoil(struct nccl_link *l, const char *why)
{
    state_set(l, TRANSPORT_FAILED, why);
}

void nccl_link_drop(struct nccl_link *l)
{
    pthread_mutex_lock(&l->lock);
    l->dropped = true;
    pthread_cond_broadcast(&l->turn);
    pthread_mutex_unlock(&l->lock);
}

bool nccl_link_ended(struct nccl_link *l)
{
    pthread_mutex_lock(&l->lock);
    bool ended = l->ended;
    pthread_mutex_unlock(&l->lock);
    return ended;
}

bool nccl_link_free(struct nccl_link *l, int ms)
{
    const rm_time until = clock_now() + ms * RM_MS;
    const struct timespec at = {until / RM_S, until % RM_S};
    int waited = 0;
    pthread_mutex_lock(&l->lock);
    while (!l->ended && waited == 0)
        waited = pthread_cond_timedwait(&l->turn, &l->lock, &at);
    bool ended = l->ended;
    pthread_mutex_unlock(&l->lock);
    hold_drop(l);
    return ended;
}
