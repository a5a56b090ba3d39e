/* Sums of squares in 128 bits, as two words: exact, so in any order. Pure. */
#ifndef RM_TRAINER_WIDE_H
#define RM_TRAINER_WIDE_H

#include <math.h>
#include <stdint.h>

/* high * 2^64 + low */
struct wide {
    uint64_t high, low;
};

static inline struct wide wide_add(struct wide a, struct wide b)
{
    uint64_t low = a.low + b.low;
    return (struct wide){a.high + b.high + (low < a.low), low};
}

/* Rounded once, to nearest (the caller's mode). */
static inline double wide_to_double(struct wide w)
{
    if (!w.high)
        return (double)w.low;
    int up = __builtin_clzll(w.high);
    uint64_t top = up ? w.high << up | w.low >> (64 - up) : w.high;
    uint64_t rest = w.low << up;
    return ldexp((double)(top | (rest != 0)), 64 - up); /* `top` has bits to spare below a double's last */
}

#endif
