#include "common/notice/notice.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "common/base/str.h"
#include "common/notice/taint.h"

static struct notice word(enum notice_source source, rm_time until)
{
    const struct notice_kind *kind = notice_kind(source);
    return (struct notice){
        .source = source, .cause = kind->cause, .certainty = kind->certainty, .until = until};
}

static enum notice_news take(struct notices *n, enum notice_source source, rm_time until)
{
    struct notice told = word(source, until);
    return notices_take(n, &told);
}

Test(notice, each_source_has_a_name_of_its_own_that_leads_back_to_it)
{
    for (int i = 0; i < NOTICE_SOURCES; i++) {
        const struct notice_kind *kind = notice_kind((enum notice_source)i);
        cr_assert(kind->name && *kind->name, "%d", i);
        cr_assert_eq(notice_source_named(kind->name), i, "%s", kind->name);
        cr_assert(*notice_cause_name(kind->cause));
    }
    cr_assert_eq(notice_source_named("a meteor"), NOTICE_SOURCES);
}

Test(notice, two_minutes_by_a_clock_that_is_ten_minutes_wrong_are_two_minutes)
{
    rm_time now = 1000 * RM_S;
    int64_t said = 1800000000000, wrong = said + 600000;
    cr_assert_eq(notice_until(NOTICE_AWS_SPOT, said + 120000, said, now), now + 120 * RM_S);
    cr_assert_eq(notice_until(NOTICE_AWS_SPOT, wrong + 120000, wrong, now), now + 120 * RM_S);
}

Test(notice, a_moment_that_is_over_is_now_and_one_far_ahead_is_twice_what_the_vendor_promises)
{
    rm_time now = 1000 * RM_S;
    int64_t said = 1800000000000, year = 365LL * 86400 * 1000;
    cr_assert_eq(notice_until(NOTICE_AWS_SPOT, said - 1, said, now), now);
    cr_assert_eq(notice_until(NOTICE_AWS_SPOT, said + year, said, now), now + 240 * RM_S);
    cr_assert_eq(notice_until(NOTICE_AZURE, INT64_MAX, said, now), now + 1800 * RM_S);
    cr_assert_eq(notice_until(NOTICE_AWS_SPOT, INT64_MIN, said, now), now);
    cr_assert_eq(notice_until(NOTICE_CORDON, said + year, said, now), now + 3600 * RM_S,
                 "nothing is promised");
    cr_assert_eq(notice_most(NOTICE_AWS_SPOT), 240 * RM_S);
    cr_assert_eq(notice_most(NOTICE_CORDON), 3600 * RM_S);
}

Test(notice, one_cause_that_two_sources_tell_of_is_one_notice_with_the_nearer_time)
{
    struct notices n = {0};
    cr_assert_eq(take(&n, NOTICE_AWS_SPOT, 120 * RM_S), NOTICE_NEW);
    cr_assert_eq(take(&n, NOTICE_NTH_SPOT, RM_NEVER), NOTICE_SAME);
    cr_assert_eq(take(&n, NOTICE_AWS_SPOT, 130 * RM_S), NOTICE_SAME,
                 "a time that moves away is not believed");
    cr_assert_eq(take(&n, NOTICE_NTH_SPOT, 110 * RM_S), NOTICE_SOONER);
    cr_assert_eq(notices_first(&n)->until, 110 * RM_S);
    cr_assert_eq(n.count, 2);
}

Test(notice, the_earliest_time_wins_whatever_came_first)
{
    struct notices n = {0};
    take(&n, NOTICE_AUTOSCALER, 600 * RM_S);
    cr_assert_eq(take(&n, NOTICE_GCE_MAINTENANCE, 15 * RM_S), NOTICE_NEW, "of another cause");
    cr_assert_eq(notices_first(&n)->source, NOTICE_GCE_MAINTENANCE);
    take(&n, NOTICE_AWS_SPOT, 100 * RM_S);
    cr_assert_eq(notices_first(&n)->source, NOTICE_GCE_MAINTENANCE);
}

Test(notice, what_will_come_beats_what_may_come_sooner)
{
    struct notices n = {0};
    cr_assert_eq(take(&n, NOTICE_AWS_REBALANCE, 10 * RM_S), NOTICE_NEW);
    cr_assert_eq(notices_first(&n)->certainty, NOTICE_MAY);
    cr_assert_eq(take(&n, NOTICE_AWS_SPOT, 120 * RM_S), NOTICE_SURER);
    cr_assert_eq(notices_first(&n)->source, NOTICE_AWS_SPOT);
}

