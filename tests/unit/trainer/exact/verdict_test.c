#include "trainer/exact/verdict.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

enum { TENSORS = 3, LANES = 5 };

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static void write_rank(uint32_t *header, int rank, uint32_t flags, const uint8_t *lineage)
{
    struct header_rank said = {.flags = flags, .audited = -1};
    memcpy(said.lineage, lineage, sizeof said.lineage);
    header_rank_write(header, TENSORS, LANES, rank, &said);
}

/* Header of a good pass: every lane with loss 2 and maxima 1, 0.25, 0; two ranks of one lineage. */
static uint32_t *good_header(void)
{
    static uint32_t header[2048];
    const uint8_t lineage[RM_HASH_BYTES] = {1, 2, 3, 4, 5, 6, 7, 8};
    cr_assert_leq(header_count(TENSORS, LANES), 2048);
    memset(header, 0, sizeof header);
    for (int lane = 0; lane < LANES; lane++) {
        uint32_t *slot = header + header_lane_at(TENSORS, lane);
        slot[0] = bits_of(2);
        slot[1] = bits_of(1);
        slot[2] = bits_of(0.25f);
        slot[TENSORS + 3] = 100; /* tokens */
    }
    write_rank(header, 0, 0, lineage);
    write_rank(header, 1, LANES_STOP, lineage);
    return header;
}

Test(verdict, k_is_the_largest_that_leaves_six_bits)
{
    for (int exponent = -60; exponent < 60; exponent++) {
        double h = 1.37 * ldexp(1, exponent);
        int32_t k = verdict_k_for(h, 64, 7);
        cr_assert(verdict_k_fits(h * 64, 64, k));
        cr_assert(k == EXACT_K_MAX || !verdict_k_fits(h * 64, 64, k + 1), "h = %g k = %d", h, k);
    }
}

Test(verdict, k_stays_in_its_bounds_and_keeps_the_old_one_without_a_gradient)
{
    cr_assert_eq(verdict_k_for(0, 64, 7), 7);
    cr_assert_eq(verdict_k_for(1e-40, 64, 7), EXACT_K_MAX);
    cr_assert_eq(verdict_k_for(3.4e38, 64, 7), -EXACT_K_MAX < -103 ? -103 : -100);
    cr_assert(verdict_k_fits(3.4e38, 1024, -EXACT_K_MAX), "the largest fp32 fits the least k");
}

Test(verdict, what_fits_cannot_overflow_in_any_partial_sum)
{
    /* All lanes at their maximum and of one sign, h at the very edge. */
    for (int lanes = 1; lanes <= 1024; lanes += 93) {
        double h = (0x1p31 - lanes) / (1 + 0x1p-20) * (1 - 0x1p-50);
        cr_assert(verdict_k_fits(h, lanes, 0));
        float scale = (float)(1.0 / lanes);
        float g = nextafterf((float)h, 0);
        int64_t sum = 0;
        for (int lane = 0; lane < lanes; lane++)
            sum += (int64_t)rintf(g * scale);
        cr_assert_leq(sum, INT32_MAX, "%d lanes", lanes);
        cr_assert_not(verdict_k_fits(h * (1 + 1e-9), lanes, 0));
    }
}

Test(verdict, a_good_pass_fits_and_sets_the_next_k)
{
    struct verdict v;
    const int32_t k[TENSORS] = {20, 26, 3};
    verdict_decide(&v, good_header(), TENSORS, LANES, false, k);
    cr_assert_eq(v.kind, VERDICT_FITS);
    cr_assert(v.loss == 2);
    cr_assert_eq(v.flags, LANES_STOP, "the union of all ranks' flags");
    cr_assert_eq(v.k[0], 24);
    cr_assert_eq(v.k[1], 26);
    cr_assert_eq(v.k[2], 3, "no gradient: the old k stays");
    cr_assert_eq(v.tokens, 100 * LANES);
}

Test(verdict, only_tensors_that_do_not_fit_get_another_k_for_the_rescaled_pass)
{
    struct verdict v, again;
    const int32_t k[TENSORS] = {31, 20, 3};
    verdict_decide(&v, good_header(), TENSORS, LANES, false, k);
    cr_assert_eq(v.kind, VERDICT_RESCALE);
    cr_assert_eq(v.rescaled, 1);
    cr_assert_eq(v.k[0], 24);
    cr_assert_eq(v.k[1], 20);
    verdict_decide(&again, good_header(), TENSORS, LANES, false, v.k);
    cr_assert_eq(again.kind, VERDICT_FITS, "once is enough");
}

