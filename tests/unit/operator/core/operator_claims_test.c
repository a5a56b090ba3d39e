/* Several releases of the operator on one cluster: who acts where, by the Leases of their leaders. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "common/wire/json.h"
#include "operator/core/claims.h"

enum { EARLY = 10, LATE = 20 };

static struct claims *us;
static rm_time now;

static void setup(void)
{
    static struct claims claims;
    us = &claims;
    now = 1000 * RM_S;
}

TestSuite(claims, .init = setup);

/* A Lease as the API server tells it; created: seconds behind the full minute. */
struct told {
    const char *after, *namespace, *name;
    int created;
    const char *holder;
    int seconds, version;
};

static struct js *lease_of(const struct told *told)
{
    char text[1024];
    struct error err = {0};
    snprintf(
        text, sizeof text,
        "{\"metadata\":{\"namespace\":\"%s\",\"name\":\"%s\",\"uid\":\"u-%s\",\"resourceVersion\":\"%d\","
        "\"creationTimestamp\":\"2026-03-01T12:00:%02dZ\",\"labels\":{\"ringmaster.dev/looks-after\":"
        "\"%s\"}},\"spec\":{\"holderIdentity\":\"%s\",\"leaseDurationSeconds\":%d}}",
        told->namespace, told->name, told->name, told->version, told->created, told->after, told->holder,
        told->seconds);
    struct js *object = js_parse(text, strlen(text), "lease", &err);
    cr_assert_not_null(object, "%s", err.text);
    return object;
}

static bool see(const struct told *told)
{
    struct js *object = lease_of(told);
    bool taken = claims_see(us, object, now);
    js_free(object);
    return taken;
}

static void forget(const struct told *told)
{
    struct js *object = lease_of(told);
    claims_forget(us, object, now);
    js_free(object);
}

static struct told all_of(const char *namespace, int created)
{
    return (struct told){OP_AFTER_ALL, namespace, "ringmaster-operator", created, "pod_1", 15, 1};
}

static struct told one_of(const char *namespace, const char *name, int created)
{
    return (struct told){OP_AFTER_NAMESPACE, namespace, name, created, "pod_1", 15, 1};
}

static void we_are(struct told own)
{
    claims_init(us, own.namespace, own.name, !strcmp(own.after, OP_AFTER_ALL));
    claims_listing(us);
    see(&own);
}

/* So many seconds in which our own Lease is renewed and `other` is not, or is, too. */
static void pass(int seconds, struct told own, struct told *renewed)
{
    for (int i = 0; i < seconds; i++) {
        now += RM_S;
        own.version += 1000 + (int)(now / RM_S);
        see(&own);
        if (renewed) {
            renewed->version++;
            see(renewed);
        }
    }
}

static void we_meet(struct told own, struct told other)
{
    we_are(own);
    see(&other);
}

static void is_ours(void)
{
    cr_assert_null(claims_before_us(us));
}

static void is_theirs(const char *namespace, const char *name)
{
    const struct claim *before = claims_before_us(us);
    cr_assert(before);
    cr_assert_str_eq(before->namespace, namespace);
    cr_assert_str_eq(before->name, name);
}

Test(claims, one_release_alone_acts)
{
    we_are(all_of("a", EARLY));
    is_ours();
    cr_assert_eq(claims_left(us), 0);
}

Test(claims, of_two_that_look_after_all_the_older_acts)
{
    we_meet(all_of("a", LATE), all_of("b", EARLY));
    is_theirs("b", "ringmaster-operator");
    we_meet(all_of("a", EARLY), all_of("b", LATE));
    is_ours();
}

Test(claims, of_two_of_one_second_the_one_acts_whose_name_comes_first)
{
    we_meet(all_of("b", EARLY), all_of("a", EARLY));
    is_theirs("a", "ringmaster-operator");
    we_meet(all_of("a", EARLY), all_of("b", EARLY));
    is_ours();
    we_meet(one_of("a", "y", EARLY), one_of("a", "x", EARLY));
    is_theirs("a", "x");
}

Test(claims, of_two_for_one_namespace_the_older_acts)
{
    we_meet(one_of("ml", "y", LATE), one_of("ml", "x", EARLY));
    is_theirs("ml", "x");
}

Test(claims, who_looks_after_another_namespace_is_no_rival)
{
    we_meet(one_of("ml", "y", LATE), one_of("nlp", "x", EARLY));
    is_ours();
}

Test(claims, who_looks_after_one_namespace_acts_there_and_needs_not_see_who_looks_after_all)
{
    we_meet(one_of("ml", "y", LATE), all_of("ml", EARLY));
    is_ours();
}