Test(notice, the_same_event_becomes_surer_and_stays_so)
{
    struct notices n = {0};
    struct notice told = word(NOTICE_AWS_MAINTENANCE, RM_NEVER);
    text_copy(told.id, sizeof told.id, "instance-event-1");
    cr_assert_eq(notices_take(&n, &told), NOTICE_NEW);
    cr_assert_eq(notices_take(&n, &told), NOTICE_SAME);
    told.certainty = NOTICE_WILL;
    told.until = 50 * RM_S;
    cr_assert_eq(notices_take(&n, &told), NOTICE_SURER);
    told.certainty = NOTICE_MAY;
    told.until = RM_NEVER;
    cr_assert_eq(notices_take(&n, &told), NOTICE_SAME);
    cr_assert_eq(notices_first(&n)->certainty, NOTICE_WILL);
    cr_assert_eq(n.count, 1);
}

Test(notice, karpenters_taint_that_is_taken_back_leaves_nothing_behind)
{
    struct notices n = {0};
    struct notice gone;
    take(&n, NOTICE_KARPENTER, RM_NEVER);
    cr_assert_not(notices_withdraw(&n, NOTICE_GKE, "", &gone), "nobody said so");
    cr_assert(notices_withdraw(&n, NOTICE_KARPENTER, "", &gone));
    cr_assert_eq(gone.source, NOTICE_KARPENTER);
    cr_assert_null(notices_first(&n));
}

Test(notice, who_has_not_asked_everybody_yet_ends_nothing_and_who_has_ends_what_it_does_not_tell)
{
    struct notices n = {0}, told = {0};
    take(&n, NOTICE_AWS_SPOT, 120 * RM_S);
    notices_hear(&n, &told, false);
    cr_assert_eq(n.count, 1);
    take(&told, NOTICE_AWS_REBALANCE, RM_NEVER);
    notices_hear(&n, &told, false);
    cr_assert_eq(n.count, 2);
    cr_assert_eq(notices_first(&n)->source, NOTICE_AWS_SPOT);
    notices_hear(&n, &told, true);
    cr_assert_eq(n.count, 1);
    cr_assert_eq(notices_first(&n)->source, NOTICE_AWS_REBALANCE);
}

Test(notice, what_another_source_still_tells_of_is_not_over)
{
    struct notices n = {0};
    take(&n, NOTICE_AWS_SPOT, 120 * RM_S);
    take(&n, NOTICE_NTH_SPOT, RM_NEVER);
    cr_assert_not(notices_withdraw(&n, NOTICE_NTH_SPOT, "", NULL));
    cr_assert_eq(notices_first(&n)->until, 120 * RM_S);
    cr_assert(notices_withdraw(&n, NOTICE_AWS_SPOT, "", NULL));
    cr_assert_eq(n.count, 0);
}

/* Azure tells of events by their ids: as many as it likes. */
Test(notice, of_more_than_there_is_room_for_the_most_urgent_are_kept)
{
    struct notices n = {0};
    for (int i = 0; i < 3 * NOTICES_MAX; i++) {
        struct notice told = word(NOTICE_AZURE, (1000 - i) * RM_S);
        snprintf(told.id, sizeof told.id, "event-%d", i);
        told.certainty = i % 3 ? NOTICE_MAY : NOTICE_WILL;
        notices_take(&n, &told);
    }
    cr_assert_eq(n.count, NOTICES_MAX);
    for (int i = 0; i < NOTICES_MAX; i++)
        cr_assert_eq(n.at[i].certainty, NOTICE_WILL);
    cr_assert_str_eq(notices_first(&n)->id, "event-45");
    struct notice late = word(NOTICE_AZURE, RM_NEVER);
    text_copy(late.id, sizeof late.id, "late");
    cr_assert_eq(notices_take(&n, &late), NOTICE_SAME);
    cr_assert_eq(n.count, NOTICES_MAX);
}

