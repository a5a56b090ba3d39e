#include "common/notice/metadata.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static struct metadata_words words;
static struct error err;

static const int64_t noon = 1800014400000; /* 2027-01-15T12:00:00Z */

static int spot(const char *text)
{
    return metadata_read_aws_spot(text, strlen(text), &words, &err);
}

static int rebalance(const char *text)
{
    return metadata_read_aws_rebalance(text, strlen(text), &words, &err);
}

static int scheduled(const char *text)
{
    return metadata_read_aws_maintenance(text, strlen(text), &words, &err);
}

static int preempted(const char *text)
{
    return metadata_read_gce_preempted(text, strlen(text), &words, &err);
}

static int maintenance(const char *text)
{
    return metadata_read_gce_maintenance(text, strlen(text), &words, &err);
}

static int azure(const char *text)
{
    return metadata_read_azure(text, strlen(text), "gpu_3", noon, &words, &err);
}

Test(metadata, a_spot_machine_that_is_taken_back_is_there_until_its_time)
{
    cr_assert_eq(spot("{\"action\": \"terminate\", \"time\": \"2027-01-15T12:02:00Z\"}"), 0, "%s", err.text);
    cr_assert_eq(words.count, 1);
    cr_assert_eq(words.word[0].certainty, NOTICE_WILL);
    cr_assert(words.word[0].timed);
    cr_assert_eq(words.word[0].until_ms, noon + 120000);
    cr_assert_eq(spot("{\"action\": \"stop\", \"time\": \"2027-01-15T12:02:00Z\"}"), 0);
    cr_assert_eq(words.count, 1);
}

Test(metadata, one_that_hibernates_does_so_at_once)
{
    cr_assert_eq(spot("{\"action\": \"hibernate\", \"time\": \"2027-01-15T12:02:00Z\"}"), 0);
    cr_assert_eq(words.word[0].certainty, NOTICE_WILL);
    cr_assert_not(words.word[0].timed);
}

Test(metadata, a_rebalance_recommendation_is_a_may_whose_time_is_no_deadline)
{
    cr_assert_eq(rebalance("{\"noticeTime\": \"2027-01-15T12:02:00Z\"}"), 0);
    cr_assert_eq(words.word[0].certainty, NOTICE_MAY);
    cr_assert_not(words.word[0].timed);
    cr_assert_lt(rebalance("{\"noticeTime\": \"soon\"}"), 0);
}

Test(metadata, maintenance_may_come_in_days_within_the_hour_and_after_its_earliest_moment)
{
    cr_assert_eq(scheduled("[{\"Code\": \"system-reboot\", \"State\": \"active\", \"EventId\": \"e-1\","
                           " \"NotBefore\": \"17 Jan 2027 12:00:00 GMT\"},"
                           "{\"Code\": \"instance-retirement\", \"State\": \"active\", \"EventId\": \"e-2\","
                           " \"NotBefore\": \"15 Jan 2027 12:59:59 GMT\"},"
                           "{\"Code\": \"system-reboot\", \"State\": \"active\", \"EventId\": \"e-3\","
                           " \"NotBefore\": \"15 Jan 2027 11:55:00 GMT\","
                           " \"NotAfter\": \"15 Jan 2027 13:55:00 GMT\"},"
                           "{\"Code\": \"instance-stop\", \"State\": \"canceled\"},"
                           "{\"Code\": \"instance-stop\", \"State\": \"completed\"}]"),
                 0, "%s", err.text);
    cr_assert_eq(words.count, 3);
    for (int i = 0; i < words.count; i++) {
        cr_assert_eq(words.word[i].certainty, NOTICE_MAY, "%d", i);
        cr_assert_not(words.word[i].timed);
        cr_assert_eq(words.word[i].cause, NOTICE_CAUSE_MAINTENANCE);
    }
    cr_assert_str_eq(words.word[0].id, "e-1");
    cr_assert_eq(scheduled("[]"), 0);
    cr_assert_eq(words.count, 0);
}

