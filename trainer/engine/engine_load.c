/* How a checkpoint becomes the state: what this worker's agent has read of it, and what other members' agents
 * have, which is taken from them. engine.c calls it for CMD_LOAD, more than once where shares are missing. */
#include <string.h>
#include <sys/mman.h>

#include "common/base/assert.h"
#include "common/os/fault.h"
#include "trainer/engine/engine_parts.h"
#include "trainer/io/transfer_share.h"

/* Where a checkpoint gathers: in the state's own memory where nothing is held, else beside it, so that what
 * is held stays until the whole checkpoint is there. */
static struct state_arrays arrays_of(struct engine *e, const struct msg_loaded *loaded)
{
    return loaded->in_state ? state_arrays(e->state) : engine_area(e, SNAPSHOT_LOADED);
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
    return a->command == CMD_LOAD && !set_equals(a->shares, a->loaded->shares);
}

static int check_loaded(struct engine *e, const struct elastic_action *a, struct error *err)
{
    const struct msg_loaded *loaded = a->loaded;
    if (loaded->tensors != e->layout.tensors)
        return err_set(err, ERR_DATA, "the checkpoint has exponents for %d tensors, the model has %d",
                       loaded->tensors, e->layout.tensors);
    int64_t params_at, array_step;
    state_home(e->state, &params_at, &array_step);
    if (loaded->in_state && params_at < 0)
        return err_set(err, ERR_MACHINE, "a checkpoint was read into a memory that has no place for it");
    if (loaded->in_state && state_holds(e->state, NULL))
        return err_set(err, ERR_MACHINE, "a checkpoint was read over a state that is held");
    if (loaded->parts != a->form->form.count)
        return err_set(err, ERR_MACHINE, "a checkpoint was read in %d shares for %d members", loaded->parts,
                       a->form->form.count);
    return 0;
}

/* What stands where nothing was read together is empty. */
static void fill_share(const struct msg_loaded *loaded, struct transfer_share *share)
{
    for (int i = 0; i < loaded->ranges && i < share->arrays.arrays; i++)
        share->range[i] = (struct model_range){loaded->range[i].first, loaded->range[i].count};
}

/* Gives what our agent has read, and takes the rest from the other members. */
static int gather(struct engine *e, const struct elastic_action *a, struct worker_set *ret_missing,
                  struct error *err)
{
    const struct msg_form *form = &a->form->form;
    struct transfer_peer peers[RM_WORKERS_MAX];
    struct transfer_want want;
    engine_want(e, CMD_LOAD, a->form, form->member, form->count, &want, peers);
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
                                .wanted = set_minus(set_below(a->loaded->parts), a->shares),
                                .have = share.range,
                                .pulse = &e->counter,
                                .waiting_for = &e->waiting_for};
    return transfer_share_gather(&g, ret_missing, err);
}

static int hold_loaded(struct engine *e, const struct msg_loaded *loaded, struct error *err)
{
    struct state_arrays from = arrays_of(e, loaded);
    struct state_point point = point_of(loaded), held;
    RM_ASSERT(!loaded->in_state || !state_holds(e->state, &held), "step %lld is loaded over step %lld",
              (long long)point.step, (long long)held.step);
    state_receive_begin(e->state);
    struct state_arrays to = state_arrays(e->state);
    if (!loaded->in_state) {
        if (engine_copy_in(e, &from, &to, err) < 0)
            return -1;
        transfer_share_move(e->source, &to);
        madvise(e->area[SNAPSHOT_LOADED], (size_t)e->area_bytes, MADV_REMOVE);
    }
    FAULT("state-loaded");
    if (state_receive_end(e->state, &point, err) < 0)
        return -1;
    e->exact = loaded->exact && e->spec->reduction == JOB_EXACT;
    return 0;
}

void engine_load(struct engine *e, const struct elastic_action *a, struct elastic_result *ret)
{
    struct error err;
    struct worker_set missing = {0};
    bool whole = set_equals(a->shares, set_below(a->loaded->parts));
    if (check_loaded(e, a, &err) < 0 || (!whole && gather(e, a, &missing, &err) < 0)) {
        engine_failed(ret, &err, -1);
    } else if (!set_is_empty(missing)) {
        ret->outcome = OUTCOME_MISSING;
        ret->missing = missing;
    } else if (hold_loaded(e, a->loaded, &err) < 0) {
        engine_failed(ret, &err, -1);
    }
}
