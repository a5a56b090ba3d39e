/* Whether all ranks of a ring hold the same bits: each header says so of the states that a step begins with,
 * and one without lanes of those that no step of this ring follows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/str.h"
#include "common/os/log.h"
#include "trainer/engine/engine_parts.h"
#include "trainer/exact/header.h"
#include "trainer/state/state.h"

static bool are_comparable(const struct engine *e)
{
    return e->spec->reduction != JOB_FAST && !e->backend->image_bytes;
}

/* States of one history have the same bits, or one of those who made them is not sound; fp32 words are of no
 * proof, and an image has no sum here. */
struct worker_set engine_odd_states(const struct engine *e, const uint32_t *header)
{
    if (!are_comparable(e))
        return (struct worker_set){0};
    return header_odd_states(header, e->layout.tensors, e->spec->batch.lanes);
}

uint32_t engine_own_flags(const struct engine *e)
{
    struct state_point point;
    bool sure = state_holds(e->state, &point) && e->sure == point.step;
    return (sure ? LANES_SURE : 0) | (e->fresh ? LANES_FRESH : 0);
}

/* No group is the largest, and not all have looked yet whether theirs are the bits that they wrote: whose are
 * not gives them up, and the others keep theirs. */
static void look_at_own_state(struct engine *e, int64_t step, struct elastic_result *ret)
{
    const struct backend_ops *ops = e->backend->ops;
    bool sound = e->sure == step || !ops->sound || ops->sound(e->backend);
    e->sure = sound ? step : -1;
    ret->minority = ret->outvoted = !sound;
    ret->outcome = sound ? OUTCOME_LINEAGE : OUTCOME_PROOF;
    ret->class = sound ? CLASS_UNKNOWN : CLASS_MACHINE;
    snprintf(ret->text, sizeof ret->text,
             sound ? "its state of step %lld has the bits that it wrote, and another worker's has others"
                   : "its state of step %lld has other bits than it wrote there: its memory changed some; it "
                     "gets that of others",
             (long long)step);
}

static void go_by_majority(const struct engine *e, struct worker_set odd, int64_t step,
                           struct elastic_result *ret)
{
    ret->minority = set_has(odd, e->ring->rank);
    ret->outvoted = ret->minority && set_count(odd) < e->ring->world;
    ret->outcome = ret->minority ? OUTCOME_PROOF : OUTCOME_LINEAGE;
    ret->class = ret->outvoted ? CLASS_MACHINE : CLASS_PAIR;
    if (ret->outvoted && e->fresh)
        snprintf(
            ret->text, sizeof ret->text,
            "the state of step %lld that it received has other bits than those of who gave it: a memory, "
            "or the way, changed some; it gets it once more",
            (long long)step);
    else if (ret->outvoted)
        snprintf(
            ret->text, sizeof ret->text,
            "its state of step %lld has other bits than that of most workers: its memory, its processor or "
            "the way that the state came changed some; it gets theirs",
            (long long)step);
    else if (ret->minority)
        snprintf(ret->text, sizeof ret->text,
                 "its state of step %lld has other bits than that of others, and no majority says whose "
                 "are right: all go back to the newest checkpoint",
                 (long long)step);
    else
        text_copy(ret->text, sizeof ret->text, "workers hold states with different bits");
}

/* from and to are zeroes. As its updates wrote it: nothing is read for it. */
static int say_state(struct engine *e, const struct state_point *point, uint32_t *from, struct error *err)
{
    struct header_rank said = {.flags = LANES_HOLDS | engine_own_flags(e), .audited = -1};
    const struct backend_ops *ops = e->backend->ops;
    memcpy(said.lineage, point->lineage, sizeof said.lineage);
    if (ops->image_sum && ops->image_sum(e->backend, &said.state_sum, err) < 0)
        return -1;
    header_rank_write(from, e->layout.tensors, e->spec->batch.lanes, e->ring->rank, &said);
    return 0;
}

/* What all say of their states is in the second half of these zeroes. */
static int hear_states(struct engine *e, const struct state_point *point, uint32_t *words, int *ret_worker,
                       struct error *err)
{
    int64_t count = header_count(e->layout.tensors, e->spec->batch.lanes);
    struct collective_segment header = {.from = words, .to = words + count, .count = count};
    if (say_state(e, point, words, err) < 0)
        return -1;
    return engine_reduce(e, &header, 1, ret_worker, err);
}

