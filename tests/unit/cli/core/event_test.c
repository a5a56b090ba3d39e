#include "cli/core/event.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

static int take(struct event *e, struct error *err, const char *text)
{
    return event_read(e, text, strlen(text), err);
}

Test(event, the_documented_fields_are_read)
{
    static struct event e;
    struct error err = {0};
    cr_assert_eq(
        take(&e, &err,
             "{\"event\":\"step\",\"time\":1,\"step\":7,\"loss\":2.5,\"tokensPerSecond\":812,\"world\":3}"),
        0);
    cr_assert(e.kind == EVENT_STEP && e.step == 7 && e.loss == 2.5 && e.tokens_per_second == 812 &&
              e.world == 3);
    cr_assert(isnan(e.norm) && isnan(e.clip) && isnan(e.rate), "not known, and no 0");
    cr_assert_eq(take(&e, &err,
                      "{\"event\":\"step\",\"step\":7,\"loss\":2.5,\"samplesPerSecond\":9,"
                      "\"gradientNorm\":1.5,\"clipFactor\":0.5,\"learningRate\":6e-4}"),
                 0);
    cr_assert(e.norm == 1.5 && e.clip == 0.5 && e.rate == 6e-4 && e.samples_per_second == 9);
    cr_assert_eq(take(&e, &err,
                      "{\"event\":\"ringFormed\",\"term\":1,\"generation\":2,\"world\":1,\"step\":0,"
                      "\"members\":[{\"worker\":2,\"agentPid\":10,\"trainerPid\":11}]}"),
                 0);
    cr_assert(e.members == 1 && e.member[0].worker == 2 && e.member[0].trainer_pid == 11);
    cr_assert_eq(
        take(&e, &err,
             "{\"event\":\"recovered\",\"cause\":\"WorkerLost\",\"detectMs\":1,\"agreeMs\":2,\"ringMs\":3,"
             "\"stateMs\":4,\"firstStepMs\":5,\"totalMs\":15.5,\"stepsRedone\":1}"),
        0);
    cr_assert(e.recovered.total == 15.5 && e.recovered.steps_redone == 1);
    cr_assert_str_eq(e.text, "WorkerLost");
    cr_assert_eq(take(&e, &err, "{\"event\":\"failed\",\"reason\":\"no\",\"exitCode\":6}"), 0);
    cr_assert(e.exit_code == 6 && !strcmp(e.text, "no"));
    cr_assert_eq(take(&e, &err,
                      "{\"event\":\"complete\",\"step\":9,\"loss\":null,\"weightsSha256\":\"ab\",\"exact\":"
                      "true,\"uri\":\"file:///x\"}"),
                 0);
    cr_assert(isnan(e.loss) && e.exact && isnan(e.goodput));
}

Test(event, internal_events_are_not_shown)
{
    static struct event e;
    struct error err = {0};
    cr_assert_eq(take(&e, &err, "{\"event\":\"listening\",\"address\":\"127.0.0.1:1\"}"), 0);
    cr_assert_lt((int)e.kind, (int)EVENT_SHOWN);
    cr_assert_eq(take(&e, &err, "{\"event\":\"released\",\"worker\":1}"), 0);
    cr_assert_lt((int)e.kind, (int)EVENT_SHOWN);
    cr_assert_eq(take(&e, &err, "{\"event\":\"waiting\",\"reason\":\"x\"}"), 0);
    cr_assert_geq((int)e.kind, (int)EVENT_SHOWN);
}

Test(event, rubbish_is_refused_and_a_newer_event_is_told_apart)
{
    static const char *const wrong[] = {"",
                                        "x",
                                        "[]",
                                        "1",
                                        "{}",
                                        "{\"event\":3}",
                                        "{\"event\":\"step\"}",
                                        "{\"event\":\"workerLost\",\"worker\":-4}",
                                        "{\"event\":\"workerLost\",\"worker\":64}",
                                        "{\"event\":\"failed\",\"reason\":\"x\"}",
                                        "{\"event\":\"listening\"}"};
    static struct event e;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct error err = {0};
        cr_assert_lt(take(&e, &err, wrong[i]), 0, "%s", wrong[i]);
        cr_assert_eq(err.code, ERR_PROTOCOL, "%s", wrong[i]);
    }
    struct error err = {0};
    cr_assert_lt(take(&e, &err, "{\"event\":\"moonrise\"}"), 0);
    cr_assert_eq(err.code, ERR_NOT_FOUND);
}

Test(event, where_the_time_went_is_read_whole_or_not_at_all)
{
    static struct event e;
    struct error err = {0};
    cr_assert_eq(take(&e, &err, "{\"event\":\"alive\",\"time\":1,\"at\":9,\"spent\":[1,2,3,4,5]}"), 0);
    cr_assert(e.kind == EVENT_ALIVE && e.at == 9 && e.spent[0] == 1 && e.spent[4] == 5);
    cr_assert_lt(e.kind, EVENT_SHOWN, "not for people");
    cr_assert_eq(take(&e, &err, "{\"event\":\"alive\",\"time\":1,\"at\":9,\"spent\":[1,2,-3,4,5]}"), 0);
    cr_assert_eq(e.at, 0);
    cr_assert_eq(take(&e, &err, "{\"event\":\"alive\",\"time\":1}"), 0);
    cr_assert_eq(e.at, 0);
}

Test(event, a_checkpoint_that_waits_is_told_with_its_age_and_the_one_that_went_through_with_the_time)
{
    static struct event e;
    struct error err = {0};
    cr_assert_eq(take(&e, &err,
                      "{\"event\":\"checkpointWaiting\",\"step\":20,\"uri\":\"s3://b/step-00000020\","
                      "\"reason\":\"away\",\"ageSeconds\":2.5}"),
                 0);
    cr_assert(e.kind == EVENT_CHECKPOINT_WAITING && e.age == 2.5 && !strcmp(e.text, "away"));
    cr_assert_geq((int)e.kind, (int)EVENT_SHOWN);
    cr_assert_eq(take(&e, &err, "{\"event\":\"checkpointSaved\",\"step\":20,\"waitedSeconds\":34}"), 0);
    cr_assert_eq(e.waited, 34);
    cr_assert_eq(take(&e, &err, "{\"event\":\"checkpointSkipped\",\"step\":9,\"reason\":\"no time\"}"), 0);
    cr_assert_eq(e.kind, EVENT_CHECKPOINT_SKIPPED);
    cr_assert_lt(take(&e, &err, "{\"event\":\"checkpointWaiting\"}"), 0, "without a step");
}
