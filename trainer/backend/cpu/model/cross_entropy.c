#include "trainer/backend/cpu/model/cross_entropy.h"

#include "trainer/backend/cpu/model/scalar.h"
#include "trainer/backend/cpu/model/vec.h"

VEC_INLINE float largest_of(const float *x, int64_t n)
{
    vec most = vec_set(x[0]);
    int64_t j = 0;
    for (; j + VEC <= n; j += VEC)
        most = vec_max(most, vec_load(x + j, VEC));
    float top = vec_largest(most);
    for (; j < n; j++)
        top = x[j] > top ? x[j] : top;
    return top;
}

VEC_CLONED float cross_entropy(float *logits, int64_t n, int32_t target, float scale)
{
    float top = largest_of(logits, n), aimed = logits[target];
    vec sum = vec_set(0);
    int64_t j = 0;
    for (; j + VEC <= n; j += VEC) {
        vec e = vec_exp(vec_load(logits + j, VEC) - vec_set(top));
        vec_store(logits + j, e, VEC);
        sum += e;
    }
    float total = vec_sum(sum);
    if (j < n) {
        vec e = vec_exp(vec_load(logits + j, (int)(n - j)) - vec_set(top));
        for (int64_t i = j; i < n; i++)
            total += logits[i] = e[i - j];
    }
    if (scale != 0) {
        const vec share = vec_set(scale / total);
        for (j = 0; j < n; j += VEC) {
            int width = vec_width(j, n);
            vec_store(logits + j, vec_load(logits + j, width) * share, width);
        }
        logits[target] -= scale;
    }
    return (float)scalar_log(total) - (aimed - top);
}
