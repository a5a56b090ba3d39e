#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "cast.h"
#include "common/job/file.h"
#include "common/wire/json.h"
#include "operator/core/instant.h"
#include "operator/core/pod.h"

Test(operator_job, the_api_servers_json_and_a_persons_yaml_give_the_same_effective_spec)
{
    struct cast *c = cast_open("{}");
    struct job_spec spec;
    struct str api = str_init(1 << 20), file = str_init(1 << 20), notes = str_init(4096);
    struct error err = {0};
    cr_assert_eq(job_effective_spec(&c->job, &api, &err), 0, "%s", err.text);
    cr_assert_eq(
        job_file_read(&spec, RM_SOURCE "/tests/unit/operator/core/golden/job.yaml", NULL, 0, &notes, &err), 0,
        "%s", err.text);
    job_spec_write(&spec, &file);
    cr_assert_str_eq(str_text(&api), str_text(&file));
    str_clear(&api);
    str_clear(&file);
    str_clear(&notes);
    cast_free(c);
}

Test(operator_job, numbers_that_the_server_gives_back_without_their_point_are_the_same_numbers)
{
    struct cast *a = cast_open("{\"trainer\":{\"optimizer\":{\"clipNorm\":1,\"learningRate\":0.003}}}");
    struct cast *b = cast_open("{\"trainer\":{\"optimizer\":{\"clipNorm\":1.0,\"learningRate\":3e-3}}}");
    struct str one = str_init(1 << 20), two = str_init(1 << 20);
    cr_assert_eq(job_effective_spec(&a->job, &one, NULL), 0);
    cr_assert_eq(job_effective_spec(&b->job, &two, NULL), 0);
    cr_assert_str_eq(str_text(&one), str_text(&two));
    str_clear(&one);
    str_clear(&two);
    cast_free(a);
    cast_free(b);
}

static void refused(const char *changes, const char *sentence)
{
    struct cast *c = cast_open(changes);
    struct str out = str_init(1 << 20);
    struct error err = {0};
    cr_assert_lt(job_effective_spec(&c->job, &out, &err), 0, "%s", changes);
    cr_assert(strstr(err.text, sentence), "\"%s\" has not \"%s\"", err.text, sentence);
    str_clear(&out);
    cast_free(c);
}

Test(operator_job, a_folder_of_the_pods_own_disk_is_no_place_for_checkpoints)
{
    refused("{\"checkpoint\":{\"uri\":\"file:///runs/a\"}}",
            "spec.checkpoint.uri is file:///runs/a, but spec.workers.template mounts no shared volume there");
    refused("{\"trainer\":{\"data\":{\"uri\":\"file:///books\"}}}", "mounts no volume there");
    refused("{\"trainer\":{\"data\":{\"uri\":\"books\"}}}",
            "write s3://bucket/prefix, or file:///path with a volume mounted there");
    refused(
        "{\"checkpoint\":{\"uri\":\"file:///runs/a\"},\"workers\":{\"template\":{\"spec\":{\"containers\":"
        "[{\"name\":\"trainer\",\"volumeMounts\":[{\"name\":\"v\",\"mountPath\":\"/runs\"}]}],"
        "\"volumes\":[{\"name\":\"v\",\"emptyDir\":{}}]}}}}",
        "no shared volume");
    refused(
        "{\"checkpoint\":{\"uri\":\"file:///runsaway\"},\"workers\":{\"template\":{\"spec\":{\"containers\":"
        "[{\"name\":\"trainer\",\"volumeMounts\":[{\"name\":\"v\",\"mountPath\":\"/runs\"}]}],"
        "\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"c\"}}]}}}}",
        "no shared volume");
}

Test(operator_job, what_the_worker_image_brings_can_be_read_but_nothing_is_kept_there)
{
    struct cast *c =
        cast_open("{\"trainer\":{\"data\":{\"uri\":\"file:///usr/share/ringmaster/quickstart\"}}}");
    struct str out = str_init(1 << 20);
    struct error err = {0};
    cr_assert_eq(job_effective_spec(&c->job, &out, &err), 0, "%s", err.text);
    str_clear(&out);
    cast_free(c);
    refused("{\"trainer\":{\"data\":{\"uri\":\"file:///usr/share/ringmasters\"}}}", "mounts no volume there");
    refused("{\"checkpoint\":{\"uri\":\"file:///usr/share/ringmaster/runs\"}}",
            "mounts no shared volume there");
}

Test(operator_job, a_folder_below_a_mounted_volume_is_fine)
{
    struct cast *c = cast_open(
        "{\"checkpoint\":{\"uri\":\"file:///runs/a\"},\"workers\":{\"template\":{\"spec\":{\"containers\":"
        "[{\"name\":\"trainer\",\"volumeMounts\":[{\"name\":\"v\",\"mountPath\":\"/runs/\"}]}],"
        "\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"c\"}}]}}}}");
    struct str out = str_init(1 << 20);
    struct error err = {0};
    cr_assert_eq(job_effective_spec(&c->job, &out, &err), 0, "%s", err.text);
    str_clear(&out);
    cast_free(c);
}

