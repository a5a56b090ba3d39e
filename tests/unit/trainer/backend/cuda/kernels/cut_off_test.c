/* An update that ends at any moment, and what a successor makes of what it finds: old or new, never between.
 */
#include <criterion/criterion.h>

#include "common/base/prng.h"
#include "tests/cuda_rig/kernels.h"
#include "update_case.h"

static const int sizes[] = {300, 1, 70, 256, 33, 257, 5, 40};
enum { PIECES = sizeof sizes / sizeof *sizes, TRIALS = 120 / CASE_SHARE, PLANTED_TRIALS = 3000 };

/* Which barriers are left out; a file of NULL: none. */
struct planted {
    struct emulated_site update, restore;
};

/* Runs it from the seed to a moment of the seed. False where it did what it may not. */
static bool run_cut(const struct emulated_kernel *kernel, const void *args, int blocks,
                    struct emulated_site without, int64_t moments, uint64_t *seed)
{
    struct emulation e = {.blocks = blocks, .seed = splitmix64(seed), .without = without};
    e.stop = 1 + (int64_t)prng_below(seed, (uint64_t)moments);
    return emulate(&e, kernel, args);
}

static bool run_whole(const struct emulated_kernel *kernel, const void *args, int blocks, uint64_t *seed)
{
    struct emulation e = {.blocks = blocks, .seed = splitmix64(seed)};
    return emulate(&e, kernel, args);
}

/* Each piece is old and says so, or new and says so, with the sum of its bits, and no slot waits for anybody.
 */
static bool is_whole(const struct update_case *c)
{
    for (int i = 0; i < c->pieces; i++) {
        const struct cuda_piece *p = &c->piece[i];
        const struct case_arrays *wanted = c->stamp[i] == CASE_STEP ? &c->wanted : &c->old;
        if (update_case_differs(&c->now, wanted, p->first, p->count) >= 0 ||
            c->proof[i] != case_proof(&c->now, p))
            return false;
    }
    for (int i = 0; i < CASE_BLOCKS; i++)
        if (c->slot[i].valid)
            return false;
    return true;
}

/* An update that is cut off, a repair that is cut off, a repair: is all whole then, and the update's end
 * right? */
static bool survives(struct update_case *c, const struct planted *without, int64_t moments, uint64_t seed)
{
    const struct update_args update = update_case_args(c, true);
    const struct restore_args restore = update_case_restore(c);
    update_case_reset(c);
    return run_cut(&emulated_update, &update, CASE_BLOCKS, without->update, moments, &seed) &&
           run_cut(&emulated_restore, &restore, CASE_BLOCKS, without->restore, moments / 4, &seed) &&
           run_whole(&emulated_restore, &restore, CASE_BLOCKS, &seed) && is_whole(c) &&
           run_whole(&emulated_update, &update, CASE_BLOCKS, &seed) && is_whole(c) &&
           update_case_differs(&c->now, &c->wanted, 0, c->count) < 0;
}

/* A whole update: how long it is, and its barriers. */
static struct emulation whole_update(struct update_case *c)
{
    const struct update_args args = update_case_args(c, true);
    struct emulation e = {.blocks = CASE_BLOCKS, .seed = 3};
    update_case_reset(c);
    cr_assert(emulate(&e, &emulated_update, &args), "%s", e.wrong);
    return e;
}

static struct emulation whole_restore(struct update_case *c)
{
    const struct restore_args args = update_case_restore(c);
    struct emulation e = {.blocks = CASE_BLOCKS, .seed = 3};
    update_case_reset(c);
    c->slot[0].valid = 1;
    cr_assert(emulate(&e, &emulated_restore, &args), "%s", e.wrong);
    return e;
}

Test(cut_off, a_successor_finds_each_piece_old_or_new_wherever_an_update_and_its_repair_end)
{
    const struct planted none = {0};
    struct update_case c;
    update_case_init(&c, sizes, PIECES, false, true, 21);
    int64_t moments = whole_update(&c).moments;
    for (uint64_t seed = 0; seed < TRIALS; seed++)
        cr_assert(survives(&c, &none, moments, seed), "seed %d", (int)seed);
    update_case_clear(&c);
}

/* Of the same order, up to that moment; 0: to the end. */
static struct emulation run_until(const struct emulated_kernel *kernel, const void *args, uint64_t seed,
                                  int64_t stop)
{
    struct emulation e = {.blocks = CASE_BLOCKS, .seed = seed, .stop = stop};
    cr_assert(emulate(&e, kernel, args), "%s", e.wrong);
    return e;
}

/* Fences stand between the stores whose order counts, so that these moments are too few for chance to find.
 */
