#include "common/notice/page.h"

#include <criterion/criterion.h>
#include <string.h>

static struct notice_page page;
static struct error err;

static int read_text(const char *text)
{
    return notice_page_read(text, strlen(text), 500 * RM_S, &page, &err);
}

Test(page, what_one_writes_the_other_reads_with_the_time_that_is_left)
{
    struct watch watch;
    struct str text = str_init(NOTICE_PAGE_MAX);
    watch_init(&watch, 7, 0);
    notices_take(&watch.notices, &(struct notice){.source = NOTICE_AWS_SPOT,
                                                  .cause = NOTICE_CAUSE_RECLAIM,
                                                  .certainty = NOTICE_WILL,
                                                  .until = 110 * RM_S});
    notices_take(&watch.notices, &(struct notice){.source = NOTICE_AWS_REBALANCE,
                                                  .cause = NOTICE_CAUSE_RECLAIM,
                                                  .certainty = NOTICE_MAY,
                                                  .until = RM_NEVER,
                                                  .id = "r-1"});
    watch.pool = (struct machine_pool){.heard = 2, .part = {"p3.2xlarge", "us-east-1a"}};
    notice_page_write(&watch, 10 * RM_S, &text);
    cr_assert_eq(read_text(str_text(&text)), 0, "%s", err.text);
    cr_assert_eq(page.revision, 7);
    cr_assert_not(page.complete);
    cr_assert_str_eq(page.pool, "p3.2xlarge/us-east-1a");
    cr_assert_eq(page.notices.count, 2);
    cr_assert_eq(notices_first(&page.notices)->source, NOTICE_AWS_SPOT);
    cr_assert_eq(notices_first(&page.notices)->until, 600 * RM_S);
    cr_assert_eq(page.notices.at[1].until, RM_NEVER);
    cr_assert_str_eq(page.notices.at[1].id, "r-1");
    str_clear(&text);
}

/* To somebody who hears both, in either order. */
Test(page, what_the_machines_agent_tells_and_what_is_heard_from_the_metadata_is_one_notice)
{
    struct watch watch;
    struct notices all = {.count = 0};
    struct str text = str_init(NOTICE_PAGE_MAX);
    struct notice azure = {.source = NOTICE_AZURE,
                           .cause = NOTICE_CAUSE_MAINTENANCE,
                           .certainty = NOTICE_WILL,
                           .until = 800 * RM_S,
                           .id = "602d9444-d2cd-49c7-8624-8643e7171297"};
    for (int network_first = 0; network_first < 2; network_first++) {
        all.count = 0;
        watch_init(&watch, 1, 0);
        notices_take(&watch.notices, &azure);
        str_reset(&text);
        notice_page_write(&watch, 500 * RM_S, &text);
        cr_assert_eq(read_text(str_text(&text)), 0, "%s", err.text);
        const struct notice *told = notices_first(&page.notices);
        notices_take(&all, network_first ? told : &azure);
        cr_assert_eq(notices_take(&all, network_first ? &azure : told), NOTICE_SAME);
        cr_assert_eq(all.count, 1, "one machine, one cause, one event");
        cr_assert_eq(notice_change(told, notices_first(&all)), NOTICE_SAME);
        cr_assert(notices_withdraw(&all, NOTICE_AZURE, azure.id, NULL), "and one word takes it back");
    }
    str_clear(&text);
}

Test(page, of_a_year_no_more_is_believed_than_twice_what_the_vendor_promises)
{
    cr_assert_eq(
        read_text(
            "{\"revision\":1,\"complete\":true,\"notices\":[{\"source\":\"aws-spot\",\"cause\":\"reclaim\","
            "\"certainty\":\"will\",\"leftMs\":31536000000,\"id\":\"\"}]}"),
        0);
    cr_assert_eq(page.notices.at[0].until, 740 * RM_S);
    cr_assert_str_eq(page.pool, "", "an older release knows of none");
}

Test(page, a_source_of_a_newer_release_is_passed_over)
{
    cr_assert_eq(
        read_text("{\"revision\":1,\"complete\":true,\"notices\":[{\"source\":\"moon\",\"cause\":\"reclaim\","
                  "\"certainty\":\"will\",\"leftMs\":1,\"id\":\"\"}]}"),
        0);
    cr_assert_eq(page.notices.count, 0);
}

