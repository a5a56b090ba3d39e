#include "trainer/exact/verdict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { RANK_WORDS = 3, RANK_PRESENT = 1u << 31 };

static const uint32_t infinity_bits = 0x7f800000;

int64_t verdict_lane_at(int tensors, int lane)
{
    return (int64_t)lane * (tensors + 1);
}

int64_t verdict_rank_at(int tensors, int lanes, int rank)
{
    return verdict_lane_at(tensors, lanes) + (int64_t)rank * RANK_WORDS;
}

int64_t verdict_header_count(int tensors, int lanes)
{
    return verdict_rank_at(tensors, lanes, RM_WORKERS_MAX);
}

void verdict_rank_write(uint32_t *header, int tensors, int lanes, int rank, uint32_t flags,
                        const uint8_t lineage[RM_HASH_BYTES])
{
    uint32_t *slot = header + verdict_rank_at(tensors, lanes, rank);
    slot[0] = (flags & LANES_FLAGS) | RANK_PRESENT;
    memcpy(slot + 1, lineage, 2 * sizeof *slot);
}

bool verdict_k_fits(double h, int lanes, int32_t k)
{
    return ldexp(h, k) * (1 + 0x1p-20) + lanes < 0x1p31;
}

int32_t verdict_k_for(double h, int lanes, int32_t old)
{
    if (!(h > 0))
        return old;
    int exponent;
    double wanted = ldexp(h, EXACT_HEADROOM);
    frexp(wanted, &exponent);
    int32_t k = 32 - exponent; /* wanted * 2^k >= 2^31: too large by at least one */
    if (k > EXACT_K_MAX)
        k = EXACT_K_MAX;
    while (k > -EXACT_K_MAX && !verdict_k_fits(wanted, lanes, k))
        k--;
    return k > -EXACT_K_MAX ? k : -EXACT_K_MAX;
}

static bool finite_bits(uint32_t word)
{
    return (word & infinity_bits) != infinity_bits;
}

static double number(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

/* ---- lineage ---- */

static bool same_lineage(const uint32_t *ranks, int a, int b)
{
    return !memcmp(ranks + a * RANK_WORDS + 1, ranks + b * RANK_WORDS + 1, 2 * sizeof *ranks);
}

static bool present(const uint32_t *ranks, int r)
{
    return ranks[r * RANK_WORDS] & RANK_PRESENT;
}

static int agreeing(const uint32_t *ranks, int with)
{
    int n = 0;
    for (int r = 0; r < RM_WORKERS_MAX; r++)
        n += present(ranks, r) && same_lineage(ranks, r, with);
    return n;
}

/* Bits of the ranks that are not of the largest group; of equal groups the one with the lowest rank counts
 * as the largest. */
static uint64_t find_minority(const uint32_t *ranks)
{
    int best = -1, best_size = 0;
    for (int r = 0; r < RM_WORKERS_MAX; r++) {
        int size = present(ranks, r) ? agreeing(ranks, r) : 0;
        if (size > best_size) {
            best = r;
            best_size = size;
        }
    }
    uint64_t minority = 0;
    for (int r = 0; r < RM_WORKERS_MAX; r++)
        if (present(ranks, r) && !same_lineage(ranks, r, best))
            minority |= (uint64_t)1 << r;
    return minority;
}

/* ---- values ---- */

/* Finds the first word of the lanes' part that is NaN or Inf; false where there is none. */
static bool find_not_finite(struct verdict *out, const uint32_t *header, int tensors, int lanes)
{
    for (int lane = 0; lane < lanes; lane++) {
        const uint32_t *slot = header + verdict_lane_at(tensors, lane);
        for (int i = 0; i <= tensors; i++) {
            if (finite_bits(slot[i]))
                continue;
            out->lane = lane;
            out->tensor = i - 1;
            return true;
        }
    }
    return false;
}

/* Mean over lanes, added in lane order, of one column of the lanes' part: 0 the loss, 1 + t a maximum. */
static double lane_mean(const uint32_t *header, int tensors, int lanes, int column)
{
    double sum = 0;
    for (int lane = 0; lane < lanes; lane++)
        sum += number(header[verdict_lane_at(tensors, lane) + column]);
    return sum / lanes;
}

/* Too large for 32 bits; or so small that the integers would say little, where a larger k exists. */
static bool must_rescale(double h, int lanes, int32_t k, int32_t best)
{
    return !verdict_k_fits(h, lanes, k) || (k < best && ldexp(h, k) < ldexp(1, EXACT_COARSE));
}

static void decide_scale(struct verdict *out, const uint32_t *header, int tensors, int lanes,
                         const int32_t *k_used)
{
    int32_t next[RM_TENSORS_MAX];
    out->kind = VERDICT_FITS;
    for (int t = 0; t < tensors; t++) {
        double h = lane_mean(header, tensors, lanes, 1 + t);
        next[t] = verdict_k_for(h, lanes, k_used[t]);
        out->k[t] = k_used[t];
        if (!must_rescale(h, lanes, k_used[t], next[t]))
            continue;
        out->k[t] = next[t];
        out->rescaled++;
        out->kind = VERDICT_RESCALE;
    }
    if (out->kind == VERDICT_FITS)
        memcpy(out->k, next, (size_t)tensors * sizeof *next);
}

void verdict_decide(struct verdict *out, const uint32_t *header, int tensors, int lanes, bool fast,
                    const int32_t *k_used)
{
    const uint32_t *ranks = header + verdict_rank_at(tensors, lanes, 0);
    memset(out, 0, sizeof *out);
    out->lane = out->tensor = -1;
    for (int r = 0; r < RM_WORKERS_MAX; r++)
        out->flags |= ranks[r * RANK_WORDS] & LANES_FLAGS;
    out->minority = find_minority(ranks);
    if (out->minority) {
        out->kind = VERDICT_LINEAGE;
    } else if (find_not_finite(out, header, tensors, lanes)) {
        out->kind = VERDICT_NOT_FINITE;
    } else {
        out->loss = lane_mean(header, tensors, lanes, 0);
        if (fast)
            memcpy(out->k, k_used, (size_t)tensors * sizeof *k_used);
        else
            decide_scale(out, header, tensors, lanes, k_used);
    }
}

void verdict_sentence(const struct verdict *v, const struct model_layout *layout, int64_t step,
                      char out[RM_WHY_MAX])
{
    if (v->tensor < 0)
        snprintf(out, RM_WHY_MAX, "step %lld: the loss is not finite in lane %d", (long long)step, v->lane);
    else
        snprintf(out, RM_WHY_MAX, "step %lld: the gradient of %s is not finite in lane %d", (long long)step,
                 layout->tensor[v->tensor].name, v->lane);
}
