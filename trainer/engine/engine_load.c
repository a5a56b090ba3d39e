#include <string.h>
#include <sys/mman.h>

#include "common/os/fault.h"
#include "trainer/engine/engine_parts.h"
#include "trainer/io/transfer_share.h"

/* Where a checkpoint gathers: in the state's own memory where nothing is held, else beside it, so that what
 * is held stays until the whole checkpoint is there. */
static struct state_arrays arrays_of(struct engine *e, const struct msg_loaded *loaded)
{
    float *area = e->area[SNAPSHOT_LOADED];
    int64_t n = e->layout.parameters;
    if (loaded->in_state)
        return state_arrays(e->state);
    return (struct state_arrays){area, area + n, area + 2 * n, n};
}

static struct state_point point_of(const struct msg_loaded *loaded)
{
    struct state_point point = {.step = loaded->state.step};
    for (int t = 0; t < loaded->tensors; t++)
        point.k[t] = loaded->k[t];
    memcpy(point.lineage, loaded->state.lineage, RM_HASH_BYTES);
    return point;
}

bool engine_load_goes_on(const struct elastic_action *a)
{
    return a->command == CMD_LOAD && a->shares != a->loaded->shares;
}

static int check(struct engine *e, const struct elastic_action *a, struct error *err)
{
    const struct msg_loaded *loaded = a->loaded;
    if (loaded->tensors != e->layout.tensors)
        return err_set(err, ERR_DATA, "the checkpoint has exponents for %d tensors, the model has %d",
                       loaded->tensors, e->layout.tensors);
    if (loaded->in_state && state_holds(e->state, NULL))
        return err_set(err, ERR_MACHINE, "a checkpoint was read over a state that is held");
    if (loaded->parts != a->form->form.count)
        return err_set(err, ERR_MACHINE, "a checkpoint was read in %d shares for %d members", loaded->parts,
                       a->form->form.count);
    return 0;
}

static void fill_share(const struct msg_loaded *loaded, struct transfer_share *share)
{
    for (int i = 0; i < loaded->ranges; i++)
        share->range[i] = (struct model_range){loaded->range[i].first, loaded->range[i].count};
}

/* Gives what our agent has read, and takes the rest from the other members. */
static int gather(struct engine *e, const struct elastic_action *a, uint64_t *ret_missing, struct error *err)
{
    const struct msg_form *form = &a->form->form;
    struct transfer_peer peers[RM_WORKERS_MAX];
    struct transfer_want want;
    engine_want(e, a->form, form->member, form->count, &want, peers);
    struct transfer_share share = {.generation = want.generation,
                                   .point = point_of(a->loaded),
                                   .exact = a->loaded->exact,
                                   .arrays = arrays_of(e, a->loaded)};
    fill_share(a->loaded, &share);
    transfer_share_give(e->source, &share);
    FAULT("share-given");
    struct transfer_gather g = {.want = &want,
                                .to = share.arrays,
                                .point = &share.point,
                                .wanted = msg_shares_all(a->loaded->parts) & ~a->shares,
                                .have = share.range,
                                .pulse = &e->counter,
                                .waiting_for = &e->waiting_for};
    return transfer_share_gather(&g, ret_missing, err);
}

static void hold(struct engine *e, const struct msg_loaded *loaded)
{
    struct state_arrays from = arrays_of(e, loaded);
    struct state_point point = point_of(loaded);
    state_receive_begin(e->state);
    struct state_arrays to = state_arrays(e->state);
    if (!loaded->in_state) {
        struct engine_copy c = {.arrays = 3,
                                .to = {to.params, to.m, to.v},
                                .from = {from.params, from.m, from.v},
                                .count = to.count};
        engine_copy(e, &c);
        transfer_share_move(e->source, &to);
        madvise(from.params, (size_t)snapshot_area_bytes(&e->layout), MADV_REMOVE);
    }
    FAULT("state-loaded");
    state_receive_end(e->state, &point);
    e->exact = loaded->exact && e->spec->reduction == JOB_EXACT;
}

void engine_load(struct engine *e, const struct elastic_action *a, struct elastic_result *ret)
{
    struct error err;
    uint64_t missing = 0;
    bool whole = a->shares == msg_shares_all(a->loaded->parts);
    if (check(e, a, &err) < 0 || (!whole && gather(e, a, &missing, &err) < 0)) {
        engine_failed(ret, &err, -1);
    } else if (missing) {
        ret->outcome = OUTCOME_MISSING;
        ret->missing = missing;
    } else {
        hold(e, a->loaded);
    }
}
