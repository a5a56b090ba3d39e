/* The emulator itself: what it computes, what it finds, what it refuses. */
#include <criterion/criterion.h>
#include <string.h>

#include "common/base/prng.h"
#include "small_kernels.h"

#ifdef __SANITIZE_ADDRESS__
#include <criterion/redirect.h>
#endif

static bool run_mistake(enum mistake mistake, struct emulation *e)
{
    uint32_t to = 0;
    const struct mistake_args args = {mistake, &to};
    e->blocks = 2;
    return emulate(e, &emulated_mistake, &args) && to == 1;
}

Test(emulator, threads_that_do_not_come_to_a_barrier_are_named)
{
    struct emulation e = {.seed = 1};
    cr_assert(run_mistake(NO_MISTAKE, &e), "%s", e.wrong);
    cr_assert_not(run_mistake(LEAVES_EARLY, &e));
    cr_assert(strstr(e.wrong, "a thread waits for one that does not come"), "%s", e.wrong);
    cr_assert_not(run_mistake(OTHER_BARRIER, &e));
    cr_assert(strstr(e.wrong, "threads of a block are at two barriers"), "%s", e.wrong);
    cr_assert_not(run_mistake(LEAVES_WARP, &e));
    cr_assert(strstr(e.wrong, "mistake: block"), "%s", e.wrong);
}

#ifdef __SANITIZE_ADDRESS__
/* As device memory's, the bounds of what a block shares are the sanitizer's, who ends the program. */
Test(emulator, who_writes_behind_a_shared_array_is_found, .exit_code = 1)
{
    struct emulation e = {.seed = 1};
    cr_redirect_stderr();
    run_mistake(BEHIND_SHARED, &e);
}
#endif

/* Sums of numbers so far apart that each order has other bits: the kernel's order is fixed all the same. */
static float run_halves(struct emulation *e)
{
    float from[256], to[3] = {0, 0, 0};
    uint64_t seed = 3;
    for (int i = 0; i < 256; i++)
        from[i] = (float)(prng_unit(&seed) - 0.5) * (float)(1u << i % 30);
    const struct halves_args args = {from, to};
    e->blocks = 3;
    e->resident = 2;
    cr_assert(emulate(e, &emulated_halves, &args), "%s", e->wrong);
    return to[2];
}

Test(emulator, each_order_gives_the_same_bits_and_a_barrier_left_out_gives_others)
{
    struct emulation first = {.seed = 0};
    const float wanted = run_halves(&first);
    cr_assert_eq(first.barriers, 2);
    int differ[2] = {0, 0};
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct emulation e = {.seed = seed};
        cr_assert_eq(run_halves(&e), wanted, "seed %d", (int)seed);
        for (int i = 0; i < first.barriers; i++) {
            struct emulation without = {.seed = seed, .without = first.barrier[i]};
            differ[i] += run_halves(&without) != wanted;
        }
    }
    cr_assert_gt(differ[0], 90);
    cr_assert_gt(differ[1], 90);
}

Test(emulator, a_seed_is_one_order)
{
    struct emulation a = {.seed = 5}, b = {.seed = 5}, plain = {.seed = 0};
    run_halves(&plain);
    a.without = b.without = plain.barrier[1];
    cr_assert_eq(run_halves(&a), run_halves(&b));
    cr_assert_eq(a.moments, b.moments);
}

Test(emulator, what_is_stopped_ends_at_that_moment)
{
    struct emulation e = {.seed = 5};
    run_halves(&e);
    struct emulation cut = {.seed = 5, .stop = e.moments / 2};
    run_halves(&cut);
    cr_assert(cut.stopped);
    cr_assert_eq(cut.moments, e.moments / 2);
    struct emulation again = {.seed = 5};
    run_halves(&again);
    cr_assert_not(again.stopped);
    emulator_free();
}

static float bf16_value(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &wide, sizeof x);
    return x;
}

/* Small whole numbers: exact in bf16, and so are all sums. */
static uint16_t bf16_whole(uint64_t *seed)
{
    float x = (float)((int)prng_below(seed, 17) - 8);
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)(bits >> 16);
}

