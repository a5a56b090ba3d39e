/* A machine's metadata asked question by question, in virtual time. */
#include "common/notice/watch.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "common/base/str.h"

static struct watch w;
static struct watch_question q;
static char say[WATCH_SAY_MAX];
static rm_time now;

static const int64_t noon = 1800014400000; /* 2027-01-15T12:00:00Z */
static int64_t skew;                       /* of this machine's clock */

static void arrange(void)
{
    now = 100 * RM_S;
    skew = 0;
    watch_init(&w, 1, now);
}

/* The next question, when it is due. */
static const char *asks(void)
{
    if (watch_deadline(&w) == RM_NEVER)
        return "";
    if (watch_deadline(&w) > now)
        now = watch_deadline(&w);
    cr_assert(watch_ask(&w, now, &q));
    return q.path;
}

static void hears(int slot, int status, const char *body)
{
    struct watch_answer a = {.status = status,
                             .why = status ? "" : "nobody listens",
                             .body = body,
                             .length = strlen(body),
                             .said_ms = noon,
                             .wall_ms = noon + skew};
    watch_answer(&w, slot, &a, now, say);
}

static void hears_google(int slot, const char *body, const char *etag)
{
    struct watch_answer a = {.status = 200,
                             .why = "",
                             .body = body,
                             .length = strlen(body),
                             .google = true,
                             .said_ms = noon,
                             .wall_ms = noon};
    text_copy(a.etag, sizeof a.etag, etag);
    watch_answer(&w, slot, &a, now, say);
}

static void be_aws(void)
{
    cr_assert_str_eq(asks(), "/latest/api/token");
    cr_assert_str_eq(q.method, "PUT");
    hears(0, 200, "TOKEN==");
    cr_assert_eq(w.cloud, WATCH_AWS);
    for (int i = 0; i < 3; i++) {
        cr_assert(strncmp(asks(), "/latest/meta-data/", 18) == 0, "%s", q.path);
        cr_assert_str_eq(q.header, "X-aws-ec2-metadata-token: TOKEN==");
    }
}

/* GCE's probe, and its two questions without and with waiting. */
static void be_google(void)
{
    asks();
    hears(0, 404, "");
    cr_assert_str_eq(asks(), "/computeMetadata/v1/instance/id");
    cr_assert_str_eq(q.header, "Metadata-Flavor: Google");
    hears_google(0, "452003", "0");
    cr_assert_eq(w.cloud, WATCH_GCE);
    cr_assert_str_eq(asks(), "/computeMetadata/v1/instance/preempted");
    cr_assert_str_eq(asks(), "/computeMetadata/v1/instance/maintenance-event");
}

static void be_azure(void)
{
    asks();
    hears(0, 404, "");
    asks();
    hears(0, 400, "");
    cr_assert(strstr(asks(), "/metadata/instance/compute/name"));
    hears(0, 200, "gpu_3");
    cr_assert_eq(w.cloud, WATCH_AZURE);
    cr_assert_str_eq(asks(), "/metadata/scheduledevents?api-version=2020-07-01");
}

static const struct notice *known(void)
{
    return notices_first(&w.notices);
}

Test(watch, aws_is_asked_each_second_for_what_has_two_minutes_and_a_404_is_no_notice, .init = arrange)
{
    be_aws();
    rm_time asked = now;
    for (int i = 0; i < 3; i++)
        hears(i, 404, "");
    cr_assert_null(known());
    cr_assert_eq(watch_deadline(&w), asked + RM_S);
    for (int second = 1; second < 5; second++) {
        cr_assert_str_eq(asks(), "/latest/meta-data/spot/instance-action");
        cr_assert_eq(now, asked + second * RM_S);
        hears(q.slot, 404, "");
    }
    bool due[3] = {false};
    for (int i = 0; i < 3; i++) { /* what may take hours is asked for every five seconds */
        asks();
        due[q.slot] = true;
        cr_assert_eq(now, asked + 5 * RM_S);
    }
    cr_assert(due[0] && due[1] && due[2]);
    cr_assert(w.complete);
    cr_assert_eq(w.revision, 2, "who waits for a word hears that it is complete");
}

