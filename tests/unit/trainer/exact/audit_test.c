#include "trainer/exact/audit.h"

#include <criterion/criterion.h>
#include <string.h>

#include "trainer/exact/header.h"

enum { TENSORS = 2, LANES = 8, WORDS = 2048 };

static struct audit_pass pass_of(int rank, int world)
{
    struct audit_pass p = {.step = 1, .rank = rank, .all = -1};
    shares_even(&p.shares, LANES, world);
    return p;
}

static bool is_own(const struct audit_pass *p, int lane)
{
    struct lane_run own = shares_run(&p->shares, p->rank);
    return lane >= own.first && lane < own.first + own.count;
}

Test(audit, nobody_audits_alone_or_itself)
{
    struct audit_pass alone = pass_of(0, 1);
    alone.fresh = true;
    cr_assert_eq(audit_lane(&alone), -1);
    for (int world = 2; world <= LANES; world++) {
        for (int rank = 0; rank < world; rank++) {
            struct audit_pass p = pass_of(rank, world);
            p.fresh = true;
            for (p.step = 1; p.step < 40; p.step++) {
                int lane = audit_lane(&p);
                cr_assert(lane >= 0 && lane < LANES && !is_own(&p, lane), "rank %d of %d: %d", rank, world,
                          lane);
            }
        }
    }
}

Test(audit, who_has_room_for_a_lane_always_does)
{
    for (int rank = 0; rank < 3; rank++) {
        struct audit_pass p = pass_of(rank, 3);
        p.room = rank == 0;
        int audits = 0;
        for (p.step = 1; p.step <= 80; p.step++)
            audits += audit_lane(&p) >= 0;
        cr_assert(p.room ? audits == 80 : audits <= 1, "rank %d: %d", rank, audits);
    }
}

Test(audit, else_the_ranks_take_turns_that_cost_less_than_half_a_percent)
{
    enum { STEPS = 100000 };
    for (int world = 2; world <= LANES; world *= 2) {
        bool audited[LANES] = {false};
        int all = 0;
        for (int rank = 0; rank < world; rank++) {
            struct audit_pass p = pass_of(rank, world);
            int own = 0;
            for (p.step = 1; p.step <= STEPS; p.step++) {
                int lane = audit_lane(&p);
                own += lane >= 0;
                if (lane >= 0)
                    audited[lane] = true;
            }
            cr_assert_gt(own, 0, "rank %d of %d never does", rank, world);
            all += own;
        }
        cr_assert_lt(all, STEPS / 200 * (LANES / world), "%d of %d", all, world); /* others wait meanwhile */
        for (int lane = 0; lane < LANES; lane++)
            cr_assert(audited[lane], "lane %d of %d workers", lane, world);
    }
}

/* ---- shares that follow how fast ranks are ---- */

enum { MOST_LANES = 64 };

struct turns {
    int of[RM_WORKERS_MAX];     /* audits by that rank */
    bool looked_at[MOST_LANES]; /* by another one than its owner */
    double cost;                /* steps' lanes, as long as others may wait for all of that */
};

/* Nobody has room, and nobody is new. */
static void take_turns(const struct lane_shares *shares, int64_t from, int steps, struct turns *ret)
{
    *ret = (struct turns){0};
    for (int rank = 0; rank < shares->world; rank++) {
        struct audit_pass p = {.rank = rank, .all = -1, .shares = *shares};
        for (p.step = from; p.step < from + steps; p.step++) {
            int lane = audit_lane(&p);
            if (lane < 0)
                continue;
            cr_assert(lane < shares_lanes(shares) && !is_own(&p, lane), "rank %d: lane %d", rank, lane);
            ret->of[rank]++;
            ret->looked_at[lane] = true;
            ret->cost += 1.0 / shares->count[rank]; /* its lanes take a step's time */
        }
    }
}

static const struct shares_case {
    const char *what;
    struct lane_shares shares;
} shares_cases[] = {
    {"one of four five times as fast", {4, {40, 8, 8, 8}}},
    {"one of two that holds the other up", {2, {63, 1}}},
    {"the other way round", {2, {1, 63}}},
    {"two alike", {2, {32, 32}}},
    {"three alike whose shares have moved", {3, {22, 21, 21}}},
    {"one lane each", {4, {1, 1, 1, 1}}},
    {"three speeds", {3, {2, 4, 1}}},
    {"somebody has none", {3, {5, 0, 3}}},
};

Test(audit, each_lane_of_each_rank_is_looked_at_by_another_at_any_shares_for_less_than_half_a_percent)
{
    enum { STEPS = 400000 };
    struct turns turns;
    for (size_t i = 0; i < sizeof shares_cases / sizeof *shares_cases; i++) {
        const struct shares_case *c = &shares_cases[i];
        take_turns(&c->shares, 1, STEPS, &turns);
        for (int lane = 0; lane < shares_lanes(&c->shares); lane++)
            cr_assert(turns.looked_at[lane], "%s: nobody looks at lane %d", c->what, lane);
        cr_assert(turns.cost < 0.005 * STEPS && turns.cost > 0.001 * STEPS, "%s: %.3f %%", c->what,
                  100 * turns.cost / STEPS);
    }
}

