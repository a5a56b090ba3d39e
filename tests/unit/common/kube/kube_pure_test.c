#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/kube/answer.h"
#include "common/kube/bucket.h"
#include "common/kube/resource.h"
#include "common/kube/split.h"
#include "common/kube/stamp.h"

/* --- bucket --- */

Test(bucket, gives_its_burst_and_then_one_at_a_time)
{
    rm_time now = 1000 * RM_S, when = 0;
    struct bucket bucket = bucket_init(2, 3, now);
    for (int i = 0; i < 3; i++)
        cr_assert(bucket_take(&bucket, now, &when));
    cr_assert_not(bucket_take(&bucket, now, &when));
    cr_assert_geq(when, now + RM_S / 2);
    cr_assert_leq(when, now + RM_S / 2 + 10);
    cr_assert_not(bucket_take(&bucket, now + RM_S / 4, &when));
    cr_assert(bucket_take(&bucket, when, &when), "there is one when it was promised");
}

Test(bucket, saves_no_more_than_its_burst)
{
    rm_time when;
    int taken = 0;
    struct bucket bucket = bucket_init(50, 3, 0);
    while (taken < 100 && bucket_take(&bucket, 3600 * RM_S, &when))
        taken++;
    cr_assert_eq(taken, 3);
}

/* --- resource --- */

static void check_path(const struct kube_resource *resource, const char *namespace, const char *name,
                       const char *wanted)
{
    struct str out = str_init(1000);
    kube_path(resource, namespace, name, &out);
    cr_expect_str_eq(str_text(&out), wanted);
    str_clear(&out);
}

Test(resource, paths_are_those_of_the_api_server)
{
    check_path(&kube_pods, "a", "b", "/api/v1/namespaces/a/pods/b");
    check_path(&kube_pods, NULL, NULL, "/api/v1/pods");
    check_path(&kube_nodes, "ignored", "n1", "/api/v1/nodes/n1");
    check_path(&kube_training_jobs, "a", NULL, "/apis/ringmaster.dev/v1alpha1/namespaces/a/trainingjobs");
}

Test(resource, a_name_can_not_leave_its_place)
{
    check_path(&kube_pods, "a/../b", "x?watch=1#y", "/api/v1/namespaces/a%2F..%2Fb/pods/x%3Fwatch%3D1%23y");
}

Test(resource, is_found_by_its_plural)
{
    cr_assert_eq(kube_resource_find("leases"), &kube_leases);
    cr_assert_null(kube_resource_find("lease"));
}

/* --- stamp --- */

Test(stamp, prints_what_date_prints)
{
    char text[STAMP_MAX];
    stamp_print(0, text);
    cr_expect_str_eq(text, "1970-01-01T00:00:00Z");
    stamp_print(1582934399999, text); /* date -u -d @1582934399 */
    cr_expect_str_eq(text, "2020-02-28T23:59:59Z");
    stamp_print_micro(1582934400007, text);
    cr_expect_str_eq(text, "2020-02-29T00:00:00.007000Z");
    stamp_print(-1, text);
    cr_expect_str_eq(text, "1969-12-31T23:59:59Z");
    stamp_print(4107542400000, text);
    cr_expect_str_eq(text, "2100-03-01T00:00:00Z");
}

Test(stamp, comes_back_as_it_was)
{
    for (int64_t ms = -5000000000000; ms < 5000000000000; ms += 86399999777 / 7) {
        char text[STAMP_MAX];
        int64_t back;
        stamp_print_micro(ms, text);
        cr_assert(stamp_read(text, &back), "%s", text);
        cr_assert_eq(back, ms, "%s is %lld, not %lld", text, (long long)back, (long long)ms);
    }
}

