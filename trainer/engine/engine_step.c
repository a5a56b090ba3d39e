#include <string.h>

#include "common/os/clock.h"
#include "common/os/fault.h"
#include "trainer/engine/engine_parts.h"

enum { PASSES_MAX = 3 }; /* one rescaled pass is always enough (exactness.md); more is a bug */

static struct model_range own_lanes(const struct engine *e)
{
    return model_part(e->spec->batch.lanes, e->ring->rank, e->ring->world);
}

static void pack_weights(struct engine *e)
{
    if (!e->packed)
        gpt_weights_changed(e->gpt, state_arrays(e->state).params);
    e->packed = true;
}

static void aim(struct engine *e, int64_t step)
{
    struct model_range own = own_lanes(e);
    prefetch_aim(e->reader, step, (int)own.first, (int)own.count);
}

void engine_read_ahead(struct engine *e)
{
    struct state_point point;
    if (state_holds(e->state, &point))
        aim(e, point.step);
}

static int run_lanes(struct engine *e, int64_t step, struct error *err)
{
    const float *params = state_arrays(e->state).params;
    struct model_range own = own_lanes(e);
    aim(e, step);
    for (int64_t lane = own.first; lane < own.first + own.count; lane++) {
        float loss;
        const int32_t *tokens = prefetch_lane(e->reader, (int)lane, err);
        if (!tokens || gpt_lane(e->gpt, params, tokens, e->grads, &loss, &e->abort.word, err) < 0)
            return -1;
        lanes_add(e->lanes, (int)lane, e->grads, loss);
        atomic_fetch_add(&e->counter, 1);
        FAULT("lane-done");
    }
    return 0;
}

/* Rank 0's clock says when the time for a checkpoint has come, and all hear of it in the same reduction. */
static uint32_t flags_of(const struct engine *e)
{
    rm_time every = e->spec->checkpoint.every;
    bool due = every && e->ring->rank == 0 && clock_now() - e->saved_at >= every;
    return (atomic_load(&e->stop) ? LANES_STOP : 0) | (due ? LANES_SAVE : 0);
}

/* One pass of the own lanes and the reduction over all. k NULL: the state's own exponents. */
static int run_pass(struct engine *e, int64_t step, const int32_t *k, struct verdict *ret, int *ret_worker,
                    struct error *err)
{
    struct lanes_buffer buffer;
    struct lanes_pass pass = {.rank = e->ring->rank, .flags = flags_of(e), .k = k};
    atomic_store(&e->exchanging, false);
    *ret_worker = -1;
    lanes_begin(e->lanes, &pass);
    if (run_lanes(e, step, err) < 0)
        return -1;
    lanes_end(e->lanes, &buffer);
    struct collective_segment segments[2] = {
        {buffer.floats ? COLLECTIVE_F32 : COLLECTIVE_U32, buffer.words, buffer.words_count},
        {COLLECTIVE_U32, buffer.header, buffer.header_count},
    };
    FAULT("before-reduce");
    if (engine_reduce(e, segments, 2, ret_worker, err) < 0)
        return -1;
    FAULT("after-reduce");
    lanes_decide(e->lanes, ret);
    return 0;
}

static void commit(struct engine *e, const struct verdict *verdict, struct elastic_result *ret)
{
    struct update_info info;
    if (verdict->flags & LANES_SAVE && e->snapshot_free)
        state_aim_spare(e->state, true);
    update_commit(e->lanes, &e->rule, &info);
    e->packed = false;
    ret->loss = info.loss;
    ret->stop = verdict->flags & LANES_STOP;
    ret->save = verdict->flags & LANES_SAVE;
    if (ret->save)
        e->saved_at = clock_now();
    ret->tokens =
        (int64_t)e->spec->batch.lanes * e->spec->batch.lane_sequences * e->spec->model.shape.context;
}

static void refuse_verdict(struct engine *e, const struct verdict *verdict, int64_t step,
                           struct elastic_result *ret)
{
    if (verdict->kind == VERDICT_NOT_FINITE) {
        ret->outcome = OUTCOME_NOT_FINITE;
        verdict_sentence(verdict, &e->layout, step + 1, ret->text);
        return;
    }
    ret->outcome = OUTCOME_LINEAGE;
    ret->minority = verdict->minority >> e->ring->rank & 1;
    text_copy(ret->text, sizeof ret->text, "the workers' states differ");
}

void engine_step(struct engine *e, struct elastic_result *ret)
{
    struct state_point point;
    struct verdict verdict;
    struct error err;
    int32_t k[RM_TENSORS_MAX];
    int worker;
    if (!e->ring || !state_holds(e->state, &point)) {
        err_set(&err, ERR_PEER, "there is no ring to train in");
        engine_failed(ret, &err, -1);
        return;
    }
    rm_time waited = prefetch_waited(e->reader), reduced = e->reduce_time;
    int64_t sent = e->reduce_bytes;
    pack_weights(e);
    for (int pass = 0; pass < PASSES_MAX; pass++) {
        if (run_pass(e, point.step, pass ? k : NULL, &verdict, &worker, &err) < 0) {
            engine_failed(ret, &err, worker);
            return;
        }
        if (verdict.kind == VERDICT_FITS) {
            commit(e, &verdict, ret);
            ret->data_wait = prefetch_waited(e->reader) - waited;
            ret->reduce_time = e->reduce_time - reduced;
            ret->reduce_bytes = e->reduce_bytes - sent;
            return;
        }
        if (verdict.kind != VERDICT_RESCALE) {
            refuse_verdict(e, &verdict, point.step, ret);
            return;
        }
        memcpy(k, verdict.k, sizeof k);
        e->rescaled++;
    }
    err_set(&err, ERR_TRAINING, "step %lld fits no scale", (long long)point.step + 1);
    engine_failed(ret, &err, -1);
}

/* Each sequence alone, so that its loss does not depend on which others this rank happens to have. */
static int own_losses(struct engine *e, int sequences, struct error *err)
{
    const float *params = state_arrays(e->state).params;
    struct model_range own = model_part(sequences, e->ring->rank, e->ring->world);
    int64_t first = corpus_training(e->corpus);
    memset(e->losses, 0, (size_t)sequences * sizeof *e->losses);
    for (int64_t i = own.first; i < own.first + own.count; i++) {
        float loss;
        if (prefetch_sample(e->reader, first + i, e->tokens, err) < 0 ||
            gpt_losses(e->gpt, params, e->tokens, 1, &loss, &e->abort.word, err) < 0)
            return -1;
        memcpy(&e->losses[i], &loss, sizeof loss);
        atomic_fetch_add(&e->counter, 1);
        FAULT("sequence-evaluated");
    }
    return 0;
}

void engine_evaluate(struct engine *e, struct elastic_result *ret)
{
    int sequences = e->spec->evaluation.sequences, worker = -1;
    struct collective_segment segment = {COLLECTIVE_U32, e->losses, sequences};
    struct error err;
    double sum = 0;
    atomic_store(&e->exchanging, false);
    if (!e->ring || !state_holds(e->state, NULL)) {
        err_set(&err, ERR_PEER, "there is no ring to evaluate in");
        engine_failed(ret, &err, -1);
        return;
    }
    pack_weights(e);
    if (own_losses(e, sequences, &err) < 0 || engine_reduce(e, &segment, 1, &worker, &err) < 0) {
        engine_failed(ret, &err, worker);
        return;
    }
    for (int i = 0; i < sequences; i++) {
        float loss;
        memcpy(&loss, &e->losses[i], sizeof loss);
        sum += (double)loss;
    }
    ret->loss = sum / sequences;
}
