/* The arrays of a state that lies in its memfd, as pointers. */
#ifndef RM_TEST_NEAR_ARRAYS_H
#define RM_TEST_NEAR_ARRAYS_H

#include "trainer/state/state.h"

struct near_arrays {
    float *params, *m, *v; // (count) each
    int64_t count;
};

static inline float *near_array(const struct state_arrays *a, const char *name)
{
    return memory_near(a->in, state_array_named(a, name)->at);
}

static inline struct near_arrays near_arrays(struct state *s)
{
    struct state_arrays a = state_arrays(s);
    return (struct near_arrays){near_array(&a, "params"), near_array(&a, "m"), near_array(&a, "v"), a.count};
}

static inline uint32_t *near_words(const struct state_update *u)
{
    return memory_near(u->in, u->words);
}

#endif
