/* The tables of the other tests on a GPU (tests/cuda_rig/emulate_on_gpu.c), here on the stand-in: what a
 * kernel's arguments point to goes there and comes back, and nothing else may change. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda_rig/kernels.h"
#include "trainer/backend/cuda/kernels/fill.h"
#include "trainer/backend/cuda/kernels/lanes_add.h"

enum { WORDS = 100 };

static bool filled(uint32_t *words, int64_t count, struct emulation *e)
{
    const struct fill_args args = {words, count, 7};
    return emulate(e, &emulated_fill, &args);
}

static bool all_are(const uint32_t *words, int count, uint32_t wanted)
{
    for (int i = 0; i < count; i++)
        if (words[i] != wanted)
            return false;
    return true;
}

Test(on_gpu, memory_of_the_heap_and_of_the_stack_goes_there_and_comes_back)
{
    uint32_t here[4] = {0};
    uint32_t *words = calloc(WORDS, sizeof *words);
    struct emulation e = {.blocks = 2};
    cr_assert(filled(words + 1, WORDS - 1, &e), "%s", e.wrong);
    cr_assert(words[0] == 0 && all_are(words + 1, WORDS - 1, 7));
    cr_assert(filled(here, 3, &e), "%s", e.wrong);
    cr_assert(all_are(here, 3, 7) && here[3] == 0);
    cr_assert_eq(e.barriers + e.fences, 0);
    free(words);
}

/* One variable's copy must not bring back what another one was. */
Test(on_gpu, variables_that_lie_beside_each_other_come_back_each_for_itself)
{
    struct {
        float grad;
        uint32_t word, max;
        uint64_t proof;
    } here[2] = {{.grad = 3}, {.grad = 5, .word = 1}};
    for (int i = 0; i < 2; i++) { /* their order in the arguments is that in memory, and another one */
        const struct lanes_add_args args = {.grads = &here[i].grad,
                                            .words = &here[1 - i].word,
                                            .max = &here[i].max,
                                            .proof = &here[1 - i].proof,
                                            .count = 1,
                                            .scale = 2};
        struct emulation e = {.blocks = 1};
        cr_assert(emulate(&e, &emulated_lanes_add, &args), "%s", e.wrong);
    }
    cr_assert(here[1].word == 7 && here[0].word == 10, "%u, %u", here[1].word, here[0].word);
    cr_assert(here[0].max && here[1].max && here[0].proof && here[1].proof);
}

Test(on_gpu, a_kernel_that_writes_beside_its_memory_is_found)
{
    uint32_t *words = calloc(WORDS, sizeof *words);
    struct emulation e = {.blocks = 1};
    cr_assert_not(filled(words, WORDS + 1, &e));
    cr_assert_str_eq(e.wrong, "fill wrote where it has no memory, between its blocks 1 and 2");
    free(words);
}