Test(emulator, the_matrix_instruction_is_the_product_of_its_documented_parts)
{
    uint64_t seed = 7;
    for (int turn = 0; turn < 10; turn++) {
        uint16_t a[16 * 16], b[16 * 8];
        float c[16 * 8], d[16 * 8];
        for (int i = 0; i < 16 * 16; i++)
            a[i] = bf16_whole(&seed);
        for (int i = 0; i < 16 * 8; i++) {
            b[i] = bf16_whole(&seed);
            c[i] = bf16_value(bf16_whole(&seed));
        }
        const struct product_args args = {a, b, c, d};
        struct emulation e = {.blocks = 1, .seed = seed};
        cr_assert(emulate(&e, &emulated_product, &args), "%s", e.wrong);
        for (int row = 0; row < 16; row++)
            for (int column = 0; column < 8; column++) {
                float sum = c[row * 8 + column];
                for (int k = 0; k < 16; k++)
                    sum += bf16_value(a[row * 16 + k]) * bf16_value(b[k * 8 + column]);
                cr_assert_eq(d[row * 8 + column], sum, "row %d, column %d", row, column);
            }
    }
}

/* As the manual has it: a register has two neighbours of row lane / 4, or of column lane / 4 where turned. */
Test(emulator, matrices_out_of_shared_memory_lie_as_documented)
{
    uint16_t from[4 * 8 * 8];
    uint32_t to[32 * 4];
    for (int i = 0; i < 4 * 8 * 8; i++)
        from[i] = (uint16_t)(1000 + i);
    for (int turned = 0; turned < 2; turned++) {
        const struct matrices_args args = {from, to, turned};
        struct emulation e = {.blocks = 1, .seed = 3};
        cr_assert(emulate(&e, &emulated_matrices, &args), "%s", e.wrong);
        for (int lane = 0; lane < 32; lane++)
            for (int i = 0; i < 4; i++) {
                const int across = lane % 4 * 2,
                          first = turned ? 8 * across + lane / 4 : lane / 4 * 8 + across;
                const uint32_t low = from[64 * i + first], high = from[64 * i + first + (turned ? 8 : 1)];
                cr_assert_eq(to[4 * lane + i], low | high << 16, "lane %d, register %d", lane, i);
            }
    }
}

Test(emulator, a_copy_is_there_once_it_was_waited_for_and_not_before)
{
    uint32_t from[32 * 4], to[32 * 4];
    for (uint32_t i = 0; i < 32 * 4; i++)
        from[i] = 1000 + i;
    struct copies_args args = {from, to, WAITS};
    struct emulation e = {.blocks = 1, .seed = 3};
    cr_assert(emulate(&e, &emulated_copies, &args), "%s", e.wrong);
    for (int i = 0; i < 32 * 4; i++)
        cr_assert_eq(to[i], i / 4 % 2 ? from[(i + 4) % 128] : 0, "word %d", i);
    args.how = WAITS_LATE;
    cr_assert(emulate(&e, &emulated_copies, &args), "%s", e.wrong);
    for (int i = 0; i < 32 * 4; i++)
        cr_assert_eq(to[i], 0xffffffff, "word %d", i);
    args.how = NEVER_WAITS;
    cr_assert_not(emulate(&e, &emulated_copies, &args));
    cr_assert(strstr(e.wrong, "nobody waited for a copy"), "%s", e.wrong);
    args.how = AT_ODD_PLACE;
    cr_assert_not(emulate(&e, &emulated_copies, &args));
    cr_assert(strstr(e.wrong, "a copy does not begin at a multiple of its size"), "%s", e.wrong);
}

Test(emulator, lanes_swap_with_those_whose_number_has_other_bits)
{
    uint32_t from[64], to[64];
    for (uint32_t i = 0; i < 64; i++)
        from[i] = 1000 + i;
    for (int n = 0; n < 32; n = 2 * n + 1) {
        const struct swap_args args = {from, to, n};
        struct emulation e = {.blocks = 1, .seed = 5};
        cr_assert(emulate(&e, &emulated_swap, &args), "%s", e.wrong);
        for (uint32_t i = 0; i < 64; i++)
            cr_assert_eq(to[i], 1000 + (i ^ (uint32_t)n));
    }
}

/* Each bf16 number, the middle between it and the next, and what lies beside that; both signs. */
Test(emulator, bf16_is_the_nearest_and_the_even_one_of_two)
{
    for (uint32_t sign = 0; sign < 2; sign++)
        for (uint32_t h = 0; h < 0x7f80; h++) {
            const uint32_t half = h | sign << 15, bits = half << 16;
            cr_assert_eq(half_of(float_of(bits)), half);
            cr_assert_eq(half_of(float_of(bits + 0x7fff)), half);
            cr_assert_eq(half_of(float_of(bits + 0x8000)), half + (half & 1));
            cr_assert_eq(half_of(float_of(bits + 0x8001)), half + 1);
        }
    cr_assert_eq(half_of(float_of(0xff800000)), 0xff80);
    cr_assert_eq(half_of(float_of(0x7f800001)), 0x7fff, "NaN stays NaN");
    cr_assert_eq(half_pair(1.0f, -2.0f), 0xc0003f80);
}
