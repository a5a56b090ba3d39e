/* The engine's part in a second way for the words of a step: what this rank says of it, what all conclude
 * (trainer/core/second.h) carried out, and a sum by it. */
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/str.h"
#include "common/os/clock.h"
#include "common/os/log.h"
#include "trainer/engine/engine_parts.h"

_Static_assert(SECOND_ID_WORDS * sizeof(uint32_t) == TRANSPORT_ID, "an id's size");

/* The same on all workers: a GPU's words, whose sums are exact. Where workers may be of other hardware not
 * all have the same way. */
static bool job_offers(const struct job_spec *spec)
{
    return spec->device == JOB_DEVICE_GPU && spec->reduction == JOB_EXACT && !spec->allow_mixed_hardware &&
           spec->workers.max > 1;
}

/* That there is none is no failure: the ring does. */
static void find_transport(struct engine *e)
{
    char key[2 * HANDSHAKE_KEY + 1];
    struct error err;
    if (!e->backend->ops->transport) {
        text_copy(e->other.own.why, sizeof e->other.own.why, "who computes here has none");
        return;
    }
    hex_encode(e->secret.key, HANDSHAKE_KEY, key);
    if (e->backend->ops->transport(e->backend, key, &e->other.transport, &err) < 0)
        text_copy(e->other.own.why, sizeof e->other.own.why, err.text);
    else {
        e->other.own.version = e->other.transport->version;
        e->other.own.needs_key = e->other.transport->needs_key;
    }
    explicit_bzero(key, sizeof key);
}

int engine_transport_open(struct engine *e, struct error *err)
{
    if (!job_offers(e->spec))
        return 0;
    e->other.offer = calloc(2 * (size_t)SECOND_WORDS, sizeof *e->other.offer);
    if (!e->other.offer)
        return err_set(err, ERR_MACHINE, "no memory for what workers say of their transports");
    e->other.offers = e->other.offer + SECOND_WORDS;
    find_transport(e);
    return 0;
}

void engine_transport_free(struct engine *e)
{
    if (e->other.transport)
        e->other.transport->ops->free(e->other.transport);
    free(e->other.offer);
}

static void transport_drop(struct engine *e)
{
    if (e->other.transport)
        e->other.transport->ops->drop(e->other.transport);
    e->other.own.named = e->other.own.ready = e->other.own.failed = e->other.own.key_refused = false;
}

void engine_transport_drop(struct engine *e)
{
    transport_drop(e);
    e->other.now = false;
}

/* Each trainer has a port of its own. FNV-1a. */
static uint64_t trainer_of(const struct msg_member *m)
{
    uint64_t hash = 0xcbf29ce484222325u ^ m->incarnation;
    for (const char *c = m->address; *c; c++)
        hash = (hash ^ (uint8_t)*c) * 0x100000001b3u;
    return hash;
}

void engine_transport_ring(struct engine *e, const struct msg_form *form, int rank)
{
    struct second_member members[RM_WORKERS_MAX];
    struct second *s = &e->other.second;
    RM_ASSERT(rank >= 0 && rank < form->count && form->count <= RM_WORKERS_MAX, "rank %d of %d", rank,
              form->count);
    engine_transport_drop(e);
    for (int r = 0; r < form->count; r++)
        members[r] = (struct second_member){form->member[r].worker, trainer_of(&form->member[r])};
    second_ring(s, members, rank, form->count, job_offers(e->spec), clock_now());
}

/* ---- what this rank says ---- */

static void look_at_own(struct engine *e)
{
    struct second_own *own = &e->other.own;
    struct transport *t = e->other.transport;
    bool had_id = own->named;
    if (!t)
        return;
    enum transport_state state = t->ops->state(t, own->why);
    if (state == TRANSPORT_IDLE && second_wants_id(&e->other.second)) {
        own->open = e->other.second.open;
        t->ops->name(t, own->open);
        state = t->ops->state(t, own->why);
    }
    own->named = state == TRANSPORT_NAMED;
    own->ready = state == TRANSPORT_READY;
    own->key_refused = state == TRANSPORT_KEY_REFUSED;
    own->failed = state == TRANSPORT_FAILED || own->key_refused;
    if (own->named && !had_id)
        t->ops->id(t, (uint8_t *)own->id);
}

uint32_t engine_transport_flags(struct engine *e)
{
    const struct second *s = &e->other.second;
    if (s->phase == SECOND_NONE || s->phase == SECOND_OVER)
        return 0;
    look_at_own(e);
    return second_is_ready(s, &e->other.own) ? LANES_READY : 0;
}

