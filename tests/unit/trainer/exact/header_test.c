#include "trainer/exact/header.h"

#include <criterion/criterion.h>
#include <string.h>

#include "common/wire/message.h"
#include "trainer/exact/proof.h"
#include "trainer/exact/wide.h"

enum { TENSORS = 3, LANES = 5, WORDS = 1024 };

/* Ranks whose headers have other places for the same words must not meet: a sum of them is none, and only the
 * protocol's number keeps them apart. Nothing else binds the three. */
Test(header, its_layout_its_version_and_the_protocols_number_change_together)
{
    const int version = 4, protocol = 17 + (RM_WORKERS_MAX == 64 ? 0 : 1000 + RM_WORKERS_MAX);
    const int64_t lane = 4 + 1, rank = 10, sums = 2;
    const int64_t words = lane * 1 + rank * RM_WORKERS_MAX + sums;
    cr_assert(HEADER_VERSION == version && MSG_PROTOCOL == protocol && header_count(1, 1) == words &&
                  LANES_FLAGS == 63,
              "HEADER_VERSION is %d and MSG_PROTOCOL %d, and a header of one tensor and one lane has %lld "
              "words and flags %d; they went together as %d, %d, %lld and 63. Who changes what a header has "
              "or means raises both numbers, who changes other messages the protocol's alone; then say here "
              "what goes together now",
              (int)HEADER_VERSION, (int)MSG_PROTOCOL, (long long)header_count(1, 1), (int)LANES_FLAGS,
              version, protocol, (long long)words);
}

Test(header, what_each_rank_writes_is_in_the_sum_of_all)
{
    uint32_t sum[WORDS] = {0};
    cr_assert_leq(header_count(TENSORS, LANES), WORDS);
    for (int r = 0; r < LANES; r++) {
        uint32_t own[WORDS] = {0};
        const struct header_lane lane = {.loss = 2.5f + (float)r,
                                         .proof = 0xfedcba9876543210u + (unsigned)r,
                                         .tokens = 1000u + (unsigned)r};
        const struct header_rank rank = {.flags = LANES_HOLDS,
                                         .lineage = {1, 2, 3, 4, 5, 6, 7, 8},
                                         .lane_us = 77u + (unsigned)r,
                                         .state_sum = 0x8000000000000001u * (unsigned)(r + 1),
                                         .audited = r - 1,
                                         .audited_proof = ~(uint64_t)r,
                                         .audited_loss = 0.5f * (float)r};
        header_lane_write(own, TENSORS, r, &lane);
        own[header_lane_at(TENSORS, r) + TENSORS] = 40u + (unsigned)r; /* the last maximum */
        header_rank_write(own, TENSORS, LANES, r, &rank);
        for (int i = 0; i < WORDS; i++)
            sum[i] += own[i];
    }
    cr_assert(header_proven(sum, TENSORS, LANES));
    cr_assert_eq(header_words_proof(sum, TENSORS, LANES),
                 LANES * 0xfedcba9876543210u + LANES * (LANES - 1) / 2);
    for (int r = 0; r < LANES; r++) {
        struct header_rank rank;
        struct header_lane lane = header_lane_read(sum, TENSORS, r);
        cr_assert(lane.loss == 2.5f + (float)r && lane.proof == 0xfedcba9876543210u + (unsigned)r);
        cr_assert_eq(lane.tokens, 1000u + (unsigned)r);
        cr_assert_eq(sum[header_lane_at(TENSORS, r) + TENSORS], 40u + (unsigned)r);
        cr_assert(header_rank_read(sum, TENSORS, LANES, r, &rank));
        cr_assert_eq(rank.flags, LANES_HOLDS);
        cr_assert(rank.lineage[0] == 1 && rank.lineage[7] == 8);
        cr_assert_eq(rank.lane_us, 77u + (unsigned)r);
        cr_assert_eq(rank.state_sum, 0x8000000000000001u * (unsigned)(r + 1));
        cr_assert(rank.audited == r - 1 && rank.audited_proof == ~(uint64_t)r);
        cr_assert(rank.audited_loss == 0.5f * (float)r);
        cr_assert_eq(header_rank_at(TENSORS, LANES, r + 1) - header_rank_at(TENSORS, LANES, r), 10);
    }
    cr_assert_not(header_rank_read(sum, TENSORS, LANES, LANES, &(struct header_rank){0}), "not there");
}

