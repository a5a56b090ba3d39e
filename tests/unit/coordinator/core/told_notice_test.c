/* What workers say of their machines' end, and what of it is told. */
#include <string.h>

#include "coordinator/core/rdzv_state.h"
#include "tests/unit/coordinator/core/story.h"

static const rm_time untold = -1;

static void says(struct story *s, int w, enum msg_notice_word word, const char *source, const char *cause,
                 rm_time left)
{
    struct message m;
    message_init(&m, MSG_NOTICED);
    m.noticed.word = word;
    m.noticed.left = left;
    text_copy(m.noticed.source, sizeof m.noticed.source, source);
    text_copy(m.noticed.cause, sizeof m.noticed.cause, cause);
    forget(s);
    hear(s, w, &m);
}

static void begin(struct story *s)
{
    story_begin(s, story_settings(1));
    first_come(s, 2);
}

static bool told_any(const struct story *s)
{
    return said(s, "noticeReceived") || said(s, "noticeWithdrawn");
}

Test(noticed, a_may_and_then_a_will_are_told_once_each_with_what_is_left)
{
    struct story s;
    begin(&s);
    says(&s, 1, NOTICED_MAY, "aws-rebalance", "reclaim", untold);
    cr_assert(said(&s, "\"event\":\"noticeReceived\",\"time\":0,\"worker\":1,\"step\":0,\"source\":\"aws-"
                       "rebalance\",\"cause\":\"reclaim\",\"certainty\":\"may\"}"),
              "%s", str_text(&s.log));
    says(&s, 1, NOTICED_MAY, "aws-rebalance", "reclaim", untold);
    cr_assert_not(told_any(&s), "%s", str_text(&s.log));
    says(&s, 1, NOTICED_WILL, "aws-spot", "reclaim", 118 * RM_S);
    cr_assert(said(&s, "noticeReceived") &&
                  said(&s, "\"source\":\"aws-spot\",\"cause\":\"reclaim\",\"certainty\":\"will\","
                           "\"leftSeconds\":118.0}"),
              "%s", str_text(&s.log));
    cr_assert_not(said(&s, "noticeWithdrawn"), "what may come has become what will");
    story_end(&s);
}

Test(noticed, what_is_said_again_to_another_connection_is_told_no_more)
{
    struct story s;
    begin(&s);
    says(&s, 1, NOTICED_WILL, "gce-preempted", "reclaim", 30 * RM_S);
    cr_assert(said(&s, "noticeReceived"));
    after(&s, RM_S);
    closed(&s, 1);
    hello(&s, 1, -1);
    says(&s, 1, NOTICED_WILL, "gce-preempted", "reclaim", 29 * RM_S);
    cr_assert_not(told_any(&s), "%s", str_text(&s.log));
    story_end(&s);
}

Test(noticed, what_is_withdrawn_is_told_by_the_name_that_it_had_and_only_where_it_stood)
{
    struct story s;
    begin(&s);
    says(&s, 0, NOTICED_GONE, "", "", untold);
    cr_assert_not(told_any(&s), "as of a worker whose coordinator's predecessor had been told");
    says(&s, 0, NOTICED_WILL, "azure-scheduled-event", "maintenance", 600 * RM_S);
    says(&s, 0, NOTICED_GONE, "", "", untold);
    cr_assert(said(&s, "noticeWithdrawn") &&
                  said(&s, "\"source\":\"azure-scheduled-event\",\"cause\":\"maintenance\""),
              "%s", str_text(&s.log));
    says(&s, 0, NOTICED_GONE, "", "", untold);
    cr_assert_not(told_any(&s));
    says(&s, 0, NOTICED_WILL, "azure-scheduled-event", "maintenance", 600 * RM_S);
    cr_assert(said(&s, "noticeReceived"), "it is another one");
    story_end(&s);
}

Test(noticed, a_will_that_is_withdrawn_while_a_may_stands_is_both)
{
    struct story s;
    begin(&s);
    says(&s, 0, NOTICED_WILL, "gce-maintenance", "maintenance", 60 * RM_S);
    says(&s, 0, NOTICED_MAY, "aws-rebalance", "reclaim", untold);
    const char *gone = strstr(str_text(&s.log), "noticeWithdrawn");
    cr_assert(gone && strstr(gone, "noticeReceived"), "%s", str_text(&s.log));
    story_end(&s);
}

