#include "trainer/backend/cpu/model/scalar.h"

#include <stdint.h>
#include <string.h>

/* c[0] + c[1] x + c[2] x^2 ... */
static double series(double x, const double *c, int n)
{
    double sum = c[n - 1];
    for (int i = n - 2; i >= 0; i--)
        sum = sum * x + c[i];
    return sum;
}

enum { ODD_PARTS = 11, TERMS = 9 };

static const double odd_parts[ODD_PARTS] = {1,        1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9, 1.0 / 11,
                                            1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21};

/* Taylor's, in the square of the angle. */
static const double cosine_terms[TERMS] = {1,
                                           -1.0 / 2,
                                           1.0 / 24,
                                           -1.0 / 720,
                                           1.0 / 40320,
                                           -1.0 / 3628800,
                                           1.0 / 479001600,
                                           -1.0 / 87178291200,
                                           1.0 / 20922789888000};
static const double sine_terms[TERMS] = {1,
                                         -1.0 / 6,
                                         1.0 / 120,
                                         -1.0 / 5040,
                                         1.0 / 362880,
                                         -1.0 / 39916800,
                                         1.0 / 6227020800,
                                         -1.0 / 1307674368000,
                                         1.0 / 355687428096000};

/* x = m 2^e with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh((m - 1) / (m + 1)) as a series in the square of
 * that quotient, which is below 0.0295: eleven terms reach 2^-53. */
double scalar_log(double x)
{
    static const double ln2 = 0.693147180559945309417;
    if (!(x - x == 0))
        return x;
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int exponent = (int)(bits >> 52) - 1023;
    bits = (bits & 0xFFFFFFFFFFFFFu) | (uint64_t)1023 << 52;
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m > 1.41421356237309504880) {
        m *= 0.5;
        exponent++;
    }
    double s = (m - 1) / (m + 1);
    return exponent * ln2 + 2 * s * series(s * s, odd_parts, ODD_PARTS);
}

void scalar_circle(double turn, double *cosine, double *sine)
{
    int quarter = (int)(turn * 4 + 0.5);
    double angle = (turn - quarter * 0.25) * 6.28318530717958647692; /* at most pi / 4 either way */
    double c = series(angle * angle, cosine_terms, TERMS);
    double s = angle * series(angle * angle, sine_terms, TERMS);
    switch (quarter % 4) {
    case 0:
        *cosine = c, *sine = s;
        break;
    case 1:
        *cosine = -s, *sine = c;
        break;
    case 2:
        *cosine = -c, *sine = -s;
        break;
    default:
        *cosine = s, *sine = -c;
    }
}