Test(page, who_has_heard_news_or_waited_for_it_asks_again_at_once_and_nobody_asks_without_a_pause_for_ever)
{
    static const struct {
        bool news;
        rm_time took, pause;
    } cases[] = {{true, RM_MS, 0},
                 {true, RM_MS, 0},
                 {false, RM_MS, 100 * RM_MS},
                 {false, 55 * RM_S, 0},
                 {true, 0, 0},
                 {true, 0, 0},
                 {true, 0, 0},
                 {true, 0, 0},
                 {true, 0, 0},
                 {true, 0, 0},
                 {true, 0, 0},
                 {true, 0, 100 * RM_MS},
                 {true, 0, 100 * RM_MS},
                 {true, 20 * RM_S, 0},
                 {true, 0, 0},
                 {false, 200 * RM_MS, 0},
                 {false, 99 * RM_MS, 100 * RM_MS}};
    struct notice_pace pace = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        cr_assert_eq(notice_page_pause(&pace, cases[i].news, cases[i].took), cases[i].pause, "answer %zu", i);
}

static struct watch watch_of(int64_t revision)
{
    struct watch watch;
    watch_init(&watch, revision, 0);
    return watch;
}

/* As a node looks at it: when it is asked, and then each NOTICE_PAGE_LOOK. */
Test(page, who_knows_the_newest_word_waits_for_another_one_and_has_its_answer_within_a_minute)
{
    struct watch watch = watch_of(7);
    rm_time waited = 0;
    while (waited < 3600 * RM_S && notice_page_waits(&watch, "after=7", waited))
        waited += NOTICE_PAGE_LOOK;
    cr_assert_leq(waited, 60 * RM_S);
    cr_assert_gt(waited, 50 * RM_S, "not asked again all the time");
    watch.revision++;
    cr_assert_not(notice_page_waits(&watch, "after=7", RM_S), "there is news");
}

Test(page, who_can_not_wait_or_knows_something_else_is_answered_at_once)
{
    static const char *const queries[] = {"",          "after",
                                          "after=",    "after=x",
                                          "after=6",   "after=8",
                                          "after=-7",  "after=7x",
                                          "after= 7",  "before=7",
                                          "7",         "x&after=7",
                                          "after=7&x", "after=99999999999999999999"};
    struct watch watch = watch_of(7);
    cr_assert_not(notice_page_waits(&watch, "after=7", RM_NEVER));
    for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++)
        cr_assert_not(notice_page_waits(&watch, queries[i], 0), "%s", queries[i]);
}

Test(page, what_a_stranger_says_is_refused_with_a_sentence)
{
    static const char *const bad[] = {
        "",
        "hello",
        "[]",
        "{}",
        "{\"revision\":-1,\"complete\":true,\"notices\":[]}",
        "{\"revision\":1,\"notices\":[]}",
        "{\"revision\":1,\"complete\":true,\"notices\":[7]}",
        "{\"revision\":1,\"complete\":true,\"notices\":[{\"source\":\"aws-spot\"}]}",
        "{\"revision\":1,\"complete\":true,\"notices\":[{\"source\":\"aws-spot\",\"cause\":\"reclaim\","
        "\"certainty\":\"sure\","
        "\"id\":\"\"}]}",
        "{\"revision\":1,\"complete\":true,\"notices\":[{\"source\":\"aws-spot\",\"cause\":\"reclaim\","
        "\"certainty\":\"will\","
        "\"id\":\"a\\nb\"}]}",
        "{\"revision\":1,\"complete\":true,\"notices\":[{\"source\":\"aws-spot\",\"cause\":\"reclaim\","
        "\"certainty\":\"will\","
        "\"leftMs\":-5,\"id\":\"\"}]}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_assert_lt(read_text(bad[i]), 0, "%s", bad[i]);
        cr_assert(strstr(err.text, "no agent of a machine answers there"), "%s", err.text);
        cr_assert_eq(err.code, ERR_PROTOCOL);
    }
}
