/* How a state comes to be and goes on: made, received, caught up, repaired, left for the agent, hashed and
 * dropped. */
#include <string.h>
#include <sys/mman.h>

#include "common/base/assert.h"
#include "common/os/fault.h"
#include "common/os/log.h"
#include "common/storage/checkpoint/model_folder.h"
#include "common/storage/checkpoint/place.h"
#include "trainer/engine/engine_parts.h"
#include "trainer/exact/lineage.h"

int engine_repair(struct engine *e, struct error *err)
{
    int done = state_pending(e->state) ? e->backend->ops->finish(e->backend, err) : 0;
    RM_ASSERT(done < 0 || !state_pending(e->state), "an update was applied, and is pending still (%d)", done);
    return done;
}

static int load_init(struct engine *e, float *params, struct error *err)
{
    struct object_store *store;
    if (place_open_init(&store, e->spec, err) < 0)
        return -1;
    int result = model_folder_load(store, &e->layout, params, err);
    object_free(store);
    return result;
}

struct far engine_params(struct engine *e)
{
    return state_arrays(e->state).array[0].at;
}

struct state_arrays engine_area(struct engine *e, enum snapshot_area area)
{
    struct state_arrays a = state_arrays(e->state);
    const char *at = e->area[area];
    a.in = memory_here();
    for (int i = 0; i < a.arrays; i++) {
        int64_t each = (int64_t)state_type_bytes(a.array[i].type);
        a.array[i].at = far_here(at + a.array[i].first * each);
        at += a.count * each;
    }
    RM_ASSERT(at <= e->area[area] + e->area_bytes, "arrays of %lld bytes in an area of %lld",
              (long long)(at - e->area[area]), (long long)e->area_bytes);
    return a;
}

int engine_copy_in(struct engine *e, const struct state_arrays *from, const struct state_arrays *to,
                   struct error *err)
{
    for (int i = 0; i < to->arrays; i++) {
        const struct state_array *a = &to->array[i];
        RM_ASSERT(from->array[i].count == a->count, "array %d of %lld elements is copied from one of %lld", i,
                  (long long)a->count, (long long)from->array[i].count);
        const void *source = memory_near(from->in, from->array[i].at);
        size_t bytes = (size_t)a->count * state_type_bytes(a->type);
        if (e->backend->ops->copy_in(e->backend, a->at, source, bytes, err) < 0)
            return -1;
    }
    return 0;
}

/* What a state is called that begins with these values. */
static void name_first(const struct engine *e, const float *values, int64_t count, struct state_point *point)
{
    struct str compared = str_init(RM_FRAME_MAX);
    job_spec_write_compared(e->spec, &compared);
    lineage_first(str_text(&compared), compared.length, e->data_sha256, values, count, point->lineage);
    str_clear(&compared);
}

/* params (parameters): the first weights; point: what they are called. */
static int first_weights(struct engine *e, float *params, struct state_point *point, struct error *err)
{
    bool named = e->spec->model.init[0];
    atomic_store(&e->in_memory, !named);
    if (named && load_init(e, params, err) < 0)
        return err_wrap(err, "model.init");
    if (!named && e->backend->ops->init(e->backend, e->spec->seed, params, err) < 0)
        return -1;
    atomic_store(&e->in_memory, true);
    name_first(e, params, e->layout.parameters, point);
    return 0;
}

/* A program has them; what counts as values is its image's hash. */
static int ask_first(struct engine *e, struct state_point *point, struct error *err)
{
    float hash[RM_HASH_BYTES / sizeof(float)];
    if (e->backend->ops->first(e->backend, (uint8_t *)hash, err) < 0)
        return -1;
    name_first(e, hash, (int64_t)(sizeof hash / sizeof *hash), point);
    return 0;
}

/* Made where they belong if that is near, else in the area for what is loaded. */
static int make_state(struct engine *e, struct state_point *point, struct error *err)
{
    if (e->backend->ops->first)
        return ask_first(e, point, err);
    struct state_arrays a = state_arrays(e->state);
    struct far params = engine_params(e);
    float *near = memory_near(a.in, params), *made = near ? near : (float *)(void *)e->area[SNAPSHOT_LOADED];
    size_t bytes = (size_t)a.count * sizeof *made;
    if (first_weights(e, made, point, err) < 0 || state_zero_moments(e->state, err) < 0 ||
        (!near && e->backend->ops->copy_in(e->backend, params, made, bytes, err) < 0))
        return -1;
    if (!near)
        madvise(made, bytes, MADV_REMOVE);
    return 0;
}

