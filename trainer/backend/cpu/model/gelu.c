#include "trainer/backend/cpu/model/gelu.h"

#include "trainer/backend/cpu/model/vec_gelu.h"

VEC_CLONED void gelu_forward(float *y, const float *x, int64_t stride, int64_t rows, int64_t columns)
{
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t j = 0; j < columns; j += VEC) {
            int width = vec_width(j, columns);
            vec v = vec_load(x + r * stride + j, width);
            vec_store(y + r * stride + j, vec_gelu(v), width);
        }
    }
}

VEC_CLONED void gelu_backward(float *d, const float *x, int64_t stride, int64_t rows, int64_t columns)
{
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t j = 0; j < columns; j += VEC) {
            int width = vec_width(j, columns);
            vec change = vec_gelu_slope(vec_load(x + r * stride + j, width));
            vec_store(d + r * stride + j, vec_load(d + r * stride + j, width) * change, width);
        }
    }
}
