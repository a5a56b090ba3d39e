#include "common/kube/reflector.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/common/kube/play.h"

#define SCENES(list) list, (int)(sizeof(list) / sizeof(list)[0])

static void listing(void *ctx)
{
    str_adds(&((struct play *)ctx)->log, "(");
}

static void listed(void *ctx)
{
    str_adds(&((struct play *)ctx)->log, ")");
}

static void object(void *ctx, enum kube_change change, const struct js *found)
{
    const char *name = js_as_string(js_get(js_get(found, "metadata"), "name"));
    str_addf(&((struct play *)ctx)->log, "%c%s", "+~-"[change], name ? name : "?");
}

/* Asked for by one test alone. */
static void heard(void *ctx)
{
    str_adds(&((struct play *)ctx)->log, "*");
}

static void trouble(void *ctx, const struct kube_answer *answer, rm_time again_in)
{
    (void)again_in;
    str_addf(&((struct play *)ctx)->log, "!%s.", kube_outcome_name(answer->outcome));
}

static struct reflector *reflect_with(struct play *play, rm_time silent_within, void (*first_word)(void *ctx))
{
    struct reflector *reflector;
    struct reflector_options options = {.kube = play->kube,
                                        .resource = &kube_pods,
                                        .labels = "ours",
                                        .page = 2,
                                        .seed = 1,
                                        .silent_within = silent_within,
                                        .listing = listing,
                                        .object = object,
                                        .listed = listed,
                                        .heard = first_word,
                                        .trouble = trouble,
                                        .ctx = play};
    cr_assert_eq(reflector_open(&reflector, play->loop, &options, NULL), 0);
    return reflector;
}

static struct reflector *reflect(struct play *play, rm_time silent_within)
{
    return reflect_with(play, silent_within, NULL);
}

static void check(const struct scene *scenes, int count, const char *wanted)
{
    struct play play;
    play_open(&play, scenes, count, 0, 0);
    struct reflector *reflector = reflect(&play, 0);
    play_until(&play, wanted);
    cr_expect_str_eq(str_text(&play.log), wanted);
    reflector_free(reflector);
    play_close(&play);
}

#define LIST_AT(version, items)                                                                              \
    "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"" version "\"},\"items\":[" items "]}"
#define POD(name, version)  "{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"" version "\"}}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"

static const struct scene list_10 = {.method = "GET",
                                     .target = "/pods?labelSelector=ours&limit=2",
                                     .status = 200,
                                     .body = LIST_AT("10", POD("a", "3"))};

Test(reflector, lists_in_pages_and_watches_from_there)
{
    const struct scene scenes[] = {
        {.method = "GET",
         .target = "/pods?labelSelector=ours&limit=2",
         .status = 200,
         .body = "{\"metadata\":{\"resourceVersion\":\"10\",\"continue\":\"c/1\"},\"items\":[" POD(
             "a", "1") "," POD("b", "2") "]}"},
        {.method = "GET",
         .target = "limit=2&continue=c%2F1",
         .status = 200,
         .body = LIST_AT("10", POD("c", "3"))},
        {.method = "GET",
         .target = "watch=1&allowWatchBookmarks=true&resourceVersion=10&timeoutSeconds=",
         .status = 0,
         .body = EVENT("ADDED", POD("d", "11")) EVENT("MODIFIED", POD("a", "12"))
             EVENT("DELETED", POD("b", "13"))},
        {.method = "GET",
         .target = "resourceVersion=13&",
         .status = 0,
         .body = EVENT("DELETED", POD("c", "14"))},
    };
    check(SCENES(scenes), "(+a+b+c)+d~a-b-c");
}

Test(reflector, goes_on_from_a_bookmark)
{
    const struct scene scenes[] = {
        list_10,
        {.method = "GET",
         .target = "resourceVersion=10&",
         .status = 0,
         .body = EVENT("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"77\"}}")},
        {.method = "GET",
         .target = "resourceVersion=77&",
         .status = 0,
         .body = EVENT("DELETED", POD("a", "78"))},
    };
    check(SCENES(scenes), "(+a)-a");
}

Test(reflector, a_watch_that_was_denied_is_heard_again_by_its_first_word_and_lists_nothing)
{
    const struct scene scenes[] = {
        list_10,
        {.method = "GET",
         .target = "resourceVersion=10&",
         .status = 403,
         .body = "{\"reason\":\"Forbidden\"}"},
        {.method = "GET",
         .target = "resourceVersion=10&",
         .status = 0,
         .body = EVENT("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"77\"}}")
             EVENT("DELETED", POD("a", "78"))},
    };
    struct play play;
    play_open(&play, SCENES(scenes), 0, 0);
    struct reflector *reflector = reflect_with(&play, 0, heard);
    play_until(&play, "-a");
    cr_expect_str_eq(str_text(&play.log), "(+a)!denied.*-a");
    reflector_free(reflector);
    play_close(&play);
}