Test(metadata, google_says_true_or_false_and_who_is_migrated_stays)
{
    cr_assert_eq(preempted("FALSE\n"), 0);
    cr_assert_eq(words.count, 0);
    cr_assert_eq(preempted("TRUE"), 0);
    cr_assert_eq(words.word[0].certainty, NOTICE_WILL);
    cr_assert_eq(maintenance("NONE"), 0);
    cr_assert_eq(words.count, 0);
    cr_assert_eq(maintenance("MIGRATE_ON_HOST_MAINTENANCE\n"), 0);
    cr_assert_eq(words.count, 0);
    cr_assert_eq(maintenance("TERMINATE_ON_HOST_MAINTENANCE"), 0);
    cr_assert_eq(words.count, 1);
    cr_assert_eq(words.word[0].cause, NOTICE_CAUSE_MAINTENANCE);
}

#define EVENT(type, status, resources, before)                                                               \
    "{\"EventId\": \"A-1\", \"EventType\": \"" type                                                          \
    "\", \"ResourceType\": \"VirtualMachine\", \"Resources\": "                                              \
    "[" resources "], \"EventStatus\": \"" status "\", \"NotBefore\": \"" before "\"}"
#define EVENTS(events) "{\"DocumentIncarnation\": 1, \"Events\": [" events "]}"
#define SOON           "Fri, 15 Jan 2027 12:00:30 GMT"

Test(metadata, of_azures_events_those_that_name_this_machine_count)
{
    cr_assert_eq(azure(EVENTS(EVENT("Preempt", "Scheduled", "\"gpu_2\"", SOON))), 0, "%s", err.text);
    cr_assert_eq(words.count, 0, "another's");
    cr_assert_eq(azure(EVENTS(EVENT("Preempt", "Scheduled", "\"gpu_3\"", SOON))), 0);
    cr_assert_eq(words.count, 1);
    cr_assert_eq(words.word[0].until_ms, noon + 30000);
    cr_assert(words.word[0].startable);
    cr_assert_str_eq(words.word[0].id, "A-1");
    cr_assert_eq(azure(EVENTS(EVENT("Redeploy", "Scheduled", "\"gpu_2\", \"gpu_3\"", SOON))), 0);
    cr_assert_not(words.word[0].startable, "it names another machine, too");
    cr_assert_eq(words.word[0].cause, NOTICE_CAUSE_MAINTENANCE);
    cr_assert_eq(azure(EVENTS("")), 0);
    cr_assert_eq(words.count, 0, "cancelled: it is not there any more");
}

/* Workers refuse a page with such an id, and with it a true notice beside it. */
Test(metadata, an_id_is_made_one_that_a_page_can_hold)
{
    static const char odd[] = "{\"EventId\": \"A \\\"1\\n\", \"EventType\": \"Preempt\", \"ResourceType\": "
                              "\"VirtualMachine\", \"Resources\": [\"gpu_3\"], \"EventStatus\": "
                              "\"Scheduled\", \"NotBefore\": \"" SOON "\"}";
    char body[512];
    snprintf(body, sizeof body, "{\"DocumentIncarnation\": 1, \"Events\": [%s]}", odd);
    cr_assert_eq(azure(body), 0, "%s", err.text);
    cr_assert_str_eq(words.word[0].id, "A__1_");
    cr_assert_not(words.word[0].startable, "it is not the name by which Azure knows it");
}

Test(metadata, what_is_refused_is_told_in_one_line)
{
    cr_assert_lt(azure(EVENTS(EVENT("Preempt", "Sched\\nuled", "\"gpu_3\"", SOON))), 0);
    cr_assert(strstr(err.text, "Sched_uled"), "%s", err.text);
}

Test(metadata, an_event_that_has_started_is_under_way_and_one_that_only_pauses_is_none)
{
    cr_assert_eq(azure(EVENTS(EVENT("Reboot", "Started", "\"gpu_3\"", ""))), 0, "%s", err.text);
    cr_assert_eq(words.word[0].certainty, NOTICE_WILL);
    cr_assert_not(words.word[0].timed);
    cr_assert_not(words.word[0].startable);
    cr_assert_eq(azure(EVENTS(EVENT("Freeze", "Scheduled", "\"gpu_3\"", SOON))), 0);
    cr_assert_eq(words.count, 0);
    cr_assert_eq(azure(EVENTS(EVENT("Preempt", "Scheduled", "\"gpu_3\"", ""))), -1, "no time, and not begun");
}

