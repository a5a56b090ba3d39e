/* The two halves of a step, and the evaluation: own lanes on the one thread, header, words and commit on the
 * other. What the ranks concluded decides what comes next. */
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/os/clock.h"
#include "common/os/fault.h"
#include "common/os/log.h"
#include "trainer/engine/engine_parts.h"

/* A process number or a clock in a program's state differs everywhere. */
#define OWN_STATE " (what is each worker's own does not belong into a state)"

/* One rescaled pass is always enough (exactness.md), and with audits one more of each kind; more is a bug. */
enum { PASSES_MAX = 3, PASSES_AUDITED_MAX = 5 };

static int pack_weights(struct engine *e, struct error *err)
{
    if (!e->packed && e->backend->ops->weights(e->backend, engine_params(e), err) < 0)
        return -1;
    e->packed = true;
    return 0;
}

/* The first lanes from `from` on that are this rank's, not computed, and follow each other; none: count 0. */
static struct model_range next_lanes(const struct lane_set *own, const struct lane_set *done, int from)
{
    int first = lane_set_next(own, from - 1), end;
    while (first >= 0 && lane_set_has(done, first))
        first = lane_set_next(own, first);
    if (first < 0)
        return (struct model_range){0};
    for (end = first + 1; end < RM_LANES_MAX && lane_set_has(own, end) && !lane_set_has(done, end); end++) {
    }
    return (struct model_range){.first = first, .count = end - first};
}

/* Lanes that are dealt out may lie apart: they are read run by run. */
static void aim(struct engine *e, int64_t step, struct model_range lanes)
{
    if (e->reader && lanes.count)
        prefetch_aim(e->reader, step, (int)lanes.first, (int)lanes.count);
}

void engine_read_ahead(struct engine *e, const struct message *form)
{
    struct state_point point;
    struct lane_set own, kept;
    if (!state_holds(e->state, &point))
        return;
    engine_own_lanes(e, form, point.step, &own);
    engine_kept_lanes(e, &kept);
    aim(e, point.step, next_lanes(&own, &kept, 0));
}

static int run_lane(struct engine *e, int lane, struct error *err)
{
    const atomic_int *stop = &e->abort[ELASTIC_COMPUTES].word;
    const int32_t *tokens = e->reader ? prefetch_lane(e->reader, lane, err) : NULL;
    if ((e->reader && !tokens) || e->backend->ops->lane(e->backend, lane, tokens, stop, err) < 0)
        return -1;
    lane_set_add(&e->pass.done, lane);
    atomic_fetch_add(&e->counter, 1);
    FAULT("lane-done");
    return 0;
}

/* 0: there was none. */
static uint32_t us_each(rm_time took, int count)
{
    rm_time us = count ? took / count / RM_US : 0;
    return count ? (uint32_t)(us < 1 ? 1 : us > INT32_MAX ? INT32_MAX : us) : 0;
}

static int run_lanes(struct engine *e, int64_t step, const struct lane_set *own, struct error *err)
{
    rm_time begun = clock_now();
    int count = 0;
    struct model_range run = next_lanes(own, &e->pass.done, 0);
    for (; run.count; run = next_lanes(own, &e->pass.done, (int)(run.first + run.count))) {
        aim(e, step, run);
        for (int64_t lane = run.first; lane < run.first + run.count; lane++, count++) {
            if (atomic_load(&e->pause))
                return err_set(err, ERR_ABORTED, "the ring has stopped");
            if (run_lane(e, (int)lane, err) < 0)
                return -1;
        }
    }
    return e->backend->ops->end(e->backend, us_each(clock_now() - begun, count), &e->pass.sums, err);
}

/* Rank 0's clock says when the time for a checkpoint has come, or who was told so does, and all hear of it in
 * the same reduction. */
static uint32_t flags_of(struct engine *e)
{
    rm_time every = atomic_load(&e->save_every);
    bool due = every && e->ring->rank == 0 && clock_now() - e->saved_at >= every;
    bool save = due || atomic_load(&e->save);
    return (atomic_load(&e->stop) ? LANES_STOP : 0) | (save ? LANES_SAVE : 0) | engine_own_flags(e) |
           engine_transport_flags(e);
}

