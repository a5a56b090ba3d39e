/* Where each word of a header lies, how a rank writes its own, and what the sum of all says: whose states
 * are odd, whether all are sure, whether it is a sum at all. Lanes and passes write it (lanes.c,
 * gpu_pass.c, backend_program.c), the engine and verdict.c read it. */
#include "trainer/exact/header.h"

#include <string.h>

#include "common/base/assert.h"
#include "trainer/exact/proof.h"
#include "trainer/exact/verdict.h"

_Static_assert((int)EXACT_K_MAX == (int)RM_EXPONENT_MOST, "what is sent is what may be used");

enum {
    LANE_MORE = 4, /* words of a lane beside its maxima */
    RANK_WORDS = 10,
    SUMS = 2,
    VERSION_AT = 16,
};
static const uint32_t rank_present = 1u << 31;

/* Words of a rank's slot. */
enum {
    SAID,
    LINEAGE,
    LANE_US = LINEAGE + 2,
    STATE_SUM,
    AUDITED = STATE_SUM + 2,
    AUDITED_PROOF,
    AUDITED_LOSS = AUDITED_PROOF + 2
};

static void put_pair(uint32_t *word, uint64_t value)
{
    word[0] = (uint32_t)value;
    word[1] = (uint32_t)(value >> 32);
}

static uint64_t get_pair(const uint32_t *word)
{
    return word[0] | (uint64_t)word[1] << 32;
}

int64_t header_lane_at(int tensors, int lane)
{
    RM_ASSERT(tensors >= 0 && lane >= 0, "lane %d of a header of %d tensors", lane, tensors);
    return (int64_t)lane * (tensors + LANE_MORE);
}

int64_t header_rank_at(int tensors, int lanes, int rank)
{
    return header_lane_at(tensors, lanes) + (int64_t)rank * RANK_WORDS;
}

static int64_t sums_at(int tensors, int lanes)
{
    return header_rank_at(tensors, lanes, RM_WORKERS_MAX);
}

int64_t header_count(int tensors, int lanes)
{
    return sums_at(tensors, lanes) + SUMS;
}

/* Modulo 2^32, as the words are added: linear whatever overflows. Weights are odd, so that one wrong bit
 * shows in both, and of another kind in the second. */
static void sum_up(const uint32_t *header, int64_t count, uint32_t *ret)
{
    uint32_t sums[SUMS] = {0};
    for (int64_t i = 0; i < count; i++) {
        uint32_t weight = proof_weight((uint64_t)i);
        sums[0] += header[i] * weight;
        sums[1] += header[i] * (weight * weight + 2 * (uint32_t)i);
    }
    memcpy(ret, sums, sizeof sums);
}

bool header_proven(const uint32_t *header, int tensors, int lanes)
{
    uint32_t sums[SUMS];
    int64_t at = sums_at(tensors, lanes);
    sum_up(header, at, sums);
    return !memcmp(header + at, sums, sizeof sums);
}

uint64_t header_words_proof(const uint32_t *header, int tensors, int lanes)
{
    uint64_t sum = 0;
    for (int lane = 0; lane < lanes; lane++)
        sum += header_lane_read(header, tensors, lane).proof;
    return sum;
}

void header_lane_write(uint32_t *header, int tensors, int lane, const struct header_lane *said)
{
    RM_ASSERT(lane >= 0 && lane < RM_LANES_MAX, "lane %d of a header", lane);
    uint32_t *slot = header + header_lane_at(tensors, lane);
    memcpy(slot, &said->loss, sizeof *slot);
    put_pair(slot + 1 + tensors, said->proof);
    slot[3 + tensors] = said->tokens;
}

struct header_lane header_lane_read(const uint32_t *header, int tensors, int lane)
{
    const uint32_t *slot = header + header_lane_at(tensors, lane);
    struct header_lane said = {.proof = get_pair(slot + 1 + tensors), .tokens = slot[3 + tensors]};
    memcpy(&said.loss, slot, sizeof said.loss);
    return said;
}

void header_rank_write(uint32_t *header, int tensors, int lanes, int rank, const struct header_rank *said)
{
    RM_ASSERT(rank >= 0 && rank < RM_WORKERS_MAX, "rank %d of a header of %d lanes", rank, lanes);
    uint32_t *slot = header + header_rank_at(tensors, lanes, rank);
    slot[SAID] = (said->flags & LANES_FLAGS) | HEADER_VERSION << VERSION_AT | rank_present;
    memcpy(slot + LINEAGE, said->lineage, sizeof said->lineage);
    slot[LANE_US] = said->lane_us;
    put_pair(slot + STATE_SUM, said->state_sum);
    slot[AUDITED] = (uint32_t)(said->audited + 1);
    put_pair(slot + AUDITED_PROOF, said->audited_proof);
    memcpy(slot + AUDITED_LOSS, &said->audited_loss, sizeof *slot);
    sum_up(header, sums_at(tensors, lanes), header + sums_at(tensors, lanes));
}

