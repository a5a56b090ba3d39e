/* Weights rounded on the emulated GPU as the CPU's model rounds them: to the nearest bf16, the even one of
 * two. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "model_case.h"
#include "trainer/backend/cpu/model/bf16.h"
#include "trainer/backend/cuda/kernels/halve.h"
#include "update_case.h"

static void check(int64_t count)
{
    float *from = model_floats(count, 3, (uint64_t)count);
    uint16_t *to = model_empty(count + 1, sizeof *to), *wanted = model_empty(count, sizeof *wanted);
    for (int64_t i = 0; i < count; i += 3) { /* in the middle of two */
        const uint32_t bits = (case_bits(from[i]) & 0xffff0000u) | 0x8000;
        from[i] = float_of(bits);
    }
    const struct halve_args args = {from, to, count};
    const struct model_run run = {&emulated_halve, &args, 1, true, {{to, (size_t)count * sizeof *to}}};
    model_run_orders(&run, 0);
    bf16_narrow(wanted, from, count);
    for (int64_t i = 0; i < count; i++)
        cr_assert_eq(to[i], wanted[i], "%d: %a", (int)i, (double)from[i]);
    cr_assert_eq(to[count], 0xffff);
    free(from);
    free(to);
    free(wanted);
}

Test(halve, each_weight_becomes_the_nearest_bf16_at_every_small_size)
{
    for (int64_t count = 1; count <= 70; count++)
        check(count);
    check(255);
    check(257);
    check(2000);
}
