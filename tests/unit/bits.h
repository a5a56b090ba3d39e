/* Short sets of workers, ranks or shares in tests, as the bits of one number: 5 is {0, 2}. */
#ifndef RM_TESTS_BITS_H
#define RM_TESTS_BITS_H

#include <criterion/criterion.h>

#include "common/base/set.h"

static inline struct worker_set set_of_bits(uint64_t bits)
{
    struct worker_set set = {0};
    for (int i = 0; i < 64; i++)
        if (bits >> i & 1)
            set_add(&set, i);
    return set;
}

static inline uint64_t bits_of_set(struct worker_set set)
{
    uint64_t bits = 0;
    for (int i = set_first(set); i >= 0; i = set_next(set, i)) {
        cr_assert_lt(i, 64);
        bits |= (uint64_t)1 << i;
    }
    return bits;
}

#endif
