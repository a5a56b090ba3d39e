/* What is taken of a GPU's memory, and what is said where it is too little. */
#include "trainer/backend/cuda/needs.h"

#include <criterion/criterion.h>
#include <string.h>

#include "common/base/str.h"

static const int64_t MIB = 1 << 20, GIB = 1 << 30;

static const struct model_shape small = {
    .layers = 12, .heads = 12, .width = 768, .context = 1024, .vocabulary = 50257};
static const struct model_shape large = {
    .layers = 48, .heads = 25, .width = 1600, .context = 1024, .vocabulary = 50257};

static struct model_layout layout;

static struct cuda_needs_shape shape_of(const struct model_shape *model, int lane_sequences)
{
    model_layout_init(&layout, model);
    return (struct cuda_needs_shape){.layout = &layout, .lane_sequences = lane_sequences, .slots = 264};
}

static struct cuda_needs needs_of(const struct cuda_needs_shape *shape)
{
    struct cuda_needs needs;
    cuda_needs_make(&needs, shape);
    return needs;
}

/* What does not depend on a lane: 20 bytes a parameter in fp32 and words, 2 in bf16, as docs/gpu.md says. */
Test(needs, the_state_takes_22_bytes_a_parameter_and_little_more)
{
    struct cuda_needs_shape shape = shape_of(&large, 1);
    struct cuda_needs needs = needs_of(&shape);
    int64_t state =
        needs.bytes[CUDA_NEEDS_STATE] + needs.bytes[CUDA_NEEDS_WORDS] + needs.bytes[CUDA_NEEDS_HALF];
    cr_assert_geq(state, 22 * layout.parameters);
    cr_assert_leq(state, 22 * layout.parameters + layout.parameters / 100);
    shape.fp32 = true;
    cr_assert_eq(needs_of(&shape).bytes[CUDA_NEEDS_HALF], 0);
}

Test(needs, its_sum_is_that_of_its_purposes)
{
    struct cuda_needs_shape shape = shape_of(&small, 16);
    struct cuda_needs needs = needs_of(&shape);
    int64_t sum = 0;
    for (int i = 0; i < CUDA_PURPOSES; i++) {
        cr_assert_gt(needs.bytes[i], 0, "%s", cuda_purpose_text((enum cuda_purpose)i));
        sum += needs.bytes[i];
    }
    cr_assert_eq(needs.total, sum);
}

/* By hand: a token of gpt2-124m keeps 12 blocks of 14 widths in bf16 and two in fp32, with 16 numbers of its
 * rows; beside them three widths in fp32, eight in bf16, 19 numbers and a share. Logits: 50304 columns. */
Test(needs, what_a_token_takes_is_what_it_takes_by_hand)
{
    struct cuda_needs_shape shape = shape_of(&small, 16);
    const int64_t tokens = 16 * 1024, block = 14 * 768 * 2 + 2 * 768 * 4 + 16 * 4,
                  beside = 3 * 768 * 4 + 8 * 768 * 2 + 19 * 4 + 2 * 768 * 4 / 32;
    struct cuda_needs needs = needs_of(&shape);
    cr_assert_eq(needs.bytes[CUDA_NEEDS_ACTIVATIONS], tokens * (12 * block + beside));
    cr_assert_eq(needs.bytes[CUDA_NEEDS_LOGITS], tokens * 50304 * 2);
    cr_assert_eq(needs.bytes[CUDA_NEEDS_GRADIENT], (int64_t)(50304 + 4 * 768) * 768 * 4);
}

/* By hand, too: six of those widths are norms' and GELU's; a block's input is one of the two in fp32. */
Test(needs, what_is_computed_again_is_there_once_and_not_for_each_block)
{
    struct cuda_needs_shape shape = shape_of(&small, 16);
    const int64_t tokens = 16 * 1024, input = 768 * 4, cheap = 6 * 768 * 2,
                  products = 8 * 768 * 2 + 768 * 4 + 16 * 4;
    const struct cuda_needs all = needs_of(&shape);
    cr_assert_eq(all.spared, 0);
    shape.keep = CUDA_KEEP_PRODUCTS;
    struct cuda_needs needs = needs_of(&shape);
    cr_assert_eq(needs.spared, tokens * 11 * cheap);
    cr_assert_eq(needs.total, all.total - needs.spared);
    shape.keep = CUDA_KEEP_INPUTS;
    needs = needs_of(&shape);
    cr_assert_eq(needs.spared, tokens * 11 * (cheap + products));
    cr_assert_eq(needs.total, all.total - needs.spared);
    cr_assert_eq(all.bytes[CUDA_NEEDS_ACTIVATIONS] - needs.spared, needs.bytes[CUDA_NEEDS_ACTIVATIONS]);
    cr_assert_gt(needs.bytes[CUDA_NEEDS_ACTIVATIONS], tokens * (12 * input + cheap + products));
}

Test(needs, as_much_is_kept_as_fits_where_a_job_says_recompute_and_all_where_it_does_not)
{
    struct cuda_needs_shape shape = shape_of(&small, 16);
    shape.keep = CUDA_KEEP_PRODUCTS;
    const int64_t total = needs_of(&shape).total;
    cr_assert_eq(cuda_needs_keep(&shape, true, total), CUDA_KEEP_PRODUCTS);
    cr_assert_eq(cuda_needs_keep(&shape, true, 80 * GIB), CUDA_KEEP_PRODUCTS, "never all");
    cr_assert_eq(cuda_needs_keep(&shape, true, total - 1), CUDA_KEEP_INPUTS);
    cr_assert_eq(cuda_needs_keep(&shape, true, 0), CUDA_KEEP_INPUTS);
    cr_assert_eq(cuda_needs_keep(&shape, false, 80 * GIB), CUDA_KEEP_ALL);
    cr_assert_eq(cuda_needs_keep(&shape, false, 0), CUDA_KEEP_ALL);
}

