/* A small job for the tests of trainer/state and trainer/backend/cpu/sums: made-up gradients that depend on
 * the weights, and a ring of states in one process whose reduction is a loop. */
#ifndef RM_TEST_EXACT_CASE_H
#define RM_TEST_EXACT_CASE_H

#include "tests/unit/trainer/state/near_arrays.h"
#include "trainer/backend/cpu/sums/update.h"

enum { CASE_LANES = 7, CASE_WORLD_MAX = 8 };

/* Of what a test repeats at many places, one in so many is tried where the processor is emulated. */
#ifdef RM_EMULATED
enum { CASE_SHARE = 10 };
#else
enum { CASE_SHARE = 1 };
#endif

const struct model_layout *case_layout(void); /* odd sizes; wte spans three pieces */
struct update_rule case_rule(void);           /* 12 steps, warm-up 2, clips */
int case_memfd(void);

/* The gradient of a lane at a step, as a pure function of the weights, and its loss. */
void case_gradient(const float *params, int64_t step, int lane, float *grads, float *loss);

/* Fills a state that holds nothing with the first weights. */
void case_first_weights(struct state *s);

struct ring {
    int world;
    bool fast;
    struct pool *pool;
    int fd[CASE_WORLD_MAX];
    struct state *state[CASE_WORLD_MAX];
    struct lanes *lanes[CASE_WORLD_MAX];
    struct lanes_sums sums[CASE_WORLD_MAX]; /* of the newest pass */
    int owner[CASE_LANES];                  /* rank of each lane */
    uint32_t flags[CASE_WORLD_MAX];
    int passes; /* counted by ring_step */
    /* NULL, or changes a gradient on its way. */
    void (*meddle)(int64_t step, int lane, float *grads, float *loss);
};

/* World states with the first weights; threads 0: no pool. */
void ring_open(struct ring *r, int world, bool fast, int threads);
void ring_close(struct ring *r);
/* One pass and the reduction of its header over the ranks; k NULL or of a rescaled pass. All ranks' verdicts
 * are compared; returns rank 0's. */
void ring_pass(struct ring *r, const int32_t *k, struct verdict *out);
/* The two halves of it: the lanes of one rank, and what all headers together say. */
void ring_lanes(struct ring *r, int rank, const int32_t *k);
void ring_decide(struct ring *r, struct verdict *out);
/* Of a pass that fits: the reduction of the words. */
void ring_words(struct ring *r);
/* Puts the sum of the first `world` ranks' words into `out` (words_count). */
void ring_sum(const struct ring *r, uint32_t *out);
/* A whole step on every rank (those in `missing` reduce, but do not commit). Returns rank 0's info. */
struct update_info ring_step(struct ring *r, uint64_t missing);
/* Deals the lanes to the ranks anew, by a seed. */
void ring_deal(struct ring *r, uint64_t seed);

/* Hash of everything in a state: arrays, step, k, lineage. All zero where nothing is held. */
struct case_hash {
    uint8_t bytes[RM_HASH_BYTES];
};
struct case_hash case_hash(struct state *s);
bool case_same(struct case_hash a, struct case_hash b);

#endif