/* A pass is begun, or the one is gone on with whose lanes are all this rank's in this ring, too. */
static int begin_pass(struct engine *e, const struct state_point *point, const struct lane_set *own,
                      bool again, struct error *err)
{
    struct lane_set kept;
    engine_kept_lanes(e, &kept);
    bool goes_on = !again && !lane_set_is_empty(&kept) && lane_set_within(&kept, own);
    e->pass.disputed = again ? e->pass.disputed : 0;
    e->pass.scaled = again && e->pass.scaled;
    struct backend_pass pass = {.rank = e->ring->rank,
                                .world = e->ring->world,
                                .flags = flags_of(e),
                                .tokens = (uint32_t)engine_lane_tokens(e),
                                .shares = &e->pace.ring.shares,
                                .room = pace_has_room(&e->pace.ring, e->ring->rank),
                                .k = e->pass.scaled ? e->pass.k : NULL,
                                .disputed = e->pass.disputed};
    e->pass.number = again ? e->pass.number + 1 : 0;
    if (goes_on)
        return e->backend->ops->resume(e->backend, &pass, err);
    engine_forget_lanes(e);
    e->pass.behind = *point;
    e->pass.world = e->ring->world;
    return e->backend->ops->begin(e->backend, &pass, err);
}

void engine_lanes(struct engine *e, const struct elastic_action *action, struct elastic_result *ret)
{
    struct state_point point;
    struct lane_set own;
    struct error err;
    bool again = action->again;
    if (engine_data_spoilt(e, ret) || !engine_can_train(e, &point, ret))
        return;
    RM_ASSERT(!again || e->pass.verdict.kind == VERDICT_RESCALE || e->pass.disputed,
              "lanes of step %lld again, and the pass is %d", (long long)point.step + 1,
              (int)e->pass.verdict.kind);
    engine_own_lanes(e, action->form, point.step, &own);
    rm_time waited = e->reader ? prefetch_waited(e->reader) : 0;
    atomic_store(&e->exchanging, false);
    FAULT_FLIP("state-rests", (void *)(uintptr_t)engine_params(e).at,
               state_words_are_near(e->state) && !e->backend->image_bytes ? (size_t)e->layout.parameters * 4
                                                                          : 0);
    if (pack_weights(e, &err) < 0 || begin_pass(e, &point, &own, again, &err) < 0 ||
        run_lanes(e, point.step, &own, &err) < 0) {
        engine_failed(ret, &err, -1);
        if (ret->outcome != OUTCOME_ABORTED)
            engine_forget_lanes(e);
    } else {
        FAULT_FLIP("words-added", (void *)(uintptr_t)e->pass.sums.words.at,
                   e->pass.sums.in ? 0 : (size_t)e->pass.sums.words_count * 4);
    }
    ret->data_wait = e->reader ? prefetch_waited(e->reader) - waited : 0;
}

/* All ranks are in this step then, and know of each other what was said. */
static int exchange_header(struct engine *e, int *ret_worker, struct error *err)
{
    const struct backend_sums *sums = &e->pass.sums;
    struct collective_segment said[2] = {
        {.from = sums->header, .to = sums->header_to, .count = sums->header_count}};
    int offers = engine_transport_offer(e, &said[1]);
    FAULT("before-reduce");
    return engine_reduce(e, said, 1 + offers, ret_worker, err);
}

/* Nothing of it may be used. Whose fault it is can't be seen here: what each rank adds passes through all. */
static void unproven(const char *what, int64_t step, struct elastic_result *ret)
{
    ret->outcome = OUTCOME_PROOF;
    snprintf(ret->text, sizeof ret->text,
             "the %s of step %lld %s not the sum of what the workers said: a bit changed in the memory or "
             "the processor of one of them, or on the way; the step is made again",
             what, (long long)step, *what == 'h' ? "is" : "are");
}

/* The words' sum is none, or was cut off, as it is where another one has found it to be none. Where this
 * rank spoiled it, nobody else has to be looked at. */
static void blame_own_words(const struct engine *e, int64_t step, struct elastic_result *ret)
{
    if (engine_words_stand(e))
        return;
    ret->outcome = OUTCOME_PROOF;
    ret->class = CLASS_MACHINE;
    snprintf(ret->text, sizeof ret->text,
             "its own sums of step %lld are not what its lanes added up to: a bit changed in its memory or "
             "its processor; the step is made again",
             (long long)step);
}

