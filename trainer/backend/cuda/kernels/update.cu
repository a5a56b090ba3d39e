#include "trainer/backend/cuda/kernels/update.h"

#include "trainer/backend/cuda/kernels/kernel.h"
#include "trainer/backend/cuda/kernels/proof.cu"

enum { UPDATE_WARPS = UPDATE_THREADS / WARP };

/* A thread's elements of a piece, UPDATE_THREADS apart. They are read once, all at the same time, and wait in
 * registers while the slot becomes valid. */
struct update_old {
    uint32_t word;
    float param, m, v;
};

DEVICE void update_read(const struct update_args *a, const struct cuda_piece *p, struct update_old *old)
{
    UNROLL
    for (int j = 0; j < UPDATE_EACH; j++) {
        const int i = j * UPDATE_THREADS + THREAD;
        if (i < p->count) {
            old[j].word = a->words[p->first + i];
            old[j].param = a->params[p->first + i];
            old[j].m = a->m[p->first + i];
            old[j].v = a->v[p->first + i];
        }
    }
}

DEVICE void update_fill_slot(const struct cuda_piece *p, const struct update_old *old, struct cuda_slot *slot)
{
    UNROLL
    for (int j = 0; j < UPDATE_EACH; j++) {
        const int i = j * UPDATE_THREADS + THREAD;
        if (i < p->count) {
            slot->params[i] = old[j].param;
            slot->m[i] = old[j].m;
            slot->v[i] = old[j].v;
            POINT();
        }
    }
}

/* One thread stores for all that have come to the barrier: a fence of its own is enough, since it holds for
 * what others had stored before the barrier, too. */
DEVICE void update_announce(struct cuda_slot *slot, int i)
{
    BARRIER();
    if (THREAD == 0) {
        slot->piece = i;
        FENCE();
        slot->valid = 1;
        FENCE();
    }
    BARRIER();
}

/* Each operation with its own rounding, in this order: the CPU's `move`. Returns the proof of what is new. */
DEVICE uint64_t update_one(const struct update_args *a, const struct update_constants *c,
                           const struct update_old *old, int64_t i)
{
    const float g = (a->floats ? float_of(old->word) : (float)(int32_t)old->word) * c->unit * c->clip;
    const float m = c->beta1 * old->m + c->rest1 * g;
    const float v = c->beta2 * old->v + c->rest2 * g * g;
    const float size = square_root(v) * c->bias2 + c->epsilon;
    const float param = old->param * c->keep - c->rate * (m / size);
    a->to_params[i] = param;
    POINT();
    a->to_m[i] = m;
    POINT();
    a->to_v[i] = v;
    POINT();
    return proof_of_element(param, m, v);
}

DEVICE uint64_t update_change(const struct update_args *a, const struct cuda_piece *p,
                              const struct update_old *old)
{
    const struct update_constants c = a->constants[p->tensor];
    uint64_t proof = 0;
    UNROLL
    for (int j = 0; j < UPDATE_EACH; j++) {
        const int i = j * UPDATE_THREADS + THREAD;
        if (i < p->count)
            proof += update_one(a, &c, &old[j], p->first + i);
    }
    return proof;
}

DEVICE void update_stamp(const struct update_args *a, struct cuda_slot *slot, int i, const uint64_t *part)
{
    BARRIER();
    if (THREAD == 0) {
        a->proof[i] = proof_of_parts(part, UPDATE_WARPS);
        FENCE();
        a->stamp[i] = a->step;
        FENCE();
        POINT();
        if (slot)
            slot->valid = 0;
        FENCE();
    }
    BARRIER(); /* the slot is the next piece's only now */
}

KERNEL(update, UPDATE_THREADS)(const struct update_args a)
{
    SHARED(uint64_t, part, UPDATE_WARPS);
    struct cuda_slot *slot = a.to_params == a.params ? &a.slot[BLOCK] : (struct cuda_slot *)0;
    for (int i = BLOCK; i < a.pieces; i += BLOCKS) {
        const struct cuda_piece p = a.piece[i];
        struct update_old old[UPDATE_EACH];
        if (a.stamp[i] == a.step)
            continue; /* for all threads of the block: it is stored between two barriers of theirs */
        update_read(&a, &p, old);
        if (slot) {
            update_fill_slot(&p, old, slot);
            update_announce(slot, i);
        }
        proof_to_part(part, update_change(&a, &p, old));
        update_stamp(&a, slot, i, part);
    }
}