Test(operator_job, the_spec_is_projected_to_what_plans_look_at)
{
    struct cast *c = cast_open("{\"suspend\":true,\"activeDeadlineSeconds\":90,\"ttlSecondsAfterFinished\":0,"
                               "\"cleanPodPolicy\":\"All\",\"scheduling\":{\"disruptionBudget\":\"None\"},"
                               "\"elasticity\":{\"startTimeout\":\"1m30s\"},\"failurePolicy\":{\"rules\":["
                               "{\"onExitCodes\":[3,42],\"action\":\"FailJob\"}]}}");
    const struct job_view *job = &c->job;
    cr_assert(job->suspend && job->managed && !job->disruption_budget && !job->deleting);
    cr_assert_eq(job->workers_min, 2);
    cr_assert_eq(job->workers_max, 5);
    cr_assert_eq(job->workers_target, 3);
    cr_assert_eq(job->active_deadline_s, 90);
    cr_assert_eq(job->ttl_s, 0);
    cr_assert_eq(job->clean, OP_CLEAN_ALL);
    cr_assert_eq(job->start_timeout_ms, 90000);
    cr_assert_eq(job->rules_count, 1);
    cr_assert_eq(job->rule[0].codes_count, 2);
    cr_assert_eq(job->rule[0].code[1], 42);
    cr_assert_eq(job->rule[0].action, OP_RULE_FAIL_JOB);
    cast_free(c);
}

Test(operator_job, a_job_of_another_operator_is_left_alone)
{
    struct cast *c = cast_open("{\"managedBy\":\"kueue.x-k8s.io/multikueue\"}");
    struct op_plan *plan = cast_plan(c);
    cr_assert_not(c->job.managed);
    cr_assert_eq(plan->actions_count, 0);
    plan_free(plan);
    cast_free(c);
}

Test(operator_job, a_status_comes_back_from_its_text_as_it_was)
{
    struct cast *c = cast_open("{}");
    struct str first = str_init(1 << 20), second = str_init(1 << 20);
    struct job_status again, *s = &c->job.status;
    struct error err = {0};
    cast_train(c);
    s->start_ms = 1790000000000;
    s->restarts.failure = 3;
    s->workers.slot[63] = (struct op_slot){.state = OP_SLOT_SKIPPED, .attempt = 4};
    s->workers.slot[1].asked = true;
    s->workers.slot[2].told_ms = 1790000002000;
    s->workers.slot[2].until_ms = 1790000122000;
    s->checkpoint =
        (struct op_checkpoint){.known = true, .step = 800, .uri = "s3://a/b", .saved_ms = 1790000001000};
    s->interval = (struct op_interval){.known = true,
                                       .reason = "every 5 min",
                                       .every_seconds = 300,
                                       .losses = 2,
                                       .observed_seconds = 7200,
                                       .stall_ms = 840,
                                       .safe_ms = 3100};
    s->goodput = (struct op_goodput){.known = true, .ratio = "0.962", .seconds = {[GOODPUT_WAITING] = 3}};
    s->result = (struct op_result){.known = true, .exact = true, .step = 9, .weights_sha256 = "abc"};
    status_write(s, "tiny", &first);
    struct js *object = js_parse(str_text(&first), first.length, "status", &err);
    status_read(object, &again);
    cr_assert(again.workers.slot[1].asked && again.workers.slot[2].told_ms == 1790000002000 &&
              again.workers.slot[2].until_ms == 1790000122000 && !again.workers.slot[1].told_ms);
    status_write(&again, "tiny", &second);
    cr_assert_str_eq(str_text(&first), str_text(&second));
    js_free(object);
    str_clear(&first);
    str_clear(&second);
    cast_free(c);
}

Test(operator_job, instants_are_read_and_written_as_kubernetes_does)
{
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {{"1970-01-01T00:00:00Z", 0},
                {"2000-02-29T23:59:59Z", 951868799000},
                {"2026-11-21T06:10:38.123456Z", 1795241438123},
                {"2026-11-21T08:10:38+02:00", 1795241438000}};
    static const char *const bad[] = {
        "", "2026-11-21", "2026-11-21T06:10:38", "2026-13-21T06:10:38Z", "x", "2026-11-21T06:10:38Zx", NULL};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        int64_t ms = -1, again = -1;
        char text[OP_INSTANT_TEXT];
        cr_assert(instant_parse(good[i].text, &ms), "%s", good[i].text);
        cr_assert_eq(ms, good[i].ms, "%s: %lld", good[i].text, (long long)ms);
        instant_text(ms, text);
        cr_assert(instant_parse(text, &again));
        cr_assert_eq(again, ms / 1000 * 1000);
    }
    for (int i = 0; bad[i]; i++) {
        int64_t ms;
        cr_assert_not(instant_parse(bad[i], &ms), "%s", bad[i]);
    }
    int64_t ignored;
    cr_assert_not(instant_parse(NULL, &ignored));
}
