/* The exact half on the emulated GPU: the bits of the CPU's loops, in whatever order threads and blocks come.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/prng.h"
#include "tests/cuda_rig/kernels.h"
#include "trainer/backend/cpu/sums/kernels.h"
#include "trainer/backend/cuda/kernels/fill.h"
#include "trainer/backend/cuda/kernels/lanes_add.h"
#include "trainer/backend/cuda/kernels/prove.h"
#include "update_case.h"

enum { SCHEDULES = 10 / CASE_SHARE, PLANTED = 10 /* schedules in which what is left out has to show */ };

/* Of a tensor in flat order: behind 2^32 elements, so that the place's upper half shows where it counts. */
static const uint64_t PLACE = (5ull << 32) + 77;

static void run(struct emulation *e, const struct emulated_kernel *kernel, const void *args)
{
    cr_assert(emulate(e, kernel, args), "%s", e->wrong);
}

/* ---- a lane's gradient ---- */

struct lane_case {
    int64_t count;
    float scale;
    bool store, floats;
    float *grads;
    uint32_t *before, *wanted, *words;
    uint32_t max;
    uint64_t proof;
};

static void lane_case_init(struct lane_case *c, uint64_t seed)
{
    size_t count = c->count ? (size_t)c->count : 1;
    c->grads = calloc(count, sizeof *c->grads);
    c->before = calloc(count, sizeof *c->before);
    c->wanted = calloc(count, sizeof *c->wanted);
    c->words = calloc(count, sizeof *c->words);
    for (int64_t i = 0; i < c->count; i++) {
        c->grads[i] = case_number(&seed);
        c->before[i] = c->floats ? case_bits(case_number(&seed)) : (uint32_t)splitmix64(&seed);
    }
    memcpy(c->wanted, c->before, (size_t)c->count * sizeof *c->wanted);
    const struct kernel_lane_args args = {c->grads, c->wanted, (int)c->count, c->scale, c->store, PLACE};
    struct kernel_lane seen =
        c->floats ? kernel_add_float(kernels_best(), &args) : kernel_add_fixed(kernels_best(), &args);
    c->max = seen.max;
    c->proof = seen.proof;
}

static void lane_case_clear(struct lane_case *c)
{
    free(c->grads);
    free(c->before);
    free(c->wanted);
    free(c->words);
}

static bool same_word(uint32_t a, uint32_t b, bool floats)
{
    float x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    return a == b || (floats && isnan(x) && isnan(y));
}

/* Returns the maximum that was found; the proof has grown. */
static uint32_t run_lane(struct lane_case *c, struct emulation *e, uint64_t *proof)
{
    uint32_t max = 0;
    memcpy(c->words, c->before, (size_t)c->count * sizeof *c->words);
    const struct lanes_add_args args = {
        .grads = c->grads,
        .words = c->words,
        .max = &max,
        .proof = proof,
        .count = c->count,
        .at = PLACE,
        .scale = c->scale,
        .store = c->store,
        .floats = c->floats,
    };
    run(e, &emulated_lanes_add, &args);
    return max;
}

static void check_lane(struct lane_case *c, int blocks, uint64_t seed)
{
    lane_case_init(c, seed);
    for (uint64_t order = 0; order < SCHEDULES; order++) {
        struct emulation e = {.blocks = blocks, .seed = order};
        uint64_t proof = 1000;
        uint32_t max = run_lane(c, &e, &proof);
        cr_assert_eq(proof, 1000 + c->proof, "%lld elements", (long long)c->count);
        cr_assert_eq(max, c->max, "%lld elements: maximum %08x, not %08x", (long long)c->count, max, c->max);
        for (int64_t i = 0; i < c->count; i++)
            cr_assert(same_word(c->words[i], c->wanted[i], c->floats),
                      "%lld elements, %d: %g * %g gives %08x, not %08x", (long long)c->count, (int)i,
                      (double)c->grads[i], (double)c->scale, c->words[i], c->wanted[i]);
    }
    lane_case_clear(c);
}

static void check_lanes(int count, uint64_t seed)
{
    const float scales[] = {1.0f, 0x1p20f / 7, 0x1p-90f, 0x1p94f};
    for (int floats = 0; floats < 2; floats++) {
        struct lane_case c = {
            .count = count, .scale = scales[(count + floats) % 4], .store = count % 2, .floats = floats};
        check_lane(&c, 1 + (count + floats) % 3, seed + (uint64_t)floats);
    }
}

Test(lanes_add, words_and_maximum_are_the_cpus_at_every_small_size)
{
    for (int count = 0; count <= 70; count++)
        check_lanes(count, 100 + (uint64_t)count);
}

Test(lanes_add, words_and_maximum_are_the_cpus_around_the_edges_of_blocks)
{
    const int counts[] = {255, 256, 257, 511, 513, 1023, 1024, 1025, 2049, 4095, 4096, 4097};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        check_lanes(counts[i], 900 + i);
}