Test(stamp, reads_any_number_of_decimals_and_no_nonsense)
{
    int64_t ms;
    cr_assert(stamp_read("2020-02-29T00:00:00.1Z", &ms) && ms == 1582934400100);
    cr_assert(stamp_read("2020-02-29T00:00:00.123456789Z", &ms) && ms == 1582934400123);
    static const char *const wrong[] = {"",
                                        "2020-02-29",
                                        "2020-02-29T00:00:00",
                                        "2020-02-29T00:00:00+01:00",
                                        "2020-13-01T00:00:00Z",
                                        "2020-02-29T00:00:00.Z",
                                        "x020-02-29T00:00:00Z",
                                        "2020-02-29T00:00:00Zz"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        cr_expect_not(stamp_read(wrong[i], &ms), "%s", wrong[i]);
}

/* --- answer --- */

static struct kube_answer answer_of(int status, const char *body)
{
    struct kube_answer answer;
    struct js *tree;
    kube_answer_read(&answer, &tree, status, body, strlen(body));
    answer.object = NULL;
    js_free(tree);
    return answer;
}

Test(answer, keeps_the_servers_reason_and_sentence)
{
    struct error err = {0};
    struct kube_answer a =
        answer_of(403, "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"Forbidden\","
                       "\"message\":\"pods is forbidden: exceeded quota: q\",\"code\":403}");
    cr_assert_eq(a.outcome, KUBE_DENIED);
    cr_assert_eq(kube_answer_error(&a, &err), -1);
    cr_assert_str_eq(err.text, "403 Forbidden: pods is forbidden: exceeded quota: q");
}

Test(answer, tells_a_create_that_came_second_from_a_conflict)
{
    cr_assert_eq(answer_of(409, "{\"reason\":\"AlreadyExists\"}").outcome, KUBE_EXISTS);
    cr_assert_eq(answer_of(409, "{\"reason\":\"Conflict\"}").outcome, KUBE_CONFLICT);
    cr_assert_eq(answer_of(404, "{\"reason\":\"NotFound\"}").outcome, KUBE_NOT_FOUND);
    cr_assert_eq(answer_of(410, "{\"reason\":\"Expired\"}").outcome, KUBE_GONE);
    cr_assert_eq(answer_of(422, "{\"reason\":\"Invalid\"}").outcome, KUBE_INVALID);
    cr_assert_eq(answer_of(500, "{}").outcome, KUBE_BROKEN);
}

Test(answer, a_busy_server_says_when_to_come_again)
{
    struct kube_answer a =
        answer_of(429, "{\"reason\":\"TooManyRequests\",\"details\":{\"retryAfterSeconds\":7}}");
    cr_assert_eq(a.outcome, KUBE_BUSY);
    cr_assert_eq(a.retry_after, 7 * RM_S);
    a = answer_of(429, "{\"details\":{\"retryAfterSeconds\":999999999}}");
    cr_assert_eq(a.retry_after, 300 * RM_S, "nobody makes the operator wait for ever");
}

Test(answer, what_is_no_json_is_still_a_sentence)
{
    struct kube_answer a = answer_of(502, "<html>\nBad Gateway\x1b[31m");
    cr_assert_eq(a.outcome, KUBE_BROKEN);
    cr_assert_str_eq(a.message, "<html> Bad Gateway [31m");
    cr_assert_eq(answer_of(200, "<html>").outcome, KUBE_BROKEN);
}

/* --- split --- */

struct heard {
    struct str all;
    int count;
};

static void object_came(void *ctx, char *text, size_t length)
{
    struct heard *heard = ctx;
    cr_assert_eq(strlen(text), length);
    str_addf(&heard->all, "<%s>", text);
    heard->count++;
}

/* Fed in pieces of every size, it says the same. */
static void check_split(bool lines, const char *text, const char *wanted, const char *wanted_rest)
{
    for (size_t piece = 1; piece <= strlen(text) + 1; piece++) {
        struct heard heard = {.all = str_init(10000)};
        struct split split = split_init(lines, object_came, &heard);
        for (size_t at = 0; at < strlen(text); at += piece) {
            size_t left = strlen(text) - at;
            cr_assert_eq(split_add(&split, text + at, left < piece ? left : piece), 0);
        }
        cr_assert_str_eq(str_text(&heard.all), wanted);
        cr_assert_str_eq(str_text(&split.rest), wanted_rest);
        split_clear(&split);
        str_clear(&heard.all);
    }
}

Test(split, cuts_a_list_into_its_items_and_keeps_the_rest)
{
    check_split(
        false,
        "{\"kind\":\"PodList\",\"metadata\":{\"items\":[1],\"continue\":\"x\"},\"items\":[{\"a\":[1,{}]},"
        "{\"items\":[{}]} , {\"b\":\"}]\\\"[\"}],\"tail\":\"items\"}\n",
        "<{\"a\":[1,{}]}><{\"items\":[{}]}><{\"b\":\"}]\\\"[\"}>",
        "{\"kind\":\"PodList\",\"metadata\":{\"items\":[1],\"continue\":\"x\"},\"items\":[],\"tail\":"
        "\"items\"}\n");
}

Test(split, knows_an_empty_list_and_none_at_all)
{
    check_split(false, "{\"items\":[]}", "", "{\"items\":[]}");
    check_split(false, "{\"items\":null}", "", "{\"items\":null}");
    check_split(false, "{ \"items\" : [ {\"a\":1}\n] }", "<{\"a\":1}>", "{ \"items\" : [] }");
    check_split(false, "[{\"items\":[{}]}]", "", "[{\"items\":[{}]}]");
}

Test(split, a_string_that_says_items_opens_nothing)
{
    check_split(false, "{\"a\":\"\\\"items\\\":[\",\"items\":[{}]}", "<{}>",
                "{\"a\":\"\\\"items\\\":[\",\"items\":[]}");
}

Test(split, cuts_a_watch_into_lines_and_waits_for_the_end_of_the_last)
{
    check_split(true, "{\"a\":1}\n\n{\"b\":2}\n{\"c\":", "<{\"a\":1}><{\"b\":2}>", "");
}

Test(split, refuses_an_object_without_an_end)
{
    struct heard heard = {.all = str_init(100)};
    struct split split = split_init(true, object_came, &heard);
    char *much = calloc(1, SPLIT_OBJECT_MAX + 1);
    memset(much, 'x', SPLIT_OBJECT_MAX + 1);
    cr_assert_eq(split_add(&split, much, SPLIT_OBJECT_MAX + 1), -1);
    split_reset(&split);
    cr_assert_eq(split_add(&split, "{}\n", 3), 0);
    cr_assert_eq(heard.count, 1);
    free(much);
    split_clear(&split);
    str_clear(&heard.all);
}