/* All have looked once this is heard. Where somebody gave its own up the others keep theirs for now. Where
 * nobody did, it is decided before anybody leaves with what it holds: another ring may be without those who
 * differ from this rank. */
static void say_again(struct engine *e, int64_t step, struct elastic_result *ret)
{
    int tensors = e->layout.tensors, lanes = e->spec->batch.lanes, worker = -1;
    int64_t count = header_count(tensors, lanes);
    struct state_point point;
    struct error err;
    uint32_t *words = calloc((size_t)count * 2, sizeof *words);
    bool heard = words && state_holds(e->state, &point) && hear_states(e, &point, words, &worker, &err) == 0;
    if (heard && header_proven(words + count, tensors, lanes) &&
        header_all_sure(words + count, tensors, lanes))
        go_by_majority(e, engine_odd_states(e, words + count), step, ret);
    free(words);
}

/* Who is first to say so breaks the ring, and one that has not read the header yet, or still looks at its
 * state, would need another ring to find the same. A sum comes to an end once all ranks have added to it;
 * that it fails is no news: each knows already what it has to say. */
static void wait_for_all_to_know(struct engine *e)
{
    uint32_t here = 0, all;
    struct collective_segment word = {.from = &here, .to = &all, .count = 1};
    struct error err;
    int worker;
    if (engine_reduce(e, &word, 1, &worker, &err) < 0)
        log_info("the ring broke before all had seen that their states differ", "error=\"%s\"", err.text);
}

/* Nobody's lanes of them are added. Whose state is not that of most gets theirs; where there are no most, who
 * finds that its own has changed; and where nobody does, all give theirs up, and the newest checkpoint
 * counts. */
void engine_states_differ(struct engine *e, const uint32_t *header, struct worker_set odd, int64_t step,
                          struct elastic_result *ret)
{
    bool tie = set_count(odd) == e->ring->world;
    RM_ASSERT(!set_is_empty(odd) && are_comparable(e), "states of step %lld differ, and %d of %d are odd",
              (long long)step, set_count(odd), e->ring->world);
    if (tie && !header_all_sure(header, e->layout.tensors, e->spec->batch.lanes)) {
        look_at_own_state(e, step, ret);
        say_again(e, step, ret);
    } else {
        go_by_majority(e, odd, step, ret);
    }
    wait_for_all_to_know(e);
}

/* words: a header's twice, zeroes. */
static void compare_in(struct engine *e, const struct state_point *point, uint32_t *words,
                       struct elastic_result *ret)
{
    int tensors = e->layout.tensors, lanes = e->spec->batch.lanes, worker = -1;
    const uint32_t *all = words + header_count(tensors, lanes);
    struct worker_set odd;
    struct error err;
    if (hear_states(e, point, words, &worker, &err) < 0) {
        engine_failed(ret, &err, worker);
    } else if (!header_proven(all, tensors, lanes)) {
        ret->outcome = OUTCOME_PROOF;
        snprintf(ret->text, sizeof ret->text,
                 "what the workers say of their states of step %lld changed on the way; it is said again",
                 (long long)point->step);
    } else if (!set_is_empty(odd = engine_odd_states(e, all))) {
        engine_states_differ(e, all, odd, point->step, ret);
    } else {
        e->fresh = false;
    }
}

void engine_compare(struct engine *e, struct elastic_result *ret)
{
    int64_t count = header_count(e->layout.tensors, e->spec->batch.lanes);
    struct state_point point;
    struct error err;
    if (!engine_can_train(e, &point, ret) || e->ring->world == 1 || !are_comparable(e))
        return;
    atomic_store(&e->exchanging, false);
    uint32_t *words = calloc((size_t)count * 2, sizeof *words);
    if (words) {
        compare_in(e, &point, words, ret);
    } else {
        err_set(&err, ERR_MACHINE, "no memory for what workers say of their states");
        engine_failed(ret, &err, -1);
    }
    free(words);
}
