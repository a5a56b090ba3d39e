/* Sixteen floats at a time, with the same bits on every x86-64.
 *
 * A vec is a GCC vector of 16 floats whatever the CPU has; the compiler splits it where registers are
 * shorter. Only +, -, *, / and integer operations are used (files are built with -ffp-contract=off), so a
 * lane's value does not depend on the instruction set, and a function marked VEC_CLONED, which is compiled
 * for several of them and chosen when the program starts, gives one result. Sums run in 16 fixed lanes that
 * are added as a fixed tree at the end.
 *
 * Comparisons are made on the sign of a difference: GCC 12 turns a compare of 16 floats into 16 scalar ones
 * where the registers are shorter. Where an operand is not a number either one may be chosen; exp keeps NaN.
 */
#ifndef RM_TRAINER_VEC_H
#define RM_TRAINER_VEC_H

#include <stdint.h>
#include <string.h>

enum { VEC = 16 };

typedef float vec __attribute__((vector_size(4 * VEC)));
typedef int32_t vec_int __attribute__((vector_size(4 * VEC)));
typedef uint32_t vec_bits __attribute__((vector_size(4 * VEC)));

#ifndef VEC_CLONED /* a test builds one clone at a time */
#define VEC_CLONED __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
#define VEC_INLINE static inline __attribute__((always_inline))

VEC_INLINE vec vec_set(float x)
{
    return (vec){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x};
}

/* How many of the n elements from i on one vec takes. */
VEC_INLINE int vec_width(int64_t i, int64_t n)
{
    return n - i < VEC ? (int)(n - i) : VEC;
}

/* width < 16: the other lanes are 0. No alignment is asked for. */
VEC_INLINE vec vec_load(const float *p, int width)
{
    vec v;
    if (width == VEC) {
        memcpy(&v, p, sizeof v);
        return v;
    }
    v = vec_set(0);
    for (int i = 0; i < width; i++)
        v[i] = p[i];
    return v;
}

VEC_INLINE void vec_store(float *p, vec v, int width)
{
    if (width == VEC) {
        memcpy(p, &v, sizeof v);
        return;
    }
    for (int i = 0; i < width; i++)
        p[i] = v[i];
}

/* a where the sign of `by` is set, else b. */
VEC_INLINE vec vec_where_negative(vec by, vec a, vec b)
{
    vec_bits mask = (vec_bits)((vec_int)by >> 31);
    return (vec)((mask & (vec_bits)a) | (~mask & (vec_bits)b));
}

VEC_INLINE vec vec_max(vec a, vec b)
{
    return vec_where_negative(a - b, b, a);
}

VEC_INLINE vec vec_min(vec a, vec b)
{
    return vec_where_negative(a - b, a, b);
}

VEC_INLINE float vec_sum(vec v)
{
    for (int half = VEC / 2; half; half /= 2)
        for (int i = 0; i < half; i++)
            v[i] += v[i + half];
    return v[0];
}

VEC_INLINE float vec_largest(vec v)
{
    float most = v[0];
    for (int i = 1; i < VEC; i++)
        most = v[i] > most ? v[i] : most;
    return most;
}

/* e^x within 2 units in the last place for -87.3 <= x <= 88.3; below and above that, the value at the end of
 * the range. NaN and infinities give NaN.
 *
 * x = n ln 2 + r with |r| <= ln 2 / 2: adding 1.5 * 2^23 leaves n in the low bits of the sum. ln 2 is split
 * in two so that n times the first part is exact. The polynomial is the one of Cephes' expf (S. Moshier). */
VEC_INLINE vec vec_exp(vec x)
{
    const vec magic = vec_set(12582912.0f);
    vec in = vec_max(vec_min(x, vec_set(88.37f)), vec_set(-87.33f));
    vec shifted = in * vec_set(1.44269504088896341f) + magic;
    vec n = shifted - magic;
    vec r = in - n * vec_set(0.693359375f);
    r = r - n * vec_set(-2.12194440e-4f);
    vec p = vec_set(1.9875691500e-4f);
    p = p * r + vec_set(1.3981999507e-3f);
    p = p * r + vec_set(8.3334519073e-3f);
    p = p * r + vec_set(4.1665795894e-2f);
    p = p * r + vec_set(1.6666665459e-1f);
    p = p * r + vec_set(5.0000001201e-1f);
    p = p * (r * r) + r + vec_set(1);
    vec_bits power = ((vec_bits)shifted - 0x4B400000u + 127u) << 23;
    return p * (vec)power + (x - x);
}

#endif