int engine_transport_offer(struct engine *e, struct collective_segment *segment)
{
    if (!second_offers(&e->other.second))
        return 0;
    RM_ASSERT(e->other.offer, "rank %d offers a way for words, and its job has none", e->ring->rank);
    second_say(&e->other.second, &e->other.own, clock_now(), e->other.offer);
    *segment =
        (struct collective_segment){.from = e->other.offer, .to = e->other.offers, .count = SECOND_WORDS};
    return 1;
}

/* ---- what all conclude ---- */

static void connect_it(struct engine *e)
{
    struct transport *t = e->other.transport;
    RM_ASSERT(t && e->ring->world > 1, "a ring of %d connects by %s", e->ring->world,
              t ? t->name : "nothing");
    t->ops->connect(t, (const uint8_t *)e->other.offers, e->ring->rank, e->ring->world, e->other.second.open);
}

/* Once in a process: a job that is told that strangers are kept out is told that they are not. */
static void tell_open(struct engine *e)
{
    const struct second *s = &e->other.second;
    if (!s->open || e->other.told_open)
        return;
    e->other.told_open = true;
    log_warn("the quicker way for the ring's sums is open to who reaches its ports",
             "why=\"worker %d's NCCL makes no communicator with the job's key (built without TLS?), and does "
             "without\"",
             s->open_for);
}

/* Where none is to be had at all, which is said of a process once, and where one failed. */
static void tell_without(struct engine *e, bool over)
{
    const struct second *s = &e->other.second;
    if (over && !s->failures && atomic_exchange(&e->told_without, true))
        return;
    log_warn(over ? "the ring's sums go over TCP, and not by a quicker way among the GPUs"
                  : "a way for sums among the GPUs failed; they go over TCP until there is another one",
             "why=\"%s\"", s->why);
}

void engine_transport_hear(struct engine *e, uint32_t flags, int64_t leads)
{
    struct second *s = &e->other.second;
    const bool used = second_uses(s);
    const uint32_t *sum = second_offers(s) ? e->other.offers : NULL;
    if (sum && second_judge(s, sum, clock_now()))
        log_warn("a way for sums among the GPUs failed; the step was made again over TCP", "why=\"%s\"",
                 s->why);
    enum second_order order = second_hear(s, &e->other.own, sum, flags & LANES_READY, clock_now());
    if (order == SECOND_DROP) {
        transport_drop(e);
        tell_without(e, s->phase == SECOND_OVER);
    } else if (order == SECOND_RENAME) {
        transport_drop(e);
    } else if (order == SECOND_CONNECT) {
        connect_it(e);
    } else if (order == SECOND_SWITCH) {
        log_info("from the next step on the ring's sums go by a quicker way", "by=%s step=%lld",
                 e->other.transport->name, (long long)leads + 1);
        tell_open(e);
    }
    /* Who leaves after a step is not to take a part of its sum along. */
    e->other.now = used && second_uses(s) && !(flags & LANES_STOP) && leads < e->spec->steps;
}

/* ---- a sum by it ---- */

bool engine_transport_takes(const struct engine *e, const struct collective_segment *words)
{
    return e->other.now && words->in && words->type == COLLECTIVE_U32;
}

int engine_transport_reduce(struct engine *e, const struct collective_segment *words, int *ret_worker,
                            struct error *err)
{
    struct transport *t = e->other.transport;
    const int world = e->ring->world;
    RM_ASSERT(t && e->other.now && world > 1, "words of %d ranks go by %s", world, t ? t->name : "nothing");
    rm_time still = 0;
    struct transport_sum sum = {.from = far_here(words->from),
                                .to = far_here(words->to),
                                .count = words->count,
                                .stop = &e->abort[ELASTIC_TALKS].word,
                                .pulse = &e->counter,
                                .still = &still};
    int peer = -1;
    rm_time begun = clock_now();
    sum.watched = e->ring->ops->watch(e->ring, sum.fds, sum.peers);
    atomic_store(&e->exchanging, true);
    atomic_store(&e->waiting_for, e->ring_worker[(e->ring->rank + world - 1) % world]);
    int rc = t->ops->reduce(t, &sum, &peer, err);
    atomic_store(&e->waiting_for, -1);
    e->reduce_time += clock_now() - begun;
    *ret_worker = peer < 0 ? -1 : e->ring_worker[peer];
    if (rc < 0)
        second_broke(&e->other.second, err->code == ERR_PEER && peer < 0 ? err->text : NULL,
                     clock_now() - begun, still, clock_now());
    return rc;
}

/* Of several ranks the one that a failure is about knows most of it, and tells it. */
void engine_transport_tell(const struct engine *e, struct msg_transport *ret)
{
    const struct second *s = &e->other.second;
    *ret = (struct msg_transport){.used = e->other.now, .switches = s->switches, .failures = s->failures};
    if (s->first_hand && !ret->used)
        text_copy(ret->why, sizeof ret->why, s->why);
}
