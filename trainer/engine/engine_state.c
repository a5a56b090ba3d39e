#include <string.h>

#include "common/os/fault.h"
#include "common/storage/checkpoint/model_folder.h"
#include "common/storage/checkpoint/place.h"
#include "trainer/engine/engine_parts.h"
#include "trainer/exact/lineage.h"

void engine_repair(struct engine *e)
{
    if (state_pending(e->state))
        update_apply(e->state, &e->rule, e->pool, NULL);
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

void engine_init_state(struct engine *e, struct elastic_result *ret)
{
    struct state_point point = {0};
    struct str compared = str_init(RM_FRAME_MAX);
    struct error err;
    state_receive_begin(e->state);
    struct state_arrays arrays = state_arrays(e->state);
    if (!e->spec->model.init[0]) {
        atomic_store(&e->in_memory, true);
        gpt_init_weights(&e->layout, e->spec->seed, arrays.params);
    } else if (load_init(e, arrays.params, &err) < 0) {
        err_wrap(&err, "model.init");
        engine_failed(ret, &err, -1);
        return;
    }
    atomic_store(&e->in_memory, true);
    state_zero_moments(e->state);
    job_spec_write_compared(e->spec, &compared);
    lineage_first(str_text(&compared), compared.length, e->data_sha256, arrays.params, arrays.count,
                  point.lineage);
    atomic_store(&e->in_memory, false);
    str_clear(&compared);
    FAULT("state-made");
    state_receive_end(e->state, &point);
    e->exact = e->spec->reduction == JOB_EXACT;
}

enum { COPY_PIECE = 1 << 18 }; /* elements */

static void copy_piece(void *ctx, int piece, int thread)
{
    const struct engine_copy *c = ctx;
    int64_t at = (int64_t)piece * COPY_PIECE, left = c->count - at;
    size_t bytes = (size_t)(left < COPY_PIECE ? left : COPY_PIECE) * sizeof(float);
    (void)thread;
    for (int i = 0; i < c->arrays; i++)
        memcpy(c->to[i] + c->first + at, c->from[i] + c->first + at, bytes);
}

void engine_copy(struct engine *e, struct engine_copy *c)
{
    if (c->count > 0)
        pool_run(e->pool, (int)((c->count + COPY_PIECE - 1) / COPY_PIECE), copy_piece, c);
}

void engine_want(struct engine *e, const struct message *message, const struct msg_member *source,
                 int sources, struct transfer_want *want, struct transfer_peer *peers)
{
    const struct msg_form *form = &message->form;
    for (int i = 0; i < sources; i++) {
        peers[i].end = (struct handshake_end){source[i].worker, source[i].incarnation};
        text_copy(peers[i].address, sizeof peers[i].address, source[i].address);
    }
    *want = (struct transfer_want){
        .secret = e->secret,
        .generation = {message->generation.term, message->generation.n},
        .self = e->self,
        .step = form->resume.step,
        .tensors = e->layout.tensors,
        .sources = sources,
        .source = peers,
        .abort = &e->abort,
        .received = &e->received,
    };
    memcpy(want->lineage, form->resume.lineage, RM_HASH_BYTES);
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

void engine_receive(struct engine *e, const struct message *form, struct elastic_result *ret)
{
    struct transfer_peer peers[RM_WORKERS_MAX];
    struct transfer_want want;
    struct error err;
    bool exact;
    int source;
    engine_want(e, form, form->form.source, form->form.sources_count, &want, peers);
    want.silence = source_patience(e);
    if (transfer_receive_state(e->state, &want, &exact, &source, &err) < 0)
        transfer_failed(&want, source, &err, ret);
    else
        e->exact = exact;
}

/* What has come is applied only where it leads to the very state asked for: until then the state held is as
 * good as before, and afterwards it would be gone. */
static int take_update(struct engine *e, const struct transfer_want *want, struct error *err)
{
    struct state_point wanted = {.step = want->step};
    memcpy(wanted.lineage, want->lineage, RM_HASH_BYTES);
    if (update_check_received(e->state, &e->rule, e->pool, &wanted, err) < 0 ||
        state_update_receive_end(e->state, want->step, err) < 0)
        return -1;
    engine_repair(e);
    return 0;
}

void engine_catch_up(struct engine *e, const struct message *form, struct elastic_result *ret)
{
    struct transfer_peer peers[RM_WORKERS_MAX];
    struct transfer_want want;
    struct error err;
    bool exact;
    int source;
    engine_want(e, form, form->form.source, form->form.sources_count, &want, peers);
    want.silence = source_patience(e);
    want.sources = 1;
    if (transfer_receive_update(e->state, &want, &exact, &source, &err) < 0) {
        transfer_failed(&want, source, &err, ret);
    } else if (take_update(e, &want, &err) < 0) {
        transfer_failed(&want, 0, &err, ret);
        ret->outcome = OUTCOME_LINEAGE; /* a different history, not a broken connection */
    } else {
        e->exact = e->exact && exact;
    }
}

/* The last step has left the whole state there where it was known that a snapshot is due and the agent was
 * done with the one before; else the slice is copied. */
static void fill_snapshot(struct engine *e, struct model_range range, struct model_range weights)
{
    struct state_arrays a = state_arrays(e->state);
    int64_t n = a.count;
    float *to = e->area[SNAPSHOT_TAKEN];
    struct engine_copy params = {
        .arrays = 1, .to = {to}, .from = {a.params}, .first = weights.first, .count = weights.count};
    struct engine_copy moments = {.arrays = 2,
                                  .to = {to + n, to + 2 * n},
                                  .from = {a.m, a.v},
                                  .first = range.first,
                                  .count = range.count};
    if (state_in_spare(e->state))
        return;
    engine_copy(e, &params);
    engine_copy(e, &moments);
}

void engine_snapshot(struct engine *e, int part, int parts, struct elastic_result *ret)
{
    struct state_point point;
    struct model_range range = model_part(e->layout.parameters, part, parts);
    struct error err;
    if (!state_holds(e->state, &point)) {
        err_set(&err, ERR_MACHINE, "asked for a snapshot, but nothing is held");
        engine_failed(ret, &err, -1);
        return;
    }
    fill_snapshot(e, range, model_weights_part(e->layout.parameters, part, parts));
    FAULT("snapshot-taken");
    ret->snapshot.first = range.first;
    ret->snapshot.count = range.count;
    ret->snapshot.tensors = e->layout.tensors;
    for (int t = 0; t < e->layout.tensors; t++)
        ret->snapshot.k[t] = (int8_t)point.k[t];
}

void engine_digest(struct engine *e, struct elastic_result *ret)
{
    atomic_store(&e->in_memory, true);
    state_digest(e->state, ret->digest);
    atomic_store(&e->in_memory, false);
    FAULT("digest-made");
}

void engine_drop(struct engine *e)
{
    state_receive_begin(e->state);
}