Test(needs, twice_the_sequences_take_twice_what_a_lane_takes_and_nothing_else)
{
    struct cuda_needs_shape shape = shape_of(&small, 4);
    struct cuda_needs one = needs_of(&shape);
    shape.lane_sequences = 8;
    struct cuda_needs two = needs_of(&shape);
    for (int i = 0; i < CUDA_PURPOSES; i++)
        cr_assert_eq(two.bytes[i], (i == CUDA_NEEDS_ACTIVATIONS || i == CUDA_NEEDS_LOGITS) ? 2 * one.bytes[i]
                                                                                           : one.bytes[i]);
}

/* ---- the sentence ---- */

static const char *check(const struct cuda_needs_shape *shape, int64_t free, int64_t total)
{
    static struct error err;
    const struct cuda_room room = {"NVIDIA H100", free, total};
    struct cuda_needs needs = needs_of(shape);
    err = (struct error){0};
    if (cuda_needs_check(&needs, shape, &room, &err) == 0)
        return "fits";
    cr_assert_eq(error_exit_code(err.code), EXIT_MACHINE);
    cr_assert_eq(err.class, CLASS_MACHINE);
    return err.text;
}

Test(needs, fits_to_the_byte)
{
    struct cuda_needs_shape shape = shape_of(&small, 16);
    int64_t total = needs_of(&shape).total;
    cr_assert_str_eq(check(&shape, total, 80 * GIB), "fits");
    cr_assert_str_neq(check(&shape, total - 1, 80 * GIB), "fits");
}

/* Each help in turn, as there is less and less. */
Test(needs, what_would_help_is_tried_out_before_it_is_said)
{
    struct cuda_needs_shape shape = shape_of(&large, 16);
    static const struct {
        int64_t free, total;
        const char *said;
    } cases[] = {
        {70, 71, "70.0 of 71.0 are free; trainer.recompute: true would fit"},
        {38, 39,
         "38.0 of 39.0 are free; trainer.batch.laneSequences: 1 would fit (more with trainer.recompute: "
         "true)"},
        {34, 35,
         "34.0 of 35.0 are free; trainer.batch.laneSequences: 2 with trainer.recompute: true would fit"},
        {20, 80, "20.0 of 80.0 are free, others hold 60.0; end what else runs on this GPU (nvidia-smi)"},
        {20, 21, "20.0 of 21.0 are free; this model needs a GPU with more memory"},
    };
    static const char begin[] =
        "NVIDIA H100: training needs 77.3 GiB (activations 43.0, weights and moments 17.4, "
        "gradients 11.6 GiB), and ";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *said = check(&shape, cases[i].free * GIB, cases[i].total * GIB - MIB);
        cr_assert_eq(strncmp(said, begin, strlen(begin)), 0, "%s", said);
        cr_assert_str_eq(said + strlen(begin), cases[i].said);
    }
}

Test(needs, nobody_is_told_of_a_help_that_is_in_use)
{
    struct cuda_needs_shape shape = shape_of(&large, 16);
    shape.keep = CUDA_KEEP_INPUTS;
    static const struct {
        int64_t free;
        const char *said;
    } cases[] = {{40, "trainer.batch.laneSequences: 14 would fit"},
                 {34, "trainer.batch.laneSequences: 2 would fit"},
                 {20, "this model needs a GPU with more memory"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *said = strrchr(check(&shape, cases[i].free * GIB, (cases[i].free + 1) * GIB - MIB), ';');
        cr_assert_str_eq(said + 2, cases[i].said);
    }
}

Test(needs, a_report_has_a_line_for_each_purpose)
{
    struct cuda_needs_shape shape = shape_of(&small, 4);
    struct str out = str_init(4096);
    struct cuda_needs needs = needs_of(&shape);
    cuda_needs_report(&needs, &out);
    cr_assert_str_eq(str_text(&out), "  1424.6 MiB  weights and moments (fp32)\n"
                                     "   949.4 MiB  gradients as whole numbers, twice\n"
                                     "    14.0 MiB  undo slots and tables of the update\n"
                                     "   237.4 MiB  weights in bf16\n"
                                     "   156.4 MiB  gradients of two tensors at a time\n"
                                     "  1384.0 MiB  activations of a lane\n"
                                     "   393.0 MiB  logits of a lane\n"
                                     "    32.0 MiB  workspace of matrix products\n"
                                     "   512.0 MiB  code, graphs and the driver's own\n"
                                     "  5102.7 MiB  in all\n");
    str_clear(&out);
}

static void reported(enum cuda_keep keep, const char *line)
{
    struct cuda_needs_shape shape = shape_of(&small, 4);
    struct str out = str_init(4096);
    shape.keep = keep;
    struct cuda_needs needs = needs_of(&shape);
    cuda_needs_report(&needs, &out);
    cr_assert_not_null(strstr(str_text(&out), line), "%s", str_text(&out));
    str_clear(&out);
}

Test(needs, a_report_says_what_is_computed_again_and_what_that_spares)
{
    reported(
        CUDA_KEEP_PRODUCTS,
        "\n   988.0 MiB  activations of a lane, 396.0 less than all: norms and GELU are computed again\n");
    reported(CUDA_KEEP_INPUTS,
             "\n   325.3 MiB  activations of a lane, 1058.8 less than all: blocks are computed "
             "again from what came into them\n");
}
