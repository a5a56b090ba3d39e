/* Decides from the header's sum what all ranks do with a pass, with which exponents another one would fit,
 * and says why a step is not made. */
#include "trainer/exact/verdict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"

static const uint32_t infinity_bits = 0x7f800000;

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

struct said {
    const uint32_t *header;
    int tensors, lanes;
    bool present[RM_WORKERS_MAX];
};

static bool agree(const struct said *s, int a, int b)
{
    return header_ranks_agree(s->header, s->tensors, s->lanes, a, b);
}

static int agreeing(const struct said *s, int with)
{
    int n = 0;
    for (int r = 0; r < RM_WORKERS_MAX; r++)
        n += s->present[r] && agree(s, r, with);
    return n;
}

/* The ranks that are not of the largest group; of equal groups the one with the lowest rank counts
 * as the largest. */
static struct worker_set find_minority(const struct said *s)
{
    int best = -1, best_size = 0;
    for (int r = 0; r < RM_WORKERS_MAX; r++) {
        int size = s->present[r] ? agreeing(s, r) : 0;
        if (size > best_size) {
            best = r;
            best_size = size;
        }
    }
    struct worker_set minority = {0};
    RM_ASSERT(best_size >= 0 && best_size <= RM_WORKERS_MAX, "%d ranks agree", best_size);
    for (int r = 0; r < RM_WORKERS_MAX; r++)
        if (s->present[r] && !agree(s, r, best))
            set_add(&minority, r);
    return minority;
}

/* Who is there, and what they want together. */
static uint32_t hear_ranks(struct said *s)
{
    struct header_rank rank;
    uint32_t any = 0, all = LANES_ALL;
    bool some = false;
    for (int r = 0; r < RM_WORKERS_MAX; r++) {
        s->present[r] = header_rank_read(s->header, s->tensors, s->lanes, r, &rank);
        if (!s->present[r])
            continue;
        any |= rank.flags & LANES_ANY;
        all &= rank.flags;
        some = true;
    }
    return some ? any | all : 0;
}

/* ---- values ---- */

/* Finds the first word of the lanes' part that is NaN or Inf; false where there is none. */
static bool find_not_finite(struct verdict *out, const uint32_t *header, int tensors, int lanes)
{
    for (int lane = 0; lane < lanes; lane++) {
        const uint32_t *slot = header + header_lane_at(tensors, lane);
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
    RM_ASSERT(lanes > 0 && column >= 0 && column <= tensors, "column %d of %d tensors, of %d lanes", column,
              tensors, lanes);
    for (int lane = 0; lane < lanes; lane++)
        sum += number(header[header_lane_at(tensors, lane) + column]);
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
    RM_ASSERT(tensors >= 0 && tensors <= RM_TENSORS_MAX, "%d tensors", tensors);
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
    RM_ASSERT((out->rescaled > 0) == (out->kind == VERDICT_RESCALE), "%d tensors are to be rescaled",
              out->rescaled);
    if (out->kind == VERDICT_FITS)
        memcpy(out->k, next, (size_t)tensors * sizeof *next);
}

void verdict_decide(struct verdict *out, const uint32_t *header, int tensors, int lanes, bool fast,
                    const int32_t *k_used)
{
    struct said said = {.header = header, .tensors = tensors, .lanes = lanes};
    memset(out, 0, sizeof *out);
    out->lane = out->tensor = -1;
    out->flags = hear_ranks(&said);
    out->minority = find_minority(&said);
    RM_ASSERT(lanes > 0 && lanes <= RM_LANES_MAX, "a step of %d lanes", lanes);
    for (int lane = 0; lane < lanes; lane++)
        out->tokens += header_lane_read(header, tensors, lane).tokens;
    if (!set_is_empty(out->minority)) {
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
    RM_ASSERT(v->kind == VERDICT_NOT_FINITE && v->tensor < layout->tensors,
              "tensor %d of %d is told, of verdict %d", v->tensor, layout->tensors, (int)v->kind);
    if (v->tensor < 0)
        snprintf(out, RM_WHY_MAX, "step %lld: the loss is not finite in lane %d", (long long)step, v->lane);
    else
        snprintf(out, RM_WHY_MAX, "step %lld: the gradient of %s is not finite in lane %d", (long long)step,
                 layout->tensor[v->tensor].name, v->lane);
}