/* A nonzero maximum stays where the tensor's first part found it. */
Test(lanes_add, a_second_part_leaves_a_larger_maximum_as_it_was)
{
    const float small = 0.25f;
    uint32_t word = 3, max = case_bits(8.0f);
    uint64_t proof = 0;
    const struct lanes_add_args args = {
        .grads = &small, .words = &word, .max = &max, .proof = &proof, .count = 1, .scale = 4};
    struct emulation e = {.blocks = 2};
    run(&e, &emulated_lanes_add, &args);
    cr_assert_eq(word, 4);
    cr_assert_eq(max, case_bits(8.0f));
}

Test(lanes_add, each_barrier_is_missed)
{
    if (emulate_elsewhere)
        cr_skip("no barrier of a GPU's can be left out");
    struct lane_case c = {.count = 3000, .scale = 2};
    lane_case_init(&c, 1);
    struct emulation all = {.blocks = 1};
    uint64_t ignored = 0;
    run_lane(&c, &all, &ignored);
    cr_assert_eq(all.barriers, 1);
    for (int i = 0; i < all.barriers; i++) {
        bool found = false;
        for (uint64_t seed = 0; seed < PLANTED && !found; seed++) {
            struct emulation e = {.blocks = 1, .seed = seed, .without = all.barrier[i]};
            uint64_t proof = 0;
            found = run_lane(&c, &e, &proof) != c.max || proof != c.proof;
        }
        cr_assert(found, "nothing tells that the barrier of line %d is there", all.barrier[i].line);
    }
    lane_case_clear(&c);
}

/* ---- sums of pieces ---- */

static const int mixed_sizes[] = {1,   2,   15, 16, 17,  31,  33,   70, 4096, 4095,
                                  255, 257, 3,  64, 100, 129, 1000, 5,  48};
enum { MIXED = sizeof mixed_sizes / sizeof *mixed_sizes };

_Static_assert(sizeof(struct sums_of_piece) == sizeof(struct kernel_sums), "the same numbers");

static void check_piece(const struct update_case *c, const struct cuda_piece *p,
                        const struct sums_of_piece *got)
{
    const struct kernel_sums_args args = {c->words + p->first, p->count, c->floats, (uint64_t)p->first};
    struct kernel_sums wanted = kernel_sums(kernels_best(), &args);
    cr_assert(!memcmp(&got->square, &wanted.square, sizeof wanted.square) ||
                  (isnan(got->square) && isnan(wanted.square)),
              "piece of %d: %a, not %a", p->count, got->square, wanted.square);
    cr_assert(got->square_high == wanted.square_fixed.high && got->square_low == wanted.square_fixed.low,
              "piece of %d: %016llx %016llx", p->count, (unsigned long long)got->square_high,
              (unsigned long long)got->square_low);
    cr_assert_eq(got->sum, wanted.sum, "piece of %d", p->count);
    cr_assert_eq(got->proof, wanted.proof, "piece of %d", p->count);
}

static void sums_as_the_cpu(const int *sizes, int pieces, bool floats)
{
    struct update_case c;
    update_case_init(&c, sizes, pieces, floats, false, 5);
    struct sums_of_piece *to = calloc((size_t)pieces, sizeof *to);
    const struct sums_args args = {c.words, c.piece, to, pieces, floats};
    for (uint64_t order = 0; order < SCHEDULES; order++) {
        memset(to, 0xff, (size_t)pieces * sizeof *to);
        struct emulation e = {.blocks = 1 + (int)order % 4, .seed = order};
        run(&e, &emulated_sums, &args);
        cr_assert_eq(e.barriers, 0, "who adds one leaves it out in a test");
        for (int i = 0; i < pieces; i++)
            check_piece(&c, &c.piece[i], &to[i]);
    }
    free(to);
    update_case_clear(&c);
}

Test(sums, squares_and_sums_of_all_sizes_are_the_cpus)
{
    int sizes[71];
    for (int i = 0; i < 71; i++)
        sizes[i] = i;
    for (int floats = 0; floats < 2; floats++) {
        sums_as_the_cpu(sizes, 71, floats);
        sums_as_the_cpu(mixed_sizes, MIXED, floats);
        sums_as_the_cpu(mixed_sizes, 1, floats);
    }
}

/* The largest squares there are: 4096 times 2^62. */
Test(sums, squares_that_need_more_than_64_bits_are_exact)
{
    const int size = PIECE_MOST;
    struct update_case c;
    update_case_init(&c, &size, 1, false, false, 5);
    for (int i = 0; i < size; i++)
        c.words[i] = 0x80000000u;
    struct sums_of_piece to;
    const struct sums_args args = {c.words, c.piece, &to, 1, false};
    struct emulation e = {.blocks = 1};
    run(&e, &emulated_sums, &args);
    check_piece(&c, c.piece, &to);
    cr_assert_eq(to.square_high, 1u << (62 + 12 - 64));
    cr_assert_eq(to.square_low, 0);
    update_case_clear(&c);
}

/* ---- a state's proof ---- */