Test(watch, a_spot_notice_is_heard_with_its_time_by_the_servers_own_clock, .init = arrange)
{
    be_aws();
    hears(0, 200, "{\"action\":\"terminate\",\"time\":\"2027-01-15T12:02:00Z\"}");
    cr_assert_eq(w.revision, 2);
    cr_assert_not(w.complete);
    cr_assert_eq(known()->certainty, NOTICE_WILL);
    cr_assert_eq(known()->until, now + 120 * RM_S);
    cr_assert(strstr(say, "aws-spot: this machine will go (reclaim), in 120 s"), "%s", say);
}

Test(watch, a_time_that_moves_stays_where_it_was_first, .init = arrange)
{
    be_aws();
    hears(0, 200, "{\"action\":\"terminate\",\"time\":\"2027-01-15T12:02:00Z\"}");
    rm_time until = known()->until;
    int said = 0;
    for (int i = 1; i < 10; i++) {
        asks();
        now += 5 * RM_S;
        struct watch_answer a = {
            .status = 200, .why = "", .said_ms = noon + i * 5000, .wall_ms = noon + i * 5000};
        a.body = "{\"action\":\"terminate\",\"time\":\"2027-01-15T12:03:00Z\"}";
        a.length = strlen(a.body);
        watch_answer(&w, q.slot, &a, now, say);
        said += strstr(say, "aws-spot: its time is put off: the one that was told first counts") != NULL;
    }
    cr_assert_eq(known()->until, until);
    cr_assert_eq(said, 1);
}

/* Sources have whole seconds, and the times of those that tell none are this side's own. */
Test(watch, a_second_more_or_a_time_that_nobody_told_is_not_put_off, .init = arrange)
{
    be_aws();
    hears(0, 200, "{\"action\":\"terminate\",\"time\":\"2027-01-15T12:02:00Z\"}");
    while (asks(), q.slot != 0)
        hears(q.slot, 404, "");
    now += RM_S;
    hears(0, 200, "{\"action\":\"terminate\",\"time\":\"2027-01-15T12:02:00Z\"}");
    cr_assert_str_eq(say, "");
    arrange();
    be_aws();
    hears(0, 200, "{\"action\":\"hibernate\"}");
    while (asks(), q.slot != 0)
        hears(q.slot, 404, "");
    now += 60 * RM_S;
    hears(0, 200, "{\"action\":\"hibernate\"}");
    cr_assert_str_eq(say, "");
}

Test(watch, a_year_ahead_is_twice_the_lead_and_long_past_is_no_notice, .init = arrange)
{
    be_aws();
    hears(0, 200, "{\"action\":\"terminate\",\"time\":\"2028-01-15T12:02:00Z\"}");
    cr_assert_eq(known()->until, now + 240 * RM_S);
    cr_assert_str_eq(say,
                     "aws-spot: this machine will go (reclaim), in 240 s; aws-spot: its time is more than "
                     "240 s ahead, twice what is promised: no more is believed");
    while (asks(), q.slot != 0)
        hears(q.slot, 404, "");
    hears(0, 200, "{\"action\":\"terminate\",\"time\":\"2028-01-15T12:02:00Z\"}");
    cr_assert_str_eq(say, "", "once, and nothing of its being put off");
    arrange();
    be_aws();
    hears(0, 200, "{\"action\":\"terminate\",\"time\":\"2027-01-15T11:50:00Z\"}");
    cr_assert_null(known());
    cr_assert(strstr(say, "long past"), "%s", say);
    while (q.slot != 0)
        hears(q.slot, 404, ""), asks();
    asks();
}