Test(audit, who_has_more_lanes_has_a_turn_more_often_and_all_together_cost_as_much_at_any_step)
{
    struct turns turns;
    const struct lane_shares shares = {4, {40, 8, 8, 8}};
    const int64_t from[] = {1, 1 << 20, (int64_t)1 << 55};
    for (size_t i = 0; i < sizeof from / sizeof *from; i++) {
        take_turns(&shares, from[i], 10000, &turns);
        cr_assert_eq(turns.of[0], 400);
        for (int rank = 1; rank < 4; rank++)
            cr_assert_eq(turns.of[rank], 80, "rank %d: %d", rank, turns.of[rank]);
    }
}

Test(audit, a_disputed_lane_is_everybodys)
{
    for (int rank = 0; rank < 4; rank++) {
        struct audit_pass p = pass_of(rank, 4);
        p.all = 5;
        cr_assert_eq(audit_lane(&p), rank == 2 ? -1 : 5);
    }
}

/* ---- what was found ---- */

struct table {
    uint32_t header[WORDS];
    struct lane_shares shares;
};

/* Each lane came out as itself; nobody has audited any. */
static void begin(struct table *t, int world)
{
    memset(t, 0, sizeof *t);
    shares_even(&t->shares, LANES, world);
    cr_assert_leq(header_count(TENSORS, LANES), WORDS);
    for (int lane = 0; lane < LANES; lane++)
        header_lane_write(t->header, TENSORS, lane,
                          &(struct header_lane){.loss = (float)lane, .proof = 100u + (unsigned)lane});
    for (int r = 0; r < world; r++)
        header_rank_write(t->header, TENSORS, LANES, r, &(struct header_rank){.audited = -1});
}

static void says(struct table *t, int rank, int lane, uint64_t proof)
{
    const struct header_rank said = {.audited = lane, .audited_proof = proof, .audited_loss = (float)lane};
    uint32_t *slot = t->header + header_rank_at(TENSORS, LANES, rank);
    memset(slot, 0, (size_t)(header_rank_at(TENSORS, LANES, 1) - header_rank_at(TENSORS, LANES, 0)) * 4);
    header_rank_write(t->header, TENSORS, LANES, rank, &said);
}

Test(audit, those_who_agree_are_not_noticed)
{
    struct table t;
    struct audit_found found;
    begin(&t, 4);
    cr_assert_not(audit_find(t.header, TENSORS, &t.shares, &found));
    says(&t, 0, 7, 107);
    says(&t, 3, 0, 100);
    cr_assert_not(audit_find(t.header, TENSORS, &t.shares, &found));
}

Test(audit, of_two_nobody_can_say_who_is_right)
{
    struct table t;
    struct audit_found found;
    begin(&t, 4);
    says(&t, 3, 1, 77);
    cr_assert(audit_find(t.header, TENSORS, &t.shares, &found));
    cr_assert_eq(found.lane, 1);
    cr_assert(set_is_empty(found.differ));
    cr_assert_eq(set_count(found.computed), 2);
    cr_assert(set_has(found.computed, 0) && set_has(found.computed, 3), "its owner is rank 0");
}

Test(audit, another_loss_is_another_result)
{
    struct table t;
    struct audit_found found;
    begin(&t, 2);
    header_lane_write(t.header, TENSORS, 1, &(struct header_lane){.loss = 1.5f, .proof = 101});
    says(&t, 1, 1, 101);
    cr_assert(audit_find(t.header, TENSORS, &t.shares, &found));
}

Test(audit, most_name_an_auditor_that_computes_otherwise)
{
    struct table t;
    struct audit_found found;
    begin(&t, 4);
    says(&t, 1, 0, 100);
    says(&t, 2, 0, 99);
    says(&t, 3, 0, 100);
    cr_assert(audit_find(t.header, TENSORS, &t.shares, &found));
    cr_assert(set_equals(found.differ, set_of(2)));
    cr_assert_eq(set_count(found.computed), 4);
}

Test(audit, most_name_an_owner_that_computes_otherwise)
{
    struct table t;
    struct audit_found found;
    begin(&t, 3);
    says(&t, 1, 0, 99);
    says(&t, 2, 0, 99);
    cr_assert(audit_find(t.header, TENSORS, &t.shares, &found));
    cr_assert(set_equals(found.differ, set_of(0)));
}

Test(audit, three_results_of_three_are_no_majority)
{
    struct table t;
    struct audit_found found;
    begin(&t, 3);
    says(&t, 1, 0, 99);
    says(&t, 2, 0, 98);
    cr_assert(audit_find(t.header, TENSORS, &t.shares, &found));
    cr_assert(set_is_empty(found.differ));
    cr_assert_eq(set_count(found.computed), 3);
}

Test(audit, an_owner_is_named_by_the_shares_of_the_step)
{
    struct table t;
    struct audit_found found;
    begin(&t, 3);
    t.shares = (struct lane_shares){.world = 3, .count = {6, 1, 1}}; /* lane 5 is rank 0's */
    says(&t, 1, 5, 99);
    says(&t, 2, 5, 99);
    cr_assert(audit_find(t.header, TENSORS, &t.shares, &found));
    cr_assert(set_equals(found.differ, set_of(0)));
}