/* NotBefore is no more than its earliest time. */
Test(metadata, an_event_that_could_have_begun_and_has_not_may_come)
{
    static const char *const before[] = {"Fri, 15 Jan 2027 12:00:00 GMT", "Fri, 15 Jan 2027 10:00:00 GMT"};
    static char text[512];
    for (size_t i = 0; i < 2; i++) {
        snprintf(text, sizeof text, EVENTS(EVENT("Reboot", "Scheduled", "\"gpu_3\"", "%s")), before[i]);
        cr_assert_eq(azure(text), 0, "%s", err.text);
        cr_assert_eq(words.word[0].certainty, NOTICE_MAY, "%s", before[i]);
        cr_assert_not(words.word[0].timed);
    }
    cr_assert_eq(azure(EVENTS(EVENT("Reboot", "Scheduled", "\"gpu_3\"", SOON))), 0);
    cr_assert_eq(words.word[0].certainty, NOTICE_WILL);
    cr_assert_eq(words.word[0].until_ms, noon + 30000);
}

Test(metadata, what_no_vendor_writes_is_refused_by_name)
{
    static const struct {
        int (*read)(const char *text);
        const char *text, *named;
    } wrong[] = {
        {spot, "", "spot/instance-action"},
        {spot, "<html>", "spot/instance-action"},
        {spot, "[]", "spot/instance-action"},
        {spot, "{\"action\": \"dance\", \"time\": \"2027-01-15T12:02:00Z\"}", "action is \"dance\""},
        {spot, "{\"action\": \"terminate\"}", "time is \"\""},
        {spot, "{\"action\": \"terminate\", \"time\": 7}", "time is"},
        {rebalance, "null", "recommendations/rebalance"},
        {scheduled, "{}", "maintenance/scheduled"},
        {scheduled, "[7]", "State"},
        {scheduled, "[{\"State\": \"active\", \"NotBefore\": \"tomorrow\"}]", "NotBefore"},
        {preempted, "", "instance/preempted"},
        {preempted, "MAYBE", "MAYBE"},
        {preempted, "TRUE and much more", "instance/preempted"},
        {maintenance, "TERMINATE", "TERMINATE"},
        {azure, "[]", "scheduledevents"},
        {azure, "{}", "no list of Events"},
        {azure, "{\"Events\": {}}", "no list of Events"},
        {azure, "{\"Events\": [7]}", "an event is"},
        {azure, EVENTS(EVENT("Preempt", "Pending", "\"gpu_3\"", SOON)), "EventStatus"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        err = (struct error){0};
        cr_assert_lt(wrong[i].read(wrong[i].text), 0, "%s", wrong[i].text);
        cr_assert_eq(err.code, ERR_PROTOCOL, "%s", wrong[i].text);
        cr_assert(strstr(err.text, wrong[i].named), "%s: %s", wrong[i].text, err.text);
    }
}

Test(metadata, a_nul_byte_in_a_word_is_refused_and_many_events_fit_in_their_room)
{
    cr_assert_lt(metadata_read_gce_preempted("TRUE\0", 5, &words, &err), 0);
    cr_assert_eq(
        azure(EVENTS(
            EVENT("Preempt", "Started", "\"gpu_3\"", "") ",\n" EVENT("Preempt", "Started", "\"gpu_3\"", "") "," EVENT(
                "Reboot", "Started", "\"gpu_3\"",
                "") "," EVENT("Reboot", "Started", "\"gpu_3\"",
                              "") "," EVENT("Reboot", "Started", "\"gpu_3\"",
                                            "") "," EVENT("Reboot", "Started", "\"gpu_3\"",
                                                          "") "," EVENT("Reboot", "Started", "\"gpu_3\"",
                                                                        "") "," EVENT("Reboot", "Started",
                                                                                      "\"gpu_3\"",
                                                                                      "") "," EVENT("Reboot",
                                                                                                    "Started",
                                                                                                    "\"gpu_"
                                                                                                    "3\"",
                                                                                                    ""))),
        0, "%s", err.text);
    cr_assert_eq(words.count, METADATA_WORDS_MAX);
}
