/* A set of workers, of ranks, or of a checkpoint's shares: of numbers from 0 to RM_WORKERS_MAX - 1.
 *
 * A value: {0} is empty, it is copied by assignment and compared by set_equals. What looks takes it by value,
 * what changes it takes its address. A number that no worker can have is a bug of the caller's, and ends the
 * program. Each member in rising order:
 *     for (int w = set_first(set); w >= 0; w = set_next(set, w))
 *
 * As text it is 16 hex digits, the lowest 64 numbers' bits, the highest first; where there are higher numbers
 * in it, 16 more in front for each 64 of them. */
#ifndef RM_BASE_SET_H
#define RM_BASE_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/assert.h"
#include "common/base/limits.h"

enum { SET_WORDS = (RM_WORKERS_MAX + 63) / 64, SET_DIGITS = 16, SET_TEXT_MAX = SET_DIGITS * SET_WORDS + 1 };

struct worker_set {
    uint64_t bits[SET_WORDS]; /* for set.h and set.c alone: number n is bit n % 64 of word n / 64 */
};

/* 16 digits, or 32, 48 ...: see above. */
void set_write(struct worker_set set, char out[SET_TEXT_MAX]);
/* False, and *ret as it was: not such a text, or of numbers that no worker has. */
bool set_read(const char *text, struct worker_set *ret);
/* People get hex digits without zeros in front. */
void set_describe(struct worker_set set, char out[SET_TEXT_MAX]);

static inline uint64_t set_bit(int number)
{
    RM_ASSERT(number >= 0 && number < RM_WORKERS_MAX, "number %d of a set of %d", number, RM_WORKERS_MAX);
    return (uint64_t)1 << number % 64;
}

static inline bool set_has(struct worker_set set, int number)
{
    uint64_t bit = set_bit(number);
    return set.bits[number / 64] & bit;
}

static inline void set_add(struct worker_set *set, int number)
{
    uint64_t bit = set_bit(number);
    set->bits[number / 64] |= bit;
}

static inline void set_remove(struct worker_set *set, int number)
{
    uint64_t bit = set_bit(number);
    set->bits[number / 64] &= ~bit;
}

/* The set of this one. */
static inline struct worker_set set_of(int number)
{
    struct worker_set set = {0};
    set_add(&set, number);
    return set;
}

/* The set of 0 to count - 1; count may be RM_WORKERS_MAX at most. */
static inline struct worker_set set_below(int count)
{
    struct worker_set set = {0};
    for (int i = 0; i < count; i++)
        set_add(&set, i);
    return set;
}

static inline struct worker_set set_union(struct worker_set a, struct worker_set b)
{
    for (int i = 0; i < SET_WORDS; i++)
        a.bits[i] |= b.bits[i];
    return a;
}

/* Who is in both. */
static inline struct worker_set set_common(struct worker_set a, struct worker_set b)
{
    for (int i = 0; i < SET_WORDS; i++)
        a.bits[i] &= b.bits[i];
    return a;
}

/* Who is in a, and not in b. */
static inline struct worker_set set_minus(struct worker_set a, struct worker_set b)
{
    for (int i = 0; i < SET_WORDS; i++)
        a.bits[i] &= ~b.bits[i];
    return a;
}

static inline bool set_is_empty(struct worker_set set)
{
    uint64_t any = 0;
    for (int i = 0; i < SET_WORDS; i++)
        any |= set.bits[i];
    return !any;
}

/* Somebody is in both. */
static inline bool set_meets(struct worker_set a, struct worker_set b)
{
    return !set_is_empty(set_common(a, b));
}

static inline bool set_equals(struct worker_set a, struct worker_set b)
{
    uint64_t differs = 0;
    for (int i = 0; i < SET_WORDS; i++)
        differs |= a.bits[i] ^ b.bits[i];
    return !differs;
}

static inline int set_count(struct worker_set set)
{
    int count = 0;
    for (int i = 0; i < SET_WORDS; i++)
        count += __builtin_popcountll(set.bits[i]);
    return count;
}

/* The lowest that is above `after`; -1: there is none. */
static inline int set_next(struct worker_set set, int after)
{
    for (int i = (after + 1) / 64; i < SET_WORDS; i++) {
        uint64_t left = set.bits[i];
        if (i == (after + 1) / 64)
            left &= ~(uint64_t)0 << (after + 1) % 64;
        if (left)
            return i * 64 + __builtin_ctzll(left);
    }
    return -1;
}

/* The lowest; -1: it is empty. */
static inline int set_first(struct worker_set set)
{
    return set_next(set, -1);
}

#endif