/* From the wire, whatever it says: 0x80000000 - 1 is no int less than 0 either. */
Test(header, a_lane_that_no_job_has_is_no_audit)
{
    uint32_t words[WORDS] = {0};
    const struct header_rank said = {.flags = LANES_HOLDS, .audited = 1};
    struct header_rank rank;
    header_rank_write(words, TENSORS, LANES, 0, &said);
    int64_t at = header_rank_at(TENSORS, LANES, 0);
    for (int64_t i = at; i < at + 10; i++)
        if (words[i] == 2)
            words[i] = 0x80000000u;
    cr_assert(header_rank_read(words, TENSORS, LANES, 0, &rank));
    cr_assert_eq(rank.audited, -1);
}

/* In what one rank says, in the sum that another one gets, or in the sums themselves. */
Test(header, a_bit_that_changed_anywhere_shows)
{
    uint32_t sum[WORDS] = {0};
    for (int r = 0; r < 2; r++) {
        uint32_t own[WORDS] = {0};
        const struct header_rank rank = {.audited = -1, .lane_us = 9, .state_sum = ~0u};
        header_lane_write(own, TENSORS, r, &(struct header_lane){.loss = 1.5f, .proof = ~(uint64_t)r});
        header_rank_write(own, TENSORS, LANES, r, &rank);
        for (int i = 0; i < WORDS; i++)
            sum[i] += own[i];
    }
    cr_assert(header_proven(sum, TENSORS, LANES));
    for (int64_t bit = 0; bit < 32 * header_count(TENSORS, LANES); bit++) {
        sum[bit / 32] ^= 1u << bit % 32;
        cr_assert_not(header_proven(sum, TENSORS, LANES), "bit %ld", (long)bit);
        sum[bit / 32] ^= 1u << bit % 32;
    }
}

/* said: of rank 0, 1, ..., '+' for sure, '~' for fresh, and a digit for the sum; odd: the ranks that are not
 * as most, likewise as bits. Returns whether all are sure. */
static bool expect_odd(const char *said, uint64_t odd)
{
    uint32_t words[WORDS] = {0};
    int ranks = 0;
    uint32_t flags = 0;
    for (const char *at = said; *at; at++) {
        const struct header_rank rank = {
            .audited = -1, .flags = flags, .state_sum = (uint64_t)(*at - '0') << 40};
        flags |= *at == '+' ? LANES_SURE : *at == '~' ? LANES_FRESH : 0;
        if (*at == '+' || *at == '~')
            continue;
        header_rank_write(words, TENSORS, LANES, ranks++, &rank);
        flags = 0;
    }
    cr_assert(header_odd_states(words, TENSORS, LANES).bits[0] == odd, "%s", said);
    return header_all_sure(words, TENSORS, LANES);
}

Test(header, of_states_with_other_bits_those_are_odd_that_most_do_not_have)
{
    expect_odd("1", 0);
    expect_odd("77", 0);
    expect_odd("771", 4);
    expect_odd("177", 1);
    expect_odd("171", 2);
    expect_odd("12", 3);
    expect_odd("1122", 15);
    expect_odd("1233", 3);
    expect_odd("1223", 9);
    expect_odd("123", 7);
    expect_odd("11223", 31);
    expect_odd("112233", 63);
    expect_odd("1122333", 15);
}

/* A state that is not sound, and was given to two, is still one state. */
Test(header, who_received_its_state_counts_with_who_gave_it)
{
    expect_odd("12~2~2", 15);
    expect_odd("112~2~2~2", 60);
    expect_odd("11~2", 4);
    expect_odd("12~1", 7);
    expect_odd("1~1~1", 0);
    expect_odd("~1~1~2", 4);
    expect_odd("~1~2", 3);
}

