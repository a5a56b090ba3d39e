/* Of which type a machine is and in which zone it stands, as its metadata says. */
#include "common/notice/pool.h"

#include <criterion/criterion.h>
#include <string.h>

#include "common/base/str.h"
#include "common/notice/watch.h"

static struct watch w;
static struct watch_question q;
static rm_time now;

static void be(enum watch_cloud cloud)
{
    now = 100 * RM_S;
    watch_init(&w, 1, now);
    w.cloud = cloud;
    if (cloud == WATCH_AWS)
        text_copy(w.token, sizeof w.token, "TOKEN==");
}

static void hears(int status, bool google, const char *body)
{
    struct watch_answer a = {
        .status = status, .why = "", .body = body, .length = strlen(body), .google = google};
    machine_pool_answer(&w, &a, now);
}

static const char *name(void)
{
    static char text[MACHINE_POOL_NAME_MAX];
    machine_pool_name(&w.pool, text);
    return text;
}

Test(machine_pool, each_cloud_is_asked_for_type_and_zone_once)
{
    static const struct {
        enum watch_cloud cloud;
        const char *header, *path[2], *body[2], *name;
    } cases[] = {
        {WATCH_AWS,
         "X-aws-ec2-metadata-token: TOKEN==",
         {"/latest/meta-data/instance-type", "/latest/meta-data/placement/availability-zone"},
         {"p3.2xlarge", "us-east-1a"},
         "p3.2xlarge/us-east-1a"},
        {WATCH_GCE,
         "Metadata-Flavor: Google",
         {"/computeMetadata/v1/instance/machine-type", "/computeMetadata/v1/instance/zone"},
         {"projects/4520/machineTypes/n1-standard-8", "projects/4520/zones/us-central1-a\n"},
         "n1-standard-8/us-central1-a"},
        {WATCH_AZURE,
         "Metadata: true",
         {"/metadata/instance/compute/vmSize?api-version=2021-02-01&format=text",
          "/metadata/instance/compute/zone?api-version=2021-02-01&format=text"},
         {"Standard_NC24ads_A100_v4", ""},
         "Standard_NC24ads_A100_v4/"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        be(cases[i].cloud);
        for (int part = 0; part < 2; part++) {
            cr_assert_str_eq(name(), "");
            cr_assert_leq(machine_pool_deadline(&w), now);
            cr_assert(machine_pool_ask(&w, now, &q));
            cr_assert_not(machine_pool_ask(&w, now, &q), "one at a time");
            cr_assert_str_eq(q.path, cases[i].path[part]);
            cr_assert_str_eq(q.header, cases[i].header);
            hears(200, cases[i].cloud == WATCH_GCE, cases[i].body[part]);
        }
        cr_assert_str_eq(name(), cases[i].name);
        cr_assert_eq(machine_pool_deadline(&w), RM_NEVER);
        cr_assert_not(machine_pool_ask(&w, now + 3600 * RM_S, &q));
    }
}

Test(machine_pool, nobody_is_asked_before_it_is_known_who_is_there_or_without_his_token)
{
    be(WATCH_UNKNOWN);
    cr_assert_not(machine_pool_ask(&w, now, &q));
    cr_assert_eq(machine_pool_deadline(&w), RM_NEVER);
    be(WATCH_AWS);
    w.token[0] = 0;
    cr_assert_not(machine_pool_ask(&w, now, &q));
}

Test(machine_pool, what_is_no_answer_leaves_it_unknown_and_is_asked_ever_more_rarely)
{
    static const struct {
        int status;
        bool google;
        const char *body;
    } cases[] = {{404, true, "n1"},     {0, false, ""},
                 {200, false, "n1"},    {200, true, "<html>"},
                 {200, true, ""},       {200, true, "a b"},
                 {200, true, "zones/"}, {200, true, "123456789012345678901234567890123456789012345678"}};
    be(WATCH_GCE);
    rm_time pause = 5 * RM_S;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cr_assert(machine_pool_ask(&w, now, &q));
        hears(cases[i].status, cases[i].google, cases[i].body);
        cr_assert_eq(machine_pool_deadline(&w), now + pause, "case %zu", i);
        cr_assert_not(machine_pool_ask(&w, now, &q));
        now = machine_pool_deadline(&w);
        pause = 2 * pause < 600 * RM_S ? 2 * pause : 600 * RM_S;
    }
    cr_assert_str_eq(name(), "");
}

Test(machine_pool, another_clouds_answer_is_forgotten)
{
    be(WATCH_GCE);
    for (int part = 0; part < 2; part++) {
        machine_pool_ask(&w, now, &q);
        hears(200, true, "x");
    }
    w.cloud = WATCH_AZURE;
    cr_assert(machine_pool_ask(&w, now, &q));
    cr_assert_str_eq(name(), "");
}

Test(machine_pool, one_that_is_not_known_may_be_any)
{
    static const struct {
        const char *a, *b;
        bool same;
    } cases[] = {
        {"", "", true}, {"", "x/1", true}, {"x/1", "", true}, {"x/1", "x/1", true}, {"x/1", "x/2", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_assert_eq(machine_pool_is_same(cases[i].a, cases[i].b), cases[i].same, "case %zu", i);
}