Test(reflector, lists_anew_when_its_version_is_too_old)
{
    const struct scene scenes[] = {
        list_10,
        {.method = "GET", .target = "resourceVersion=10&", .status = 410, .body = "{\"reason\":\"Expired\"}"},
        {.method = "GET", .target = "&limit=2", .status = 200, .body = LIST_AT("20", POD("b", "19"))},
        {.method = "GET",
         .target = "resourceVersion=20&",
         .status = 0,
         .body = EVENT("MODIFIED", POD("b", "21")) EVENT(
             "ERROR", "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\",\"message\":\"too old\"}")},
        {.method = "GET", .target = "&limit=2", .status = 200, .body = LIST_AT("30", "")},
    };
    check(SCENES(scenes), "(+a)(+b)~b()");
}

Test(reflector, a_list_that_expires_between_two_pages_begins_anew)
{
    const struct scene scenes[] = {
        {.method = "GET",
         .target = "limit=2",
         .status = 200,
         .body = "{\"metadata\":{\"continue\":\"c\"},\"items\":[" POD("a", "1") "]}"},
        {.method = "GET", .target = "continue=c", .status = 410, .body = "{\"reason\":\"Expired\"}"},
        list_10,
    };
    check(SCENES(scenes), "(+a!gone.(+a)");
}

Test(reflector, a_page_that_a_busy_server_does_not_give_is_asked_for_again_and_not_those_before_it)
{
    const struct scene scenes[] = {
        {.method = "GET",
         .target = "labelSelector=ours&limit=2",
         .status = 200,
         .body = "{\"metadata\":{\"continue\":\"c\"},\"items\":[" POD("a", "1") "," POD("b", "2") "]}"},
        {.method = "GET", .target = "continue=c", .status = 503, .body = "{}"},
        {.method = "GET", .target = "continue=c", .status = 200, .body = LIST_AT("10", POD("c", "3"))},
        {.method = "GET",
         .target = "resourceVersion=10&",
         .status = 0,
         .body = EVENT("DELETED", POD("a", "11"))},
    };
    check(SCENES(scenes), "(+a+b!busy.+c)-a");
}

Test(reflector, a_watch_cut_in_the_middle_of_a_line_goes_on_where_it_was)
{
    const struct scene scenes[] = {
        list_10,
        {.method = "GET",
         .target = "resourceVersion=10&",
         .status = 200,
         .body = EVENT("ADDED", POD("b", "11")) "{\"type\":\"DELETED\",\"object\":{\"metada",
         .cut = "the rest"},
        {.method = "GET",
         .target = "resourceVersion=11&",
         .status = 0,
         .body = EVENT("DELETED", POD("a", "12"))},
    };
    check(SCENES(scenes), "(+a)+b!unreachable.-a");
}

Test(reflector, a_server_that_refuses_is_asked_again)
{
    const struct scene scenes[] = {
        {.method = "GET", .target = "limit=2", .status = 403, .body = "{\"reason\":\"Forbidden\"}"},
        {.method = "GET", .target = "limit=2", .status = 500},
        list_10,
        {.method = "GET", .target = "watch=1", .status = 403, .body = "{\"reason\":\"Forbidden\"}"},
        {.method = "GET", .target = "watch=1", .status = 0, .body = ""},
        {.method = "GET",
         .target = "resourceVersion=10&",
         .status = 0,
         .body = EVENT("DELETED", POD("a", "12"))},
    };
    check(SCENES(scenes), "(!denied.(!broken.(+a)!denied.!broken.-a");
}

Test(reflector, an_object_that_can_not_be_read_spoils_no_other)
{
    const struct scene scenes[] = {
        {.method = "GET",
         .target = "limit=2",
         .status = 200,
         .body = LIST_AT("10", "{\"metadata\":nonsense}," POD("b", "2"))},
        {.method = "GET",
         .target = "watch=1",
         .status = 0,
         .body = "nonsense\n" EVENT("ADDED",
                                    "{\"metadata\":{\"name\":\"n\\u0000l\",\"resourceVersion\":\"11\"}}")},
        {.method = "GET",
         .target = "resourceVersion=11&",
         .status = 0,
         .body = EVENT("DELETED", POD("b", "12"))},
    };
    check(SCENES(scenes), "(!broken.+b)!broken.+n\xef\xbf\xbdl-b");
}

Test(reflector, a_silent_watch_is_ended_and_begun_again)
{
    struct play play;
    play_open(&play, &list_10, 1, 0, 0); /* nothing is said to the watch at all */
    struct reflector *reflector = reflect(&play, RM_S);
    play_until(&play, "(+a)!unreachable.");
    cr_assert(reflector_synced(reflector));
    reflector_free(reflector);
    play_close(&play);
}