/* Of one that gave its state to all others, that one may have changed since; where it has looked, it counts.
 */
Test(header, a_single_vote_counts_where_it_is_sure)
{
    expect_odd("1~2", 3);
    expect_odd("1~2~2", 7);
    expect_odd("+1~2~2", 6);
    expect_odd("+1~1~2", 4);
}

Test(header, all_are_sure_where_each_says_so)
{
    cr_assert(expect_odd("+1+2", 3));
    cr_assert(expect_odd("+~1+~2", 3));
    cr_assert_not(expect_odd("+12", 3));
    cr_assert_not(expect_odd("1+2", 3));
}

Test(header, where_histories_differ_bits_say_nothing)
{
    uint32_t words[WORDS] = {0};
    header_rank_write(words, TENSORS, LANES, 0, &(struct header_rank){.audited = -1, .lineage = {1}});
    header_rank_write(words, TENSORS, LANES, 1, &(struct header_rank){.audited = -1, .state_sum = 5});
    cr_assert(set_is_empty(header_odd_states(words, TENSORS, LANES)));
}

Test(header, ranks_with_another_layout_do_not_agree)
{
    uint32_t words[WORDS] = {0};
    const struct header_rank rank = {.audited = -1};
    header_rank_write(words, TENSORS, LANES, 0, &rank);
    header_rank_write(words, TENSORS, LANES, 1, &rank);
    cr_assert(header_ranks_agree(words, TENSORS, LANES, 0, 1));
    words[header_rank_at(TENSORS, LANES, 1)] |= LANES_STOP;
    cr_assert(header_ranks_agree(words, TENSORS, LANES, 0, 1), "flags may differ");
    words[header_rank_at(TENSORS, LANES, 1)] ^= 1 << 16;
    cr_assert_not(header_ranks_agree(words, TENSORS, LANES, 0, 1));
}

Test(wide, sums_carry_and_are_rounded_once)
{
    static const struct {
        struct wide w;
        double wanted;
    } cases[] = {
        {{0, 0}, 0},
        {{0, 1}, 1},
        {{0, 0x20000000000001}, 0x1p53},     /* a tie: to even */
        {{0, 0x20000000000003}, 0x1p53 + 4}, /* and up */
        {{1, 0}, 0x1p64},
        {{1, 0x800}, 0x1p64},          /* half of the last place, a tie */
        {{1, 0x801}, 0x1p64 + 0x1p12}, /* a bit more */
        {{0x3ff, 0}, 0x3ffp64},
        {{0x20000000000000, 1}, 0x1p117},
        {{0x20000000000001, 0}, 0x1p117}, /* a tie in the upper word */
        {{0x20000000000001, 1}, 0x1p117 + 0x1p65},
        {{UINT64_MAX, UINT64_MAX}, 0x1p128},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_assert(wide_to_double(cases[i].w) == cases[i].wanted, "case %zu: %a", i,
                  wide_to_double(cases[i].w));
    struct wide sum = wide_add((struct wide){1, UINT64_MAX}, (struct wide){2, 1});
    cr_assert(sum.high == 4 && sum.low == 0);
}

/* Why the words are taken as signed: as unsigned ones, -1 and 1 add up to 2^32 and not to 0. */
Test(proof, sums_of_lanes_add_up_to_that_of_their_sum_and_a_changed_bit_shows)
{
    uint64_t lanes = 0, all = 0;
    for (uint64_t at = 0; at < 10000; at++) {
        int32_t sum = 0;
        for (int lane = 0; lane < 4; lane++) {
            int32_t q = (int32_t)(at * 2654435761u + (unsigned)lane * 40503u) >> 4;
            lanes += proof_word(at, (uint32_t)q);
            sum += q;
        }
        all += proof_word(at, (uint32_t)sum);
        for (int bit = 0; bit < 32; bit++)
            cr_assert_neq(proof_word(at, (uint32_t)sum), proof_word(at, (uint32_t)sum ^ 1u << bit));
    }
    cr_assert_eq(lanes, all);
}