Test(watch, a_clock_that_is_ten_minutes_off_moves_no_moment_and_is_said_once, .init = arrange)
{
    static const struct {
        int64_t skew;
        const char *say;
    } cases[] = {{600000, "this machine's clock is 600 s ahead of that of its metadata"},
                 {-600000, "this machine's clock is 600 s behind that of its metadata"},
                 {5001, "5 s ahead"},
                 {5000, NULL},
                 {-5000, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        arrange();
        skew = cases[i].skew;
        be_aws();
        hears(1, 404, "");
        cr_assert_eq(say[0] != 0, cases[i].say != NULL, "%s", say);
        cr_assert(!cases[i].say || strstr(say, cases[i].say), "%s", say);
        hears(2, 404, "");
        cr_assert_str_eq(say, "");
        hears(0, 200, "{\"action\":\"terminate\",\"time\":\"2027-01-15T12:02:00Z\"}");
        cr_assert_str_eq(say, "aws-spot: this machine will go (reclaim), in 120 s");
        cr_assert_eq(known()->until, now + 120 * RM_S);
    }
}

Test(watch, where_an_answer_has_no_date_nothing_is_said_of_a_clock, .init = arrange)
{
    be_aws();
    struct watch_answer a = {.status = 404, .why = "", .body = "", .wall_ms = noon};
    watch_answer(&w, 1, &a, now, say);
    cr_assert_str_eq(say, "");
}

Test(watch, a_token_that_is_too_old_is_renewed_without_a_word, .init = arrange)
{
    be_aws();
    hears(0, 401, "");
    cr_assert_str_eq(say, "");
    cr_assert_str_eq(asks(), "/latest/api/token");
    hears(1, 401, "");
    hears(2, 401, "");
    cr_assert_eq(watch_deadline(&w), RM_NEVER, "the others wait for the token");
    hears(0, 200, "SECOND");
    asks();
    cr_assert_str_eq(q.header, "X-aws-ec2-metadata-token: SECOND");
}

/* Which of the questions finds out is chance: one of them alone asks for tokens. */
Test(watch, a_token_that_another_question_lost_is_renewed_at_once, .init = arrange)
{
    be_aws();
    hears(1, 401, "");
    hears(0, 404, "");
    cr_assert_eq(watch_deadline(&w), now);
    cr_assert_str_eq(asks(), "/latest/api/token");
}

Test(watch, a_token_that_is_refused_for_ever_is_one_sentence_and_no_notice, .init = arrange)
{
    int said = 0, rounds = 0;
    be_aws();
    for (int i = 0; i < 3; i++)
        hears(i, 401, "");
    while (w.cloud == WATCH_AWS && rounds++ < 100) {
        asks();
        hears(q.slot, 403, "");
        said += say[0] != 0;
    }
    cr_assert_eq(said, 1);
    cr_assert_eq(w.cloud, WATCH_UNKNOWN, "it is looked for anew");
    cr_assert_null(known());
}

Test(watch, what_is_no_answer_changes_nothing_and_is_said_once, .init = arrange)
{
    static const struct {
        int status;
        const char *body, *say;
    } bad[] = {{0, "", "nobody listens"},
               {500, "", "status 500"},
               {302, "", "redirect"},
               {200, "<html>", "instance-action"},
               {200, "{\"action\":\"terminate\",\"time\":\"soon\"}", "soon"},
               {200, "{\"action\":\"dance\"}", "dance"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        arrange();
        be_aws();
        hears(0, bad[i].status, bad[i].body);
        cr_assert(strstr(say, bad[i].say), "%s", say);
        hears(1, 404, "");
        hears(2, 404, "");
        asks();
        cr_assert_eq(q.slot, 0);
        hears(0, bad[i].status, bad[i].body);
        cr_assert_str_eq(say, "");
        cr_assert_null(known());
    }
}

Test(watch, a_notice_outlives_bad_answers_and_ends_with_a_good_one, .init = arrange)
{
    be_aws();
    hears(1, 200, "{\"noticeTime\":\"2027-01-15T12:00:00Z\"}");
    cr_assert_eq(known()->certainty, NOTICE_MAY);
    cr_assert_eq(known()->until, RM_NEVER);
    hears(0, 404, "");
    hears(2, 404, "");
    while (asks(), q.slot != 1)
        hears(q.slot, 404, "");
    hears(1, 500, "");
    cr_assert_not_null(known());
    int64_t revision = w.revision;
    while (asks(), q.slot != 1)
        hears(q.slot, 404, "");
    hears(1, 404, "");
    while (asks(), q.slot != 1)
        hears(q.slot, strcmp(q.path, "/latest/api/token") != 0 ? 404 : 200, "SECOND");
    hears(1, 404, "");
    cr_assert_null(known());
    cr_assert_eq(w.revision, revision + 1);
    cr_assert(strstr(say, "withdrawn"), "%s", say);
}

/* Whoever has none of AWS's paths answers so: a token is what only its server gives. */
Test(watch, a_404_withdraws_nothing_before_the_server_has_given_another_token, .init = arrange)
{
    be_aws();
    hears(0, 200, "{\"action\":\"terminate\",\"time\":\"2027-01-15T12:02:00Z\"}");
    hears(1, 404, "");
    hears(2, 404, "");
    int64_t revision = w.revision;
    cr_assert(strstr(asks(), "spot/instance-action"));
    hears(0, 404, "");
    for (int i = 0; i < 5; i++) {
        cr_assert_str_eq(asks(), "/latest/api/token");
        hears(0, 404, "");
        cr_assert_not_null(known());
        cr_assert_eq(strstr(say, "status 404") != NULL, i == 0, "%s", say);
    }
    cr_assert_str_eq(asks(), "/latest/api/token");
    hears(0, 200, "SECOND");
    cr_assert_not_null(known());
    while (asks(), q.slot != 0)
        hears(q.slot, 404, "");
    cr_assert_str_eq(q.header, "X-aws-ec2-metadata-token: SECOND");
    hears(0, 404, "");
    cr_assert_null(known());
    cr_assert_eq(w.revision, revision + 1);
}

Test(watch, google_is_asked_to_wait_for_a_change, .init = arrange)
{
    be_google();
    hears_google(0, "FALSE", "e1");
    hears_google(1, "NONE", "e2");
    cr_assert_eq(watch_deadline(&w), now, "the one that waits comes at once");
    cr_assert_str_eq(asks(), "/computeMetadata/v1/instance/preempted?wait_for_change=true&timeout_sec=60&"
                             "last_etag=e1");
    cr_assert_gt(q.within, 60 * RM_S);
    asks();
    now += 20 * RM_S;
    hears_google(0, "TRUE", "e3");
    cr_assert_eq(known()->until, now + 30 * RM_S);
    hears_google(1, "TERMINATE_ON_HOST_MAINTENANCE", "e4");
    cr_assert_eq(known()->until, now + 30 * RM_S);
}

Test(watch, a_server_that_does_not_wait_is_not_asked_in_a_circle, .init = arrange)
{
    be_google();
    hears_google(0, "FALSE", "e1");
    hears_google(1, "NONE", "");
    cr_assert(strstr(asks(), "last_etag=e1"));
    hears_google(0, "FALSE", "e1");
    cr_assert_geq(watch_deadline(&w), now + RM_S);
}

Test(watch, who_does_not_say_that_it_is_google_is_not_believed, .init = arrange)
{
    be_google();
    hears(0, 200, "TRUE");
    cr_assert_null(known());
    cr_assert(strstr(say, "not of Google"), "%s", say);
}

Test(watch, azure_is_asked_every_second_and_its_own_name_counts, .init = arrange)
{
    be_azure();
    hears(0, 200,
          "{\"DocumentIncarnation\":1,\"Events\":[{\"EventId\":\"E-1\",\"EventType\":\"Preempt\","
          "\"Resources\":[\"gpu_4\"],\"EventStatus\":\"Scheduled\",\"NotBefore\":\"Fri, 15 Jan 2027 "
          "12:00:30 GMT\"}]}");
    cr_assert_null(known());
    cr_assert_eq(watch_deadline(&w), now + RM_S);
    asks();
    cr_assert_leq(q.within, 5 * RM_S, "only the first answer is two minutes late");
    hears(0, 200,
          "{\"DocumentIncarnation\":2,\"Events\":[{\"EventId\":\"E-2\",\"EventType\":\"Preempt\","
          "\"Resources\":[\"gpu_3\"],\"EventStatus\":\"Scheduled\",\"NotBefore\":\"Fri, 15 Jan 2027 "
          "12:00:30 GMT\"}]}");
    cr_assert_eq(known()->until, now + 30 * RM_S);
    cr_assert(known()->startable);
    asks();
    hears(0, 200,
          "{\"DocumentIncarnation\":3,\"Events\":[{\"EventId\":\"E-2\",\"EventType\":\"Preempt\","
          "\"Resources\":[\"gpu_3\"],\"EventStatus\":\"Started\",\"NotBefore\":\"\"}]}");
    cr_assert_eq(known()->until, now + 29 * RM_S, "the second that has gone by is not given back");
    cr_assert_not(known()->startable, "it has begun");
    asks();
    hears(0, 200, "{\"DocumentIncarnation\":4,\"Events\":[]}");
    cr_assert_null(known());
}

#define PREEMPT(before)                                                                                      \
    "{\"DocumentIncarnation\":1,\"Events\":[{\"EventId\":\"E-2\",\"EventType\":\"Preempt\",\"Resources\":["  \
    "\"gpu_3\"],\"EventStatus\":\"Scheduled\",\"NotBefore\":\"Fri, 15 Jan 2027 " before " GMT\"}]}"

Test(watch, a_moment_that_comes_nearer_by_a_second_each_time_is_told_once_it_is_seconds_nearer,
     .init = arrange)
{
    static const char *const answers[] = {PREEMPT("12:00:28"), PREEMPT("12:00:26"), PREEMPT("12:00:24")};
    be_azure(); /* whose own clock stands still here, while each question comes a second later */
    hears(0, 200, PREEMPT("12:00:30"));
    int64_t told = w.revision;
    rm_time first = known()->until;
    asks();
    hears(0, 200, answers[0]);
    cr_assert_eq(w.revision, told, "a second is no news");
    for (int i = 1; i < 3; i++) {
        asks();
        hears(0, 200, answers[i]);
    }
    cr_assert_eq(known()->until, first - 3 * RM_S);
    cr_assert_eq(w.revision, told + 1, "three are, and who waits for news is told");
}

#define REBOOT(status, before)                                                                               \
    "{\"DocumentIncarnation\":1,\"Events\":[{\"EventId\":\"E-1\",\"EventType\":\"Reboot\","                  \
    "\"Resources\":[\"gpu_3\"],\"EventStatus\":\"" status "\",\"NotBefore\":\"" before "\"}]}"

Test(watch, what_could_have_begun_and_has_not_may_come_and_has_its_time_once_it_begins, .init = arrange)
{
    be_azure();
    hears(0, 200, REBOOT("Scheduled", "Fri, 15 Jan 2027 12:10:00 GMT"));
    cr_assert_eq(known()->until, now + 600 * RM_S);
    now += 700 * RM_S;
    asks();
    hears(0, 200, REBOOT("Scheduled", "Fri, 15 Jan 2027 11:58:20 GMT"));
    cr_assert_eq(known()->certainty, NOTICE_MAY);
    cr_assert_eq(known()->until, RM_NEVER);
    cr_assert(strstr(say, "may go"), "%s", say);
    int64_t revision = w.revision;
    asks();
    hears(0, 200, REBOOT("Scheduled", "Fri, 15 Jan 2027 11:58:20 GMT"));
    cr_assert_eq(w.revision, revision);
    cr_assert_str_eq(say, "");
    asks();
    hears(0, 200, REBOOT("Started", ""));
    cr_assert_eq(known()->certainty, NOTICE_WILL);
    cr_assert_eq(known()->until, now + 30 * RM_S);
}

Test(watch, who_hibernates_has_a_few_seconds_from_the_first_word_on, .init = arrange)
{
    be_aws();
    hears(0, 200, "{\"action\":\"hibernate\"}");
    rm_time until = now + 5 * RM_S;
    cr_assert_eq(known()->until, until);
    while (asks(), q.slot != 0)
        ;
    hears(0, 200, "{\"action\":\"hibernate\"}");
    cr_assert_eq(known()->until, until);
}

Test(watch, maintenance_of_aws_whose_earliest_moment_is_over_may_come, .init = arrange)
{
    be_aws();
    hears(2, 200,
          "[{\"Code\":\"system-reboot\",\"State\":\"active\",\"EventId\":\"e-1\","
          "\"NotBefore\":\"15 Jan 2027 11:55:00 GMT\"}]");
    cr_assert_eq(known()->certainty, NOTICE_MAY);
    cr_assert_eq(known()->until, RM_NEVER);
}

Test(watch, where_there_is_no_metadata_it_is_said_once_and_looked_for_ever_more_rarely, .init = arrange)
{
    int said = 0;
    rm_time before = now;
    for (int i = 0; i < 30; i++) {
        asks();
        hears(0, i % 2 ? 404 : 0, "");
        said += say[0] != 0;
    }
    cr_assert_eq(said, 1);
    cr_assert_geq(now - before, 120 * RM_S);
}

/* An answer to a question of before, when another cloud is looked for. */
Test(watch, a_late_answer_of_a_cloud_that_was_given_up_means_nothing, .init = arrange)
{
    int rounds = 0;
    be_aws();
    hears(0, 401, "");
    while (w.cloud == WATCH_AWS && rounds++ < 100) {
        asks();
        hears(q.slot, 500, "");
    }
    hears(1, 200, "{\"action\":\"terminate\",\"time\":\"2027-01-15T12:02:00Z\"}");
    hears(2, 200, "[]");
    cr_assert_null(known());
    cr_assert_eq(w.cloud, WATCH_UNKNOWN);
    cr_assert_str_eq(asks(), "/latest/api/token");
}

/* ---- a log that nobody empties ---- */

enum trouble { TURNS, VARIES, CIRCLES, FLAPS, STALES, FARS, SKEWS, TROUBLES };

/* What a server that is never well says to the question that is asked. */
static void answer_badly(enum trouble how, int round)
{
    static const char event[] = "{\"DocumentIncarnation\":1,\"Events\":[{\"EventId\":\"a\",\"EventType\":"
                                "\"Preempt\",\"Resources\":[\"gpu_3\"],\"EventStatus\":\"Started\","
                                "\"NotBefore\":\"\"}]}";
    static const char none[] = "{\"DocumentIncarnation\":2,\"Events\":[]}";
    char body[64];
    snprintf(body, sizeof body, "{\"action\":\"%c%c dance\"}", 'a' + round % 26, 'a' + round / 26 % 26);
    skew = how == SKEWS && round % 2 ? 600000 : 0;
    bool token = strstr(q.path, "/token") != NULL, spot = strstr(q.path, "/spot/") != NULL;
    if (token)
        hears(q.slot, how == FLAPS ? 404 : 200, "TOKEN==");
    else if (how == FLAPS && strstr(q.path, "/name"))
        hears(q.slot, 200, "gpu_3");
    else if (how == FLAPS)
        hears(q.slot, 200, round % 2 ? event : none);
    else if (how == CIRCLES)
        hears(q.slot, 500, "");
    else if (!spot || how == SKEWS)
        hears(q.slot, 404, "");
    else if (how == TURNS)
        hears(q.slot, round % 2 ? 404 : 500, "");
    else if (how == VARIES)
        hears(q.slot, 200, body);
    else if (how == FARS)
        hears(q.slot, 200,
              round % 2 ? "{\"action\":\"terminate\",\"time\":\"2027-01-15T12:02:00Z\"}"
                        : "{\"action\":\"terminate\",\"time\":\"2028-01-15T12:02:00Z\"}");
    else
        hears(q.slot, round % 2 ? 404 : 200, "{\"action\":\"terminate\",\"time\":\"2027-01-15T02:00:00Z\"}");
}

Test(watch, whatever_is_told_again_and_again_is_ever_more_rarely_a_line_of_the_log, .init = arrange)
{
    static const rm_time day = 24 * 3600 * RM_S;
    for (int how = 0; how < TROUBLES; how++) {
        arrange();
        int said = 0, rounds = 0, counted = 0;
        while (now < day && rounds < 200000) {
            asks();
            answer_badly((enum trouble)how, rounds++);
            said += say[0] != 0;
            counted += strstr(say, " more were not said)") != NULL;
        }
        cr_assert_geq(now, day, "%d", how);
        cr_assert_gt(said, 1, "%d", how);
        cr_assert_leq(said, 24 * 9, "%d: %d of %d answers", how, said, rounds);
        cr_assert_gt(counted, 0, "%d: how often is told", how);
    }
}