static bool proofs_are_right(const struct update_case *c, struct emulation *e)
{
    const struct prove_args args = {c->old.params, c->old.m,           c->old.v,
                                    c->piece,      c->elsewhere_proof, c->pieces};
    memset(c->elsewhere_proof, 0xff, (size_t)c->pieces * sizeof *c->elsewhere_proof);
    run(e, &emulated_prove, &args);
    return !memcmp(c->elsewhere_proof, c->proof, (size_t)c->pieces * sizeof *c->proof);
}

Test(prove, each_piece_has_the_sum_of_its_bits_and_each_barrier_is_missed)
{
    struct update_case c;
    update_case_init(&c, mixed_sizes, MIXED, false, false, 9);
    struct emulation first = {.blocks = 1};
    cr_assert(proofs_are_right(&c, &first));
    cr_assert_eq(first.barriers, emulate_elsewhere ? 0 : 2);
    int found[2] = {0, 0};
    for (uint64_t order = 0; order < PLANTED; order++) {
        struct emulation e = {.blocks = 1 + (int)order % 3, .seed = order};
        cr_assert(proofs_are_right(&c, &e));
        for (int i = 0; i < first.barriers; i++) {
            struct emulation without = {.blocks = 1, .seed = order, .without = first.barrier[i]};
            found[i] += !proofs_are_right(&c, &without);
        }
    }
    cr_assert(emulate_elsewhere || (found[0] && found[1]),
              "found without the first barrier: %d, without the second: %d", found[0], found[1]);
    update_case_clear(&c);
}

/* ---- the update ---- */

static void check_updated(const struct update_case *c, const struct case_arrays *got, const uint64_t *proof)
{
    int64_t at = update_case_differs(got, &c->wanted, 0, c->count);
    cr_assert_eq(at, -1, "element %lld: %a %a %a, not %a %a %a", (long long)at, (double)got->params[at],
                 (double)got->m[at], (double)got->v[at], (double)c->wanted.params[at],
                 (double)c->wanted.m[at], (double)c->wanted.v[at]);
    for (int i = 0; i < c->pieces; i++)
        cr_assert(c->stamp[i] == CASE_STEP && proof[i] == case_proof(got, &c->piece[i]), "piece %d", i);
    for (int i = 0; i < CASE_BLOCKS; i++)
        cr_assert_eq(c->slot[i].valid, 0);
}

static void update_as_the_cpu(const int *sizes, int pieces, bool floats, bool in_place)
{
    struct update_case c;
    update_case_init(&c, sizes, pieces, floats, false, 9);
    const struct update_args args = update_case_args(&c, in_place);
    for (uint64_t order = 0; order < SCHEDULES; order++) {
        struct emulation e = {.blocks = 1 + (int)order % CASE_BLOCKS, .seed = order};
        update_case_reset(&c);
        run(&e, &emulated_update, &args);
        check_updated(&c, in_place ? &c.now : &c.elsewhere, in_place ? c.proof : c.elsewhere_proof);
        if (!in_place)
            cr_assert_eq(update_case_differs(&c.now, &c.old, 0, c.count), -1);
    }
    update_case_clear(&c);
}

Test(update, every_bit_is_the_cpus_in_place_and_elsewhere)
{
    int sizes[70];
    for (int i = 0; i < 70; i++)
        sizes[i] = i + 1;
    for (int way = 0; way < 4; way++) {
        if (way & 2)
            update_as_the_cpu(sizes, 70, way & 1, true);
        update_as_the_cpu(mixed_sizes, MIXED, way & 1, way & 2);
    }
}

Test(update, what_bears_the_steps_stamp_is_left_alone)
{
    const int sizes[] = {40, 40, 40};
    struct update_case c;
    update_case_init(&c, sizes, 3, false, false, 11);
    const struct update_args args = update_case_args(&c, true);
    struct emulation e = {.blocks = 2};
    c.stamp[1] = CASE_STEP;
    run(&e, &emulated_update, &args);
    cr_assert_eq(update_case_differs(&c.now, &c.wanted, 0, 40), -1);
    cr_assert_eq(update_case_differs(&c.now, &c.old, 40, 40), -1);
    cr_assert_eq(update_case_differs(&c.now, &c.wanted, 80, 40), -1);
    update_case_clear(&c);
}

/* ---- fill ---- */

Test(fill, writes_each_word_and_none_beside_it)
{
    const int counts[] = {0, 1, 255, 256, 257, 5000};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        uint32_t *words = calloc((size_t)counts[i] + 2, sizeof *words);
        const struct fill_args args = {words + 1, counts[i], 0x01020304};
        struct emulation e = {.blocks = 3, .seed = i};
        run(&e, &emulated_fill, &args);
        cr_assert_eq(e.barriers, 0, "who adds one leaves it out in a test");
        for (int j = 0; j < counts[i] + 2; j++)
            cr_assert_eq(words[j], j == 0 || j == counts[i] + 1 ? 0 : 0x01020304);
        free(words);
    }
}
