#include "trainer/backend/cpu/model/layernorm.h"

#include <math.h>

#include "trainer/backend/cpu/model/vec.h"

static const float epsilon = 1e-5f;

VEC_INLINE float mean_of(const float *x, int64_t n)
{
    vec sum = vec_set(0);
    for (int64_t j = 0; j < n; j += VEC)
        sum += vec_load(x + j, vec_width(j, n));
    return vec_sum(sum) / (float)n;
}

VEC_INLINE float variance_of(const float *x, int64_t n, float mean)
{
    vec sum = vec_set(0);
    int64_t j = 0;
    for (; j + VEC <= n; j += VEC) {
        vec d = vec_load(x + j, VEC) - vec_set(mean);
        sum += d * d;
    }
    float total = vec_sum(sum);
    for (; j < n; j++) /* not as a vec: its spare lanes would count as -mean */
        total += (x[j] - mean) * (x[j] - mean);
    return total / (float)n;
}

VEC_CLONED void layernorm_forward(const struct layernorm *l, float *y, int64_t first, int64_t count)
{
    for (int64_t r = first; r < first + count; r++) {
        const float *x = l->x + r * l->width;
        float mean = mean_of(x, l->width);
        float scale = 1 / sqrtf(variance_of(x, l->width, mean) + epsilon);
        l->stats[r] = (struct layernorm_stats){mean, scale};
        for (int64_t j = 0; j < l->width; j += VEC) {
            int width = vec_width(j, l->width);
            vec norm = (vec_load(x + j, width) - vec_set(mean)) * vec_set(scale);
            vec_store(y + r * l->width + j,
                      norm * vec_load(l->weight + j, width) + vec_load(l->bias + j, width), width);
        }
    }
}

/* With n = (x - mean) scale and g = dy weight: dx = scale (g - mean(g) - n mean(g n)). */
VEC_CLONED void layernorm_backward(const struct layernorm *l, const float *dy, float *dx, float *partial,
                                   int64_t first, int64_t count)
{
    memset(partial, 0, (size_t)(2 * l->width) * sizeof *partial);
    for (int64_t r = first; r < first + count; r++) {
        const float *x = l->x + r * l->width, *d = dy + r * l->width;
        const vec mean = vec_set(l->stats[r].mean), scale = vec_set(l->stats[r].scale);
        vec g_sum = vec_set(0), gn_sum = vec_set(0);
        for (int64_t j = 0; j < l->width; j += VEC) { /* spare lanes have g = 0 */
            int width = vec_width(j, l->width);
            vec norm = (vec_load(x + j, width) - mean) * scale, up = vec_load(d + j, width);
            vec g = up * vec_load(l->weight + j, width);
            g_sum += g;
            gn_sum += g * norm;
            vec_store(partial + j, vec_load(partial + j, width) + up * norm, width);
            vec_store(partial + l->width + j, vec_load(partial + l->width + j, width) + up, width);
        }
        const vec g_mean = vec_set(vec_sum(g_sum) / (float)l->width);
        const vec gn_mean = vec_set(vec_sum(gn_sum) / (float)l->width);
        for (int64_t j = 0; j < l->width; j += VEC) {
            int width = vec_width(j, l->width);
            vec norm = (vec_load(x + j, width) - mean) * scale;
            vec g = vec_load(d + j, width) * vec_load(l->weight + j, width);
            float *out = dx + r * l->width + j;
            vec_store(out, vec_load(out, width) + scale * (g - g_mean - norm * gn_mean), width);
        }
    }
}

VEC_CLONED void layernorm_gather(const float *partials, int n, int64_t width, float *dweight, float *dbias,
                                 int64_t first, int64_t count)
{
    for (int64_t j = first; j < first + count; j += VEC) {
        int lanes = vec_width(j, first + count);
        vec weight = vec_set(0), bias = vec_set(0);
        for (int i = 0; i < n; i++) {
            weight += vec_load(partials + (2 * i) * width + j, lanes);
            bias += vec_load(partials + (2 * i + 1) * width + j, lanes);
        }
        vec_store(dweight + j, weight, lanes);
        vec_store(dbias + j, bias, lanes);
    }
}
