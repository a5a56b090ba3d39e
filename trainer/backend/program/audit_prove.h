/* What a lane's words would sum up to, without a place for them: the checksum that its owner has of them
 * (trainer/exact/proof.h), where both computed the same. */
#ifndef RM_BACKEND_PROGRAM_AUDIT_PROVE_H
#define RM_BACKEND_PROGRAM_AUDIT_PROVE_H

#include <stdint.h>

#include "common/os/pool.h"
#include "trainer/state/state.h"

/* k (tensors): of the pass, NULL the state's own. grads (parameters): of one lane. Sums are not `fast`. */
uint64_t audit_prove(struct state *state, struct pool *pool, const int32_t *k, const float *grads);

#endif
