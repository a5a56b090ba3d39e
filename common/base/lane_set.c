/* Which lanes of a step: what is asked of such a set, and its text. */
#include "common/base/lane_set.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/str.h"

static uint64_t bit_of(int lane)
{
    RM_ASSERT(lane >= 0 && lane < RM_LANES_MAX, "lane %d of %d", lane, RM_LANES_MAX);
    return (uint64_t)1 << lane % 64;
}

bool lane_set_has(const struct lane_set *set, int lane)
{
    uint64_t bit = bit_of(lane);
    return set->bits[lane / 64] & bit;
}

void lane_set_add(struct lane_set *set, int lane)
{
    uint64_t bit = bit_of(lane);
    set->bits[lane / 64] |= bit;
}

void lane_set_add_all(struct lane_set *set, const struct lane_set *others)
{
    for (int i = 0; i < LANE_SET_WORDS; i++)
        set->bits[i] |= others->bits[i];
}

bool lane_set_is_empty(const struct lane_set *set)
{
    return lane_set_next(set, -1) < 0;
}

int lane_set_count(const struct lane_set *set)
{
    int count = 0;
    for (int i = 0; i < LANE_SET_WORDS; i++)
        count += __builtin_popcountll(set->bits[i]);
    return count;
}

bool lane_set_meets(const struct lane_set *a, const struct lane_set *b)
{
    uint64_t any = 0;
    for (int i = 0; i < LANE_SET_WORDS; i++)
        any |= a->bits[i] & b->bits[i];
    return any;
}

bool lane_set_within(const struct lane_set *a, const struct lane_set *b)
{
    uint64_t outside = 0;
    for (int i = 0; i < LANE_SET_WORDS; i++)
        outside |= a->bits[i] & ~b->bits[i];
    return !outside;
}

int lane_set_next(const struct lane_set *set, int after)
{
    RM_ASSERT(after >= -1 && after < RM_LANES_MAX, "the lane behind %d of %d", after, RM_LANES_MAX);
    for (int i = (after + 1) / 64; i < LANE_SET_WORDS; i++) {
        uint64_t left = set->bits[i];
        if (i == (after + 1) / 64)
            left &= ~(uint64_t)0 << (after + 1) % 64;
        if (left)
            return i * 64 + __builtin_ctzll(left);
    }
    return -1;
}

void lane_set_write(const struct lane_set *set, char out[LANE_SET_TEXT_MAX])
{
    int words = LANE_SET_WORDS;
    while (words > 1 && !set->bits[words - 1])
        words--;
    for (int i = 0; i < words; i++)
        snprintf(out + LANE_SET_DIGITS * i, LANE_SET_DIGITS + 1, "%016" PRIx64, set->bits[words - 1 - i]);
}

bool lane_set_read(const char *text, struct lane_set *ret)
{
    size_t digits = strlen(text), words = digits / LANE_SET_DIGITS;
    uint8_t bytes[LANE_SET_DIGITS / 2 * LANE_SET_WORDS];
    struct lane_set set = {0};
    if (!digits || digits % LANE_SET_DIGITS || words > LANE_SET_WORDS || !hex_decode(text, bytes, digits / 2))
        return false;
    for (size_t i = 0; i < digits / 2; i++) {
        uint64_t *word = &set.bits[words - 1 - i / 8];
        *word = *word << 8 | bytes[i];
    }
    *ret = set;
    return true;
}
