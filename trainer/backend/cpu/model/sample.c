#include "trainer/backend/cpu/model/sample.h"

#include "trainer/backend/cpu/model/vec.h"

static int likeliest(const float *logits, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        if (logits[i] > logits[best])
            best = i;
    return best;
}

/* logits -> e^((logit - top) / temperature); returns their sum in order of tokens */
VEC_CLONED static double weigh(float *logits, int n, float top, float temperature)
{
    double sum = 0;
    for (int i = 0; i < n; i += VEC) {
        int width = vec_width(i, n);
        vec v = vec_exp((vec_load(logits + i, width) - vec_set(top)) / vec_set(temperature));
        vec_store(logits + i, v, width);
        for (int j = 0; j < width; j++)
            sum += v[j];
    }
    return sum;
}

int sample_token(float *logits, int n, float temperature, double unit)
{
    int best = likeliest(logits, n);
    if (temperature <= 0)
        return best;
    double left = unit * weigh(logits, n, logits[best], temperature);
    for (int i = 0; i < n; i++) {
        left -= logits[i];
        if (left < 0)
            return i;
    }
    return best; /* rounding, or logits that are no numbers */
}
