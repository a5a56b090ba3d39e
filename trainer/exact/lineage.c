#include "trainer/exact/lineage.h"

#include "common/base/assert.h"
#include "common/os/crypto.h"

/* Every field has a fixed size or its length in front, so that no two inputs look alike. */
static void add_number(struct sha256 *h, uint64_t value)
{
    sha256_add(h, &value, sizeof value);
}

void lineage_first(const char *compared, size_t compared_length, const uint8_t data[RM_HASH_BYTES],
                   const float *params, int64_t count, uint8_t out[RM_HASH_BYTES])
{
    struct sha256 *h = sha256_open();
    RM_ASSERT(count >= 0, "a lineage of %lld parameters", (long long)count);
    add_number(h, compared_length);
    sha256_add(h, compared, compared_length);
    sha256_add(h, data, RM_HASH_BYTES);
    add_number(h, (uint64_t)count);
    sha256_add(h, params, (size_t)count * sizeof *params);
    sha256_finish(h, out);
}

void lineage_next(const uint8_t in[RM_HASH_BYTES], const struct lineage_step *add, uint8_t out[RM_HASH_BYTES])
{
    struct sha256 *h = sha256_open();
    RM_ASSERT(add->step >= 1 && add->tensors >= 0, "a lineage of step %lld, of %d tensors",
              (long long)add->step, (int)add->tensors);
    sha256_add(h, in, RM_HASH_BYTES);
    add_number(h, (uint64_t)add->step);
    add_number(h, (uint64_t)add->tensors);
    sha256_add(h, add->sums, (size_t)add->tensors * sizeof *add->sums);
    sha256_add(h, add->k, (size_t)add->tensors * sizeof *add->k);
    sha256_add(h, &add->norm, sizeof add->norm);
    sha256_add(h, &add->clip, sizeof add->clip);
    sha256_finish(h, out);
}
