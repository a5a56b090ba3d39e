/* A small model with its pool, weights and tokens, as the tests of the whole model need it. */
#ifndef RM_TESTS_MODEL_WORLD_H
#define RM_TESTS_MODEL_WORLD_H

#include "trainer/backend/cpu/model/gpt.h"

struct world {
    struct model_layout layout;
    int sequences;
    struct pool *pool;
    struct gpt *g;
    float *params, *grads;
    int32_t *tokens;
};

/* Weights far from their start, so that every part of the model has its say in the gradients; gradients all
 * NaN, so that what is not overwritten shows. */
struct world world_open(const struct model_shape *shape, const struct gpt_options *options, int threads);
void world_close(struct world *w);

/* The loss of the tokens; fills grads. Any failure ends the test. */
float world_lane(struct world *w);

/* The parameters as doubles (the caller frees them), and the lane's loss in double precision. */
double *world_doubles(const struct world *w);
double world_reference(const struct world *w, const double *params);

/* The gradient of parameter `at` by central differences in double precision. */
double world_difference(const struct world *w, double *params, int64_t at);

#endif
