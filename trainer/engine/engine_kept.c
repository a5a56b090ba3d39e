/* Which lanes of a step are this rank's, and which of them it has: their sums outlive a ring that breaks, and
 * the next one goes on with them. What is in doubt is computed anew. */
#include <string.h>

#include "common/base/assert.h"
#include "trainer/collective/prove_words.h"
#include "trainer/engine/engine_parts.h"
#include "trainer/exact/header.h"

int64_t engine_lane_tokens(const struct engine *e)
{
    int64_t each = e->reader ? e->spec->model.shape.context : 1;
    return e->spec->batch.lane_sequences * each;
}

void engine_own_lanes(const struct engine *e, const struct message *form, int64_t step, struct lane_set *ret)
{
    const struct msg_form *f = &form->form;
    bool dealt = f->lanes_count == e->spec->batch.lanes && f->resume.held && f->resume.step == step;
    struct lane_run usual = shares_run(&e->pace.ring.shares, e->ring->rank);
    *ret = (struct lane_set){0};
    for (int lane = 0; lane < e->spec->batch.lanes; lane++) {
        bool own = dealt ? f->lane_rank[lane] == e->ring->rank
                         : lane >= usual.first && lane < usual.first + usual.count;
        if (own)
            lane_set_add(ret, lane);
    }
}

void engine_forget_lanes(struct engine *e)
{
    e->pass.done = (struct lane_set){0};
}

void engine_kept_lanes(const struct engine *e, struct lane_set *ret)
{
    struct state_point now;
    bool stands = state_holds(e->state, &now) && now.step == e->pass.behind.step &&
                  !memcmp(now.lineage, e->pass.behind.lineage, RM_HASH_BYTES);
    bool first = !e->pass.number && !e->pass.scaled && !e->pass.disputed;
    bool may = e->backend->ops->resume && e->pass.world > 1; /* alone its sums are everybody's */
    *ret = stands && first && may ? e->pass.done : (struct lane_set){0};
}

bool engine_words_stand(const struct engine *e)
{
    const struct backend_sums *sums = &e->pass.sums;
    return sums->in || sums->floats ||
           prove_words(0, (const uint32_t *)(uintptr_t)sums->words.at, sums->words_count) ==
               header_words_proof(sums->header, e->layout.tensors, e->spec->batch.lanes);
}

void engine_keep_sound(struct engine *e, const struct elastic_result *ret)
{
    const struct backend_sums *sums = &e->pass.sums;
    bool proof = ret->outcome == OUTCOME_PROOF && ret->class != CLASS_MACHINE && !ret->minority;
    bool cut = ret->outcome == OUTCOME_PEER || ret->outcome == OUTCOME_ABORTED;
    if (ret->outcome == OUTCOME_OK)
        return;
    bool stands = header_proven(sums->header, e->layout.tensors, e->spec->batch.lanes);
    if (!stands || (!cut && (!proof || sums->in || !engine_words_stand(e))))
        engine_forget_lanes(e);
}

bool engine_lanes_are_whole(const struct engine *e)
{
    uint32_t each = (uint32_t)engine_lane_tokens(e);
    bool whole = true;
    RM_ASSERT(each > 0, "%d lanes that learn from nothing", e->spec->batch.lanes);
    for (int lane = 0; lane < e->spec->batch.lanes; lane++)
        whole = whole && header_lane_read(e->pass.sums.header_to, e->layout.tensors, lane).tokens == each;
    return whole;
}