static bool header_stands(struct engine *e)
{
    return header_proven(e->pass.sums.header_to, e->layout.tensors, e->spec->batch.lanes);
}

/* A lane is in two sums, or in none, as where ranks were told other shares. */
static void refuse_lanes(int64_t step, struct elastic_result *ret)
{
    ret->outcome = OUTCOME_PROOF;
    ret->minority = false;
    snprintf(ret->text, sizeof ret->text,
             "not each lane of step %lld was added up once; the step is made again from nothing",
             (long long)step);
}

/* Integers that fit have the sum that their lanes' checksums say; fp32 has none. */
static bool words_stand(const struct engine *e, uint64_t proof)
{
    const struct backend_sums *sums = &e->pass.sums;
    return sums->floats ||
           proof == header_words_proof(sums->header_to, e->layout.tensors, e->spec->batch.lanes);
}

/* As a memory does that is not sound. Said, so that who looks at what comes of it knows of which step it is.
 */
static int corrupt_words(struct engine *e, struct error *err)
{
    const struct backend_sums *sums = &e->pass.sums;
    struct memory *in = sums->in ? sums->in : memory_here();
    struct far at = far_add(sums->words, sums->words_count / 2 * 4);
    struct state_point point;
    uint32_t word;
    if (memory_read(in, &word, at, sizeof word, err) < 0)
        return -1;
    word ^= 1u << 20;
    state_holds(e->state, &point);
    log_warn("a drill flips a bit in this worker's sums", "step=%lld", (long long)point.step + 1);
    return memory_write(in, at, &word, sizeof word, err);
}

/* What goes round elsewhere has its proof looked at by who seals it. */
static int reduce_words(struct engine *e, const struct collective_segment *words, bool *ret_stand,
                        int *ret_worker, struct error *err)
{
    *ret_stand = true;
    if (engine_transport_takes(e, words))
        return engine_transport_reduce(e, words, ret_worker, err);
    if (engine_reduce(e, words, 1, ret_worker, err) < 0)
        return -1;
    *ret_stand = !words->proof || words_stand(e, *words->proof);
    return 0;
}

/* The words of a pass that fits. Alone, this rank's are everybody's, and who seals them looks at their proof.
 */
static int sum_words(struct engine *e, bool *ret_stand, int *ret_worker, struct error *err)
{
    const struct backend_sums *sums = &e->pass.sums;
    struct far to;
    uint64_t proof = 0;
    transfer_forget_update(e->source);
    bool others = e->backend->ops->words_to(e->backend, &to);
    struct collective_segment words = {.type = sums->floats ? COLLECTIVE_F32 : COLLECTIVE_U32,
                                       .from = (const void *)(uintptr_t)sums->words.at,
                                       .to = (void *)(uintptr_t)to.at,
                                       .count = sums->words_count,
                                       .proof = sums->floats ? NULL : &proof,
                                       .in = sums->in};
    if (atomic_exchange(&e->corrupt, false) && corrupt_words(e, err) < 0)
        return -1;
    *ret_stand = true;
    if (others && reduce_words(e, &words, ret_stand, ret_worker, err) < 0)
        return -1;
    FAULT("after-reduce");
    return 0;
}

void engine_commit(struct engine *e, struct elastic_result *ret)
{
    uint32_t flags = e->pass.verdict.flags;
    struct backend_info info;
    struct error err;
    engine_forget_lanes(e);
    if (flags & LANES_SAVE && e->snapshot_free)
        state_aim_spare(e->state, true);
    e->packed = false;
    if (e->backend->ops->commit(e->backend, &info, &err) < 0) {
        engine_failed(ret, &err, -1);
        return;
    }
    ret->loss = info.loss;
    ret->numbers = (struct msg_numbers){.norm = info.norm, .clip = info.clip, .rate = info.rate};
    if (flags & LANES_SAVE) {
        e->saved_at = clock_now();
        atomic_store(&e->save, false);
    }
    ret->tokens = e->pass.verdict.tokens;
}

/* Said of a worker by itself, and by others, who may be heard first. */
static void refuse_state(struct engine *e, bool outvoted, int64_t step, struct elastic_result *ret)
{
    if (e->backend->image_bytes)
        e->exact = false; /* for some steps gradients of other weights were in the sums */
    if (outvoted)
        snprintf(ret->text, sizeof ret->text,
                 "its state of step %lld is not that of most workers; it gets theirs" OWN_STATE,
                 (long long)step);
    else
        snprintf(
            ret->text, sizeof ret->text,
            "its state of step %lld is not that of other workers, and no majority says whose is right; it "
            "gets that of the first" OWN_STATE,
            (long long)step);
}

