#include "trainer/core/cursor.h"

#include <inttypes.h>

#include "common/base/assert.h"
#include "common/base/prng.h"

enum { ROUNDS = 6 };

/* Keeps the shuffles' random numbers apart from those of the initial weights, which share the seed. */
static uint64_t shuffle_key(uint64_t seed)
{
    uint64_t state = seed ^ 0x73687566666c6500u; /* "shuffle" */
    return splitmix64(&state);
}

/* Bits of each half, so that two halves cover [0, samples). */
static int half_bits(int64_t samples)
{
    int bits = 1;
    while (bits < 31 && ((int64_t)1 << (2 * bits)) < samples)
        bits++;
    RM_ASSERT((int64_t)1 << (2 * bits) >= samples || bits == 31, "%d bits for %" PRId64 " samples", 2 * bits,
              samples);
    return bits;
}

/* A Feistel network: a permutation of 2 * bits bits whatever the round function is. */
static uint64_t feistel(uint64_t key, int64_t pass, int bits, uint64_t value)
{
    uint64_t mask = ((uint64_t)1 << bits) - 1, left = value >> bits, right = value & mask;
    for (int round = 0; round < ROUNDS; round++) {
        struct philox_block noise = philox4x32(key, right | (uint64_t)round << 32, (uint64_t)pass);
        uint64_t next = left ^ (noise.word[0] & mask);
        left = right;
        right = next;
    }
    return left << bits | right;
}

int64_t cursor_permute(uint64_t seed, int64_t pass, int64_t samples, int64_t index)
{
    RM_ASSERT(index >= 0 && index < samples, "sample %" PRId64 " of %" PRId64, index, samples);
    uint64_t key = shuffle_key(seed), value = (uint64_t)index;
    int bits = half_bits(samples);
    /* Walk the cycle until it is back inside: 4 turns at most on the mean, as the domain is < 4 * samples
     * (2 bits at least). */
    do
        value = feistel(key, pass, bits, value);
    while (value >= (uint64_t)samples);
    return (int64_t)value;
}

int64_t cursor_sample(const struct cursor *c, int64_t step, int lane, int sequence)
{
    RM_ASSERT(step >= 0 && lane >= 0 && lane < c->lanes && sequence >= 0 && sequence < c->lane_sequences,
              "step %" PRId64 ", lane %d of %d, sequence %d of %d", step, lane, c->lanes, sequence,
              c->lane_sequences);
    int64_t batch = (int64_t)c->lanes * c->lane_sequences;
    int64_t position = step * batch + (int64_t)lane * c->lane_sequences + sequence;
    RM_ASSERT(c->samples > 0 && position >= 0, "place %" PRId64 " among %" PRId64 " samples", position,
              c->samples);
    return cursor_permute(c->seed, position / c->samples, c->samples, position % c->samples);
}
