#include "trainer/exact/lineage.h"

#include <criterion/criterion.h>
#include <string.h>

static uint8_t seen[32][RM_HASH_BYTES];
static int seen_count;

static void must_be_new(const uint8_t hash[RM_HASH_BYTES], const char *what)
{
    for (int i = 0; i < seen_count; i++)
        cr_assert(memcmp(seen[i], hash, RM_HASH_BYTES) != 0, "%s does not count", what);
    memcpy(seen[seen_count++], hash, RM_HASH_BYTES);
}

static void first(const char *compared, uint8_t data_byte, float weight, const char *what)
{
    const uint8_t data[RM_HASH_BYTES] = {data_byte};
    const float params[3] = {1, 2, weight};
    uint8_t hash[RM_HASH_BYTES];
    lineage_first(compared, strlen(compared), data, params, 3, hash);
    must_be_new(hash, what);
}

Test(lineage, the_first_covers_job_data_and_weights)
{
    first("{}", 1, 3, "");
    first("{ }", 1, 3, "the job");
    first("{}", 2, 3, "the data");
    first("{}", 1, -3, "a weight");
}

static void next(uint8_t before, struct lineage_step add, uint64_t sum, int32_t k, const char *what)
{
    uint8_t hash[RM_HASH_BYTES] = {before};
    const uint64_t sums[2] = {7, sum};
    const int32_t ks[2] = {20, k};
    add.sums = sums;
    add.k = ks;
    lineage_next(hash, &add, hash);
    must_be_new(hash, what);
}

Test(lineage, a_step_covers_where_it_came_from_and_everything_that_it_did)
{
    const struct lineage_step usual = {.step = 5, .tensors = 2, .norm = 1.5, .clip = 0.5};
    struct lineage_step other = usual;
    next(1, usual, 8, 21, "");
    next(2, usual, 8, 21, "the state before");
    next(1, usual, 9, 21, "the reduced words");
    next(1, usual, 8, 22, "k");
    other.step = 6;
    next(1, other, 8, 21, "the step");
    other = usual;
    other.norm = 1.25;
    next(1, other, 8, 21, "the norm");
    other = usual;
    other.clip = 1;
    next(1, other, 8, 21, "the clip factor");
}