/* Those ranks are wrong, and the first of them is named by all others. */
static void blame(const struct engine *e, struct worker_set ranks, struct elastic_result *ret)
{
    RM_ASSERT(!set_is_empty(ranks) && set_first(ranks) < e->ring->world, "rank %d of %d is wrong",
              set_first(ranks), e->ring->world);
    ret->outcome = OUTCOME_LINEAGE;
    ret->minority = set_has(ranks, e->ring->rank);
    ret->peer = ret->minority ? -1 : e->ring_worker[set_first(ranks)];
}

enum { WORKERS_TEXT = 5 * RM_WORKERS_MAX + 1 }; /* "123, " each, at most */

/* Ranks are those of this ring, and people know workers: "0, 2, 5". */
static void name_workers(const struct engine *e, struct worker_set ranks, char out[WORKERS_TEXT])
{
    int length = 0;
    out[0] = 0;
    for (int r = set_first(ranks); r >= 0; r = set_next(ranks, r))
        length += snprintf(out + length, (size_t)(WORKERS_TEXT - length), "%s%d", length ? ", " : "",
                           e->ring_worker[r]);
}

/* All have computed it, and these still differ. */
static void refuse_lane(struct engine *e, const struct audit_found *found, int64_t step,
                        struct elastic_result *ret)
{
    char workers[WORKERS_TEXT];
    if (set_is_empty(found->differ)) {
        name_workers(e, found->computed, workers);
        ret->outcome = OUTCOME_DISPUTED;
        snprintf(ret->text, sizeof ret->text,
                 "workers %s compute lane %d of step %lld differently, also when all do it once more, and "
                 "no majority says who is right",
                 workers, found->lane, (long long)step + 1);
        return;
    }
    blame(e, found->differ, ret);
    ret->outvoted = ret->minority;
    e->exact = false; /* who computes otherwise may have done so before */
    snprintf(ret->text, sizeof ret->text,
             "it computes lane %d of step %lld otherwise than most workers; nothing of that step was taken",
             found->lane, (long long)step + 1);
}

/* All compute the lane about which two differ, and with it the step, once more. */
static void audit_again(struct engine *e, const struct audit_found *found, int64_t step,
                        struct elastic_result *ret)
{
    char workers[WORKERS_TEXT];
    name_workers(e, found->computed, workers);
    log_warn("workers computed a lane differently; all compute it once more",
             "step=%lld lane=%d workers=\"%s\"", (long long)step + 1, found->lane, workers);
    e->pass.disputed = found->lane + 1;
    ret->outcome = OUTCOME_RESCALE;
}

static void refuse_audit(struct engine *e, const struct audit_found *found, int64_t step,
                         struct elastic_result *ret)
{
    if (e->pass.disputed)
        refuse_lane(e, found, step, ret);
    else
        audit_again(e, found, step, ret);
}

static void refuse_verdict(struct engine *e, const struct verdict *verdict, int64_t step,
                           struct elastic_result *ret)
{
    if (verdict->kind == VERDICT_NOT_FINITE) {
        ret->outcome = OUTCOME_NOT_FINITE;
        verdict_sentence(verdict, &e->layout, step + 1, ret->text);
        return;
    }
    bool outvoted = 2 * set_count(verdict->minority) < e->ring->world;
    blame(e, verdict->minority, ret);
    ret->outvoted = ret->minority && outvoted;
    refuse_state(e, outvoted, step, ret);
}

/* Its lanes are done once more, with what they need to fit. */
static void rescale(struct engine *e, int64_t step, struct elastic_result *ret)
{
    struct error err;
    if (e->pass.number + 1 == (e->backend->ops->audited ? PASSES_AUDITED_MAX : PASSES_MAX)) {
        err_set(&err, ERR_TRAINING, "step %lld fits no scale", (long long)step + 1);
        engine_failed(ret, &err, -1);
        return;
    }
    memcpy(e->pass.k, e->pass.verdict.k, sizeof e->pass.k);
    e->pass.scaled = true;
    e->pass.disputed = 0;
    e->rescaled++;
    ret->outcome = OUTCOME_RESCALE;
}