Test(cut_off, a_successor_finds_each_piece_old_or_new_at_each_fence_of_an_update_and_of_its_repair)
{
    const int few[] = {3, 40, 1, 70};
    const uint64_t seed = 4;
    struct update_case c;
    update_case_init(&c, few, 4, false, true, 23);
    const struct update_args update = update_case_args(&c, true);
    const struct restore_args restore = update_case_restore(&c);
    const struct emulation whole = run_until(&emulated_update, &update, seed, 0);
    int repairs = 0;
    cr_assert_eq(whole.fences, 5 * c.pieces);
    for (int i = 0; i < whole.fences; i++)
        for (int j = 0, fences = 1; j <= fences; j++) { /* the last time the repair goes to its end */
            update_case_reset(&c);
            run_until(&emulated_update, &update, seed, whole.fence[i]);
            struct emulation repair = run_until(&emulated_restore, &restore, seed, 0);
            fences = repair.fences;
            update_case_reset(&c);
            run_until(&emulated_update, &update, seed, whole.fence[i]);
            run_until(&emulated_restore, &restore, seed, j < fences ? repair.fence[j] : 0);
            run_until(&emulated_restore, &restore, seed + 1, 0);
            cr_assert(is_whole(&c), "fence %d of the update, %d of the repair", i, j);
            run_until(&emulated_update, &update, seed + 1, 0);
            cr_assert(is_whole(&c) && update_case_differs(&c.now, &c.wanted, 0, c.count) < 0);
            repairs += j < fences;
        }
    cr_assert_gt(repairs, c.pieces, "%d repairs that were cut off", repairs);
    update_case_clear(&c);
}

/* Elsewhere, with the sum of its bits. */
static bool is_made(const struct update_case *c, const struct cuda_piece *p)
{
    return update_case_differs(&c->elsewhere, &c->wanted, p->first, p->count) < 0 &&
           c->elsewhere_proof[p - c->piece] == case_proof(&c->elsewhere, p);
}

/* Nothing is undone there: the old values stay where they are, and what bears no stamp is made again. */
Test(cut_off, an_update_to_another_place_is_gone_on_with_wherever_it_ended)
{
    struct update_case c;
    update_case_init(&c, sizes, PIECES, false, true, 22);
    const struct update_args args = update_case_args(&c, false);
    const struct emulation whole = run_until(&emulated_update, &args, 3, 0);
    for (uint64_t turn = 0; turn < TRIALS; turn++) {
        uint64_t seed = turn;
        const struct planted none = {0};
        update_case_reset(&c);
        for (int i = 0; i < c.pieces; i++)
            c.elsewhere_proof[i] = 0;
        for (int64_t i = 0; i < c.count; i++)
            c.elsewhere.params[i] = c.elsewhere.m[i] = c.elsewhere.v[i] = 0;
        if (turn < (uint64_t)whole.fences)
            run_until(&emulated_update, &args, 3, whole.fence[turn]);
        else
            cr_assert(run_cut(&emulated_update, &args, CASE_BLOCKS, none.update, whole.moments / 2, &seed));
        for (int i = 0; i < c.pieces; i++)
            cr_assert(c.stamp[i] != CASE_STEP || is_made(&c, &c.piece[i]));
        cr_assert(run_whole(&emulated_update, &args, CASE_BLOCKS, &seed));
        for (int i = 0; i < c.pieces; i++)
            cr_assert(is_made(&c, &c.piece[i]));
        cr_assert_lt(update_case_differs(&c.now, &c.old, 0, c.count), 0);
    }
    update_case_clear(&c);
}

static bool is_found(struct update_case *c, const struct planted *without, int64_t moments)
{
    for (uint64_t seed = 0; seed < PLANTED_TRIALS; seed++)
        if (!survives(c, without, moments, seed))
            return true;
    return false;
}

Test(cut_off, each_barrier_is_missed)
{
    struct update_case c;
    update_case_init(&c, sizes, PIECES, false, true, 21);
    struct emulation update = whole_update(&c), restore = whole_restore(&c);
    cr_assert_eq(update.barriers, 4);
    cr_assert_eq(restore.barriers, 1);
    for (int i = 0; i < update.barriers; i++)
        cr_assert(is_found(&c, &(struct planted){.update = update.barrier[i]}, update.moments),
                  "nothing tells that the barrier of line %d is there", update.barrier[i].line);
    cr_assert(is_found(&c, &(struct planted){.restore = restore.barrier[0]}, update.moments),
              "nothing tells that the repair's barrier is there");
    update_case_clear(&c);
}
