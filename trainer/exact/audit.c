#include "trainer/exact/audit.h"

#include <string.h>

#include "common/base/assert.h"
#include "common/base/prng.h"
#include "trainer/exact/header.h"

enum { LANES_A_TURN = 250 }; /* lanes of its own, for each rank of the ring, between two audits: 0.4 % */

/* Every 250 * world lanes of its own, counted from 0 by step; each rank begins at another one of them. */
static bool has_turn(const struct audit_pass *p, int own)
{
    int64_t between = (int64_t)LANES_A_TURN * p->shares.world;
    RM_ASSERT(own >= 0 && p->step >= 0, "%d lanes of step %lld", own, (long long)p->step);
    return (p->step % between * own + (int64_t)p->rank * LANES_A_TURN) % between < own;
}

int audit_lane(const struct audit_pass *p)
{
    struct lane_run own = shares_run(&p->shares, p->rank);
    int others = shares_lanes(&p->shares) - own.count, world = p->shares.world;
    RM_ASSERT(p->rank >= 0 && p->rank < world, "rank %d of %d audits", p->rank, world);
    if (p->all >= 0)
        return p->all >= own.first && p->all < own.first + own.count ? -1 : p->all;
    if (world < 2 || others < 1 || !(p->fresh || p->room || has_turn(p, own.count)))
        return -1;
    uint64_t chance = (uint64_t)p->step * RM_WORKERS_MAX + (uint64_t)p->rank; /* the same for all who ask */
    int lane = (int)prng_below(&chance, (uint64_t)others);
    return lane < own.first ? lane : lane + own.count;
}

/* ---- what was found ---- */

struct result {
    uint64_t proof;
    uint32_t loss; /* bits */
};

static struct result result_of(uint64_t proof, float loss)
{
    struct result r = {.proof = proof};
    memcpy(&r.loss, &loss, sizeof r.loss);
    return r;
}

static bool same(const struct result *a, const struct result *b)
{
    return a->proof == b->proof && a->loss == b->loss;
}

struct heard {
    int world;
    struct result result[RM_WORKERS_MAX];
    int lane[RM_WORKERS_MAX]; /* that the rank audited, -1 none */
};

static void hear_ranks(struct heard *h, const uint32_t *header, int tensors, int lanes)
{
    struct header_rank rank;
    *h = (struct heard){0};
    while (h->world < RM_WORKERS_MAX && header_rank_read(header, tensors, lanes, h->world, &rank)) {
        h->lane[h->world] = rank.audited < lanes ? rank.audited : -1;
        h->result[h->world] = result_of(rank.audited_proof, rank.audited_loss);
        h->world++;
    }
}

/* Whose result of that lane is that rank's. */
static struct worker_set agreeing(const struct heard *h, int lane, int with)
{
    struct worker_set found = {0};
    RM_ASSERT(with >= 0 && with < h->world && h->world <= RM_WORKERS_MAX, "rank %d of %d", with, h->world);
    for (int r = 0; r < h->world; r++)
        if (h->lane[r] == lane && same(&h->result[r], &h->result[with]))
            set_add(&found, r);
    return found;
}

/* Its owner's word and its auditors' are worth the same. */
static void judge_lane(struct heard *h, int owner, const struct result *owners, struct audit_found *out)
{
    struct worker_set most = {0};
    RM_ASSERT(owner >= 0 && owner < h->world, "lane %d is rank %d's, of %d", out->lane, owner, h->world);
    h->lane[owner] = out->lane;
    h->result[owner] = *owners;
    for (int r = 0; r < h->world; r++) {
        struct worker_set with = agreeing(h, out->lane, r);
        if (h->lane[r] == out->lane)
            set_add(&out->computed, r);
        if (set_count(with) > set_count(most))
            most = with;
    }
    if (2 * set_count(most) > set_count(out->computed))
        out->differ = set_minus(out->computed, most);
    RM_ASSERT(set_has(out->computed, owner) && set_is_empty(set_minus(out->differ, out->computed)),
              "%d differ of %d", set_count(out->differ), set_count(out->computed));
}

bool audit_find(const uint32_t *header, int tensors, const struct lane_shares *shares,
                struct audit_found *out)
{
    int lanes = shares_lanes(shares);
    struct heard heard;
    hear_ranks(&heard, header, tensors, lanes);
    for (int r = 0; r < heard.world; r++) {
        if (heard.lane[r] < 0)
            continue;
        struct header_lane lane = header_lane_read(header, tensors, heard.lane[r]);
        struct result owners = result_of(lane.proof, lane.loss);
        int owner = shares_owner(shares, heard.lane[r]);
        if (owner < 0 || owner >= heard.world || same(&owners, &heard.result[r]))
            continue;
        *out = (struct audit_found){.lane = heard.lane[r]};
        judge_lane(&heard, owner, &owners, out);
        return true;
    }
    return false;
}
