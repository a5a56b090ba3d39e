#include "trainer/backend/cpu/model/bias.h"

#include "trainer/backend/cpu/model/vec.h"

VEC_CLONED void bias_fill(float *y, const float *residual, int64_t stride, const float *bias, int64_t rows,
                          int64_t columns)
{
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t j = 0; j < columns; j += VEC) {
            int width = vec_width(j, columns);
            vec v = vec_load(bias + j, width);
            if (residual)
                v += vec_load(residual + r * stride + j, width);
            vec_store(y + r * stride + j, v, width);
        }
    }
}

VEC_CLONED void bias_gradient(float *sums, const float *y, int64_t stride, int64_t rows, int64_t columns)
{
    for (int64_t j = 0; j < columns; j += VEC) {
        int width = vec_width(j, columns);
        vec sum = vec_set(0);
        for (int64_t r = 0; r < rows; r++)
            sum += vec_load(y + r * stride + j, width);
        vec_store(sums + j, sum, width);
    }
}