/* The first is cancelled, and the other stood behind it all the time; one that comes before it does not end
 * it. */
Test(noticed, what_is_withdrawn_is_told_though_another_one_stands)
{
    struct story s;
    begin(&s);
    says(&s, 0, NOTICED_WILL, "azure-scheduled-event", "reclaim", 100 * RM_S);
    says(&s, 0, NOTICED_WILL, "azure-scheduled-event", "maintenance", 50 * RM_S);
    cr_assert(said(&s, "noticeReceived") && !said(&s, "noticeWithdrawn"), "%s", str_text(&s.log));
    says(&s, 0, NOTICED_WILL, "azure-scheduled-event", "reclaim", 100 * RM_S);
    cr_assert(said(&s, "noticeWithdrawn") && said(&s, "\"cause\":\"maintenance\""), "%s", str_text(&s.log));
    says(&s, 1, NOTICED_MAY, "aws-rebalance", "reclaim", untold);
    says(&s, 1, NOTICED_MAY, "aws-maintenance", "maintenance", untold);
    const char *gone = strstr(str_text(&s.log), "noticeWithdrawn");
    cr_assert(gone && strstr(gone, "noticeReceived"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(noticed, a_moment_that_comes_nearer_is_shown_and_not_told)
{
    struct story s;
    begin(&s);
    says(&s, 0, NOTICED_WILL, "aws-spot", "reclaim", 100 * RM_S);
    says(&s, 0, NOTICED_WILL, "aws-spot", "reclaim", 40 * RM_S);
    cr_assert_not(told_any(&s), "%s", str_text(&s.log));
    cr_assert_eq(s.st->worker[0].notice.until, s.now + 40 * RM_S);
    story_end(&s);
}

Test(noticed, of_a_time_no_more_than_twice_the_vendors_promise_is_believed)
{
    struct story s;
    begin(&s);
    says(&s, 0, NOTICED_WILL, "gce-preempted", "reclaim", 365 * 86400 * RM_S);
    cr_assert_eq(s.st->worker[0].notice.until, s.now + 60 * RM_S);
    story_end(&s);
}

Test(noticed, a_source_or_a_cause_that_nobody_knows_is_no_word)
{
    struct story s;
    begin(&s);
    says(&s, 0, NOTICED_WILL, "a-meteor", "reclaim", 100 * RM_S);
    cr_assert_not(told_any(&s) || s.st->worker[0].noticed, "%s", str_text(&s.log));
    says(&s, 0, NOTICED_WILL, "aws-spot", "\",\"x\":\"", 100 * RM_S);
    cr_assert_not(told_any(&s) || s.st->worker[0].noticed, "%s", str_text(&s.log));
    story_end(&s);
}

Test(noticed, another_process_stands_on_another_machine)
{
    struct story s;
    begin(&s);
    says(&s, 1, NOTICED_WILL, "aws-spot", "reclaim", 100 * RM_S);
    s.attempt[1] = 2;
    s.trainer[1] = 900;
    hello(&s, 1, -1);
    cr_assert_not(s.st->worker[1].noticed);
    says(&s, 1, NOTICED_WILL, "aws-spot", "reclaim", 100 * RM_S);
    cr_assert(said(&s, "noticeReceived"), "%s", str_text(&s.log));
    story_end(&s);
}

/* A worker leaves by its own word alone. */
Test(noticed, nobody_stops_by_a_notice)
{
    struct story s;
    story_begin(&s, story_settings(1));
    first_come(&s, 2);
    listed(&s, 0, -1, -1);
    listed(&s, 1, -1, -1);
    after(&s, 200 * RM_MS);
    ready(&s, 0, 0);
    ready(&s, 1, 0);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    says(&s, 1, NOTICED_WILL, "aws-spot", "reclaim", 10 * RM_S);
    says(&s, 0, NOTICED_MAY, "aws-rebalance", "reclaim", untold);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING);
    cr_assert_not(said(&s, "send"), "%s", str_text(&s.log));
    story_end(&s);
}