Test(claims, who_looks_after_all_leaves_a_namespace_to_whoever_looks_after_that_alone)
{
    we_meet(all_of("a", EARLY), one_of("ml", "x", LATE));
    is_ours();
    cr_assert_str_eq(claims_of_namespace(us, "ml")->name, "x");
    cr_assert_null(claims_of_namespace(us, "nlp"));
    cr_assert_eq(claims_left(us), 1);
}

Test(claims, a_claim_reaches_no_further_than_the_namespace_that_it_lies_in)
{
    we_are(all_of("a", LATE));
    struct told other = one_of("tenant", "x", EARLY);
    other.after = "everything";
    see(&other);
    is_ours();
    cr_assert_not_null(claims_of_namespace(us, "tenant"));
    cr_assert_null(claims_of_namespace(us, "a"));
}

Test(claims, one_that_does_not_change_for_as_long_as_it_promises_counts_no_longer)
{
    struct told own = all_of("a", LATE), other = all_of("b", EARLY);
    we_are(own);
    see(&other);
    pass(40, own, &other);
    is_theirs("b", "ringmaster-operator");
    pass(15, own, NULL);
    is_theirs("b", "ringmaster-operator");
    pass(1, own, NULL);
    is_ours();
    other.version++;
    see(&other);
    is_theirs("b", "ringmaster-operator");
}

Test(claims, the_same_version_told_again_is_no_change)
{
    struct told own = all_of("a", LATE), other = all_of("b", EARLY);
    we_are(own);
    see(&other);
    pass(10, own, NULL);
    claims_listing(us);
    see(&own);
    see(&other);
    claims_listed(us, now);
    pass(6, own, NULL);
    is_ours();
}

Test(claims, while_nothing_is_heard_nobody_grows_old)
{
    struct told own = all_of("a", LATE), other = all_of("b", EARLY);
    we_are(own);
    see(&other);
    now += 3600 * RM_S;
    is_theirs("b", "ringmaster-operator");
    pass(1, own, NULL); /* the watch goes on, and what it tells first is of ourselves */
    is_theirs("b", "ringmaster-operator");
    other.version++;
    see(&other);
    is_theirs("b", "ringmaster-operator");
}

Test(claims, one_that_is_given_back_is_left_to_its_own_replicas_for_a_while)
{
    struct told own = all_of("a", LATE), other = all_of("b", EARLY);
    we_are(own);
    see(&other);
    other = (struct told){OP_AFTER_ALL, "b", other.name, EARLY, "", 1, 2};
    see(&other);
    pass(15, own, NULL);
    is_theirs("b", "ringmaster-operator");
    pass(1, own, NULL);
    is_ours();
}

Test(claims, one_that_nobody_has_held_since_we_look_keeps_nobody_waiting)
{
    we_are(all_of("a", LATE));
    struct told other = all_of("b", EARLY);
    other.holder = "";
    see(&other);
    is_ours();
    other.holder = "pod_2";
    other.version++;
    see(&other);
    is_theirs("b", "ringmaster-operator");
}

Test(claims, one_that_is_deleted_or_not_listed_any_more_is_gone)
{
    struct told own = all_of("a", LATE), other = all_of("b", EARLY);
    we_are(own);
    see(&other);
    forget(&other);
    is_ours();
    see(&other);
    is_theirs("b", "ringmaster-operator");
    claims_listing(us);
    see(&own);
    claims_listed(us, now);
    is_ours();
}

Test(claims, one_whose_own_lease_was_deleted_is_the_youngest_until_it_is_there_again)
{
    struct told own = all_of("a", EARLY), other = all_of("b", LATE);
    we_are(own);
    see(&other);
    is_ours();
    forget(&own);
    is_theirs("b", "ringmaster-operator");
    own.created = LATE + 1;
    own.version = 9;
    see(&own);
    is_theirs("b", "ringmaster-operator");
    cr_assert_str_eq(us->own.uid, "u-ringmaster-operator");
}

Test(claims, of_three_the_next_in_age_takes_over)
{
    struct told own = all_of("c", 30), oldest = all_of("a", 10), older = all_of("b", 20);
    we_are(own);
    see(&older);
    see(&oldest);
    is_theirs("a", "ringmaster-operator");
    pass(16, own, &older);
    is_theirs("b", "ringmaster-operator");
    pass(16, own, NULL);
    is_ours();
}

