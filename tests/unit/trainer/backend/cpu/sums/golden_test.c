/* The id of the numeric sources, and beside it bits that they make on any machine: both stand here, so that
 * neither changes unseen. Where the id changed and the bits did not, what was changed decides no bit, or no
 * test here sees that it does. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/os/crypto.h"
#include "exact_case.h"
#include "trainer/backend/cpu/model/gpt.h"
#include "trainer/backend/cpu/model/numerics_id.h"

#ifdef __x86_64__
static const char golden_sources[] = "073b75323804fa0e";
#else /* other sources, and the same bits */
static const char golden_sources[] = "66d2ea983e4015ad";
#endif
static const char golden_state[] = "dc75ad9de4a0a65e29b98a8b0f02addaaa17877bf6c9a8b6a88eaef6c1fd957c";
static const char golden_weights[] = "d764231e18fb6871f693ede71c0fe52e32486945fd3bd3145d0456cc280a4226";

enum { STEPS = 10, SEED = 42 };

static void write_hex(const uint8_t *bytes, char *out)
{
    for (int i = 0; i < RM_HASH_BYTES; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

Test(golden, the_numeric_sources_are_those_of_the_golden_bits)
{
    cr_assert_str_eq(
        numerics_sources_id, golden_sources,
        "the id of the numeric sources is now %s: every checkpoint from before is of other bits. If "
        "that is meant, write it here",
        numerics_sources_id);
}

Test(golden, ten_steps_of_sums_and_updates_end_in_the_golden_state)
{
    struct ring r;
    char hex[2 * RM_HASH_BYTES + 1];
    ring_open(&r, 1, false, 0);
    for (int i = 0; i < STEPS; i++)
        ring_step(&r, 0);
    write_hex(case_hash(r.state[0]).bytes, hex);
    ring_close(&r);
    cr_assert_str_eq(hex, golden_state);
}

Test(golden, a_seed_gives_the_golden_weights)
{
    const struct model_layout *layout = case_layout();
    float *params = calloc((size_t)layout->parameters, sizeof *params);
    uint8_t hash[RM_HASH_BYTES];
    char hex[2 * RM_HASH_BYTES + 1];
    gpt_init_weights(layout, SEED, params);
    sha256_once(params, (size_t)layout->parameters * sizeof *params, hash);
    free(params);
    write_hex(hash, hex);
    cr_assert_str_eq(hex, golden_weights);
}
