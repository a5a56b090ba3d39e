#include "trainer/backend/cpu/model/embedding.h"

#include "trainer/backend/cpu/model/vec.h"

VEC_CLONED void embedding_forward(const struct embedding *e, const float *wte, const float *wpe, float *x,
                                  int64_t first, int64_t count)
{
    for (int64_t n = first; n < first + count; n++) {
        const float *token = wte + e->tokens[n] * e->width, *place = wpe + n % e->length * e->width;
        for (int64_t j = 0; j < e->width; j += VEC) {
            int width = vec_width(j, e->width);
            vec_store(x + n * e->width + j, vec_load(token + j, width) + vec_load(place + j, width), width);
        }
    }
}

VEC_CLONED static void add_rows_of_tokens(const struct embedding *e, const float *dx, float *dwte,
                                          int64_t first, int64_t end)
{
    for (int64_t n = 0; n < (int64_t)e->sequences * e->length; n++) {
        float *row = dwte + e->tokens[n] * e->width;
        for (int64_t j = first; j < end; j += VEC) {
            int width = vec_width(j, end);
            vec_store(row + j, vec_load(row + j, width) + vec_load(dx + n * e->width + j, width), width);
        }
    }
}

VEC_CLONED static void sum_rows_of_places(const struct embedding *e, const float *dx, float *dwpe,
                                          int64_t first, int64_t end)
{
    for (int64_t t = 0; t < e->length; t++) {
        for (int64_t j = first; j < end; j += VEC) {
            int width = vec_width(j, end);
            vec sum = vec_set(0);
            for (int64_t b = 0; b < e->sequences; b++)
                sum += vec_load(dx + (b * e->length + t) * e->width + j, width);
            vec_store(dwpe + t * e->width + j, sum, width);
        }
    }
}

void embedding_backward(const struct embedding *e, const float *dx, float *dwte, float *dwpe, int64_t first,
                        int64_t count)
{
    add_rows_of_tokens(e, dx, dwte, first, first + count);
    sum_rows_of_places(e, dx, dwpe, first, first + count);
}
