#include <criterion/criterion.h>
#include <string.h>

#include "common/base/prng.h"
#include "tests/unit/trainer/backend/cpu/model/clone.h"

static void fill(float *in)
{
    uint64_t state = 3;
    for (int i = 0; i < 2 * CLONE_COUNT; i++)
        in[i] = (float)(6 * (2 * prng_unit(&state) - 1));
}

static void assert_same_bits(int (*run)(const float *, float *), const char *name)
{
    static float in[2 * CLONE_COUNT], wanted[CLONE_OUT], got[CLONE_OUT];
    fill(in);
    int count = clone_run_v1(in, wanted);
    cr_assert(count > 7 * CLONE_COUNT && count <= CLONE_OUT);
    cr_assert_eq(run(in, got), count);
    for (int i = 0; i < count; i++)
        cr_assert_eq(memcmp(&wanted[i], &got[i], sizeof(float)), 0, "%s: value %d is %.9g, not %.9g", name, i,
                     got[i], wanted[i]);
}

Test(clones, avx2_gives_the_bits_of_the_baseline)
{
    if (!__builtin_cpu_supports("x86-64-v3"))
        cr_skip("this CPU has no AVX2, run it on one of x86-64-v3");
    assert_same_bits(clone_run_v3, "v3");
}

Test(clones, avx512_gives_the_bits_of_the_baseline)
{
    if (!__builtin_cpu_supports("x86-64-v4"))
        cr_skip("this CPU has no AVX-512, run it on one of x86-64-v4");
    assert_same_bits(clone_run_v4, "v4");
}