static void exchange_words(struct engine *e, int64_t step, struct elastic_result *ret)
{
    struct error err;
    int worker = -1;
    bool stand = true;
    if (sum_words(e, &stand, &worker, &err) < 0)
        engine_failed(ret, &err, worker);
    else if (!stand)
        unproven("words", step, ret);
    if (ret->outcome != OUTCOME_OK)
        blame_own_words(e, step, ret);
}

static void act_on(struct engine *e, int64_t step, struct elastic_result *ret)
{
    const struct verdict *verdict = &e->pass.verdict;
    const struct backend_ops *ops = e->backend->ops;
    struct audit_found found;
    ret->stop = verdict->flags & LANES_STOP;
    ret->save = verdict->flags & LANES_SAVE;
    if (verdict->kind != VERDICT_LINEAGE && ops->audited && ops->audited(e->backend, &found))
        refuse_audit(e, &found, step, ret);
    else if (verdict->kind == VERDICT_RESCALE)
        rescale(e, step, ret);
    else if (verdict->kind != VERDICT_FITS)
        refuse_verdict(e, verdict, step, ret);
    else {
        engine_pace_hear(e);
        exchange_words(e, step + 1, ret);
        engine_pace_watch(e);
    }
}

void engine_exchange(struct engine *e, struct elastic_result *ret)
{
    struct state_point point;
    struct worker_set odd;
    struct error err;
    int worker = -1;
    rm_time reduced = e->reduce_time;
    int64_t sent = e->reduce_bytes;
    if (!engine_can_train(e, &point, ret))
        return;
    if (exchange_header(e, &worker, &err) < 0) {
        engine_failed(ret, &err, worker);
    } else if (!header_stands(e)) {
        unproven("header", point.step + 1, ret);
    } else if (!set_is_empty(odd = engine_odd_states(e, e->pass.sums.header_to))) {
        engine_states_differ(e, e->pass.sums.header_to, odd, point.step, ret);
    } else if (!engine_lanes_are_whole(e)) {
        refuse_lanes(point.step + 1, ret);
        engine_forget_lanes(e);
    } else {
        e->fresh = false;
        e->backend->ops->decide(e->backend, &e->pass.verdict);
        engine_transport_hear(e, e->pass.verdict.flags, point.step + 1);
        act_on(e, point.step, ret);
    }
    engine_keep_sound(e, ret);
    ret->reduce_time = e->reduce_time - reduced;
    ret->reduce_bytes = e->reduce_bytes - sent;
    engine_transport_tell(e, &ret->second);
    engine_pace_tell(e, &ret->pace);
}

/* Each sequence alone, so that its loss does not depend on which others this rank happens to have. */
static int own_losses(struct engine *e, int sequences, struct error *err)
{
    const atomic_int *stop = &e->abort[ELASTIC_COMPUTES].word;
    struct model_range own = model_part(sequences, e->ring->rank, e->ring->world);
    int64_t first = corpus_training(e->corpus);
    if (!e->backend->ops->losses)
        return err_set(err, ERR_TRAINING, "who computes here knows no loss but that of a lane");
    memset(e->losses, 0, (size_t)sequences * sizeof *e->losses);
    for (int64_t i = own.first; i < own.first + own.count; i++) {
        float loss;
        if (prefetch_sample(e->reader, first + i, e->tokens, err) < 0 ||
            e->backend->ops->losses(e->backend, e->tokens, 1, &loss, stop, err) < 0)
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
    uint32_t *sums = e->losses + sequences;
    struct collective_segment segment = {.from = e->losses, .to = sums, .count = sequences};
    struct error err;
    double sum = 0;
    atomic_store(&e->exchanging, false);
    if (!e->ring || !state_holds(e->state, NULL)) {
        err_set(&err, ERR_PEER, "there is no ring to evaluate in");
        engine_failed(ret, &err, -1);
        return;
    }
    if (pack_weights(e, &err) < 0 || own_losses(e, sequences, &err) < 0 ||
        engine_reduce(e, &segment, 1, &worker, &err) < 0) {
        engine_failed(ret, &err, worker);
        return;
    }
    for (int i = 0; i < sequences; i++) {
        float loss;
        memcpy(&loss, &sums[i], sizeof loss);
        sum += (double)loss;
    }
    ret->loss = sum / sequences;
}