/* And each source that is not the metadata's is some taint's: a row that nothing makes is none. */
Test(notice, taints_say_what_may_and_what_will_come)
{
    static const struct {
        const char *key;
        enum notice_certainty certainty;
    } cases[] = {
        {"aws-node-termination-handler/spot-itn", NOTICE_WILL},
        {"aws-node-termination-handler/rebalance-recommendation", NOTICE_MAY},
        {"aws-node-termination-handler/asg-lifecycle-termination", NOTICE_MAY},
        {"aws-node-termination-handler/scheduled-maintenance", NOTICE_MAY},
        {"karpenter.sh/disrupted", NOTICE_MAY},
        {"ToBeDeletedByClusterAutoscaler", NOTICE_WILL},
        {"DeletionCandidateOfClusterAutoscaler", NOTICE_MAY},
        {"cloud.google.com/impending-node-termination", NOTICE_MAY},
        {"remediator.kubernetes.azure.com/unschedulable", NOTICE_WILL},
        {"node.kubernetes.io/out-of-service", NOTICE_WILL},
        {"node.kubernetes.io/unschedulable", NOTICE_MAY},
    };
    bool made[NOTICE_SOURCES] = {false};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        enum notice_source source = notice_of_taint(cases[i].key);
        cr_assert_neq(source, NOTICE_SOURCES, "%s", cases[i].key);
        cr_assert_eq(notice_kind(source)->certainty, cases[i].certainty, "%s", cases[i].key);
        made[source] = true;
    }
    for (int i = NOTICE_AZURE + 1; i < NOTICE_SOURCES; i++)
        cr_assert(made[i], "%s", notice_kind((enum notice_source)i)->name);
    cr_assert_eq(notice_of_taint("nvidia.com/gpu"), NOTICE_SOURCES);
    cr_assert_eq(notice_of_taint("aws-node-termination-handler/"), NOTICE_SOURCES);
}

static struct notice may(enum notice_source source, rm_time until)
{
    struct notice n = word(source, until);
    n.certainty = NOTICE_MAY;
    return n;
}

Test(notice, what_changed_for_who_knew_the_word_before)
{
    const struct notice soon = word(NOTICE_AWS_SPOT, 100 * RM_S), sooner = word(NOTICE_AWS_SPOT, 90 * RM_S),
                        again = word(NOTICE_AWS_SPOT, 101 * RM_S), untimed = word(NOTICE_AWS_SPOT, RM_NEVER),
                        other = word(NOTICE_NTH_SPOT, 100 * RM_S),
                        perhaps = may(NOTICE_AWS_REBALANCE, RM_NEVER),
                        service = may(NOTICE_AWS_MAINTENANCE, RM_NEVER),
                        later = word(NOTICE_GCE_MAINTENANCE, 200 * RM_S);
    const struct {
        const struct notice *was, *is;
        enum notice_news news;
    } table[] = {
        {NULL, NULL, NOTICE_SAME},
        {NULL, &perhaps, NOTICE_NEW},
        {&perhaps, &perhaps, NOTICE_SAME},
        {&perhaps, &soon, NOTICE_SURER},
        {&soon, &perhaps, NOTICE_MILDER},
        {&soon, &other, NOTICE_NEW},
        {&soon, &sooner, NOTICE_SOONER},
        {&soon, &again, NOTICE_SAME},
        {&again, &soon, NOTICE_SAME},
        {&sooner, &soon, NOTICE_LATER},
        {&untimed, &soon, NOTICE_SOONER},
        {&soon, &untimed, NOTICE_LATER},
        {&untimed, &untimed, NOTICE_SAME},
        {&soon, NULL, NOTICE_GONE},
        {&perhaps, &service, NOTICE_INSTEAD},
        {&soon, &later, NOTICE_INSTEAD},
        {&later, &soon, NOTICE_NEW},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        cr_assert_eq(notice_change(table[i].was, table[i].is), table[i].news, "row %zu", i);
}

Test(notice, each_cause_and_each_certainty_has_a_name_of_its_own)
{
    for (int i = 0; i < NOTICE_CAUSES; i++)
        cr_assert_eq(notice_cause_named(notice_cause_name((enum notice_cause)i)), i);
    cr_assert_eq(notice_cause_named("a whim"), NOTICE_CAUSES);
    cr_assert_str_eq(notice_certainty_name(NOTICE_MAY), "may");
    cr_assert_str_eq(notice_certainty_name(NOTICE_WILL), "will");
}
