/* A backend with a state of its own, of the first weights of a small model, that trains alone: what the tests
 * of each kind of who computes (trainer/backend/backend.h) begin with. What fails where nothing may fail ends
 * the test with the backend's sentence. */
#ifndef RM_TEST_ONE_H
#define RM_TEST_ONE_H

#include "common/base/limits.h"
#include "trainer/backend/backend.h"
#include "trainer/state/state.h"

enum { ONE_LANES = 3, ONE_SEQUENCES = 2, ONE_SEED = 7 };

typedef int one_opener(struct backend **ret, const struct backend_options *options, struct error *err);

struct one {
    struct backend *b;
    const struct backend_ops *ops;
    struct state *state;
    const struct model_layout *layout; /* the options'; must outlive it */
    int fd;
};

/* All that a state is made of, and its lineage. */
struct one_bits {
    uint8_t of[RM_HASH_BYTES];
};

extern const struct backend_rule one_rule;
extern const int one_in_order[ONE_LANES], one_backwards[ONE_LANES];

/* fast: of a state whose words are fp32. */
struct one one_open(one_opener *open, const struct backend_options *options, bool fast);
/* On a state's memfd, which is the result's: with what it holds, or nothing yet. */
struct one one_attach(one_opener *open, const struct backend_options *options, bool fast, int fd);
void one_first(struct one *o); /* holds the first weights */
void one_close(struct one *o);

size_t one_bytes(const struct model_layout *layout);         /* of its parameters in fp32 */
float *one_first_weights(const struct model_layout *layout); // (parameters); heap, the caller's
struct far one_params(struct one *o);
/* Of a lane, ONE_SEQUENCES * (context + 1); valid until this thread's next call. */
const int32_t *one_tokens(const struct model_layout *layout, int lane);

/* A pass over the lanes in that order; k: of a rescaled one, or NULL. */
void one_pass(struct one *o, const int *order, const int32_t *k, struct backend_sums *sums);
/* Up to the commit: the words of the next step stand. */
void one_decided(struct one *o, const int *order);
struct backend_info one_step(struct one *o, const int *order);
/* What one holds of its newest update is given to another, who lacks it, as if it had been received. */
void one_give_update(struct one *from, struct one *to);

struct one_bits one_bits(const struct one *o);
bool one_same(struct one_bits a, struct one_bits b);

#endif