bool header_rank_read(const uint32_t *header, int tensors, int lanes, int rank, struct header_rank *out)
{
    const uint32_t *slot = header + header_rank_at(tensors, lanes, rank);
    if (!(slot[SAID] & rank_present))
        return false;
    *out = (struct header_rank){.flags = slot[SAID] & LANES_FLAGS,
                                .lane_us = slot[LANE_US],
                                .state_sum = get_pair(slot + STATE_SUM),
                                .audited = slot[AUDITED] > RM_LANES_MAX ? -1 : (int)slot[AUDITED] - 1,
                                .audited_proof = get_pair(slot + AUDITED_PROOF)};
    memcpy(out->lineage, slot + LINEAGE, sizeof out->lineage);
    memcpy(&out->audited_loss, slot + AUDITED_LOSS, sizeof out->audited_loss);
    return true;
}

bool header_ranks_agree(const uint32_t *header, int tensors, int lanes, int a, int b)
{
    const uint32_t *x = header + header_rank_at(tensors, lanes, a);
    const uint32_t *y = header + header_rank_at(tensors, lanes, b);
    return !((x[SAID] ^ y[SAID]) & ~(uint32_t)LANES_FLAGS) &&
           !memcmp(x + LINEAGE, y + LINEAGE, 2 * sizeof *x);
}

static bool same_bits(const uint32_t *header, int tensors, int lanes, int a, int b)
{
    const uint32_t *x = header + header_rank_at(tensors, lanes, a);
    const uint32_t *y = header + header_rank_at(tensors, lanes, b);
    return get_pair(x + STATE_SUM) == get_pair(y + STATE_SUM);
}

/* Present ranks with the bits of that one. */
static struct worker_set group_of(const uint32_t *header, int tensors, int lanes, struct worker_set present,
                                  int rank)
{
    RM_ASSERT(set_has(present, rank), "rank %d is compared with others, and said nothing", rank);
    struct worker_set group = {0};
    for (int r = set_first(present); r >= 0; r = set_next(present, r))
        if (same_bits(header, tensors, lanes, r, rank))
            set_add(&group, r);
    return group;
}

/* Present ranks, those alone that say none (or all) of these flags. */
static struct worker_set ranks_with(const uint32_t *header, int tensors, int lanes, uint32_t none,
                                    uint32_t all)
{
    struct worker_set ranks = {0};
    struct header_rank said;
    for (int r = 0; r < RM_WORKERS_MAX; r++)
        if (header_rank_read(header, tensors, lanes, r, &said) && !(said.flags & none) &&
            (said.flags & all) == all)
            set_add(&ranks, r);
    return ranks;
}

bool header_all_sure(const uint32_t *header, int tensors, int lanes)
{
    return set_equals(ranks_with(header, tensors, lanes, 0, LANES_SURE),
                      ranks_with(header, tensors, lanes, 0, 0));
}

static struct worker_set those_who_vote(const uint32_t *header, int tensors, int lanes)
{
    struct worker_set settled = ranks_with(header, tensors, lanes, LANES_FRESH, 0);
    return set_is_empty(settled) ? ranks_with(header, tensors, lanes, 0, 0) : settled;
}

/* A vote against those to whom its state was given may be that of a state that changed since. */
static bool decides(const uint32_t *header, int tensors, int lanes, struct worker_set voters)
{
    struct header_rank said;
    RM_ASSERT(!set_is_empty(voters), "nobody votes in a header of %d lanes", lanes);
    return set_count(voters) > 1 ||
           (header_rank_read(header, tensors, lanes, set_first(voters), &said) && said.flags & LANES_SURE);
}

struct worker_set header_odd_states(const uint32_t *header, int tensors, int lanes)
{
    struct worker_set present = ranks_with(header, tensors, lanes, 0, 0), most = {0};
    struct worker_set voters = those_who_vote(header, tensors, lanes);
    int best = 0;
    bool tie = false;
    for (int r = set_first(present); r >= 0; r = set_next(present, r)) {
        struct worker_set group = group_of(header, tensors, lanes, present, r);
        int votes = set_count(set_minus(voters, set_minus(present, group)));
        if (!header_ranks_agree(header, tensors, lanes, r, set_first(present)))
            return (struct worker_set){0};
        if (set_equals(group, most) || votes < best)
            continue;
        tie = votes == best;
        most = tie ? most : group;
        best = votes;
    }
    RM_ASSERT(set_is_empty(set_minus(most, present)), "%d of %d ranks have the state of most",
              set_count(most), set_count(present));
    bool differ = !set_equals(most, present);
    return tie || (differ && !decides(header, tensors, lanes, voters)) ? present : set_minus(present, most);
}
