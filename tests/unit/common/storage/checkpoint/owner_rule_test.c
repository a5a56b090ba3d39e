/* Who takes a place in a bucket, and who stays out of it. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "common/base/str.h"
#include "common/storage/checkpoint/owner_rule.h"

static const rm_time lease = 15 * RM_S, look = 3 * RM_S;

/* The claim with this number and content, as one of several runs sees it. */
static struct owner_claim claim_of(int number, int beat)
{
    struct owner_claim claim = {.number = number};
    snprintf(claim.tag, sizeof claim.tag, "beat %d", beat);
    return claim;
}

Test(owner_rule, what_is_free_is_taken_with_a_number_that_was_never_used)
{
    struct owner_rule rule = {.lease = lease};
    struct owner_claim none = {0}, released = claim_of(7, 1), dead = claim_of(8, 1);
    released.released = dead.dead = true;
    cr_assert_eq(owner_rule_step(&rule, &none, 0), OWNER_TAKES);
    cr_assert_eq(owner_rule_next(&rule, &none), 1);
    cr_assert_eq(owner_rule_step(&rule, &released, 0), OWNER_TAKES);
    cr_assert_eq(owner_rule_next(&rule, &released), 8);
    cr_assert_eq(owner_rule_step(&rule, &dead, 0), OWNER_TAKES);
    owner_rule_taken(&rule, 9);
    cr_assert_eq(owner_rule_step(&rule, &none, 0), OWNER_TAKES, "somebody has removed all claims");
    cr_assert_eq(owner_rule_next(&rule, &none), 10, "an old one may still be refreshed");
}

Test(owner_rule, who_does_not_answer_for_a_lease_is_followed_and_not_sooner)
{
    struct owner_rule rule = {.lease = lease};
    struct owner_claim other = claim_of(3, 1), next = claim_of(4, 1);
    cr_assert_eq(owner_rule_step(&rule, &other, 0), OWNER_ASKS);
    cr_assert_eq(owner_rule_step(&rule, &other, RM_S), OWNER_ASKS, "the question did not come through");
    owner_rule_asked(&rule, &other, 2 * RM_S);
    cr_assert_eq(owner_rule_step(&rule, &other, 2 * RM_S + lease - 1), OWNER_WAITS);
    cr_assert_eq(owner_rule_step(&rule, &next, 2 * RM_S + lease), OWNER_ASKS,
                 "another one has it now, whom nobody has asked");
    cr_assert_eq(owner_rule_step(&rule, &other, 2 * RM_S + lease), OWNER_TAKES);
}

Test(owner_rule, who_answers_is_asked_again_after_pauses_that_double)
{
    static const int leases[] = {1, 2, 4, 8, 16, 16, 16};
    struct owner_rule rule = {.lease = lease};
    rm_time now = 0;
    for (int i = 0; i < 7; i++) {
        struct owner_claim before = claim_of(3, i), after = claim_of(3, i + 1);
        cr_assert_eq(owner_rule_step(&rule, &before, now), OWNER_ASKS, "%d", i);
        owner_rule_asked(&rule, &before, now);
        now += look;
        cr_assert_eq(owner_rule_step(&rule, &after, now), OWNER_STAYS_OUT, "%d", i);
        now += leases[i] * lease;
        cr_assert_eq(owner_rule_step(&rule, &after, now - 1), OWNER_STAYS_OUT, "%d", i);
    }
    struct owner_claim silent = claim_of(3, 7);
    cr_assert_eq(owner_rule_step(&rule, &silent, now), OWNER_ASKS);
    owner_rule_asked(&rule, &silent, now);
    cr_assert_eq(owner_rule_step(&rule, &silent, now + lease), OWNER_TAKES, "it has died since");
}

Test(owner_rule, of_one_run_the_process_that_starts_takes_it_and_the_one_before_leaves_it)
{
    struct owner_rule before = {.lease = lease}, starts = {.lease = lease};
    struct owner_claim first = claim_of(1, 1), second = claim_of(2, 1);
    owner_rule_taken(&before, 1);
    first.of_run = second.of_run = true;
    cr_assert_eq(owner_rule_step(&starts, &first, 0), OWNER_TAKES);
    cr_assert_eq(owner_rule_step(&before, &second, 0), OWNER_FOLLOWED);
    second.released = true;
    cr_assert_eq(owner_rule_step(&before, &second, 0), OWNER_TAKES, "somebody has to answer for the run");
    second.own = true;
    cr_assert_eq(owner_rule_step(&before, &second, 0), OWNER_HOLDS);
    cr_assert_eq(before.number, 2, "it was made by a call that nobody heard the end of");
}

/* One store, two runs that look every 3 s, each cut off from time to time. */
static struct {
    int number, owner, beat, question, takeovers;
} place;

static struct owner_claim seen_by(int side)
{
    struct owner_claim claim = claim_of(place.number, place.beat);
    claim.own = claim.of_run = place.owner == side;
    return claim;
}

static void look_once(struct owner_rule *rule, int side, rm_time now)
{
    struct owner_claim claim = seen_by(side);
    switch (owner_rule_step(rule, &claim, now)) {
    case OWNER_HOLDS:
        place.beat += place.question == place.number;
        place.question = 0;
        break;
    case OWNER_ASKS:
        place.question = claim.number;
        owner_rule_asked(rule, &claim, now);
        break;
    case OWNER_TAKES:
        place.number = owner_rule_next(rule, &claim);
        place.owner = side;
        place.takeovers++;
        place.beat++;
        owner_rule_taken(rule, place.number);
        break;
    default:
        break;
    }
}

Test(owner_rule, between_two_that_live_a_place_does_not_go_to_and_fro)
{
    struct owner_rule side[2] = {{.lease = lease}, {.lease = lease}};
    place.owner = -1;
    look_once(&side[0], 0, 0);
    for (rm_time now = look; now < 86400 * RM_S; now += look) {
        bool cut_off = now < 60 * RM_S; /* the first one alone, for a minute */
        if (!cut_off)
            look_once(&side[0], 0, now);
        look_once(&side[1], 1, now + RM_S);
    }
    cr_assert_eq(place.takeovers, 2, "the first one's, and the second one's when the first did not answer");
    cr_assert_eq(place.owner, 1);
    cr_assert_eq(owner_rule_step(&side[0], (struct owner_claim[]){seen_by(0)}, 86400 * RM_S),
                 OWNER_STAYS_OUT);
}