Test(verdict, a_k_that_has_become_far_too_coarse_is_rescaled_too)
{
    struct verdict v;
    const int32_t k[TENSORS] = {0, 26, 0};
    verdict_decide(&v, good_header(), TENSORS, LANES, false, k);
    cr_assert_eq(v.kind, VERDICT_RESCALE, "h * 2^0 is one quantum");
    cr_assert_eq(v.k[0], 24);
    verdict_decide(&v, good_header(), TENSORS, LANES, true, k);
    cr_assert_eq(v.kind, VERDICT_FITS, "fast sums need no k");
    cr_assert_eq(v.k[0], 0);
}

Test(verdict, nan_and_infinity_are_named_by_lane_and_tensor)
{
    const float bad[] = {NAN, INFINITY};
    struct model_layout layout;
    struct verdict v;
    const struct model_shape shape = {1, 1, 8, 4, 16};
    const int32_t k[TENSORS] = {20, 20, 20};
    char why[RM_WHY_MAX];
    model_layout_init(&layout, &shape);
    for (int i = 0; i < 2; i++) {
        uint32_t *header = good_header();
        header[header_lane_at(TENSORS, 3) + 2] = bits_of(bad[i]);
        header[header_lane_at(TENSORS, 4) + 0] = bits_of(bad[i]);
        verdict_decide(&v, header, TENSORS, LANES, false, k);
        cr_assert_eq(v.kind, VERDICT_NOT_FINITE);
        cr_assert(v.lane == 3 && v.tensor == 1);
        verdict_sentence(&v, &layout, 12, why);
        cr_assert_str_eq(why, "step 12: the gradient of h.0.attn.c_attn.weight is not finite in lane 3");
        header[header_lane_at(TENSORS, 3) + 2] = 0;
        verdict_decide(&v, header, TENSORS, LANES, true, k);
        verdict_sentence(&v, &layout, 12, why);
        cr_assert_str_eq(why, "step 12: the loss is not finite in lane 4");
    }
}

Test(verdict, stop_and_save_count_where_one_says_so_and_holds_and_ready_where_all_do)
{
    static const struct {
        uint32_t said[3], wanted;
    } cases[] = {
        {{0, 0, 0}, 0},
        {{LANES_STOP, 0, LANES_SAVE}, LANES_STOP | LANES_SAVE},
        {{LANES_HOLDS, LANES_HOLDS, LANES_HOLDS}, LANES_HOLDS},
        {{LANES_HOLDS, 0, LANES_HOLDS}, 0},
        {{LANES_HOLDS | LANES_READY, LANES_READY, LANES_HOLDS | LANES_READY | LANES_STOP},
         LANES_READY | LANES_STOP},
    };
    const int32_t k[TENSORS] = {20, 26, 3};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct verdict v;
        const uint8_t lineage[RM_HASH_BYTES] = {1, 2, 3, 4, 5, 6, 7, 8};
        uint32_t *header = good_header();
        for (int r = 0; r < 3; r++)
            write_rank(header, r, cases[i].said[r], lineage);
        verdict_decide(&v, header, TENSORS, LANES, false, k);
        cr_assert_eq(v.flags, cases[i].wanted, "case %zu: %x", i, v.flags);
    }
}

static uint64_t minority_of(const char *lineages)
{
    struct verdict v;
    const int32_t k[TENSORS] = {20, 20, 20};
    uint32_t *header = good_header();
    for (int r = 0; lineages[r]; r++) {
        uint8_t lineage[RM_HASH_BYTES] = {(uint8_t)lineages[r]};
        write_rank(header, r, 0, lineage);
    }
    header[header_lane_at(TENSORS, 0)] = bits_of(NAN); /* lineage is judged before all else */
    verdict_decide(&v, header, TENSORS, LANES, false, k);
    uint64_t bits = 0;
    for (int r = set_first(v.minority); r >= 0; r = set_next(v.minority, r))
        bits |= (uint64_t)1 << r;
    cr_assert_eq(v.kind, bits ? VERDICT_LINEAGE : VERDICT_NOT_FINITE);
    return bits;
}

Test(verdict, ranks_of_another_lineage_are_found_by_majority_then_by_rank_zero)
{
    cr_assert_eq(minority_of("aa"), 0);
    cr_assert_eq(minority_of("aab"), 1 << 2);
    cr_assert_eq(minority_of("baa"), 1 << 0);
    cr_assert_eq(minority_of("ab"), 1 << 1, "a tie: rank 0's counts");
    cr_assert_eq(minority_of("abbcca"), 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4);
    cr_assert_eq(minority_of("cabba"), 1 << 0 | 1 << 2 | 1 << 3, "a tie without rank 0: the lowest rank's");
}