Test(claims, a_namespace_is_told_once_when_it_is_left_and_once_when_it_is_ours_again)
{
    struct told own = all_of("a", EARLY), other = one_of("ml", "x", LATE);
    struct claim news;
    bool left = false;
    we_are(own);
    cr_assert_not(claims_next(us, &news, &left));
    see(&other);
    cr_assert(claims_next(us, &news, &left) && left && !strcmp(news.namespace, "ml"));
    pass(40, own, &other);
    cr_assert_not(claims_next(us, &news, &left));
    forget(&other);
    cr_assert(claims_next(us, &news, &left) && !left && !strcmp(news.name, "x"));
    cr_assert_not(claims_next(us, &news, &left));
}

Test(claims, one_namespaces_leases_fill_no_place_of_the_others)
{
    char name[32];
    int taken = 0;
    we_are(all_of("a", EARLY));
    for (int i = 0; i < CLAIMS_MAX; i++) {
        snprintf(name, sizeof name, "x%d", i);
        struct told other = one_of("tenant", name, LATE);
        taken += see(&other);
    }
    cr_assert_eq(taken, CLAIMS_IN_NAMESPACE);
    struct told good = one_of("ml", "x", LATE);
    cr_assert(see(&good));
    cr_assert_not_null(claims_of_namespace(us, "ml"));
}

Test(claims, what_ends_in_one_namespace_makes_no_room_for_more_in_another)
{
    char name[32];
    struct claim news;
    bool left;
    we_are(all_of("a", EARLY));
    struct told good = one_of("ml", "x", LATE);
    see(&good);
    for (int i = 0; i < CLAIMS_IN_NAMESPACE; i++) {
        snprintf(name, sizeof name, "x%d", i);
        struct told other = one_of("tenant", name, LATE);
        cr_assert(see(&other));
    }
    forget(&good);
    while (claims_next(us, &news, &left))
        ;
    struct told more = one_of("tenant", "more", LATE);
    cr_assert_not(see(&more));
    good.namespace = "nlp";
    cr_assert(see(&good));
}

Test(claims, those_that_ended_long_ago_keep_no_place)
{
    char name[32];
    struct told own = all_of("a", EARLY);
    we_are(own);
    for (int i = 0; i < 3 * CLAIMS_IN_NAMESPACE; i++) {
        snprintf(name, sizeof name, "x%d", i);
        struct told other = one_of("ml", name, LATE);
        struct claim news;
        bool left;
        cr_assert(see(&other), "%s", name);
        cr_assert_str_eq(claims_of_namespace(us, "ml")->name, name);
        while (claims_next(us, &news, &left))
            ;
        pass(16, own, NULL);
        cr_assert_null(claims_of_namespace(us, "ml"));
        while (claims_next(us, &news, &left))
            ;
    }
}

Test(claims, what_is_no_lease_is_nobodys)
{
    static const char *const odd[] = {"{}", "[]", "{\"metadata\":7,\"spec\":[]}",
                                      "{\"metadata\":{\"labels\":{\"ringmaster.dev/looks-after\":{}}},"
                                      "\"spec\":{\"holderIdentity\":true,\"leaseDurationSeconds\":\"x\"}}"};
    we_are(all_of("a", EARLY));
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        struct js *object = js_parse(odd[i], strlen(odd[i]), "odd", NULL);
        claims_see(us, object, now);
        claims_forget(us, object, now);
        js_free(object);
        is_ours();
    }
}

Test(claims, the_sentences_name_the_other_one_and_what_to_do)
{
    char text[CLAIMS_SENTENCE];
    we_meet(all_of("a", LATE), all_of("sys-b", EARLY));
    struct told narrow = one_of("ml", "x-operator", EARLY);
    see(&narrow);
    claims_say_refused(claims_before_us(us), text);
    cr_assert_str_eq(text, "another release of the operator looks after all namespaces, by the Lease "
                           "sys-b/ringmaster-operator, which "
                           "is older than ours: this one waits, and takes over when that one has been away "
                           "for 15 s. Uninstall one of "
                           "the two, or install this one for a namespace of its own (--set namespace=NAME)");
    claims_say_left(claims_of_namespace(us, "ml"), text);
    cr_assert_str_eq(
        text,
        "another release of the operator looks after the namespace ml alone, by the Lease ml/x-operator: "
        "this "
        "one leaves its TrainingJobs to that one until it has been away for 15 s. Uninstall that one if this "
        "one is to look after them");
    we_are(one_of("ml", "y-operator", LATE));
    see(&narrow);
    claims_say_refused(claims_before_us(us), text);
    cr_assert_str_eq(
        text,
        "another release of the operator looks after the namespace ml, by the Lease ml/x-operator, which "
        "is older than ours: this one waits, and takes over when that one has been away for 15 s. "
        "Uninstall one of the two");
}