void engine_init_state(struct engine *e, struct elastic_result *ret)
{
    struct state_point point = {0};
    struct error err;
    state_receive_begin(e->state);
    int made = make_state(e, &point, &err);
    atomic_store(&e->in_memory, false);
    if (made == 0) {
        FAULT("state-made");
        made = state_receive_end(e->state, &point, &err);
    }
    if (made < 0)
        engine_failed(ret, &err, -1);
    else
        e->exact = e->spec->reduction == JOB_EXACT;
}

void engine_want(struct engine *e, enum elastic_command command, const struct message *message,
                 const struct msg_member *source, int sources, struct transfer_want *want,
                 struct transfer_peer *peers)
{
    enum elastic_thread thread = elastic_thread(command);
    bool listens = command == CMD_LISTEN; /* to no state in particular */
    struct msg_state none = {0};
    const struct msg_state *state = listens ? &none : &message->form.resume;
    RM_ASSERT(sources >= 0 && sources <= RM_WORKERS_MAX, "%s from %d sources", elastic_command_name(command),
              sources);
    for (int i = 0; i < sources; i++) {
        peers[i].end = (struct handshake_end){source[i].worker, source[i].incarnation};
        text_copy(peers[i].address, sizeof peers[i].address, source[i].address);
    }
    *want = (struct transfer_want){
        .secret = e->secret,
        .generation = {message->generation.term, message->generation.n},
        .self = e->self,
        .step = state->step,
        .tensors = e->layout.tensors,
        .sources = sources,
        .source = peers,
        .abort = &e->abort[thread],
        .received = &e->received,
    };
    memcpy(want->lineage, state->lineage, RM_HASH_BYTES);
}

static void transfer_failed(const struct transfer_want *want, int source, const struct error *err,
                            struct elastic_result *ret)
{
    engine_failed(ret, err, source < 0 ? -1 : want->source[source].end.worker);
}

static const rm_time source_patience_most = 30 * RM_S;

/* Who names the source that sends nothing says more than who is found late for it, and then is blamed. */
static rm_time source_patience(const struct engine *e)
{
    rm_time before_late = e->spec->elasticity.form_timeout / 5 * 4;
    return rm_earlier(source_patience_most, before_late);
}

/* Likewise where the others make steps meanwhile (ROLE_FOLLOW), before who stands still is taken for one that
 * hangs. */
static rm_time step_patience(const struct engine *e)
{
    rm_time timeout = e->spec->elasticity.step_timeout;
    return (timeout > 0 ? timeout : source_patience_most) / 5 * 4;
}

void engine_receive(struct engine *e, const struct message *form, struct elastic_result *ret)
{
    struct transfer_peer peers[RM_WORKERS_MAX];
    struct transfer_want want;
    struct error err;
    bool exact;
    int source;
    engine_want(e, CMD_RECEIVE, form, form->form.source, form->form.sources_count, &want, peers);
    want.silence = source_patience(e);
    const long long before = atomic_load(&e->received);
    if (transfer_receive_state(e->state, &want, &exact, &source, &err) < 0)
        transfer_failed(&want, source, &err, ret);
    else {
        e->exact = exact;
        e->fresh = true;
        log_info("received a state", "step=%lld bytes=%lld", (long long)want.step,
                 (long long)atomic_load(&e->received) - before);
    }
}

/* What has come is applied only where it leads to the very state asked for: until then the state held is as
 * good as before, and afterwards it would be gone. */
static int take_update(struct engine *e, const struct transfer_want *want, struct error *err)
{
    struct state_point wanted = {.step = want->step};
    memcpy(wanted.lineage, want->lineage, RM_HASH_BYTES);
    if (e->backend->ops->check(e->backend, &wanted, err) < 0 ||
        state_update_receive_end(e->state, want->step, err) < 0)
        return -1;
    return engine_repair(e, err);
}

void engine_catch_up(struct engine *e, const struct message *form, struct elastic_result *ret)
{
    struct transfer_peer peers[RM_WORKERS_MAX];
    struct transfer_want want;
    struct error err;
    bool exact;
    int source;
    engine_want(e, CMD_CATCH_UP, form, form->form.source, form->form.sources_count, &want, peers);
    want.silence = rm_earlier(source_patience(e), step_patience(e));
    want.sources = 1;
    if (transfer_receive_update(e->state, &want, &exact, &source, &err) < 0) {
        transfer_failed(&want, source, &err, ret);
    } else if (take_update(e, &want, &err) < 0) {
        transfer_failed(&want, 0, &err, ret);
        if (err.code == ERR_PROTOCOL)
            ret->outcome = OUTCOME_LINEAGE; /* a different history, not a broken connection */
    } else {
        e->exact = e->exact && exact;
    }
}

