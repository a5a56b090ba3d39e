#include "trainer/exact/schedule.h"

#include <inttypes.h>

#include "common/base/assert.h"

static const double pi = 3.141592653589793;

/* Taylor series, for 0 <= x <= pi / 4: the first term left out is below 1e-17. */
static double cos_small(double x)
{
    double y = x * x, sum = 0, term = 1;
    for (int i = 0; i <= 16; i += 2) {
        sum += term;
        term = -term * y / (double)((i + 1) * (i + 2));
    }
    return sum;
}

static double sin_small(double x)
{
    double y = x * x, sum = 0, term = x;
    for (int i = 1; i <= 17; i += 2) {
        sum += term;
        term = -term * y / (double)((i + 1) * (i + 2));
    }
    return sum;
}

double schedule_cos_pi(double t)
{
    RM_ASSERT(t >= 0 && t <= 1, "the cosine of %g pi", t);
    if (t > 0.5)
        return -schedule_cos_pi(1 - t);
    return t <= 0.25 ? cos_small(pi * t) : sin_small(pi * (0.5 - t));
}

double schedule_power(double base, int64_t exponent)
{
    double result = 1;
    RM_ASSERT(exponent >= 0, "%g to the power of %" PRId64, base, exponent);
    for (; exponent > 0; exponent >>= 1) {
        if (exponent & 1)
            result *= base;
        base *= base;
    }
    return result;
}

double schedule_rate(const struct schedule *s, int64_t step)
{
    RM_ASSERT(step >= 0 && s->warmup >= 0, "step %" PRId64 ", %" PRId64 " to warm up", step, s->warmup);
    if (step < s->warmup)
        return s->rate * (double)step / (double)s->warmup;
    if (!s->cosine || step == s->warmup)
        return s->rate;
    if (step >= s->steps)
        return s->rate_min;
    double t = (double)(step - s->warmup) / (double)(s->steps - s->warmup);
    return s->rate_min + 0.5 * (s->rate - s->rate_min) * (1 + schedule_cos_pi(t));
}
