#include "trainer/model/scalar.h"

#include <stdint.h>
#include <string.h>

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
    double s = (m - 1) / (m + 1), square = s * s, sum = 0;
    for (int odd = 21; odd >= 3; odd -= 2)
        sum = (sum + 1.0 / odd) * square;
    return exponent * ln2 + (2 * s + 2 * s * sum);
}

/* Taylor series for an angle of at most pi / 4. */
static void small_circle(double angle, double *cosine, double *sine)
{
    double square = angle * angle, c = 1, s = 1;
    for (int n = 16; n >= 2; n -= 2) {
        c = 1 - square * c / (n * (n - 1));
        s = 1 - square * s / (n * (n + 1));
    }
    *cosine = c;
    *sine = angle * s;
}

void scalar_circle(double turn, double *cosine, double *sine)
{
    int quarter = (int)(turn * 4 + 0.5);
    double c, s;
    small_circle((turn - quarter * 0.25) * 6.28318530717958647692, &c, &s);
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