static int apply_update(void *ctx, int64_t step, const uint8_t lineage[RM_HASH_BYTES], struct error *err)
{
    struct engine *e = ctx;
    struct transfer_want want = {.step = step};
    memcpy(want.lineage, lineage, RM_HASH_BYTES);
    return take_update(e, &want, err);
}

/* Who trains gives a block only now and then (pull_pace.h), and nobody waits for who listens. */
static const rm_time listen_silence_least = 30 * RM_S;

void engine_listen(struct engine *e, const struct message *message, struct elastic_result *ret)
{
    const struct msg_listen *said = &message->listen;
    struct transfer_peer peers[RM_WORKERS_MAX];
    struct transfer_want want;
    struct error err;
    engine_want(e, CMD_LISTEN, message, said->source, said->sources_count, &want, peers);
    want.silence = rm_later(source_patience(e), listen_silence_least);
    struct transfer_listen listen = {
        .want = &want, .enough = &e->enough, .apply = apply_update, .ctx = e, .losses = &e->heard};
    if (transfer_listen(e->state, &listen, &e->exact, &err) < 0)
        transfer_failed(&want, -1, &err, ret);
    if (listen.missed)
        log_info("listened too slowly for an update; all that had come was of no use", "times=%d",
                 listen.missed);
    ret->heard = e->heard;
    ret->tokens = e->spec->batch.lanes * engine_lane_tokens(e);
    e->fresh = true;
}

/* The last step has left the whole state there where it was known that a snapshot is due and the agent was
 * done with the one before; else the slice is copied. */
static int fill_snapshot(struct engine *e, struct model_range range, struct model_range weights,
                         struct error *err)
{
    struct state_arrays from = state_arrays(e->state), to = engine_area(e, SNAPSHOT_TAKEN);
    if (state_in_spare(e->state))
        return 0;
    for (int i = 0; i < from.arrays; i++) {
        const struct state_array *a = &from.array[i];
        struct model_range part = i ? range : weights; /* the first are the weights */
        void *there = memory_near(to.in, state_range_at(&to.array[i], part.first, part.count));
        if (e->backend->ops->copy_out(e->backend, there, state_range_at(a, part.first, part.count),
                                      (size_t)part.count * state_type_bytes(a->type), err) < 0)
            return -1;
    }
    return 0;
}

void engine_snapshot(struct engine *e, int part, int parts, struct elastic_result *ret)
{
    struct state_point point;
    int64_t elements = state_arrays(e->state).count;
    RM_ASSERT(part >= 0 && part < parts, "part %d of %d is left for the agent", part, parts);
    struct model_range range = model_part(elements, part, parts);
    struct error err;
    if (!state_holds(e->state, &point)) {
        err_set(&err, ERR_MACHINE, "asked for a snapshot, but nothing is held");
        engine_failed(ret, &err, -1);
        return;
    }
    if (fill_snapshot(e, range, model_weights_part(elements, part, parts), &err) < 0) {
        engine_failed(ret, &err, -1);
        return;
    }
    if (e->backend->ops->image_sum &&
        e->backend->ops->image_sum(e->backend, &ret->snapshot.image, &err) < 0) {
        engine_failed(ret, &err, -1);
        return;
    }
    FAULT("snapshot-taken");
    ret->snapshot.first = range.first;
    ret->snapshot.count = range.count;
    ret->snapshot.tensors = e->layout.tensors;
    for (int t = 0; t < e->layout.tensors; t++)
        ret->snapshot.k[t] = (int8_t)point.k[t];
}

void engine_digest(struct engine *e, struct elastic_result *ret)
{
    struct error err;
    atomic_store(&e->in_memory, true);
    const struct backend_ops *ops = e->backend->ops;
    int made =
        ops->digest ? ops->digest(e->backend, ret->digest, &err) : state_digest(e->state, ret->digest, &err);
    atomic_store(&e->in_memory, false);
    if (made < 0)
        engine_failed(ret, &err, -1);
    FAULT("digest-made");
}

void engine_drop(struct engine *e)
{
    state_receive_begin(e->state);
}
